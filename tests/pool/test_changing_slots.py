"""Slots that are added, drained, removed and lost while tasks wait and run."""

import asyncio
from collections.abc import Sequence

import pytest

from app.common.errors import NotReady, ProcessLost
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import RestartReason
from tests.event_loop import let_tasks_run, until
from tests.pool.fake_slots import FakeSlot, NewDispatcher, TwoBatchSlot, blocked

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


async def test_a_lost_process_is_replaced_and_its_tasks_run_on_as_they_were(
    serve: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 0.001)
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
