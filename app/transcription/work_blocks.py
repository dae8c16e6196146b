"""What the workers have done lately: a block for each batch that has ended."""

import uuid
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from app.engines.window_request import WindowSource
from app.scheduling.tasks import Batch, Outcome
from workers.messages import SAMPLE_RATE, WindowResult

KEPT_S = 300.0
_MOST_KEPT = 10_000  # 64 slots with batches of half a second fill 78 s

FleetBatch = Batch[WindowSource, WindowResult]

_REQUEST = "request-"  # begins the names of synchronous requests; those of jobs are their ids


def new_request() -> str:
    """A name for a synchronous request, in the queue and in blocks. It says nothing about its recording."""
    return _REQUEST + uuid.uuid4().hex


def bare_id(job: str) -> str:
    """The id in the name of a request, or that of a job: the name of its decoded audio."""
    return job.removeprefix(_REQUEST)


def clips_by_job(batch: FleetBatch) -> Counter[str]:
    """How many clips of a batch each job or request has. A clip has one window in flight at most."""
    return Counter(task.job for task in batch.tasks)


def public_jobs(clips: Mapping[str, int]) -> list[dict[str, object]]:
    """Jobs and requests with their clips as JSON."""
    return [
        {"job": job, "kind": "request" if job.startswith(_REQUEST) else "job", "clips": count}
        for job, count in clips.items()
    ]


@dataclass(frozen=True, slots=True)
class Block:
    """A batch that has ended. Times in Unix seconds."""

    id: int  # counts from 1
    slot: int
    clips: Mapping[str, int]  # by job or request
    start: float
    end: float
    audio_s: float
    outcome: Outcome

    def public(self) -> dict[str, object]:
        """The block as JSON."""
        return {
            "id": self.id,
            "slot": self.slot,
            "jobs": public_jobs(self.clips),
            "start": round(self.start, 3),
            "end": round(self.end, 3),
            "clips": sum(self.clips.values()),
            "audio_s": round(self.audio_s, 2),
            "outcome": self.outcome.value,
        }


class WorkBlocks:
    """The blocks of the last minutes, a limited number of them."""

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque(maxlen=_MOST_KEPT)
        self._count = 0

    @property
    def last_id(self) -> int:
        """The id of the newest block; 0 before the first."""
        return self._count

    def add(self, batch: FleetBatch, outcome: Outcome) -> None:
        """Add a batch that has just ended."""
        self._count += 1
        audio_s = sum(task.payload.samples for task in batch.tasks) / SAMPLE_RATE
        self._blocks.append(
            Block(self._count, batch.slot, clips_by_job(batch), batch.start, batch.end, audio_s, outcome)
        )
        while self._blocks[0].end < batch.end - KEPT_S:
            self._blocks.popleft()

    def after(self, id: int) -> list[Block]:
        """The blocks with higher ids, oldest first."""
        newer = []
        for block in reversed(self._blocks):
            if block.id <= id:
                break
            newer.append(block)
        return newer[::-1]
