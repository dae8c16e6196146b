"""What the workers have done since the start of the service."""

from collections import Counter

from app.scheduling.tasks import Outcome
from app.telemetry.histogram import Histogram
from app.transcription.work_blocks import FleetBatch
from workers.messages import SAMPLE_RATE


class WorkTotals:
    """Counts of the batches that have ended. A clip that takes several windows counts with its first."""

    def __init__(self) -> None:
        self.clips: Counter[tuple[int, Outcome]] = Counter()  # by slot, and what became of their batch
        self.samples = 0  # of the clips in batches that succeeded
        # Of batches that succeeded:
        self.batch_clips = Histogram(1, 2, 4, 8, 16, 32, 64, 128)
        self.batch_seconds = Histogram(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

    @property
    def audio_s(self) -> float:
        """The length of all clips that were transcribed (s)."""
        return self.samples / SAMPLE_RATE

    def add(self, batch: FleetBatch, outcome: Outcome) -> None:
        """Count a batch that has just ended."""
        first = [task.payload for task in batch.tasks if not task.payload.continues]
        self.clips[batch.slot, outcome] += len(first)
        if outcome is Outcome.OK:
            self.samples += sum(payload.samples for payload in first)
            self.batch_clips.add(len(batch.tasks))
            self.batch_seconds.add(batch.took_s)
