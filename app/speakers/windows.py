"""The windows of speech whose voices are compared. Pure."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from workers.messages import SAMPLE_RATE, Span

WINDOW = 3 * SAMPLE_RATE // 2  # samples: a voice is hard to tell from less than a second
STEP = WINDOW // 2  # samples, at most
SHORTEST = SAMPLE_RATE // 5  # samples: less says nothing of a voice


def voice_windows(speech: Iterable[Span]) -> tuple[Span, ...]:
    """The windows of a clip's speech, in order, in samples of the recording.

    Each span of speech has windows of 1.5 s, evenly spread, that begin 0.75 s apart at most. A shorter span
    is one window, and a span below 0.2 s has none.
    """
    return tuple(window for start, end in speech for window in _windows(start, end))


def _windows(start: int, end: int) -> Iterator[Span]:
    spare = end - start - WINDOW
    if spare <= 0:
        if end - start >= SHORTEST:
            yield start, end
        return
    steps = -(-spare // STEP)
    for step in range(steps + 1):
        first = start + step * spare // steps
        yield first, first + WINDOW


def window_parts(windows: Sequence[Span]) -> npt.NDArray[np.int64]:
    """The part of the speech that each window stands for: shape (n, 2), ordered, without overlap.

    Where two windows overlap, the parts meet in the middle. Together, they cover what the windows cover.
    """
    parts = np.array(windows, np.int64).reshape(-1, 2)
    starts, ends = parts[1:, 0].copy(), parts[:-1, 1].copy()
    overlap = starts < ends
    parts[1:, 0][overlap] = parts[:-1, 1][overlap] = ((starts + ends) // 2)[overlap]
    return parts


def lengths(parts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The length of each part, in samples."""
    return (parts[:, 1] - parts[:, 0]).astype(np.float64)
