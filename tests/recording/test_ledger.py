"""What is known of the batches that have ended: whose clips they had, how many, and for how long."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.common.ids import ID
from app.engines import ledger as ledgers
from app.engines.inline import InlineProcess
from app.engines.ledger import KEPT_S, BatchLedger, FleetBatch, JobName, new_request
from app.engines.slot import SlotLimits, WhisperSlot
from app.engines.window_request import WindowRequest
from app.intake.disk import DiskSpace
from app.media.pool import MediaPool
from app.pool.tasks import Outcome, Task
from app.telemetry.histogram import Histogram
from tests.engines.fake_slot import new_catalogue
from workers.messages import SAMPLE_RATE, DecodingOptions

SECRET = "/data/pcm/recording of another key"
WINDOW = WindowRequest(Path(SECRET), SAMPLE_RATE, 5 * SAMPLE_RATE, (), DecodingOptions("demo", prompt=SECRET))
JOB = JobName("job", "9b2e")
LATER_WINDOW = replace(WINDOW, start=4 * SAMPLE_RATE, continues=True)


def batch(
    jobs: Sequence[JobName] = (JOB,),
    start: float = 100.0,
    end: float = 200.0,
    slot: int = 0,
    windows: Sequence[WindowRequest] | None = None,
    took_s: float = 0.0,
) -> FleetBatch:
    loop = asyncio.new_event_loop()
    future: asyncio.Future = asyncio.Future(loop=loop)
    loop.close()
    windows = [WINDOW] * len(jobs) if windows is None else windows
    jobs = [*jobs, *jobs * len(windows)][: len(windows)]
    tasks = [
        Task(job, window, None, None, 0, lambda count: None, 0.0, 1, window.continues, future)
        for job, window in zip(jobs, windows, strict=True)
    ]
    return FleetBatch(slot, tasks, start, start, 0.0, None, end, took_s)


@pytest.fixture
def slot() -> WhisperSlot:
    return WhisperSlot(0, new_catalogue(99, "int8"), SlotLimits(8), InlineProcess(()))


def test_a_block_says_whose_clips_were_transcribed(slot: WhisperSlot) -> None:
    ledger = BatchLedger()
    request = new_request()
    ledger.add(slot, batch([JOB, request, JOB], 100.0004, 102.5, slot=3), Outcome.OK)
    [block] = ledger.blocks_after(0)
    assert block.public() == {
        "id": 1,
        "slot": 3,
        "jobs": [
            {"job": "9b2e", "kind": "job", "clips": 2},
            {"job": f"request-{request.id}", "kind": "request", "clips": 1},
        ],
        "start": 100.0,
        "end": 102.5,
        "clips": 3,
        "audio_s": 12.0,
        "outcome": "ok",
    }


def test_blocks_after_an_id(slot: WhisperSlot) -> None:
    ledger = BatchLedger()
    for second in range(5):
        ledger.add(slot, batch(start=second, end=second + 1), Outcome.OK)
    assert [block.id for block in ledger.blocks_after(0)] == [1, 2, 3, 4, 5]
    assert [block.id for block in ledger.blocks_after(3)] == [4, 5]
    assert ledger.blocks_after(5) == []
    assert ledger.last_block == 5


def test_blocks_are_kept_for_some_minutes(slot: WhisperSlot) -> None:
    ledger = BatchLedger()
    for end in (1.0, 2.0, KEPT_S + 1.5):
        ledger.add(slot, batch(start=end - 1, end=end), Outcome.OK)
    assert [block.id for block in ledger.blocks_after(0)] == [2, 3]


def test_the_number_of_blocks_is_limited(slot: WhisperSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "_MOST_KEPT", 3)
    ledger = BatchLedger()
    for _ in range(10):
        ledger.add(slot, batch(start=1, end=2), Outcome.OK)
    assert [block.id for block in ledger.blocks_after(0)] == [8, 9, 10]


def test_names_of_requests_differ_and_have_an_id() -> None:
    requests = {new_request() for _ in range(10)}
    assert len(requests) == 10
    # The next start removes files with such names only.
    assert all(ID.fullmatch(request.id) for request in requests)


def test_clips_count_with_their_first_window(slot: WhisperSlot) -> None:
    ledger = BatchLedger()
    ledger.add(slot, batch(windows=[WINDOW, WINDOW, LATER_WINDOW]), Outcome.OK)
    ledger.add(slot, batch(windows=[LATER_WINDOW]), Outcome.OK)
    ledger.add(slot, batch(slot=1, windows=[WINDOW]), Outcome.REQUEUED)
    ledger.add(slot, batch(slot=1, windows=[WINDOW]), Outcome.FAILED)
    assert ledger.clips == {(0, "ok"): 2, (1, "requeued"): 1, (1, "failed"): 1}
    assert ledger.samples == {"demo": 8 * SAMPLE_RATE}
    assert (slot.row()["clips"], slot.row()["audio_s"]) == (2, 8.0)


def test_only_batches_that_succeed_are_measured(slot: WhisperSlot) -> None:
    ledger = BatchLedger()
    ledger.add(slot, batch(windows=[WINDOW, WINDOW, LATER_WINDOW], took_s=1.5), Outcome.OK)
    ledger.add(slot, batch(windows=[WINDOW] * 8, took_s=3600.0), Outcome.REQUEUED)
    assert (ledger.batch_clips.sum, ledger.batch_clips.cumulative[-1]) == (3, 1)
    assert (ledger.batch_seconds.sum, ledger.batch_seconds.cumulative[-1]) == (1.5, 1)


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
    for media_slot, state in zip(pool.dispatcher.slots, states, strict=True):
        media_slot.status = replace(media_slot.status, state=state)
    assert pool.busy_ratio == 0.5
