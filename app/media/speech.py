"""From speech probabilities to spans of speech, as they come in. Pure.

The spans are those of silero-vad's `get_speech_timestamps_from_probs` for the whole recording, however the
probabilities are cut into pieces.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workers.messages import FRAME_SAMPLES, SAMPLE_RATE, Span

SPAN_FRAMES = 60 * SAMPLE_RATE // FRAME_SAMPLES  # that a media child looks at in one task

# Speech once begun goes on while its probability stays above the threshold less this much.
HYSTERESIS = 0.15
MIN_THRESHOLD = 0.01


@dataclass(frozen=True, slots=True)
class VadParameters:
    """What counts as speech; names, meanings and defaults are silero-vad's."""

    threshold: float = 0.5  # probability from which on a frame is speech
    min_speech_ms: int = 250  # speech must be longer than this
    min_silence_ms: int = 100  # a pause must last this long to end speech
    speech_pad_ms: int = 30  # spans are widened by this on either side; a shorter pause is shared


class SpeechDetector:
    """Finds the speech of one recording. Positions are samples; spans are in order and do not overlap."""

    def __init__(self, parameters: VadParameters) -> None:
        # Probabilities are 32-bit floats: a threshold must be rounded like them to compare equal.
        threshold = parameters.threshold
        self._threshold = float(np.float32(threshold))
        self._low = float(np.float32(max(threshold - HYSTERESIS, MIN_THRESHOLD)))
        self._min_speech = _samples(parameters.min_speech_ms)
        self._min_silence = _samples(parameters.min_silence_ms)
        self._pad = _samples(parameters.speech_pad_ms)
        self._position = 0  # of the next frame
        self._start: int | None = None  # of the speech that goes on, not widened
        self._begin: int | None = None  # the same, widened, once that speech is sure to count
        self._pause: int | None = None  # where it may have ended
        # The last speech that ended: its widened start, and its end, which the next speech may be close to.
        self._ended: Span | None = None

    def feed(self, probabilities: npt.NDArray[np.float32]) -> list[Span]:
        """Take in the next frames, shape (n,); give the spans that became final."""
        final: list[Span] = []
        for probability in probabilities.tolist():
            if probability >= self._threshold:
                self._pause = None
                if self._start is None:
                    self._start = self._position
            elif probability < self._low and self._start is not None:
                if self._pause is None:
                    self._pause = self._position
                if self._position - self._pause >= self._min_silence:
                    final += self._end_speech(self._start, self._pause)
            self._position += FRAME_SAMPLES
        if (
            self._begin is None
            and self._start is not None
            and self._counts(self._start, self._earliest_end())
        ):
            # Speech may go on for hours: what came before it need not wait for its end.
            final += self._widen(self._start)
        return final + self._release()

    def finish(self, total_samples: int) -> list[Span]:
        """The rest of the spans, once all frames of a recording of `total_samples` were fed."""
        final: list[Span] = []
        if self._start is not None:
            final += self._end_speech(self._start, total_samples)
        if self._ended is not None:
            start, end = self._ended
            final.append((start, min(end + self._pad, total_samples)))
            self._ended = None
        self._position = total_samples + self._pad  # nothing can begin any more
        return final

    @property
    def settled_until(self) -> int:
        """The sample before which all is final: a span that is yet to come begins there at the earliest."""
        if self._ended is not None:
            return self._ended[0]
        if self._begin is not None:
            return self._begin
        return self._widened_start(self._position if self._start is None else self._start)

    @property
    def ongoing(self) -> Span | None:
        """The next span to come, if it is certain to: its start, and the earliest that it can end."""
        if self._ended is not None:
            return self._ended
        return None if self._begin is None else (self._begin, self._earliest_end())

    def _earliest_end(self) -> int:
        # The last frame may hold as little as one sample, if the recording ends with it.
        return self._position - FRAME_SAMPLES if self._pause is None else self._pause

    def _counts(self, start: int, end: int) -> bool:
        return end - start > self._min_speech

    def _end_speech(self, start: int, end: int) -> list[Span]:
        """Note speech that is over, unless it was too short; give the one before it, which is final now."""
        before: list[Span] = []
        if self._counts(start, end):
            before = self._widen(start) if self._begin is None else []
            self._ended = (start if self._begin is None else self._begin, end)
        self._start = self._pause = self._begin = None
        return before

    def _widen(self, start: int) -> list[Span]:
        """Widen the start of speech that counts; give the speech before it, which is final with that."""
        before, self._ended = self._ended, None
        self._begin = self._widened_start(start)
        if before is None:
            return []
        gap = start - before[1]
        if gap >= 2 * self._pad:
            return [(before[0], before[1] + self._pad)]
        self._begin = start - gap // 2
        return [(before[0], before[1] + gap // 2)]

    def _release(self) -> list[Span]:
        """The last speech that ended, if nothing that begins now can be close to it."""
        if self._ended is None or self._start is not None:
            return []
        start, end = self._ended
        if self._position - FRAME_SAMPLES < end + 2 * self._pad:
            return []
        self._ended = None
        return [(start, end + self._pad)]

    def _widened_start(self, start: int) -> int:
        return max(0, start - self._pad)


def _samples(milliseconds: int) -> int:
    return milliseconds * SAMPLE_RATE // 1000
