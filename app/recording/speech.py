"""From speech probabilities to spans of speech, while the probabilities arrive. Pure.

The spans equal those of silero-vad's `get_speech_timestamps_from_probs` for the complete recording, however
the probabilities are divided.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from workers.messages import FRAME_SAMPLES, SAMPLE_RATE, Span

# Speech that has begun continues while its probability is above the threshold minus this.
HYSTERESIS = 0.15
MIN_THRESHOLD = 0.01
SAMPLES_PER_MS = SAMPLE_RATE // 1000
# Frames over which the speech probability is averaged to cut speech without a pause. A single low frame is
# often a plosive inside a word.
_CUT_FRAMES = 3
_SILENCE, _BETWEEN, _SPEECH = range(3)  # kinds of frames; those between end no speech and begin none


@dataclass(frozen=True, slots=True)
class VadParameters:
    """What counts as speech; names, meanings and defaults are silero-vad's."""

    threshold: float = 0.5  # lowest probability at which speech begins
    min_speech_ms: int = 250  # speech must be longer than this
    min_silence_ms: int = 100  # a pause must last this long to end speech
    speech_pad_ms: int = 30  # spans are widened by this on either side, or by half of a shorter pause
    neg_threshold: float | None = None  # speech may end below this, at most `threshold`; None: see HYSTERESIS


class SpeechDetector:
    """Finds the speech of one recording. Positions are samples; spans are in order and do not overlap.

    From the sample `start` on: the first frame is the one that has it.
    """

    def __init__(self, parameters: VadParameters, start: int = 0) -> None:
        # Probabilities are 32-bit floats: only a threshold rounded like them compares equal.
        threshold, low = parameters.threshold, parameters.neg_threshold
        self._threshold = float(np.float32(threshold))
        self._low = float(np.float32(max(threshold - HYSTERESIS, MIN_THRESHOLD) if low is None else low))
        self._min_speech = parameters.min_speech_ms * SAMPLES_PER_MS
        self._min_silence = parameters.min_silence_ms * SAMPLES_PER_MS
        self._pad = parameters.speech_pad_ms * SAMPLES_PER_MS
        self._first = start
        self._position = start // FRAME_SAMPLES * FRAME_SAMPLES  # of the next frame
        self._start: int | None = None  # of the ongoing speech, not widened
        self._begin: int | None = None  # the same, widened, once the speech is certainly long enough
        self._pause: int | None = None  # where it may have ended
        # The last speech that ended: its widened start, and its end, which is not widened yet.
        self._ended: Span | None = None

    def feed(self, probabilities: npt.NDArray[np.float32]) -> list[Span]:
        """Add the next frames' probabilities, shape (n,). Returns the spans that are final now."""
        final: list[Span] = []
        for kind, frames in self._runs(probabilities):
            if kind == _SPEECH:
                self._pause = None
                if self._start is None:
                    self._start = self._position
            elif kind == _SILENCE and self._start is not None:
                if self._pause is None:
                    self._pause = self._position
                last = self._position + (frames - 1) * FRAME_SAMPLES
                if last - self._pause >= self._min_silence:
                    final += self._end_speech(self._start, self._pause)
            self._position += frames * FRAME_SAMPLES
        if (
            self._begin is None
            and self._start is not None
            and self._earliest_end() - self._start > self._min_speech
        ):
            # Speech may last for hours: the span before it must not wait for its end.
            final += self._widen(self._start)
        return final + self._release()

    def _runs(self, probabilities: npt.NDArray[np.float32]) -> Iterator[tuple[int, int]]:
        """The frames of one kind that follow each other: their kind, and how many they are."""
        kinds = np.where(
            probabilities >= self._threshold, _SPEECH, np.where(probabilities < self._low, _SILENCE, _BETWEEN)
        )
        edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
        for first, end in pairwise(edges):
            if first < end:
                yield int(kinds[first]), end - first

    def finish(self, total_samples: int) -> list[Span]:
        """The remaining spans, after all frames of a recording of `total_samples`."""
        final: list[Span] = []
        if self._start is not None:
            final += self._end_speech(self._start, total_samples)
        if self._ended is not None:
            start, end = self._ended
            final.append((start, min(end + self._pad, total_samples)))
            self._ended = None
        self._position = total_samples + self._pad  # no speech can begin any more
        return final

    @property
    def settled_until(self) -> int:
        """The earliest sample at which a further span can begin."""
        if self._ended is not None:
            return self._ended[0]
        if self._begin is not None:
            return self._begin
        return max(self._first, (self._position if self._start is None else self._start) - self._pad)

    @property
    def ongoing(self) -> Span | None:
        """The next span, if it is certain: its start and its earliest end."""
        if self._ended is not None:
            return self._ended
        return None if self._begin is None else (self._begin, self._earliest_end())

    def _earliest_end(self) -> int:
        # The last frame of a recording may hold a single sample.
        return self._position - FRAME_SAMPLES if self._pause is None else self._pause

    def _end_speech(self, start: int, end: int) -> list[Span]:
        """Record speech that has ended, unless it was too short. Returns the span before it, final now."""
        before: list[Span] = []
        if end - start > self._min_speech:
            before = self._widen(start) if self._begin is None else []
            self._ended = (start if self._begin is None else self._begin, end)
        self._start = self._pause = self._begin = None
        return before

    def _widen(self, start: int) -> list[Span]:
        """Widen the start of speech that is long enough. Returns the span before it, final now."""
        before, self._ended = self._ended, None
        self._begin = max(self._first, start - self._pad)
        if before is None:
            return []
        gap = start - before[1]
        if gap >= 2 * self._pad:
            return [(before[0], before[1] + self._pad)]
        self._begin = start - gap // 2
        return [(before[0], before[1] + gap // 2)]

    def _release(self) -> list[Span]:
        """The last span that ended, if speech that begins now cannot be close to it any more."""
        if self._ended is None or self._start is not None:
            return []
        start, end = self._ended
        if self._position - FRAME_SAMPLES < end + 2 * self._pad:
            return []
        self._ended = None
        return [(start, end + self._pad)]


def divide(spans: Iterable[Span], probabilities: npt.NDArray[np.float32], max_samples: float) -> list[Span]:
    """The spans, with those over `max_samples` in pieces, which follow one another without a gap.

    `probabilities`: of all frames of the recording, shape (n,). A piece ends in its last half, in the frame
    that is least likely speech. `max_samples` is half a second at least.
    """
    pieces = []
    for start, end in spans:
        while end - start > max_samples:
            limit = start + int(max_samples)
            first = -(-(start + limit) // (2 * FRAME_SAMPLES))
            frame = first + quietest_frame(probabilities[first : limit // FRAME_SAMPLES])
            cut = frame * FRAME_SAMPLES + FRAME_SAMPLES // 2
            pieces.append((start, cut))
            start = cut
        pieces.append((start, end))
    return pieces


def quietest_frame(probabilities: npt.NDArray[np.float32]) -> int:
    """The index of the frame that is least likely speech, with its neighbours; the latest of equals.

    `probabilities`: shape (n,), three at least.
    """
    around = np.convolve(probabilities, np.ones(_CUT_FRAMES), mode="valid")
    return _CUT_FRAMES // 2 + len(around) - 1 - int(np.argmin(around[::-1]))
