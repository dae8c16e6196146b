"""Which tasks share a batch, and how many of them each slot gets, as seen through the dispatcher."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from app.common.errors import DeviceFailed, ProcessHung, RequeueBatch
from app.pool.backlog import ThroughputEstimator
from app.pool.batching import BatchCost
from app.pool.dispatcher import Dispatcher
from app.telemetry.work import Work, working_for
from bench import virtual_clock
from tests.event_loop import let_tasks_run
from tests.pool.fake_slots import FakeSlot, NewDispatcher

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


async def test_waiting_tasks_are_spread_over_all_idle_slots(serve: NewDispatcher) -> None:
    slots = [FakeSlot(index, batch_limit=8) for index in range(3)]
    dispatcher = serve(*slots)
    await let_tasks_run()
    await asyncio.gather(*(dispatcher.submit("job", payload) for payload in "abcdef"))
    assert [slot.batches for slot in slots] == [[["a", "b"]], [["c", "d"]], [["e", "f"]]]


async def test_a_batch_has_tasks_of_one_key_up_to_the_limit(new_dispatcher: NewDispatcher) -> None:
    slot = FakeSlot(0, batch_limit=3)
    dispatcher = new_dispatcher(slot)
    payloads = ("a1", "b1", "a2", "a3", "a4")
    tasks = [asyncio.create_task(dispatcher.submit(f"j{p}", p, key=p[0])) for p in payloads]
    await let_tasks_run()
    dispatcher.start()
    await asyncio.gather(*tasks)
    assert slot.batches == [["a1", "a2", "a3"], ["b1"], ["a4"]]


class TimedSlot(FakeSlot):
    """Takes exactly the expected time for a batch; payloads are "job:tokens"."""

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        self.batches.append(list(payloads))
        await asyncio.sleep(BatchCost().seconds([tokens(payload) for payload in payloads]))
        return list(payloads)


def tokens(payload: str) -> float:
    return float(payload.partition(":")[2])


def run_all(slots: Sequence[FakeSlot], payloads: Sequence[str]) -> float:
    """Submit all payloads at once; returns the time until the last result (s)."""

    async def submit_all() -> float:
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await let_tasks_run()
        await asyncio.gather(
            *(
                dispatcher.submit(payload.partition(":")[0], payload, size=tokens(payload))
                for payload in payloads
            )
        )
        await dispatcher.stop()
        return asyncio.get_running_loop().time()

    return virtual_clock.run(submit_all())


def sizes(slot: FakeSlot) -> list[int]:
    """How many tasks each batch of a slot had."""
    return [len(batch) for batch in slot.batches]


def test_tasks_of_similar_size_share_a_batch() -> None:
    slot = TimedSlot(0, batch_limit=4)
    run_all([slot], ["film:90", "film:10"] * 4)
    assert slot.batches == [["film:90"] * 4, ["film:10"] * 4]


def test_jobs_take_turns_and_contribute_their_most_similar_task() -> None:
    slot = TimedSlot(0, batch_limit=4)
    run_all([slot], ["a:90", "a:10", "a:90", "b:10", "b:10", "b:90", "b:90", "c:1"])
    assert slot.batches[0] == ["a:90", "b:90", "c:1", "a:90"]


async def test_a_task_of_another_owner_does_not_wait_behind_many_jobs(new_dispatcher: NewDispatcher) -> None:
    slot = FakeSlot(0, batch_limit=2)
    dispatcher = new_dispatcher(slot)
    tasks = []
    for number in range(10):
        with working_for(Work(f"request {number}", owner="a")):
            tasks.append(asyncio.create_task(dispatcher.submit(f"job {number}", f"a{number}")))
    with working_for(Work("another", owner="b")):
        tasks.append(asyncio.create_task(dispatcher.submit("clip", "b")))
    await let_tasks_run()
    dispatcher.start()
    await asyncio.gather(*tasks)
    assert slot.batches[0] == ["a0", "b"]


def test_a_small_task_does_not_starve() -> None:
    """Larger tasks keep coming just as fast as they are done."""

    async def wait_among_larger_tasks() -> float:
        dispatcher = Dispatcher[str, str]("worker", [TimedSlot(0, batch_limit=4)])
        dispatcher.start()
        await let_tasks_run()
        large: list[asyncio.Task[object]] = []

        async def keep_submitting() -> None:
            for number in itertools.count():
                large.append(asyncio.create_task(dispatcher.submit("film", "film:99", size=99)))
                await asyncio.sleep(0 if number < 8 else 0.102)

        submitting = asyncio.create_task(keep_submitting())
        await asyncio.sleep(2)
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(100):
            await dispatcher.submit("film", "film:1", size=1)
        waited = asyncio.get_running_loop().time() - began
        submitting.cancel()
        dispatcher.cancel("film")
        await asyncio.gather(*large, return_exceptions=True)
        await dispatcher.stop()
        return waited

    assert virtual_clock.run(wait_among_larger_tasks()) < 5


@pytest.mark.parametrize("smaller", [1, 2, 5])
@pytest.mark.parametrize("jobs", [1, 2])
def test_each_slot_has_its_own_limit(smaller: int, jobs: int) -> None:
    slots = [TimedSlot(0, batch_limit=8), TimedSlot(1, batch_limit=smaller)]
    run_all(slots, [f"film{number % jobs}:{number % 100}" for number in range(200)])
    assert [max(sizes(slot)) for slot in slots] == [8, smaller]


@pytest.mark.parametrize("smaller", [1, 2])
def test_slots_with_different_limits_finish_together(smaller: int) -> None:
    slots = [TimedSlot(0, batch_limit=8), TimedSlot(1, batch_limit=smaller)]
    per_second = sum(slot.limit / BatchCost().seconds([50] * slot.limit) for slot in slots)
    assert run_all(slots, ["film:50"] * 60) < 60 / per_second * 1.1


class ShrinkingSlot(TimedSlot):
    """Runs out of memory at once with more than `capacity` tasks."""

    def __init__(self, index: int, capacity: int) -> None:
        super().__init__(index, batch_limit=8)
        self.capacity = capacity

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        if len(payloads) > self.capacity:
            self.limit = max(1, len(payloads) // 2)
            await asyncio.sleep(0.001)
            raise RequeueBatch("out of memory")
        return await super().run(payloads, expected_s)


@pytest.mark.parametrize("capacity", [1, 2])
def test_a_limit_that_becomes_smaller_applies_from_then_on(capacity: int) -> None:
    slots = [TimedSlot(0, batch_limit=8), ShrinkingSlot(1, capacity)]
    per_second = sum(limit / BatchCost().seconds([50] * limit) for limit in (8, capacity))
    assert run_all(slots, ["film:50"] * 60) < 60 / per_second * 1.1
    assert max(sizes(slots[1])) == capacity
    assert sum(sum(sizes(slot)) for slot in slots) == 60


def test_a_requeued_batch_does_not_count_as_throughput() -> None:
    """Otherwise a slot would look as fast as it fails, and get nearly all of the last tasks."""

    class RequeuesOnce(TimedSlot):
        requeued = False

        async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
            if not self.requeued:
                self.requeued = True
                await asyncio.sleep(0.001)
                raise RequeueBatch("not now")
            return await super().run(payloads, expected_s)

    slots = [TimedSlot(0, batch_limit=8), RequeuesOnce(1, batch_limit=8)]
    run_all(slots, ["film:50"] * 20)
    assert [sum(sizes(slot)) for slot in slots] == [10, 10]


def batches_of(limit: int, *submissions: tuple[str, str, float, bool]) -> list[list[str]]:
    """The batches of one slot. A submission: job, payload, size, and whether it continues."""

    async def submit_all() -> list[list[str]]:
        slot = FakeSlot(0, batch_limit=limit)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        tasks = []
        for job, payload, size, continues in submissions:
            tasks.append(asyncio.create_task(dispatcher.submit(job, payload, size=size, continues=continues)))
            await let_tasks_run()
        dispatcher.start()
        await asyncio.gather(*tasks)
        await dispatcher.stop()
        return slot.batches

    return virtual_clock.run(submit_all())


def test_tasks_that_continue_come_first_and_in_order() -> None:
    new = [("film", f"new{number}", 50.0, False) for number in range(9)]
    batches = batches_of(1, *new[:5], ("film", "next1", 5, True), ("film", "next2", 30, True), *new[5:])
    assert list(itertools.chain(*batches)) == ["next1", "next2", *(payload for _, payload, _, _ in new)]


@pytest.mark.parametrize("others", [0, 1])
def test_tasks_that_continue_are_in_the_next_batch_whatever_their_size(others: int) -> None:
    """Of a single job, and of one of several, while many tasks wait."""
    new = [("film", "new", 40.0 + number % 7, False) for number in range(200)]
    beside = [(f"job{number}", "beside", 3.0, False) for number in range(others)]
    batches = batches_of(8, *new, *beside, ("film", "next1", 90, True), ("film", "next2", 0, True))
    assert {"next1", "next2"} <= set(batches[0])
    assert len(batches[0]) == 8


def test_jobs_take_turns_while_one_of_them_continues() -> None:
    film = [("film", "film", 50.0, False) for _ in range(8)]
    others = [(f"job{number}", f"job{number}", 50.0, False) for number in range(4)]
    batches = batches_of(1, *film, *others, ("film", "next1", 5, True), ("film", "next2", 5, True))
    order = list(itertools.chain(*batches))
    assert order[:6] == ["next1", "job0", "job1", "job2", "job3", "next2"]


def test_a_ratio_is_measured_and_a_new_slot_gets_the_mean_of_the_others() -> None:
    throughput = ThroughputEstimator()
    assert throughput.ratio(0) == 1
    throughput.begin(0, cost_s=2, now=10)
    throughput.end(0, now=16)
    assert [throughput.ratio(slot) for slot in range(3)] == [3, 3, 3]
    throughput.begin(1, cost_s=2, now=10)
    throughput.end(1, now=12)
    assert [throughput.ratio(slot) for slot in range(3)] == [3, 1, 2]


def test_one_slow_batch_changes_the_ratio_only_in_part() -> None:
    throughput = ThroughputEstimator()
    for seconds in (1, 1, 5):
        throughput.begin(0, cost_s=1, now=0)
        throughput.end(0, now=seconds)
    assert throughput.ratio(0) == pytest.approx(2.2)


def test_an_answer_within_no_time_leaves_a_ratio_to_divide_by() -> None:
    throughput = ThroughputEstimator()
    throughput.begin(0, cost_s=2, now=5)
    throughput.end(0, now=5)
    assert 0 < throughput.ratio(0) < 0.01


def test_a_discarded_batch_leaves_the_ratio_as_it_was() -> None:
    throughput = ThroughputEstimator()
    throughput.begin(0, cost_s=2, now=0)
    throughput.discard(0, now=1)
    assert (throughput.ratio(0), throughput.free_in(0, now=0)) == (1, 0)


def test_each_kind_of_tasks_has_its_own_ratio() -> None:
    throughput = ThroughputEstimator()
    for start in (0, 10, 20):
        assert throughput.begin(0, cost_s=1, now=start, kind="tiny") is None
        throughput.end(0, now=start + 0.1)
    assert throughput.begin(0, cost_s=2, now=30, kind="tiny") == pytest.approx(0.2)
    throughput.begin(0, cost_s=1, now=30, kind="large")
    assert throughput.free_in(0, now=30) == pytest.approx(1.2), "nothing is known of the large one"
    throughput.end(0, now=30.2)
    throughput.end(0, now=80.2)
    assert throughput.begin(0, cost_s=1, now=90, kind="large") is None
    assert [throughput.ratio(slot, "large") for slot in (0, 1)] == [50, 50]
    assert [throughput.ratio(slot, "tiny") for slot in (0, 1)] == pytest.approx([0.1, 0.1])


def test_after_a_hang_the_time_for_its_kind_is_not_known() -> None:
    throughput = ThroughputEstimator()
    for kind in ("tiny", "large"):
        for _ in range(3):
            throughput.begin(0, cost_s=2, now=0, kind=kind)
            throughput.end(0, now=2)
    throughput.begin(0, cost_s=2, now=10, kind="large")
    throughput.discard(0, now=70, hung=True)
    assert throughput.begin(0, cost_s=2, now=80, kind="large") is None
    assert throughput.begin(0, cost_s=2, now=80, kind="tiny") == 2


class ImpatientSlot(FakeSlot):
    """Gives a batch 50 times as long as it should take; 60 s if that is not known."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.deadlines_s: list[float] = []

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        self.deadlines_s.append(60.0 if expected_s is None else 50 * expected_s)
        try:
            async with asyncio.timeout(self.deadlines_s[-1]):
                await asyncio.sleep(tokens(payloads[0]))
        except TimeoutError:
            raise DeviceFailed("it hangs") from ProcessHung("it hangs")
        return list(payloads)


@pytest.mark.parametrize("count", [1, 4])
def test_a_task_that_takes_too_long_gets_more_time_on_any_slot(count: int) -> None:
    slots = [ImpatientSlot(index) for index in range(count)]
    run_all(slots, ["film:100"])
    deadlines = [deadline_s for slot in slots for deadline_s in slot.deadlines_s]
    assert sorted(deadlines) == [60, 3000]


def test_a_slow_kind_of_tasks_is_given_the_time_that_it_takes() -> None:
    slot = ImpatientSlot(0)

    async def submit_all() -> None:
        dispatcher = Dispatcher[str, str]("worker", [slot], kind_of=lambda payload: payload[:4])
        dispatcher.start()
        for payload in ["tiny:0.05"] * 4 + ["huge:55"] * 2:
            await dispatcher.submit("job", payload)
        await dispatcher.stop()

    virtual_clock.run(submit_all())
    assert slot.status.restarts == 0
    assert slot.deadlines_s[3] < 55 <= slot.deadlines_s[4]


def test_a_second_batch_begins_when_the_first_ends() -> None:
    throughput = ThroughputEstimator()
    throughput.begin(0, cost_s=2, now=0)
    throughput.begin(0, cost_s=3, now=1)
    assert throughput.free_in(0, now=1) == 4
    throughput.end(0, now=2)
    assert (throughput.ratio(0), throughput.free_in(0, now=4)) == (1, 1)
    throughput.end(0, now=5)
    assert (throughput.ratio(0), throughput.free_in(0, now=5)) == (1, 0)


def test_the_longer_a_batch_is_overdue_the_longer_it_may_take() -> None:
    throughput = ThroughputEstimator()
    throughput.begin(0, cost_s=2, now=0)
    assert [throughput.free_in(0, now=now) for now in (0, 1.5, 2, 10)] == [2, 0.5, 0, 8]
