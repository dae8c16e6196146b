"""Where decoded frames belong, by the times they claim."""

from workers.messages import SAMPLE_RATE

TOLERANCE_S = 0.1  # times that are off by less are jitter
MAX_OVERLAP_S = 10.0  # times that go back further, or to the very start, begin anew
BEGINNING_S = 1.0
DURATION_SLACK_S = 10.0  # a time that lies further past the file's own duration is wrong
MAX_GAP_S = 3600.0
MAX_SILENCE_S = 12 * 3600.0  # of all gaps: a small file may not claim to fill a disk


class Clock:
    """Places frames one after the other. All times are seconds; `position` counts from the file's start."""

    def __init__(self, origin: float | None, duration: float | None) -> None:
        """`origin` is the file's time of its first moment; None: that of its first frame."""
        self.position = 0.0  # where the next frame goes if it says nothing else
        self._origin = origin
        self._duration = duration
        self._silence = 0.0

    def place(self, start: float | None, seconds: float) -> int | None:
        """Add a frame that claims to start at `start` in the file's own time.

        Returns the samples of silence to put before it or, below 0, how many of its own to leave out since
        their time is taken already; None if that is all of them.
        """
        jump = self._jump(start)
        if not self._is_believable(jump):
            # The file's clock was set: go on from here by the new one.
            assert self._origin is not None
            self._origin += jump
            jump = 0.0
        if jump + seconds <= 0:
            return None
        self.position += jump + seconds
        self._silence += max(0.0, jump)
        return round(jump * SAMPLE_RATE)

    def is_stray(self, start: float | None, seconds: float, following: float | None) -> bool:
        """Whether a frame's time is off, while the frame after it comes as if it were not."""
        if start is None or following is None:
            return False
        return self._jump(start) != 0 and self._jump(following - seconds) == 0

    def _jump(self, start: float | None) -> float:
        """How far from `position` the time `start` lies; 0 within the tolerance."""
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
