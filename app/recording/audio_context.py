"""The audio context of the encoder for a window: all 30 s, or less for a short window. Pure.

Whisper pads every window to 30 s, so a short one costs as much as a long one. Models were trained on that:
with less, real ones are known to repeat short phrases and to lose some. So the context has steps, a margin
and a least length, and a doubtful result is not used.
"""

import math
import re
from unicodedata import category

from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, WindowResult

# Windows of one step share batches, and none depends on the others of its batch.
_STEP_S = 5
_LONGEST_STEP_S = 20  # 25 s save little, and changed words
_MARGIN_S = 1.0  # of silence behind the window, in which the decoder ends its text
# Letters that are repeated at once. People do say "come in, come in" before they go on, and end with "nine
# nine". The upper limits bound the time of the search.
_REPEATED = re.compile(
    r"""^(.{4,11}?)\1$        # nothing else
      | (.{4,11}?)\2\2       # three times
      | (.{6,11}?)\3$        # at the end
      | (.{12,200}?)\4       # many letters""",
    re.VERBOSE,
)


def context_s(samples: int, min_s: float) -> int:
    """The audio context for a window of so many samples (s): `min_s` or more, or all 30 s."""
    steps = math.ceil((samples / SAMPLE_RATE + _MARGIN_S) / _STEP_S)
    context = max(steps * _STEP_S, math.ceil(min_s))
    return context if context <= _LONGEST_STEP_S else FULL_CONTEXT_S


def is_doubtful(result: WindowResult) -> bool:
    """Whether a window with a short context must be decoded again with the full one.

    A result is doubtful if its text is missing, repeats itself or is improbable. The log-probability must be
    at least half the threshold of poor results.
    """
    if result.poor or result.avg_logprob < result.thresholds.logprob / 2:
        return True
    text = text_of(result)
    return not _letters(text) or repeats_itself(text)


def text_of(result: WindowResult) -> str:
    """All text of a window, closed by a timestamp or not."""
    return "".join(segment.text for segment in result.texts)


def repeats_itself(text: str) -> bool:
    """Whether a text repeats some letters at once, as people do not."""
    return _REPEATED.search(_letters(text)) is not None


def _letters(text: str) -> str:
    # Marks are the vowels of some scripts.
    return "".join(letter for letter in text.casefold() if category(letter)[0] in "LMN")
