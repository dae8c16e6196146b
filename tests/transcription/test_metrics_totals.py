"""What the workers have done since the start, as metrics show it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engines.window_request import WindowRequest
from app.media.disk import DiskSpace
from app.media.pool import MediaPool
from app.scheduling.tasks import Outcome, Task
from app.telemetry.histogram import Histogram
from app.transcription.work_blocks import FleetBatch
from app.transcription.work_totals import WorkTotals
from workers.messages import SAMPLE_RATE, Decoding

WINDOW = WindowRequest(Path("pcm"), SAMPLE_RATE, 5 * SAMPLE_RATE, (), Decoding("demo"))
LATER_WINDOW = WindowRequest(
    Path("pcm"), 4 * SAMPLE_RATE, 5 * SAMPLE_RATE, (), Decoding("demo"), continues=True
)


def batch(slot: int, windows: Sequence[WindowRequest], took_s: float) -> FleetBatch:
    loop = asyncio.new_event_loop()
    future: asyncio.Future = asyncio.Future(loop=loop)
    loop.close()
    tasks = [
        Task("job", window, None, None, 0, lambda count: None, 0.0, 1, window.continues, future)
        for window in windows
    ]
    return FleetBatch(slot, tasks, 100.0, 200.0, took_s=took_s)


def test_clips_count_with_their_first_window() -> None:
    totals = WorkTotals()
    totals.add(batch(0, [WINDOW, WINDOW], 1.5), Outcome.OK)
    totals.add(batch(0, [LATER_WINDOW], 0.5), Outcome.OK)
    totals.add(batch(1, [WINDOW], 60.0), Outcome.REQUEUED)
    totals.add(batch(1, [WINDOW], 2.0), Outcome.FAILED)
    assert totals.clips == {(0, "ok"): 2, (1, "requeued"): 1, (1, "failed"): 1}
    assert totals.audio_s == 8.0


def test_only_batches_that_succeed_are_measured() -> None:
    totals = WorkTotals()
    totals.add(batch(0, [WINDOW, WINDOW, LATER_WINDOW], 1.5), Outcome.OK)
    totals.add(batch(0, [WINDOW] * 8, 3600.0), Outcome.REQUEUED)
    assert (totals.batch_clips.sum, totals.batch_clips.cumulative[-1]) == (3, 1)
    assert (totals.batch_seconds.sum, totals.batch_seconds.cumulative[-1]) == (1.5, 1)


@given(st.lists(st.floats(0, 1e6)))
def test_a_histogram_counts_each_value_below_the_bounds_that_it_does_not_exceed(values: list[float]) -> None:
    histogram = Histogram(0.5, 1, 60)
    for value in values:
        histogram.add(value)
    bounds = (*histogram.bounds, float("inf"))
    assert histogram.cumulative == [sum(value <= bound for value in values) for bound in bounds]
    assert histogram.sum == pytest.approx(sum(values))


def test_the_part_of_the_media_workers_that_is_busy(tmp_path: Path) -> None:
    pool = MediaPool(4, DiskSpace(tmp_path))
    states = ("busy", "idle", "asleep", "busy")
    for slot, state in zip(pool._dispatcher.slots, states, strict=True):
        slot.status = replace(slot.status, state=state)
    assert pool.busy_ratio == 0.5
