"""The counters of live streams."""

from app.telemetry.histogram import Histogram

_DELAYS_S = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30)


class LiveMetrics:
    """How many streams are open, and how long their clients wait for text."""

    def __init__(self) -> None:
        self.open = 0  # streams
        # A newer draft took the place of one that waited, or the speech ended before it ran.
        self.drafts_dropped = 0
        self.first_words_s = Histogram(*_DELAYS_S)  # of a turn, from when the last of them was spoken
        self.final_s = Histogram(*_DELAYS_S)  # the complete text of a turn, from when its audio was complete
