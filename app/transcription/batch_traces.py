"""The spans of a batch: how long each window waited for it, the batch, and what its worker measured.

Each request of a batch has all of them in its own trace, so that a trace is complete without any other. What
a batch did for others is a number in it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from app import tracing
from app.scheduling.tasks import Outcome
from app.transcription.work_blocks import FleetBatch
from workers.messages import Part, seconds

_LEAST_S = 1e-4  # of a part: what has nothing to do takes less


def trace_batch(batch: FleetBatch, outcome: Outcome, number: int, parts: Sequence[Part]) -> None:
    """Record a batch that has just ended, for each traced request and job that has windows in it.

    `number`: of the batch, as `GET /v1/workers/events` names it. Parts outside of the batch are cut.
    """
    # From the time of the event loop to Unix time.
    offset = time.time() - asyncio.get_running_loop().time()
    windows = Counter[int]()  # in the batch, by the id of the span of their work
    spans: dict[int, Any] = {}
    for task in batch.tasks:
        span, window = task.work.span, task.payload
        if span is None:
            continue
        windows[span.span_id] += 1
        spans[span.span_id] = span
        start, end = getattr(window, "start", 0), getattr(window, "end", window.samples)
        queued_at = min(task.queued_at + offset, batch.sent)
        tracing.add(
            span,
            "wait for a worker",
            queued_at,
            batch.sent,
            batch=number,
            start_s=seconds(start),
            end_s=seconds(end),
            continues=window.continues,
        )
    for span_id, span in spans.items():
        parent = tracing.add(
            span,
            "batch",
            batch.sent,
            batch.end,
            batch=number,
            slot=batch.slot,
            windows=windows[span_id],
            windows_of_all=len(batch.tasks),
            outcome=outcome.value,
        )
        for part in parts:
            start_at, end_at = max(part.start, batch.sent), min(part.end, batch.end)
            if end_at - start_at >= _LEAST_S:
                tracing.add(parent, part.name, start_at, end_at, slot=batch.slot)
