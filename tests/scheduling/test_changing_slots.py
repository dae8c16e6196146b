"""Slots that are added, drained, removed and lost while tasks wait and run."""

import asyncio
from collections.abc import Sequence

import pytest

from app.errors import NotReady, ProcessLost
from app.scheduling.dispatcher import Dispatcher
from app.scheduling.tasks import RestartReason
from tests.event_loop import let_tasks_run, until
from tests.scheduling.fake_slots import FakeSlot, NewDispatcher, SickSlot, TwoBatchSlot

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

Answer = asyncio.Task[str]


def submit(dispatcher: Dispatcher[str, str], *payloads: str, affinity: int | None = None) -> list[Answer]:
    """A task for each payload, all of one job."""

    async def answer(payload: str) -> str:
        return (await dispatcher.submit("job", payload, affinity=affinity)).result

    return [asyncio.create_task(answer(payload)) for payload in payloads]


async def one_waits_for_a_busy_slot() -> tuple[list[FakeSlot], Dispatcher[str, str], Answer, Answer]:
    """Two slots; the answer that keeps slot 1 busy, and that of a task that raised an error on slot 0."""
    slots = [FakeSlot(0), FakeSlot(1)]
    dispatcher = Dispatcher[str, str]("worker", slots, retries_errors=True)
    dispatcher.start()
    await let_tasks_run()
    slots[1].unblocked.clear()
    [busy] = submit(dispatcher, "bound", affinity=1)
    await let_tasks_run()
    [answer] = submit(dispatcher, "raise")
    await let_tasks_run()
    return slots, dispatcher, busy, answer


def blocked(slot: FakeSlot) -> FakeSlot:
    """A slot whose batches do not end before the test says so."""
    slot.unblocked.clear()
    return slot


class LostSlot(FakeSlot):
    """Its node is out of reach while `is_lost`."""

    is_lost = True

    async def start(self) -> None:
        if self.is_lost:
            self.starts += 1
            raise ProcessLost("node 7 is gone")
        await super().start()

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        results = await super().run(payloads, expected_s)
        if self.is_lost:
            raise ProcessLost("node 7 is gone")
        return results


async def test_slots_are_served_whether_they_are_added_before_the_start_or_after(
    new_dispatcher: NewDispatcher,
) -> None:
    dispatcher = new_dispatcher()
    early, late = FakeSlot(0), FakeSlot(1)
    dispatcher.add_slot(early)
    dispatcher.start()
    dispatcher.add_slot(late)
    await let_tasks_run()
    answers = submit(dispatcher, "a", "b")
    assert await asyncio.gather(*answers) == ["A", "B"]
    assert (early.batches, late.batches) == ([["a"]], [["b"]])


async def test_numbers_may_have_gaps_and_the_lowest_free_one_is_reused(serve: NewDispatcher) -> None:
    dispatcher = serve(FakeSlot(0), FakeSlot(1), FakeSlot(5))
    assert dispatcher.free_index == 2
    await dispatcher.remove_slot(0)
    await dispatcher.remove_slot(3)  # there is none
    assert dispatcher.free_index == 0
    with pytest.raises(ValueError, match="5"):
        dispatcher.add_slot(FakeSlot(5))
    dispatcher.add_slot(FakeSlot(0))
    assert [slot.index for slot in dispatcher.slots] == [0, 1, 5]
    assert await asyncio.gather(*submit(dispatcher, *"abcdef")) == list("ABCDEF")


@pytest.mark.parametrize("kind", [FakeSlot, TwoBatchSlot])
async def test_the_tasks_of_a_removed_slot_go_to_others_in_order(
    serve: NewDispatcher, kind: type[FakeSlot]
) -> None:
    lost, other = blocked(kind(0, batch_limit=2)), FakeSlot(1, batch_limit=2)
    dispatcher = serve(lost, waits_for_slots=True)
    await let_tasks_run()
    answers = submit(dispatcher, *"abcdef")
    await let_tasks_run()
    assert dispatcher.running(0) is not None
    await dispatcher.remove_slot(0)
    dispatcher.add_slot(other)
    assert await asyncio.gather(*answers) == list("ABCDEF")
    assert other.batches == [["a", "b"], ["c", "d"], ["e", "f"]], "none is isolated"
    assert dispatcher.running(0) is None


async def test_a_removed_slot_counts_no_crash_against_the_only_task_in_flight(serve: NewDispatcher) -> None:
    counts: list[int] = []
    dispatcher = serve(*(blocked(FakeSlot(index)) for index in range(5)))
    await let_tasks_run()
    task = asyncio.create_task(dispatcher.submit("job", "a", on_crash=counts.append))
    await let_tasks_run()
    for _ in range(4):
        [busy] = [slot.index for slot in dispatcher.slots if dispatcher.running(slot.index)]
        await dispatcher.remove_slot(busy)
        await let_tasks_run()
    [last] = dispatcher.slots
    assert isinstance(last, FakeSlot)
    last.unblocked.set()
    assert (await task).crash_count == 0
    assert counts == []


async def test_an_answer_that_comes_after_the_removal_is_ignored(serve: NewDispatcher) -> None:
    class Stubborn(FakeSlot):
        """Answers although it is cancelled."""

        async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
            try:
                await self.unblocked.wait()
            except asyncio.CancelledError:
                await self.unblocked.wait()
            return ["late"] * len(payloads)

    stubborn, other = blocked(Stubborn(0)), blocked(FakeSlot(1))
    dispatcher = serve(stubborn)
    await let_tasks_run()
    [answer] = submit(dispatcher, "a")
    await let_tasks_run()
    dispatcher.add_slot(other)
    removal = asyncio.create_task(dispatcher.remove_slot(0))
    await let_tasks_run()
    assert other.batches == [["a"]], "the number of the slot is free, whatever its process does"
    stubborn.unblocked.set()
    await removal
    assert not answer.done()
    other.unblocked.set()
    assert await answer == "A"


async def test_a_process_that_does_not_end_holds_nobody(serve: NewDispatcher) -> None:
    class Stuck(FakeSlot):
        ended = asyncio.Event()

        async def close(self) -> None:
            await self.ended.wait()
            raise OSError("no such process")

    dispatcher = serve(Stuck(0), Stuck(1))
    await let_tasks_run()
    removals = [asyncio.create_task(dispatcher.remove_slot(index)) for index in range(2)]
    await let_tasks_run()
    removals.pop().cancel()
    dispatcher.add_slot(FakeSlot(0))
    assert await asyncio.gather(*submit(dispatcher, "a", "b")) == ["A", "B"]
    assert not removals[0].done()
    Stuck.ended.set()
    await removals[0]


async def test_a_reused_number_has_no_past(serve: NewDispatcher) -> None:
    """Neither failures of its device, nor tasks that keep away from it or wait for it."""
    sick, sound = SickSlot(0), FakeSlot(1)
    dispatcher = serve(sick, sound, waits_for_slots=True)
    await let_tasks_run()
    sound.unblocked.clear()
    [bound] = submit(dispatcher, "bound", affinity=1)
    [failing] = submit(dispatcher, "a")
    await let_tasks_run()
    assert sick.batches[0] == ["a"]
    await dispatcher.remove_slot(0)
    await dispatcher.remove_slot(1)
    new = FakeSlot(0)
    dispatcher.add_slot(new)
    assert await asyncio.gather(failing, bound) == ["A", "BOUND"]
    assert new.probes == 0


@pytest.mark.parametrize("kind", [FakeSlot, TwoBatchSlot])
async def test_a_slot_that_drains_answers_what_it_has_and_goes(
    serve: NewDispatcher, kind: type[FakeSlot]
) -> None:
    slot, other = blocked(kind(0)), blocked(FakeSlot(1))
    dispatcher = serve(slot)
    await let_tasks_run()
    answers = submit(dispatcher, *"abcd")
    await let_tasks_run()
    in_flight = 1 if kind is FakeSlot else 2
    draining = asyncio.create_task(dispatcher.drain_slot(0))
    dispatcher.add_slot(other)
    await let_tasks_run()
    assert slot.status.state == "draining"
    slot.unblocked.set()
    await draining
    assert [answer.done() for answer in answers] == [number < in_flight for number in range(4)]
    assert dispatcher.slots == [other]
    other.unblocked.set()
    assert await asyncio.gather(*answers) == list("ABCD")
    assert slot.batches == [["a"], ["b"]][:in_flight]


async def test_an_idle_slot_drains_at_once(serve: NewDispatcher) -> None:
    slot = FakeSlot(0)
    dispatcher = serve(slot)
    await let_tasks_run()
    await dispatcher.drain_slot(0)
    assert (dispatcher.slots, slot.closes) == ([], 1)
    await dispatcher.drain_slot(0)  # there is none


async def test_a_slot_that_has_no_process_drains_at_once(serve: NewDispatcher) -> None:
    failed, asleep = FakeSlot(0, failing_starts=99), FakeSlot(1)
    dispatcher = serve(failed, asleep, awake=1)
    await let_tasks_run()
    assert [slot.status.state for slot in dispatcher.slots] == ["failed", "asleep"]
    await asyncio.gather(dispatcher.drain_slot(0), dispatcher.drain_slot(1))
    assert dispatcher.slots == []
    assert asleep.closes == 1


async def test_what_a_slot_has_begun_goes_on_there_while_it_drains(serve: NewDispatcher) -> None:
    slot, other = blocked(FakeSlot(0)), FakeSlot(1)
    dispatcher = serve(slot, other)
    await let_tasks_run()
    bound = submit(dispatcher, *"ab", affinity=0)
    await let_tasks_run()
    draining = asyncio.create_task(dispatcher.drain_slot(0))
    await let_tasks_run()
    assert await asyncio.gather(*submit(dispatcher, *"cd")) == ["C", "D"]
    bound += submit(dispatcher, "e", affinity=0)
    await let_tasks_run()
    slot.unblocked.set()
    await draining
    assert await asyncio.gather(*bound) == ["A", "B", "E"]
    assert (slot.batches, other.batches) == ([["a"], ["b"], ["e"]], [["c"], ["d"]])
    assert await asyncio.gather(*submit(dispatcher, "f", affinity=0)) == ["F"]


async def test_a_slot_whose_process_ends_while_it_drains_is_not_started_again(serve: NewDispatcher) -> None:
    slot, other = blocked(FakeSlot(0)), FakeSlot(1)
    dispatcher = serve(slot)
    await let_tasks_run()
    [answer] = submit(dispatcher, "crash")
    await let_tasks_run()
    draining = asyncio.create_task(dispatcher.drain_slot(0))
    await let_tasks_run()
    slot.unblocked.set()
    await draining
    assert (slot.starts, dispatcher.slots) == (1, [])
    answer.cancel()
    dispatcher.add_slot(other)
    assert await asyncio.gather(*submit(dispatcher, "a")) == ["A"]


async def test_slots_that_drain_do_not_count_for_the_prefetch_limit(serve: NewDispatcher) -> None:
    dispatcher = serve(*(blocked(FakeSlot(index, batch_limit=4)) for index in range(2)))
    await let_tasks_run()
    both = dispatcher.prefetch_limit
    answers = submit(dispatcher, "a", "b")
    await let_tasks_run()
    draining = [asyncio.create_task(dispatcher.drain_slot(0))]
    await let_tasks_run()
    assert dispatcher.prefetch_limit == both / 2
    draining.append(asyncio.create_task(dispatcher.drain_slot(1)))
    await let_tasks_run()
    assert dispatcher.prefetch_limit > 0, "some tasks wait for the slots that come"
    await dispatcher.stop()
    await asyncio.gather(*draining)
    for answer in answers:
        answer.cancel()


async def test_without_slots_tasks_wait_if_slots_come_and_go(serve: NewDispatcher) -> None:
    dispatcher = serve(waits_for_slots=True)
    [answer] = submit(dispatcher, "a")
    await let_tasks_run()
    assert dispatcher.backlog()[0] == 1
    dispatcher.add_slot(FakeSlot(0))
    assert await answer == "A"
    await dispatcher.remove_slot(0)
    [answer] = submit(dispatcher, "b")
    dispatcher.add_slot(FakeSlot(0, failing_starts=99))
    with pytest.raises(NotReady, match="no such model"):
        await answer


async def test_without_slots_tasks_fail_if_slots_do_not_come_and_go(serve: NewDispatcher) -> None:
    dispatcher = serve(blocked(FakeSlot(0)))
    await let_tasks_run()
    answers = submit(dispatcher, "a", "b")
    await let_tasks_run()
    await dispatcher.remove_slot(0)
    for answer in [*answers, *submit(dispatcher, "c")]:
        with pytest.raises(NotReady, match="there is none"):
            await answer


async def test_a_task_that_kept_away_from_a_slot_runs_there_when_no_other_is_left() -> None:
    slots, dispatcher, busy, answer = await one_waits_for_a_busy_slot()
    assert slots[0].batches == [["raise"]], "it waits for the other slot"
    draining = asyncio.create_task(dispatcher.drain_slot(1))
    with pytest.raises(ValueError, match="cannot be done"):
        await answer
    slots[1].unblocked.set()
    assert await busy == "BOUND"
    await draining
    await dispatcher.stop()


async def test_a_task_does_not_keep_away_from_a_new_slot_with_the_number_of_the_old_one() -> None:
    slots, dispatcher, busy, answer = await one_waits_for_a_busy_slot()
    await dispatcher.remove_slot(0)
    new = FakeSlot(0)
    dispatcher.add_slot(new)
    with pytest.raises(ValueError, match="cannot be done"):
        await answer
    assert new.batches == [["raise"]]
    slots[1].unblocked.set()
    assert await busy == "BOUND"
    await dispatcher.stop()


async def test_a_lost_process_is_replaced_and_its_tasks_run_on_as_they_were(
    serve: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.scheduling.failure_policy._FIRST_BACKOFF_S", 0.001)
    slot = LostSlot(0, batch_limit=4)
    slot.is_lost = False
    dispatcher = serve(slot)
    await let_tasks_run()
    blocked(slot)
    answers = submit(dispatcher, *"abcd")
    await let_tasks_run()
    slot.is_lost = True
    slot.unblocked.set()
    await until(lambda: slot.starts >= 8)
    assert slot.status.state == "restarting"
    assert slot.status.error == "node 7 is gone"
    slot.is_lost = False
    assert await asyncio.gather(*answers) == list("ABCD")
    assert slot.batches == [list("abcd")] * 2
    assert slot.status.restarts_by == {RestartReason.LOST: 1}


async def test_stop_ends_the_processes_that_drain(serve: NewDispatcher) -> None:
    slot = blocked(FakeSlot(0))
    dispatcher = serve(slot)
    await let_tasks_run()
    [answer] = submit(dispatcher, "a")
    await let_tasks_run()
    draining = asyncio.create_task(dispatcher.drain_slot(0))
    await let_tasks_run()
    await dispatcher.stop()
    await draining
    assert slot.closes > 0
    answer.cancel()


async def test_drain_waits_for_the_slots_that_drain_and_not_for_removed_ones(serve: NewDispatcher) -> None:
    slots = [blocked(FakeSlot(0)), blocked(FakeSlot(1))]
    dispatcher = serve(*slots)
    await let_tasks_run()
    answers = submit(dispatcher, "a", "b")
    await let_tasks_run()
    leaving = asyncio.create_task(dispatcher.drain_slot(0))
    all_done = asyncio.create_task(dispatcher.drain(10))
    await dispatcher.remove_slot(1)
    await let_tasks_run()
    assert not all_done.done()
    slots[0].unblocked.set()
    await all_done
    await leaving
    assert [answer.done() for answer in answers] == [True, True], "no slot is left for the other"
    assert isinstance(answers[1].exception(), NotReady)


async def test_a_task_is_not_taken_by_a_slot_that_is_removed_as_well(serve: NewDispatcher) -> None:
    """The removal of the first wakes the second, whose loop has not ended yet when it is removed."""
    dispatcher = serve(blocked(FakeSlot(0)), blocked(FakeSlot(1)), waits_for_slots=True)
    [answer] = submit(dispatcher, "a")
    await let_tasks_run()
    await asyncio.gather(dispatcher.remove_slot(0), dispatcher.remove_slot(1))
    assert dispatcher.backlog()[0] == 1
    dispatcher.add_slot(FakeSlot(0))
    assert await answer == "A"
