"""The turns of a stream and their clips, found in speech probabilities while somebody speaks. Pure.

A turn is the speech between two silences, or between two commits. Its clips are planned as those of a
recording.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.live.events import TurnDetection
from app.recording.clip_planner import MARGIN_SAMPLES, ClipPlanner, PlannedClip
from app.recording.speech import SAMPLES_PER_MS, SpeechDetector, VadParameters
from workers.messages import FRAME_SAMPLES, MAX_CLIP_SAMPLES, SAMPLE_RATE, Span

# Less silence than this does not end speech, so it cannot end a turn: see `VadParameters`.
LEAST_SILENCE_MS = 160
# A turn that lasts longer ends with its next clip, although nobody has paused: its text is wanted, and its
# audio takes space.
MAX_TURN_SAMPLES = 120 * SAMPLE_RATE
_FRAMES_AT_ONCE = 2
_KEPT_FRAMES = 6 * SAMPLE_RATE // FRAME_SAMPLES  # before speech is certain


@dataclass(frozen=True, slots=True)
class TurnStarted:
    start: int  # of its speech, in samples of the stream


@dataclass(frozen=True, slots=True)
class ClipClosed:
    """A clip of the open turn is complete."""

    clip: PlannedClip


@dataclass(frozen=True, slots=True)
class TurnStopped:
    end: int  # of its audio, in samples of the stream


TurnStep = TurnStarted | ClipClosed | TurnStopped


class TurnFinder:
    """Finds the turns in one stream. Positions are samples of the stream, and those of frames."""

    def __init__(self, turns: TurnDetection | None, max_silence: int, start: int = 0) -> None:
        """`turns` None: turns end at `finish`. `max_silence`: see `ClipPlanner`. `start`: of a frame."""
        self.detection = turns
        self.silence_ms = None if turns is None else turns.silence_duration_ms  # that ends a turn
        self._max_silence = max_silence
        threshold = VadParameters().threshold if turns is None else turns.threshold
        self._detector = SpeechDetector(VadParameters(threshold), start)
        self._waiting = np.zeros(0, np.float32)  # probabilities of the next frames
        self._recent = np.zeros(0, np.float32)  # of the last ones
        self._floor = start  # no clip may start before this sample
        self._planner: ClipPlanner | None = None  # while somebody speaks
        self._turn_start: int | None = None  # of the open turn
        self._speech_end = start  # of the last speech
        self.position = start  # of the next frame

    @property
    def open_clip(self) -> PlannedClip | None:
        """What was said since the last clip, up to now; None if nobody has spoken."""
        clip = self._unpadded_clip
        if clip is None:
            return None
        clip = self._padded(clip)
        return replace(clip, end=min(self.position, clip.start + MAX_CLIP_SAMPLES))

    @property
    def needed_from(self) -> int:
        """The first sample that clips to come may have."""
        clip = self._unpadded_clip
        return self._planned_from(self._detector.settled_until if clip is None else clip.speech[0][0])

    def renewed(self, turns: TurnDetection | None) -> "TurnFinder":
        """One that goes on behind all frames so far, whatever is open."""
        return TurnFinder(turns, self._max_silence, self.position + len(self._waiting) * FRAME_SAMPLES)

    def feed(self, probabilities: npt.NDArray[np.float32]) -> Iterator[TurnStep]:
        """Add the next frames' probabilities, shape (n,). Yields what is certain now, in order.

        However they are divided, the steps are the same.
        """
        frames = np.concatenate((self._waiting, probabilities))
        whole = len(frames) // _FRAMES_AT_ONCE * _FRAMES_AT_ONCE
        self._waiting = frames[whole:]
        for first in range(0, whole, _FRAMES_AT_ONCE):
            yield from self._feed(frames[first : first + _FRAMES_AT_ONCE])

    def _feed(self, probabilities: npt.NDArray[np.float32]) -> Iterator[TurnStep]:
        spans = self._detector.feed(probabilities)
        self.position += len(probabilities) * FRAME_SAMPLES
        needed = -(-(self.position - self._planned_from(self._detector.settled_until)) // FRAME_SAMPLES)
        self._recent = np.concatenate((self._recent, probabilities))[-max(_KEPT_FRAMES, needed) :]
        ongoing = self._detector.ongoing
        speech = [*spans, *([ongoing] if ongoing is not None else [])]
        if speech:
            yield from self._begin_turn(speech)
            if self._planner is None:
                _, probabilities = self._begin_planning(speech[0][0])
        if self._planner is not None:
            settled = self._detector.settled_until
            yield from self._close(self._planner.extend(spans, ongoing, settled, probabilities))
            if not self._is_open:
                self._planner = None
        if self._has_ended():
            yield from self._end_turn()

    def finish(self) -> Iterator[TurnStep]:
        """End the open turn, if there is one, as if nobody spoke any more. Yields its last steps."""
        yield from self._feed(self._waiting)
        self._waiting = self._waiting[:0]
        spans = self._detector.finish(self.position)
        if spans:
            yield from self._begin_turn(spans)
            if self._planner is None:
                planner, probabilities = self._begin_planning(spans[0][0])
                planner.extend([], None, self._floor, probabilities)
        if self._turn_start is not None:
            yield from self._end_turn(spans)

    def _begin_turn(self, speech: Sequence[Span]) -> Iterator[TurnStep]:
        """Begin a turn with this speech, unless one is open."""
        self._speech_end = speech[-1][1]
        if self._turn_start is None:
            self._turn_start = speech[0][0]
            yield TurnStarted(speech[0][0])

    def _begin_planning(self, speech_start: int) -> tuple[ClipPlanner, npt.NDArray[np.float32]]:
        """A planner for the next clips, and the probabilities that it needs first."""
        kept_from = self.position - len(self._recent) * FRAME_SAMPLES
        start = max(kept_from, self._planned_from(speech_start))
        self._planner = ClipPlanner(self._max_silence, start)
        return self._planner, self._recent[(start - kept_from) // FRAME_SAMPLES :]

    def _has_ended(self) -> bool:
        if self._turn_start is None or self.silence_ms is None:
            return False
        silence_ms = max(LEAST_SILENCE_MS, self.silence_ms)
        return self._detector.settled_until - self._speech_end >= silence_ms * SAMPLES_PER_MS

    def _end_turn(self, spans: Sequence[Span] = ()) -> Iterator[TurnStep]:
        planner, self._planner, self._turn_start = self._planner, None, None
        # The next word may have begun, although that is not certain yet.
        end = min(self.position, self._detector.settled_until)
        if planner is not None:
            yield from self._close(planner.finish(spans, end))
        yield TurnStopped(end)

    def _close(self, clips: list[PlannedClip]) -> Iterator[TurnStep]:
        for clip in clips:
            yield ClipClosed(self._padded(clip))
            self._floor = clip.end
            if (
                self.silence_ms is not None
                and self._turn_start is not None
                and clip.end - self._turn_start >= MAX_TURN_SAMPLES
                and (clip is not clips[-1] or self._is_open)  # else the next turn might have no speech
            ):
                self._turn_start = clip.end
                yield TurnStopped(clip.end)
                yield TurnStarted(clip.end)

    @property
    def _is_open(self) -> bool:
        """Whether there is speech that no clip has yet."""
        return self._unpadded_clip is not None

    @property
    def _unpadded_clip(self) -> PlannedClip | None:
        return self._planner.open_clip(self._detector.ongoing) if self._planner is not None else None

    def _planned_from(self, speech_start: int) -> int:
        """The first sample that a clip with this speech may have."""
        return max(self._floor, speech_start - self._padding - FRAME_SAMPLES)

    @property
    def _padding(self) -> int:
        if self.detection is None:
            return MARGIN_SAMPLES
        return max(MARGIN_SAMPLES, self.detection.prefix_padding_ms * SAMPLES_PER_MS)

    def _padded(self, clip: PlannedClip) -> PlannedClip:
        """The clip with so much silence before its speech as the client wants, or more."""
        start = max(self._floor, clip.speech[0][0] - self._padding, clip.end - MAX_CLIP_SAMPLES)
        return replace(clip, start=min(clip.start, start))
