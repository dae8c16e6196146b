"""The clip plan: which unbroken spans of a recording are transcribed. Pure.

The plan depends on the audio up to each cut and a bounded look-ahead, never on the recording's length, the
fleet or the load. So a recording has the same transcript on every machine and every time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.recording.speech import quietest_frame
from workers.messages import FRAME_SAMPLES, MAX_CLIP_SAMPLES, SAMPLE_RATE, Span

# Silence longer than this separates clips and belongs to none. A window costs the encoder the same however
# little is said in it, so short lines with pauses between them share one, and the words before help to
# recognise the next. Whisper was trained on windows with such pauses, but loses words around longer ones.
MAX_SILENCE_SAMPLES = 8 * SAMPLE_RATE
# The same for the demo model. It was trained on shorter pauses, and loses words around longer ones.
DEMO_MAX_SILENCE_SAMPLES = 2 * SAMPLE_RATE
# Most silence kept on either side of a clip's speech. Whisper gives a window's first word no timestamp later
# than 1.0 s, and words lose their edges when the cut is too close.
MARGIN_SAMPLES = 3 * SAMPLE_RATE // 10
# How far back from the end of a full window to look for a cut: first near, then far. A short clip costs the
# encoder as much as a full one, and gives the decoder less context.
REACHES = (MAX_CLIP_SAMPLES // 2, MAX_CLIP_SAMPLES * 5 // 6)


@dataclass(frozen=True, slots=True)
class PlannedClip:
    """The clip `[start, end)` of a recording and the speech in it, in samples from the recording's start."""

    index: int
    start: int
    end: int
    speech: tuple[Span, ...]


class ClipPlanner:
    """Groups speech spans into clips as they become known.

    `max_silence`: silence of more samples separates clips. No clip starts before the sample `start`, and the
    first probability is that of its frame.
    """

    def __init__(self, max_silence: int = MAX_SILENCE_SAMPLES, start: int = 0) -> None:
        self._max_silence = max_silence
        self._planned = 0  # clips returned so far
        self._spans: list[Span] = []  # speech that is in no clip yet
        self._floor = start  # no clip may start before this sample
        self._probabilities = np.zeros(0, np.float32)
        self._first_frame = start // FRAME_SAMPLES  # of `_probabilities`

    def extend(
        self,
        spans: Sequence[Span],
        ongoing: Span | None,
        settled: int,
        probabilities: npt.NDArray[np.float32],
    ) -> list[PlannedClip]:
        """Add the next part of a recording. Returns the clips that are certain now.

        `spans`: speech that has ended, in samples, in order. `ongoing`: speech that lasts at least until the
        span's end. `settled`: no other speech begins before this sample. `probabilities`: the next frames'
        speech probabilities, shape (n,), of `FRAME_SAMPLES` each.
        """
        self._probabilities = np.concatenate((self._probabilities, probabilities))
        clips = self._plan(spans, ongoing, settled)
        drop = min(max(self._floor // FRAME_SAMPLES - self._first_frame, 0), len(self._probabilities))
        self._probabilities = self._probabilities[drop:]
        self._first_frame += drop
        return clips

    def finish(self, spans: Sequence[Span], total: int) -> list[PlannedClip]:
        """The remaining clips of a recording of `total` samples."""
        clips = self._plan(spans, None, total + self._max_silence + 1)
        return [replace(clip, end=min(clip.end, total)) for clip in clips]

    def open_clip(self, ongoing: Span | None) -> PlannedClip | None:
        """The clip that is not certain yet, up to the last speech in it; None if it has no speech."""
        spans = self._known(ongoing)
        if not spans:
            return None
        return PlannedClip(self._planned, self._start(spans), spans[-1][1], tuple(spans))

    def _plan(self, spans: Sequence[Span], ongoing: Span | None, settled: int) -> list[PlannedClip]:
        # A span that was cut while it was ongoing comes with its beginning, which is in a clip already.
        self._spans += [(max(start, self._floor), end) for start, end in spans if end > self._floor]
        clips = []
        while cut := self._next_cut(known := self._known(ongoing), settled):
            end, resume = cut
            speech = tuple((begin, min(stop, end)) for begin, stop in known if begin < end)
            clips.append(PlannedClip(self._planned, self._start(known), end, speech))
            self._planned += 1
            self._floor = resume
            self._spans = [(max(begin, end), stop) for begin, stop in self._spans if stop > end]
        return clips

    def _known(self, ongoing: Span | None) -> list[Span]:
        if ongoing is None or ongoing[1] <= self._floor:
            return self._spans
        return [*self._spans, (max(ongoing[0], self._floor), ongoing[1])]

    def _start(self, spans: list[Span]) -> int:
        return max(self._floor, spans[0][0] - MARGIN_SAMPLES)

    def _next_cut(self, spans: list[Span], settled: int) -> Span | None:
        """Where the next clip ends, and where the one after it may start; None while that is not certain."""
        if not spans:
            return None
        limit = self._start(spans) + MAX_CLIP_SAMPLES
        pauses: list[Span] = []
        following = [start for start, _ in spans[1:]] + [settled]
        for (_, end), start in zip(spans, following, strict=True):
            if end > limit:
                return self._cut_in_pause(pauses, limit) or self._cut_in_speech(limit)
            if start - end > self._max_silence:
                return min(end + MARGIN_SAMPLES, limit), start - MARGIN_SAMPLES
            pauses.append((end, start))
        return None  # the last pause or the last speech may still continue

    def _cut_in_pause(self, pauses: list[Span], limit: int) -> Span | None:
        """Cut in the longest pause of the window's last part, or else of the part before it."""
        for reach in REACHES:
            in_reach = [pause for pause in pauses if pause[0] >= limit - reach]
            if in_reach:
                start, end = max(in_reach, key=lambda pause: (pause[1] - pause[0], pause[0]))
                margin = min(MARGIN_SAMPLES, (end - start) // 2)
                return min(start + margin, limit), end - margin
        return None

    def _cut_in_speech(self, limit: int) -> Span:
        """Cut speech without a pause in the frame that is least likely speech, the latest of equals."""
        first = -(-(limit - REACHES[0]) // FRAME_SAMPLES)
        frames = self._probabilities[first - self._first_frame : limit // FRAME_SAMPLES - self._first_frame]
        cut = (first + quietest_frame(frames)) * FRAME_SAMPLES + FRAME_SAMPLES // 2
        return cut, cut
