"""Slots whose processes end when there is no work, and start when there is some."""

import asyncio

import pytest

from app.common.errors import NotReady
from tests.event_loop import let_tasks_run, until
from tests.pool.fake_slots import FakeSlot, NewDispatcher, blocked

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


def states(slots: list[FakeSlot]) -> list[str]:
    return [slot.status.state for slot in slots]


async def until_asleep(slots: list[FakeSlot]) -> None:
    await until(lambda: set(states(slots)) == {"asleep"})


async def test_an_idle_slot_ends_its_process_and_wakes_for_work(serve: NewDispatcher) -> None:
    slots = [FakeSlot(index) for index in range(3)]
    dispatcher = serve(*slots, sleep_after_s=0.5)
    await let_tasks_run()
    assert states(slots) == ["idle"] * 3
    await until_asleep(slots)
    assert [slot.closes for slot in slots] == [1, 1, 1]
    assert await dispatcher.submit("job", "a") == ("A", 0, 0)
    assert states(slots) == ["idle", "asleep", "asleep"]
    assert (slots[0].starts, slots[0].status.restarts, slots[0].status.waking) == (2, 0, False)
    await until_asleep(slots)


async def test_a_task_that_continues_another_wakes_no_other_slot(serve: NewDispatcher) -> None:
    slots = [FakeSlot(index) for index in range(3)]
    dispatcher = serve(*slots, awake=1, sleep_after_s=60)
    await let_tasks_run()
    for number in range(5):
        await dispatcher.submit("job", "a", continues=number > 0)
    assert [slot.starts for slot in slots] == [1, 0, 0]


async def test_as_many_slots_wake_as_the_work_needs(serve: NewDispatcher) -> None:
    slots = [blocked(FakeSlot(index, batch_limit=4)) for index in range(4)]
    dispatcher = serve(*slots, awake=0, sleep_after_s=60)
    await let_tasks_run()
    tasks = [asyncio.create_task(dispatcher.submit("job", "a", key="k")) for _ in range(9)]
    await let_tasks_run()
    assert states(slots) == ["busy", "busy", "busy", "asleep"]
    for slot in slots:
        slot.unblocked.set()
    assert [(await task).result for task in tasks] == ["A"] * 9
    assert slots[3].starts == 0


async def test_some_slots_never_sleep(serve: NewDispatcher) -> None:
    slots = [FakeSlot(index) for index in range(2)]
    dispatcher = serve(*slots, awake=1, sleep_after_s=0.05, always_awake=1)
    await let_tasks_run()
    assert states(slots) == ["idle", "asleep"]
    slots[0].unblocked.clear()
    first = asyncio.create_task(dispatcher.submit("job", "a"))
    await let_tasks_run()
    assert (await dispatcher.submit("other", "b")).slot == 1
    await until_asleep(slots[1:])
    slots[0].unblocked.set()
    assert (await first).slot == 0
    await asyncio.sleep(0.15)
    assert states(slots) == ["idle", "asleep"]


async def test_work_of_a_process_that_went_to_sleep_may_go_to_any_slot(serve: NewDispatcher) -> None:
    slots = [FakeSlot(index) for index in range(2)]
    dispatcher = serve(*slots, sleep_after_s=0.05, always_awake=1)
    assert (await dispatcher.submit("job", "a", affinity=1)).slot == 1
    await until_asleep(slots[1:])
    assert (await dispatcher.submit("job", "a", affinity=1)).slot == 0


async def test_a_slot_that_cannot_wake_has_failed(
    serve: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 0.01)
    slot = FakeSlot(0)
    dispatcher = serve(slot, sleep_after_s=0.05)
    await until_asleep([slot])
    slot.failing_starts = 2
    with pytest.raises(NotReady, match="no such model"):
        await dispatcher.submit("job", "a")
    assert (slot.status.state, slot.status.waking) == ("failed", False)
    await until_asleep([slot])
    assert (await dispatcher.submit("job", "a")).result == "A"


async def test_nothing_wakes_while_the_service_stops(serve: NewDispatcher) -> None:
    slot = FakeSlot(0)
    dispatcher = serve(slot, sleep_after_s=0.05)
    await until_asleep([slot])
    await dispatcher.drain(1)
    task = asyncio.create_task(dispatcher.submit("job", "a"))
    await let_tasks_run()
    assert slot.starts == 1
    task.cancel()
