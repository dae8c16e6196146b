"""The spans of a batch: how long each window waited for it, the batch, and what its worker measured.

Each request of a batch has all of them in its own trace, so that a trace is complete without any other. What
a batch did for others is a number in it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from app.scheduling.tasks import Outcome
from app.telemetry import traces
from app.transcription.work_blocks import FleetBatch
from workers.messages import Part, seconds

_LEAST_S = 1e-4  # of a part: what has nothing to do takes less


def trace_batch(batch: FleetBatch, outcome: Outcome, number: int, parts: Sequence[Part]) -> None:
    """Record a batch that has just ended, for each traced request and job that has windows in it.

    `number`: of the batch, as `GET /v1/workers/events` names it. Parts outside of the batch are cut.
    """
    # From the time of the event loop to Unix time.
    offset = time.time() - asyncio.get_running_loop().time()
    for task in batch.tasks:
        window = task.payload
        start, end = getattr(window, "start", 0), getattr(window, "end", window.samples)
        traces.add(
            task.span,
            "wait for a worker",
            min(task.queued_at + offset, batch.sent),
            batch.sent,
            {
                "whisperfleet.batch": number,
                "whisperfleet.start_s": seconds(start),
                "whisperfleet.end_s": seconds(end),
                "whisperfleet.continues": window.continues,
            },
        )
    for span, windows in Counter(task.span for task in batch.tasks).items():
        parent = traces.add(
            span,
            "batch",
            batch.sent,
            batch.end,
            {
                "whisperfleet.batch": number,
                "whisperfleet.slot": batch.slot,
                "whisperfleet.windows": windows,
                "whisperfleet.windows_of_all": len(batch.tasks),
                "whisperfleet.outcome": outcome.value,
            },
        )
        for part in parts:
            start_at, end_at = max(part.start, batch.sent), min(part.end, batch.end)
            if end_at - start_at >= _LEAST_S:
                traces.add(parent, part.name, start_at, end_at, {"whisperfleet.slot": batch.slot})
