"""How much audio the encoder sees with a window: all 30 s, or less for a short window. Pure.

Whisper pads every window to 30 s, so a short one costs as much as a long one. Models were trained on that:
with less, real ones are known to repeat short phrases and to lose some. So the context has steps, a margin
and a least length, and a doubtful result is not used.
"""

import math
import re

from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, WindowResult

# Windows of one step share batches, and none depends on the others of its batch.
_STEP_S = 5
_MARGIN_S = 1.0  # of silence behind the window, in which the decoder ends its text
_REPEATED = re.compile(r"(.{4,}?)\1")  # a run of letters, twice in a row: shorter ones are in many words


def context_s(samples: int, min_s: float) -> int:
    """The audio context for a window of so many samples (s), `min_s` or more."""
    steps = math.ceil((samples / SAMPLE_RATE + _MARGIN_S) / _STEP_S)
    return min(max(steps * _STEP_S, math.ceil(min_s)), FULL_CONTEXT_S)


def is_doubtful(result: WindowResult) -> bool:
    """Whether a window with a short context is to be decoded again with the full one.

    A result that is half as improbable as a poor one is doubtful, and so is one without text or with a
    repetition.
    """
    segments = [*result.segments, *([result.tail] if result.tail else [])]
    letters = "".join(filter(str.isalnum, "".join(segment.text for segment in segments).casefold()))
    improbable = result.poor or result.avg_logprob < result.thresholds.logprob / 2
    return improbable or not letters or _REPEATED.search(letters) is not None
