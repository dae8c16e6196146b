"""The dispatcher, with slots that have no processes."""

import asyncio
from collections.abc import Sequence

import pytest

from app.common.errors import Fault, NotReady, ProcessCrashed, RequeueBatch, TaskCrashes
from app.pool.failure_policy import MAX_CRASHES
from app.pool.tasks import Outcome
from app.telemetry.work import Work, current_work, working_for
from tests.event_loop import let_tasks_run
from tests.pool.fake_slots import FakeSlot, NewDispatcher, StubSlot, TwoBatchSlot, blocked, submit_all

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


@pytest.fixture
def slot() -> FakeSlot:
    return FakeSlot(0)


@pytest.fixture
def pair() -> list[FakeSlot]:
    return [FakeSlot(0), FakeSlot(1)]


def batches(slots: Sequence[FakeSlot]) -> list[list[list[str]]]:
    """The batches that each slot got."""
    return [list(slot.batches) for slot in slots]


@pytest.mark.parametrize("kind", [FakeSlot, TwoBatchSlot])
async def test_the_others_of_a_batch_are_answered_although_one_has_an_error(
    new_dispatcher: NewDispatcher, kind: type[FakeSlot]
) -> None:
    """That one is retried alone. The slot is not at fault."""
    slot = kind(0, batch_limit=3)
    outcomes: list[Outcome] = []
    dispatcher = new_dispatcher(
        slot, retries_errors=True, on_batch=lambda slot, batch, outcome: outcomes.append(outcome)
    )
    dispatcher.start()
    await slot.started.wait()
    answers = await submit_all(dispatcher, "a", "gone", "b")
    assert (answers[0], answers[2], type(answers[1])) == ("A", "B", FileNotFoundError)
    assert slot.batches == [["a", "gone", "b"], ["gone"]]
    assert outcomes == [Outcome.OK, Outcome.FAILED]
    assert slot.status.restarts == 0


async def test_a_job_can_wait_until_its_batches_in_flight_have_ended(
    serve: NewDispatcher, slot: FakeSlot
) -> None:
    slot.unblocked.clear()
    dispatcher = serve(slot)
    await let_tasks_run()
    await dispatcher.until_ended("job")
    tasks = [asyncio.create_task(dispatcher.submit(job, "a")) for job in ("job", "other")]
    await let_tasks_run()
    assert (dispatcher.has_in_flight("job"), dispatcher.has_in_flight("other")) == (True, False)
    dispatcher.cancel("job")
    ended = asyncio.create_task(dispatcher.until_ended("job"))
    await let_tasks_run()
    assert not ended.done()
    slot.unblocked.set()
    await ended
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("charges", [True, False])
async def test_an_owner_that_is_charged_waits_until_others_have_had_as_much(
    serve: NewDispatcher, charges: bool
) -> None:
    order = []

    class SlowSlot(StubSlot):
        async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str | Exception]:
            order.extend(payloads)
            await asyncio.sleep(0.2 if "long" in payloads else 0)
            return list(payloads)

    dispatcher = serve(SlowSlot(), charges_owners=charges)
    tasks = []
    for owner, payload, count in (("a", "long", 2), ("b", "short", 3)):
        with working_for(Work(owner=owner)):
            tasks += [asyncio.create_task(dispatcher.submit(owner, payload)) for _ in range(count)]
    await asyncio.gather(*tasks)
    in_turns = ["long", "short", "long", "short", "short"]
    assert order == (["long", "short", "short", "short", "long"] if charges else in_turns)


async def test_nobody_waits_for_the_batches_of_a_process_that_is_gone(new_dispatcher: NewDispatcher) -> None:
    slots = [FakeSlot(index) for index in range(2)]
    dispatcher = new_dispatcher(*slots)
    dispatcher.start()
    await asyncio.gather(*(slot.started.wait() for slot in slots))
    for slot in slots:
        slot.unblocked.clear()
    tasks = [asyncio.create_task(dispatcher.submit("job", "a")) for _ in slots]
    await let_tasks_run()
    dispatcher.cancel("job")
    ended = asyncio.create_task(dispatcher.until_ended("job"))
    await dispatcher.remove_slot(0)
    assert not ended.done()
    await dispatcher.stop()
    await ended
    for task in tasks:
        task.cancel()


async def test_a_slot_whose_process_ends_while_idle_is_restarted(
    serve: NewDispatcher, slot: FakeSlot
) -> None:
    dispatcher = serve(slot)
    await let_tasks_run()
    slot.needs_restart.set()
    await let_tasks_run()
    assert (slot.starts, slot.status.restarts, slot.status.state) == (2, 1, "idle")
    assert await dispatcher.submit("job", "a") == ("A", 0, 0)


async def test_tasks_go_to_the_slots_that_start(serve: NewDispatcher) -> None:
    slots = [FakeSlot(0, failing_starts=99, batch_limit=4), FakeSlot(1, batch_limit=4)]
    dispatcher = serve(*slots)
    assert await submit_all(dispatcher, *"abc", own_jobs=True) == ["A", "B", "C"]
    assert slots[0].status.state == "failed"
    assert slots[0].status.error == "no such model"


async def test_cancel_removes_the_waiting_tasks_of_one_job(serve: NewDispatcher, slot: FakeSlot) -> None:
    slot.unblocked.clear()
    dispatcher = serve(slot)
    await let_tasks_run()
    cancelled = [
        asyncio.create_task(dispatcher.submit("cancelled", payload)) for payload in ("in flight", "x", "y")
    ]
    other = asyncio.create_task(dispatcher.submit("other", "b"))
    await let_tasks_run()
    cancelled[0].cancel()
    dispatcher.cancel("cancelled")
    slot.unblocked.set()
    assert await other == ("B", 0, 0)
    assert [type(e) for e in await asyncio.gather(*cancelled, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * 3
    assert slot.batches == [["in flight"], ["b"]]


async def test_a_task_runs_on_the_slot_of_its_affinity(serve: NewDispatcher, pair: list[FakeSlot]) -> None:
    dispatcher = serve(*pair)
    assert [await dispatcher.submit("job", "a", affinity=1) for _ in range(3)] == [("A", 1, 0)] * 3


async def test_affinity_ends_with_the_process(serve: NewDispatcher, pair: list[FakeSlot]) -> None:
    dispatcher = serve(*pair)
    await let_tasks_run()
    pair[0].failing_starts = 99
    pair[0].needs_restart.set()
    await let_tasks_run()
    assert await dispatcher.submit("job", "a", affinity=0) == ("A", 1, 0)


async def test_affinity_ends_with_the_process_while_the_task_waits(serve: NewDispatcher) -> None:
    class StartsOnce(FakeSlot):
        async def start(self) -> None:
            await super().start()
            if self.starts > 1:
                await asyncio.Event().wait()

    slots = [FakeSlot(0), StartsOnce(1)]
    dispatcher = serve(*slots)
    await let_tasks_run()
    task = asyncio.create_task(dispatcher.submit("job", "a", affinity=1))
    slots[1].needs_restart.set()
    assert await task == ("A", 0, 0)


async def test_drain_finishes_the_batches_in_flight_and_sends_no_more(serve: NewDispatcher) -> None:
    slots = [blocked(FakeSlot(0)), blocked(FakeSlot(1, batch_limit=2))]
    dispatcher = serve(*slots)
    await let_tasks_run()
    tasks = [asyncio.create_task(dispatcher.submit("job", p)) for p in ("a", "b", "c", "crash", "d")]
    await let_tasks_run()
    in_flight = batches(slots)
    draining = asyncio.create_task(dispatcher.drain(10))
    slots[0].unblocked.set()
    await let_tasks_run()
    assert not draining.done()
    slots[1].unblocked.set()
    await draining
    assert batches(slots) == in_flight
    sent = [payload for [batch] in in_flight for payload in batch]
    done = [task.result().result for task in tasks if task.done()]
    assert done == [payload.upper() for payload in sent if payload != "crash"]
    await let_tasks_run()
    tasks.append(asyncio.create_task(dispatcher.submit("job", "late")))
    await let_tasks_run()
    assert batches(slots) == in_flight
    dispatcher.cancel("job")
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_drain_times_out(serve: NewDispatcher, slot: FakeSlot) -> None:
    slot.unblocked.clear()
    dispatcher = serve(slot)
    await let_tasks_run()
    task = asyncio.create_task(dispatcher.submit("job", "a"))
    await let_tasks_run()
    await dispatcher.drain(0.01)
    assert not task.done()
    task.cancel()


async def test_a_result_comes_with_the_number_of_crashes_before_it(serve: NewDispatcher) -> None:
    class CrashesTwice(FakeSlot):
        async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
            if len(self.batches) < 2:
                self.batches.append(list(payloads))
                raise ProcessCrashed("killed", fault=Fault.OWN)
            return await super().run(payloads, expected_s)

    dispatcher = serve(CrashesTwice(0))
    assert await dispatcher.submit("job", "a") == ("A", 0, 2)


async def test_a_crash_is_recorded_for_the_owner_of_its_task(serve: NewDispatcher, slot: FakeSlot) -> None:
    owners: list[str] = []
    dispatcher = serve(slot)
    with working_for(Work(owner="ann")), pytest.raises(TaskCrashes):
        await dispatcher.submit("job", "crash", on_crash=lambda count: owners.append(current_work().owner))
    assert owners == ["ann"] * 3


async def test_crashes_before_a_restart_of_the_service_count(new_dispatcher: NewDispatcher) -> None:
    counts: list[int] = []
    slot = FakeSlot(0, batch_limit=4)
    dispatcher = new_dispatcher(slot)
    other = asyncio.create_task(dispatcher.submit("job", "a"))
    suspect = asyncio.create_task(
        dispatcher.submit("job", "crash", crash_count=MAX_CRASHES - 1, on_crash=counts.append)
    )
    await let_tasks_run()
    dispatcher.start()
    with pytest.raises(TaskCrashes, match="3 processes crashed on it"):
        await suspect
    assert await other == ("A", 0, 0)
    assert counts == [MAX_CRASHES]
    assert slot.batches == [["a"], ["crash"]]  # a suspect runs in a batch of its own
    with pytest.raises(TaskCrashes):
        await dispatcher.submit("job", "crash", crash_count=MAX_CRASHES)
    assert len(slot.batches) == 2


async def test_an_on_crash_that_fails_does_not_stop_the_slot(serve: NewDispatcher, slot: FakeSlot) -> None:
    def fail(crash_count: int) -> None:
        raise OSError("disk full")

    dispatcher = serve(slot)
    with pytest.raises(TaskCrashes):
        await dispatcher.submit("job", "crash", on_crash=fail)
    assert await dispatcher.submit("job", "a") == ("A", 0, 0)


class SmallSlot(FakeSlot):
    """Runs out of memory with more than `capacity` payloads, and needs a restart if one is too many."""

    def __init__(self, index: int, capacity: int) -> None:
        super().__init__(index, batch_limit=8)
        self.capacity = capacity

    async def start(self) -> None:
        await super().start()
        if self.starts > 1:
            self.capacity = max(self.capacity, 1)

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        results = await super().run(payloads, expected_s)
        if len(payloads) > self.capacity:
            self.limit = max(1, len(payloads) // 2)
            if len(payloads) == 1:
                self.needs_restart.set()
            raise RequeueBatch("out of memory")
        return results


async def test_a_requeued_batch_runs_in_smaller_ones(new_dispatcher: NewDispatcher) -> None:
    counts: list[int] = []
    slot = SmallSlot(0, capacity=2)
    dispatcher = new_dispatcher(slot)
    tasks = [asyncio.create_task(dispatcher.submit(f"job{p}", p, on_crash=counts.append)) for p in "abcdefgh"]
    await let_tasks_run()
    dispatcher.start()
    assert [done.result for done in await asyncio.gather(*tasks)] == list("ABCDEFGH")
    assert slot.batches == [
        list("abcdefgh"),
        list("abcd"),
        list("ab"),
        list("cd"),
        list("ef"),
        list("gh"),
    ]
    assert (slot.status.batches, slot.status.restarts, slot.starts, counts) == (4, 0, 1, [])


async def test_the_tasks_of_a_cancelled_job_are_not_requeued(new_dispatcher: NewDispatcher) -> None:
    slot = blocked(SmallSlot(0, capacity=1))
    dispatcher = new_dispatcher(slot)
    cancelled = asyncio.create_task(dispatcher.submit("cancelled", "a"))
    other = asyncio.create_task(dispatcher.submit("other", "b"))
    await let_tasks_run()
    dispatcher.start()
    await let_tasks_run()
    dispatcher.cancel("cancelled")
    slot.unblocked.set()
    assert await other == ("B", 0, 0)
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert slot.batches == [["a", "b"], ["b"]]


async def test_a_requeued_task_fails_if_no_slot_starts_again(
    serve: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 0.01)
    slots = [FakeSlot(0, failing_starts=99), FakeSlot(1)]
    dispatcher = serve(*slots)
    await let_tasks_run()
    assert [slot.status.state for slot in slots] == ["failed", "idle"]
    slots[1].failing_starts = 3  # after its process has crashed
    slots[1].started.clear()
    with pytest.raises(NotReady, match="no such model"):
        await dispatcher.submit("job", "crash")
    assert slots[1].batches == [["crash"]]
    await slots[1].started.wait()
    await let_tasks_run()
    assert await dispatcher.submit("job", "a") == ("A", 1, 0)


async def test_starts_are_retried_without_limit(
    serve: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 1e-9)
    monkeypatch.setattr("app.pool.failure_policy._MAX_BACKOFF_S", 1e-9)
    slot = FakeSlot(0, failing_starts=2000)
    dispatcher = serve(slot)
    await slot.started.wait()
    await let_tasks_run()
    assert await dispatcher.submit("job", "a") == ("A", 0, 0)


async def test_a_batch_with_a_missing_result_fails_and_the_slot_goes_on(serve: NewDispatcher) -> None:
    class DropsAResult(FakeSlot):
        async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
            return (await super().run(payloads, expected_s))[1:]

    dispatcher = serve(DropsAResult(0))
    for _ in range(2):
        with pytest.raises(ValueError, match="0 results for 1 tasks"):
            await dispatcher.submit("job", "a")
