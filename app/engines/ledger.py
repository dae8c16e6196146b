"""The ledger of the workers: each batch that has ended is entered here once.

All that clients see of batches comes from here: rows and events of the workers, metrics and traces.
"""

import asyncio
import time
import uuid
from collections import Counter, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from app.engines.slot import WhisperSlot
from app.engines.window_request import WindowRequest
from app.pool.tasks import Batch, Outcome, Slot
from app.telemetry import traces
from app.telemetry.histogram import Histogram
from workers.messages import SAMPLE_RATE, WindowResult, seconds

KEPT_S = 300.0
_MOST_KEPT = 10_000  # 64 slots with batches of half a second fill 78 s
_LEAST_S = 1e-4  # of a part in traces: what has nothing to do takes less

FleetBatch = Batch[WindowRequest, WindowResult]


class JobName(NamedTuple):
    """Whose windows these are, in the queue and in blocks. It says nothing about the recording."""

    kind: Literal["job", "request", "stream"]  # a request is synchronous
    id: str  # of the job, as clients know it; else a new one
    epoch: int | None = None  # of the front end that runs a job, or did so last

    @property
    def file(self) -> str:
        """The name of the decoded audio. A front end that lost a job may go on writing for a while."""
        return f"{self.id}-{self.epoch}" if self.epoch else self.id

    def __str__(self) -> str:
        return self.id if self.kind == "job" else f"{self.kind}-{self.id}"


def new_request() -> JobName:
    """The name of a synchronous request."""
    return JobName("request", uuid.uuid4().hex)


def jobs_of(clips: Mapping[Hashable, int]) -> list[dict[str, object]]:
    """Jobs, requests and streams with their clips as JSON."""
    return [
        {"job": str(job), "kind": job.kind, "clips": count}
        for job, count in cast(Mapping[JobName, int], clips).items()
    ]


@dataclass(frozen=True, slots=True)
class Block:
    """A batch that has ended. Times in Unix seconds."""

    id: int  # counts from 1
    slot: int
    clips: Mapping[Hashable, int]  # by `JobName`. A clip has one window in flight at most.
    start: float
    end: float
    audio_s: float
    outcome: Outcome

    def public(self) -> dict[str, object]:
        """The block as JSON."""
        return {
            "id": self.id,
            "slot": self.slot,
            "jobs": jobs_of(self.clips),
            "start": round(self.start, 3),
            "end": round(self.end, 3),
            "clips": sum(self.clips.values()),
            "audio_s": round(self.audio_s, 2),
            "outcome": self.outcome.value,
        }


class BatchLedger:
    """The batches since the start of the service in numbers, and those of the last minutes one by one.

    A clip that takes several windows counts with its first, which spans all of it.
    """

    def __init__(self) -> None:
        self.clips: Counter[tuple[int, Outcome]] = Counter()  # by slot, and what became of their batch
        # Of batches that succeeded:
        self.samples: Counter[str] = Counter()  # by model
        self.batch_clips = Histogram(1, 2, 4, 8, 16, 32, 64, 128)
        self.batch_seconds = Histogram(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
        self._blocks: deque[Block] = deque(maxlen=_MOST_KEPT)
        self.last_block = 0  # the id of the newest one; 0 before the first

    def add(self, slot: Slot[WindowRequest, WindowResult], batch: FleetBatch, outcome: Outcome) -> None:
        """Enter a batch of a `WhisperSlot` that has just ended."""
        worker = cast(WhisperSlot, slot)
        windows = [task.payload for task in batch.tasks]
        first = [window for window in windows if not window.continues]
        self.clips[batch.slot, outcome] += len(first)
        if outcome is Outcome.OK:
            samples = sum(window.samples for window in first)
            self.samples[windows[0].decoding.model] += samples  # a batch has one model
            self.batch_clips.add(len(windows))
            self.batch_seconds.add(batch.took_s)
            worker.clips += len(first)
            worker.samples += samples
        clips = Counter(task.job for task in batch.tasks)
        audio_s = sum(window.samples for window in windows) / SAMPLE_RATE
        self._enter(batch.slot, clips, batch.start, batch.end, audio_s, outcome)
        if traces.is_on():
            _trace(batch, outcome, self.last_block)

    def enter_public(self, block: Mapping[str, Any]) -> None:
        """Enter a block of another process, as its `Block.public`. It counts in no number."""
        clips: dict[Hashable, int] = {
            JobName(entry["kind"], entry["job"].removeprefix(f"{entry['kind']}-")): entry["clips"]
            for entry in block["jobs"]
        }
        outcome = Outcome(block["outcome"])
        self._enter(block["slot"], clips, block["start"], block["end"], block["audio_s"], outcome)

    def _enter(
        self,
        slot: int,
        clips: Mapping[Hashable, int],
        start: float,
        end: float,
        audio_s: float,
        outcome: Outcome,
    ) -> None:
        self.last_block += 1
        self._blocks.append(Block(self.last_block, slot, clips, start, end, audio_s, outcome))
        while self._blocks[0].end < end - KEPT_S:
            self._blocks.popleft()

    def blocks_after(self, id: int) -> list[Block]:
        """The blocks with higher ids, oldest first."""
        newer = []
        for block in reversed(self._blocks):
            if block.id <= id:
                break
            newer.append(block)
        return newer[::-1]


def _trace(batch: FleetBatch, outcome: Outcome, number: int) -> None:
    """Record a batch for each traced request and job that has windows in it.

    Each has all spans of the batch in its own trace: how long each window waited, the batch, and what its
    worker measured. So a trace is complete without any other, and what a batch did for others is a number in
    it. `number`: that of the block. Parts outside of the batch are cut.
    """
    # From the time of the event loop to Unix time.
    offset = time.time() - asyncio.get_running_loop().time()
    spans = [traces.span_in(task.context) for task in batch.tasks]
    for task, span in zip(batch.tasks, spans, strict=True):
        window = task.payload
        traces.add(
            span,
            "wait for a worker",
            min(task.queued_at + offset, batch.sent),
            batch.sent,
            {
                "whisperfleet.batch": number,
                "whisperfleet.start_s": seconds(window.start),
                "whisperfleet.end_s": seconds(window.end),
                "whisperfleet.continues": window.continues,
            },
        )
    for span, count in Counter(spans).items():
        parent = traces.add(
            span,
            "batch",
            batch.sent,
            batch.end,
            {
                "whisperfleet.batch": number,
                "whisperfleet.slot": batch.slot,
                "whisperfleet.windows": count,
                "whisperfleet.windows_of_all": len(batch.tasks),
                "whisperfleet.outcome": outcome.value,
            },
        )
        for part in batch.parts:
            start_at, end_at = max(part.start, batch.sent), min(part.end, batch.end)
            if end_at - start_at >= _LEAST_S:
                traces.add(parent, part.name, start_at, end_at, {"whisperfleet.slot": batch.slot})
