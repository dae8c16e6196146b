"""What subtitles may be like: the limits of a cue, in characters and in samples. Pure."""

import math
from dataclasses import dataclass

from workers.messages import SAMPLE_RATE

SAMPLES_PER_MS = SAMPLE_RATE // 1000

# Subtitling guides ask for two frames between cues; at 24 frames per second that is 83.3 ms. Rounded up
# to a whole millisecond, so that the gap is still there when the file has rounded the times.
MIN_GAP = math.ceil(1000 * 2 / 24) * SAMPLES_PER_MS  # samples

# Less than two frames would not be seen at all.
SHORTEST_CUE = MIN_GAP  # samples


@dataclass(frozen=True, slots=True)
class CueStyle:
    """The limits that cues are shaped to."""

    max_line_chars: int  # width of a line; wide characters count double
    max_lines: int
    max_cps: float  # characters per second that can be read, wide ones counted double
    min_cue_s: float
    max_cue_s: float  # counts before all other times

    @property
    def min_samples(self) -> int:
        return math.ceil(self.min_cue_s * 1000) * SAMPLES_PER_MS

    @property
    def max_samples(self) -> int:
        return max(math.floor(self.max_cue_s * 1000) * SAMPLES_PER_MS, SHORTEST_CUE)

    def reading_samples(self, chars: int) -> int:
        """How long so many characters must stay to be read."""
        return math.ceil(chars * 1000 / self.max_cps) * SAMPLES_PER_MS
