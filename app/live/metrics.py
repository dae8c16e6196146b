"""What live streams count. Whoever reads it counts nothing itself."""

from app.telemetry.histogram import Histogram

_DELAYS_S = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30)


class LiveMetrics:
    """How many streams are open, and how long their clients wait for text."""

    def __init__(self) -> None:
        self.open = 0  # streams
        self.drafts_dropped = 0
        self.first_words_s = Histogram(*_DELAYS_S)
        self.final_s = Histogram(*_DELAYS_S)

    def first_words(self, delay_s: float) -> None:
        """The first words of a turn were sent so long after the last of them was spoken."""
        self.first_words_s.add(delay_s)

    def final(self, delay_s: float) -> None:
        """The text of a turn was complete so long after its audio was."""
        self.final_s.add(delay_s)

    def draft_dropped(self) -> None:
        """A newer draft has taken the place of one that waited, or the speech ended before it ran."""
        self.drafts_dropped += 1
