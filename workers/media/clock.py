"""Places decoded frames on a timeline by their timestamps."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from workers.media.findings import Findings
from workers.messages import SAMPLE_RATE

TOLERANCE_S = 0.1  # smaller differences are jitter
DRIFT_S = 0.25  # shorter overlaps that recur are those of a recorder whose clock is too slow for its sound
DRIFT_APART_S = 2.0  # overlaps that recur sooner are those of a file whose times are wrong as such
MAX_DRIFT_S = 1.0  # more sound that is cut out so gives a warning
AHEAD_S = 10.0  # of sound, looked at when times jump. If they come back meanwhile, the others were wrong
MAX_AHEAD_VALUES = 4_000_000  # samples of all channels, looked at; for 10 s of 8 channels at 48 kHz
CONFIRMED_S = 3.0  # times that go on for so long after a jump are right
LAST_S = 0.5  # the same at the end of the file, or of one of joined files
DURATION_SLACK_S = 10.0  # a time further past the file's declared duration is wrong
MAX_GAP_S = 3600.0  # a time further ahead is wrong unless the file's duration confirms it
MAX_SILENCE_S = 12 * 3600.0  # total of all gaps: a small file must not fill a disk with silence

TimedFrame = tuple[Any, float | None]  # an av.AudioFrame with its timestamp in seconds


class Clock:
    """Places frames one after the other. Times are in seconds; `position` counts from the file's start."""

    def __init__(self, origin: float | None, duration: float | None, rate: int = SAMPLE_RATE) -> None:
        """`origin` is the timestamp at which the file starts; None: the one of its first frame.

        `duration` of the file, unless it may be derived from wrong times. `rate`: samples in a second of the
        result.
        """
        self.position = 0.0  # of the next frame if it has no timestamp
        self.drift_s = 0.0  # of sound that was dropped because recurring overlaps covered it
        self.drift_from = 0.0  # where that began
        self._origin = self._start = origin
        self._duration = duration or None
        self._rate = rate
        self._silence = 0.0
        self._overlap_at: float | None = None  # the position of the last short overlap
        self._owed = 0.0  # the first short overlap, which is dropped with the second one

    def place(self, start: float | None, seconds: float) -> int:
        """Add a frame with the timestamp `start` and a length of `seconds`.

        Returns the number of samples of silence before the frame. A negative number says how many samples to
        drop from here on, because earlier frames cover their time.
        """
        jump = 0.0
        if start is not None and (jump := self.jump(start)):
            if jump < 0:
                jump = self._overlap(jump)
            elif not self._is_believable(start, jump):
                jump = 0.0
            # Where the jump is not the whole one, the file's clock was reset: go on with the new one.
            self._origin = start - self.position - jump
            self._silence += max(0.0, jump)
        self.position += jump + seconds
        return round(jump * self._rate)

    def jump(self, start: float) -> float:
        """The distance from `position` to the timestamp `start`; 0 within the tolerance."""
        if self._origin is None:
            self._origin = start - self.position
            self._start = start
        jump = start - self._origin - self.position
        return jump if abs(jump) > TOLERANCE_S else 0.0

    def is_declared(self, start: float) -> bool | None:
        """Whether a timestamp is within the duration of the file; None if that is not known."""
        if self._duration is None or self._start is None:
            return None
        return start - self._start <= self._duration + DURATION_SLACK_S

    def _is_believable(self, start: float, jump: float) -> bool:
        is_declared = self.is_declared(start)
        is_usual = jump <= MAX_GAP_S and is_declared is None
        return self._silence + jump <= MAX_SILENCE_S and (is_declared or is_usual)

    def _overlap(self, jump: float) -> float:
        """How much of an overlap to drop, as a negative number."""
        if jump <= -DRIFT_S:
            self._owed = 0.0
            return 0.0
        last, self._overlap_at = self._overlap_at, self.position
        if last is None:
            self._owed = jump
            self.drift_from = self.position
        if last is None or self.position - last < DRIFT_APART_S:
            return 0.0
        jump, self._owed = jump + self._owed, 0.0
        self.drift_s -= jump
        return jump


def confirmed(frames: Iterator[TimedFrame], clock: Clock, findings: Findings) -> Iterator[TimedFrame]:
    """Drop each timestamp that jumps without being confirmed by those after it.

    The clock must place each frame before the next one is taken. Frames are looked at ahead only where a
    timestamp jumps: up to `AHEAD_S` seconds of them. `findings.position_s` is the end of the last one.
    """
    ahead: deque[TimedFrame] = deque()  # beginning with the frame that is placed next
    while ahead or (ahead := deque(islice(frames, 1))):
        frame, start = ahead[0]
        if start is not None and (jump := clock.jump(start)):
            goes_on = _look_ahead(ahead, frames, clock, findings) or bool(clock.is_declared(start))
            if not _is_confirmed(jump, start, ahead, goes_on):
                start = None
        ahead.popleft()
        yield frame, start


def length_s(frame: Any) -> float:
    return float(frame.samples / frame.sample_rate)


def _look_ahead(
    ahead: deque[TimedFrame], frames: Iterator[TimedFrame], clock: Clock, findings: Findings
) -> bool:
    """Take the frames that may confirm a jump. Returns whether the file goes on after them."""
    first, _ = ahead[0]
    limit_s = min(AHEAD_S, MAX_AHEAD_VALUES / first.sample_rate / first.layout.nb_channels)
    seconds = sum(length_s(frame) for frame, _ in ahead)
    while seconds < limit_s:
        findings.position_s = clock.position + seconds
        if (following := next(frames, None)) is None:
            return False
        ahead.append(following)
        seconds += length_s(following[0])
    return True


def _is_confirmed(jump: float, start: float, frames: Iterable[TimedFrame], goes_on: bool) -> bool:
    """Whether frames confirm the jump to the timestamp `start` of the first one.

    `goes_on`: the file does after them.
    """
    sound, enough_s = 0.0, CONFIRMED_S
    confirmed_s: float | None = None  # None: up to the last one
    for frame, later in frames:
        if later is not None:
            distance = later - start - sound + jump  # from the times before the jump
            if abs(distance) <= TOLERANCE_S:
                return False
            # Times move ahead in pauses as well, but not back again most of the way.
            if confirmed_s is None and (distance > jump / 2 if jump < 0 else distance < jump - TOLERANCE_S):
                confirmed_s = sound
                if distance < 0 < jump:  # not towards the times before the jump: another file begins
                    enough_s = LAST_S
        sound += length_s(frame)
    if confirmed_s is None:
        return goes_on or sound >= LAST_S or abs(jump) < LAST_S
    return confirmed_s >= enough_s
