"""What the dispatcher reports: batches, the backlog, and why a process is replaced."""

import asyncio
import time
from functools import partial

import pytest

from app.common.errors import ProcessCrashed
from app.pool.tasks import Batch, Outcome, Slot
from tests.event_loop import let_tasks_run, until
from tests.pool.fake_slots import FakeSlot, NewDispatcher, SickSlot, TwoBatchSlot, blocked, submit_all

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

Ended = list[tuple[list[str], str]]  # the payloads of each batch that has ended, and its outcome


class Reports:
    """Collects what a dispatcher reports."""

    def __init__(self) -> None:
        self.batches: list[Batch[str, str]] = []
        self.outcomes: list[Outcome] = []

    def __call__(self, slot: Slot[str, str], batch: Batch[str, str], outcome: Outcome) -> None:
        assert slot.index == batch.slot
        self.batches.append(batch)
        self.outcomes.append(outcome)

    @property
    def ended(self) -> Ended:
        return [
            ([task.payload for task in batch.tasks], outcome.value)
            for batch, outcome in zip(self.batches, self.outcomes, strict=True)
        ]


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def start(serve: NewDispatcher, reports: Reports) -> NewDispatcher:
    """Starts a dispatcher for slots."""
    return partial(serve, on_batch=reports)


async def test_a_batch_is_reported_with_its_tasks_and_times(start: NewDispatcher, reports: Reports) -> None:
    began = time.time()
    await submit_all(start(FakeSlot(0, batch_limit=4)), *"abcd")
    assert reports.ended == [(["a", "b", "c", "d"], "ok")]
    [batch] = reports.batches
    assert began <= batch.start <= batch.end <= time.time()
    assert batch.slot == 0


async def test_tasks_that_are_retried_and_one_that_fails(start: NewDispatcher, reports: Reports) -> None:
    await submit_all(start(FakeSlot(0, batch_limit=2)), "a", "raise")
    assert reports.ended == [(["a", "raise"], "requeued"), (["a"], "ok"), (["raise"], "failed")]


async def test_a_crash_requeues_until_the_next_process_works(start: NewDispatcher, reports: Reports) -> None:
    await submit_all(start(FakeSlot(0)), "crash")
    assert reports.ended == [(["crash"], "requeued")] * 3


async def test_batches_of_an_overlapping_slot_follow_each_other(
    start: NewDispatcher, reports: Reports
) -> None:
    slot = TwoBatchSlot(0, batch_limit=2)
    await submit_all(start(slot), *"abcdef")
    assert [outcome for _, outcome in reports.ended] == ["ok"] * 3
    for before, after in zip(reports.batches, reports.batches[1:], strict=False):
        assert after.start >= before.end, "the worker was not free for it before"


async def test_a_crash_with_two_batches_in_flight_reports_the_one_that_ran(
    start: NewDispatcher, reports: Reports
) -> None:
    slot = blocked(TwoBatchSlot(0, batch_limit=1))
    dispatcher = start(slot)
    work = asyncio.create_task(submit_all(dispatcher, "crash", "b"))
    await until(lambda: slot.in_flight[-1:] == [[["crash"], ["b"]]])
    slot.unblocked.set()
    await work
    assert reports.ended[0] == (["crash"], "requeued")
    assert reports.ended.count((["b"], "ok")) == 1
    assert reports.ended.count((["b"], "requeued")) == 0


async def test_a_report_that_raises_ends_nothing(start: NewDispatcher, reports: Reports) -> None:
    def fail(slot: FakeSlot, batch: Batch[str, str], outcome: Outcome) -> None:
        raise ValueError("a fault")

    slot = FakeSlot(0)
    dispatcher = start(slot)
    dispatcher._on_batch = fail
    assert await dispatcher.submit("job", "a") == ("A", 0, 0)
    assert await dispatcher.submit("job", "b") == ("B", 0, 0)
    assert slot.status.restarts == 0


async def test_the_batch_that_runs(start: NewDispatcher) -> None:
    slot = blocked(FakeSlot(0, batch_limit=2))
    dispatcher = start(slot)
    await let_tasks_run()
    assert dispatcher.running(0) is None
    work = asyncio.create_task(submit_all(dispatcher, "a", "b", "c"))
    await let_tasks_run()
    running = dispatcher.running(0)
    assert running is not None
    assert [task.payload for task in running.tasks] == ["a", "b"]
    slot.unblocked.set()
    await work
    assert dispatcher.running(0) is None


async def test_the_backlog_and_its_oldest_task(start: NewDispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = blocked(FakeSlot(0))
    dispatcher = start(slot)
    await let_tasks_run()
    assert dispatcher.backlog() == (0, 0.0)
    now, loop = 1000.0, asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", lambda: now)
    work = []
    for after_s, job, continues in [(0, "x", False), (1, "x", False), (2, "y", False), (3, "x", True)]:
        now = 1000.0 + after_s
        work.append(asyncio.create_task(dispatcher.submit(job, "a", continues=continues)))
        await let_tasks_run()
    now = 1010.0
    # The first one runs. A task that continues comes first in its line, but it is not the oldest.
    assert dispatcher.backlog() == (3, 9.0)
    monkeypatch.undo()
    slot.unblocked.set()
    await asyncio.gather(*work)
    assert dispatcher.backlog() == (0, 0.0)


class SlowlyStarting(FakeSlot):
    """Its second start waits, so that a test sees the state before."""

    may_start = asyncio.Event()

    async def start(self) -> None:
        await super().start()
        if self.starts > 1:
            await self.may_start.wait()


async def test_a_slot_that_restarts_says_why(start: NewDispatcher) -> None:
    slot = SlowlyStarting(0)
    slot.may_start = asyncio.Event()
    dispatcher = start(slot)
    work = asyncio.create_task(submit_all(dispatcher, "crash"))
    await until(lambda: slot.status.state == "restarting")
    assert slot.status.error == "killed"
    slot.may_start.set()
    await work
    await until(lambda: slot.status.state == "idle")
    assert slot.status.error is None


async def test_a_slot_says_why_its_start_failed(
    start: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 30.0)

    class Crashing(FakeSlot):
        async def start(self) -> None:
            raise ProcessCrashed("killed while it loaded")

    slot = Crashing(0)
    start(slot)
    await let_tasks_run()
    assert (slot.status.state, slot.status.error) == ("loading", "killed while it loaded")


async def test_a_slot_whose_device_failed_says_so_before_it_is_quarantined(
    start: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 30.0)
    sick, sound = SickSlot(0), FakeSlot(1)
    sound.unblocked.clear()
    dispatcher = start(sick, sound)
    await let_tasks_run()
    work = asyncio.create_task(submit_all(dispatcher, "a", "b"))
    await until(lambda: sick.status.state == "restarting" and sick.probes > 0)
    await let_tasks_run()
    assert sick.status.state == "restarting"
    assert "illegal memory access" in str(sick.status.error)
    sound.unblocked.set()
    await work
