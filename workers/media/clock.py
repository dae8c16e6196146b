"""Places decoded frames on a timeline by their timestamps."""

from workers.messages import SAMPLE_RATE

TOLERANCE_S = 0.1  # smaller differences are jitter
MAX_OVERLAP_S = 10.0  # a time that goes back further, or to the beginning, resets the clock
BEGINNING_S = 1.0  # of a file; a time that goes back into it resets the clock
DURATION_SLACK_S = 10.0  # a time further past the file's declared duration is wrong
MAX_GAP_S = 3600.0  # a time further ahead is wrong
MAX_SILENCE_S = 12 * 3600.0  # total of all gaps: a small file must not fill a disk with silence


class Clock:
    """Places frames one after the other. Times are in seconds; `position` counts from the file's start."""

    def __init__(self, origin: float | None, duration: float | None, rate: int = SAMPLE_RATE) -> None:
        """`origin` is the timestamp at which the file starts; None: the one of its first frame.

        `rate`: samples in a second of the result.
        """
        self.position = 0.0  # of the next frame if it has no timestamp
        self._origin = origin
        self._duration = duration
        self._rate = rate
        self._silence = 0.0

    def place(self, start: float | None, seconds: float) -> int | None:
        """Add a frame with the timestamp `start` and a length of `seconds`.

        Returns the number of samples of silence before the frame. A negative number says how many of the
        frame's own samples to drop, because earlier frames cover their time; None: drop all of them.
        """
        jump = self._jump(start)
        if not self._is_believable(jump):
            # The file's clock was reset: continue from here with the new one.
            assert self._origin is not None
            self._origin += jump
            jump = 0.0
        if jump + seconds <= 0:
            return None
        self.position += jump + seconds
        self._silence += max(0.0, jump)
        return round(jump * self._rate)

    def is_stray(self, start: float | None, seconds: float, following: float | None) -> bool:
        """Whether a frame's timestamp jumps, but the next frame's timestamp does not."""
        if start is None or following is None:
            return False
        return self._jump(start) != 0 and self._jump(following - seconds) == 0

    def _jump(self, start: float | None) -> float:
        """The distance from `position` to the timestamp `start`; 0 within the tolerance."""
        if start is None:
            return 0.0
        if self._origin is None:
            self._origin = start - self.position
        jump = start - self._origin - self.position
        return jump if abs(jump) > TOLERANCE_S else 0.0

    def _is_believable(self, jump: float) -> bool:
        target = self.position + jump
        if jump < 0:
            return jump >= -MAX_OVERLAP_S and target >= BEGINNING_S
        past_the_end = self._duration is not None and target > self._duration + DURATION_SLACK_S
        too_long = jump > MAX_GAP_S or self._silence + jump > MAX_SILENCE_S
        return jump == 0 or not (too_long or past_the_end)
