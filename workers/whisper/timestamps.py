"""Splits a decoder's output at its timestamps. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.messages import SAMPLE_RATE

SAMPLES_PER_TIMESTAMP = SAMPLE_RATE // 50  # a timestamp token counts 20 ms


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
    was not spoken, and is dropped. If the only text has no closing timestamp, it ends with the window.
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
    rest = TimestampedText(start, samples, (*prefix, *text))
    return (closed, rest) if closed else ([rest], None)
