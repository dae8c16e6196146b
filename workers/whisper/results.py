"""What a decoder returns: its tokens, split at timestamps, and its scores, finite and rounded. Pure.

In float16, a decoder can give NaN and infinity. JSON has neither of them, and every comparison with NaN is
false. Scores are rounded where they come in, so those that are published are those that decide.
"""

import math
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from workers.messages import SAMPLE_RATE, LanguageProbs

_SCORE_DIGITS = 4  # after the point
_MAX_LANGUAGES = 10  # of a window's result
SAMPLES_PER_TIMESTAMP = SAMPLE_RATE // 50  # a timestamp token counts 20 ms

_UNSPACED = frozenset(
    {"bo", "ja", "km", "lo", "my", "th", "yue", "zh"}
)  # languages without spaces between words
_CLOSING = ".,;:!?…%\"'’”»)]}،؛؟।"
_INSIDE = "-'’"  # between letters, these are in a word


@dataclass(frozen=True, slots=True)
class TimestampedText:
    """Text tokens between two timestamps, in samples from the window's start."""

    start: int
    end: int
    tokens: tuple[int, ...]  # including the timestamps on both sides


def split_at_timestamps(
    tokens: Sequence[int], first_timestamp: int, samples: int
) -> tuple[list[TimestampedText], TimestampedText | None]:
    """Split a decoder's output into texts with a closing timestamp, and a last text without one.

    `first_timestamp` is the token for 0.00 s. Text that starts in the padding after the window's `samples`
    was not spoken, and is dropped.
    """
    closed: list[TimestampedText] = []
    start, text = 0, []
    prefix: tuple[int, ...] = ()
    for token in tokens:
        if token < first_timestamp:
            text.append(token)
            continue
        time = min((token - first_timestamp) * SAMPLES_PER_TIMESTAMP, samples)
        if text:
            if start < samples:
                closed.append(TimestampedText(start, max(time, start), (*prefix, *text, token)))
            text = []
        start, prefix = time, (token,)
    if not text or start >= samples:
        return closed, None
    return closed, TimestampedText(start, samples, (*prefix, *text))


def leading_spaces(texts: Sequence[str], language: str) -> Iterator[str]:
    """For each of a window's texts, the space that it lacks before it, or nothing.

    Whisper's own models write that space; some that were trained further do not. Where others in the window
    have one, a text that follows a letter continues its word.
    """
    some_have = any(text[:1].isspace() for text in texts)
    before = ""
    for text in texts:
        continues = before.isalnum() and (some_have or text[:1] in _INSIDE)
        yield " " if language not in _UNSPACED and _begins_word(text) and not continues else ""
        before = text[-1:]


def _begins_word(text: str) -> bool:
    """Whether the text has no space before it, and begins a word: no punctuation closes one before it."""
    first, unclosed = text[:1], text.lstrip(_CLOSING)
    if not first or first.isspace() or unicodedata.category(first)[0] == "M":
        return False
    is_wide = unicodedata.east_asian_width(first) in "WF" and "HANGUL" not in unicodedata.name(first, "")
    return not is_wide and (unclosed == text or unclosed[:1].isalnum())


def score(value: float, unknown: float) -> float:
    """A score without the digits that depend on the others of its batch; `unknown` if it is not finite.

    On a CPU, these move the average log-probability by 7e-8 in the mean, and by 3e-7 at most (demo model in
    float32). One score in a thousand is so near to a border between two steps of 1e-4 that it may be rounded
    to either. Equal texts have equal scores otherwise, and no threshold is such a border.
    """
    if not math.isfinite(value):
        return unknown
    return round(float(value), _SCORE_DIGITS) + 0.0  # -0.0 would be another text in JSON


def likeliest(probs: Iterable[tuple[str, float]], languages: Collection[str] = ()) -> LanguageProbs:
    """The likeliest languages with their scores, likeliest first. `languages`: the only ones; empty: all.

    Those without a probability come last, and equal ones are in alphabetical order.
    """
    wanted = [(name, score(prob, 0.0)) for name, prob in probs if not languages or name in languages]
    return tuple(sorted(wanted, key=lambda entry: (-entry[1], entry[0]))[:_MAX_LANGUAGES])
