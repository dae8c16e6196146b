"""The dispatcher with slots that prepare a batch while they run the one before."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common.errors import ProcessCrashed, TaskCrashes
from app.pool.dispatcher import Dispatcher
from app.pool.failure_policy import MAX_CRASHES
from app.pool.tasks import TaskResult
from tests.event_loop import let_tasks_run, until
from tests.pool.fake_slots import FakeSlot, NewDispatcher, TwoBatchSlot, blocked, submit_all

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


async def test_a_batch_is_handed_over_while_the_one_before_runs(serve: NewDispatcher) -> None:
    slot = blocked(TwoBatchSlot(0, batch_limit=2))
    dispatcher = serve(slot)
    answers = asyncio.create_task(submit_all(dispatcher, *"abcdef"))
    await let_tasks_run()
    assert slot.batches == [["a", "b"]], "running"
    assert slot.in_flight == [[["a", "b"]], [["a", "b"], ["c", "d"]]]
    slot.unblocked.set()
    assert await answers == list("ABCDEF")
    assert slot.in_flight[-1][-1] == ["e", "f"]
    assert (slot.status.batches, slot.status.state) == (3, "idle")


async def with_an_urgent_batch(
    slot: TwoBatchSlot, dispatcher: Dispatcher[str, str], *payloads: str
) -> list["asyncio.Task[TaskResult[str]]"]:
    """Tasks of an urgent batch with a deadline, and of others. The slot has it behind the first of these."""
    slot.unblocked.clear()
    tasks = [asyncio.create_task(dispatcher.submit("job", payloads[0]))]
    await let_tasks_run()
    deadline = asyncio.get_running_loop().time() + 100
    tasks.insert(0, asyncio.create_task(dispatcher.submit("live", "urgent", deadline=deadline)))
    tasks += [asyncio.create_task(dispatcher.submit("job", payload)) for payload in payloads[1:]]
    await let_tasks_run()
    return tasks


async def test_an_urgent_batch_is_the_next_one(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0)
    dispatcher = serve(slot)
    tasks = await with_an_urgent_batch(slot, dispatcher, *"abc")
    assert slot.in_flight[-1] == [["a"], ["urgent"]]
    slot.unblocked.set()
    assert [answer.result for answer in await asyncio.gather(*tasks)] == ["URGENT", "A", "B", "C"]
    assert slot.batches == [["a"], ["urgent"], ["b"], ["c"]]
    assert (slot.status.batches, slot.status.state) == (4, "idle")


async def test_an_urgent_batch_goes_to_an_idle_slot_if_there_is_one(serve: NewDispatcher) -> None:
    busy, idle = TwoBatchSlot(0), TwoBatchSlot(1)
    dispatcher = serve(busy, idle)
    await let_tasks_run()
    idle.unblocked.clear()
    tasks = await with_an_urgent_batch(busy, dispatcher, "a")
    assert (busy.batches, idle.batches) == ([["a"]], [["urgent"]])
    for slot in (busy, idle):
        slot.unblocked.set()
    await asyncio.gather(*tasks)


async def test_a_draft_that_was_ready_is_lost_with_the_process(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0)
    slot.errors["a"] = ProcessCrashed("killed")
    draft, film = await with_an_urgent_batch(slot, serve(slot), "a")
    slot.unblocked.set()
    with pytest.raises(ProcessCrashed):
        await draft
    assert (await film).result == "A"
    assert slot.batches == [["a"], ["a"]]


async def test_an_answer_that_comes_with_a_crash_is_not_lost(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0)
    slot.errors["b"] = ProcessCrashed("killed")
    slot.unblocked.clear()
    answers = asyncio.create_task(submit_all(serve(slot), *"ab"))
    await let_tasks_run()
    slot.unblocked.set()
    assert await answers == ["A", "B"]
    assert slot.batches == [["a"], ["b"], ["b"]]


async def test_a_suspect_runs_alone_although_urgent_tasks_keep_coming(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0)
    dispatcher = serve(slot)
    suspect = asyncio.create_task(dispatcher.submit("job", "suspect", crash_count=1))

    async def stream() -> None:
        while not suspect.done():
            await dispatcher.submit("live", "caption", urgent=True)

    await asyncio.wait_for(asyncio.gather(*(stream() for _ in range(4))), 5)
    assert [flight for flight in slot.in_flight if ["suspect"] in flight] == [[["suspect"]]]
    assert (await suspect).result == "SUSPECT"


async def test_a_service_that_drains_answers_all_batches(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0)
    dispatcher = serve(slot)
    tasks = await with_an_urgent_batch(slot, dispatcher, "a")
    waiting = asyncio.create_task(dispatcher.submit("job", "b"))
    draining = asyncio.create_task(dispatcher.drain(10))
    await let_tasks_run()
    assert not draining.done()
    slot.unblocked.set()
    await draining
    assert [task.done() for task in [*tasks, waiting]] == [True, True, False]


async def test_the_only_task_in_flight_is_counted_at_once(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0, batch_limit=4)
    dispatcher = serve(slot)
    counts: list[int] = []
    with pytest.raises(TaskCrashes):
        await dispatcher.submit("job", "crash", on_crash=counts.append)
    assert counts == [1, 2, 3]
    assert slot.starts == 1 + MAX_CRASHES


async def test_a_batch_that_lacks_memory_is_requeued_and_the_following_one_runs(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0, batch_limit=2)
    dispatcher = serve(slot)
    assert await submit_all(dispatcher, "no memory", "b", "c", "d") == ["NO MEMORY", "B", "C", "D"]
    assert slot.batches[0][0] == "c"
    assert slot.status.restarts == 0


async def test_a_failed_device_is_no_fault_of_two_batches(serve: NewDispatcher) -> None:
    slot, sound = TwoBatchSlot(0, batch_limit=2), TwoBatchSlot(1, batch_limit=2)
    dispatcher = serve(slot, sound)
    answers = await submit_all(dispatcher, "sick", "b", "c", "d", "e", "f", "g", "h")
    assert isinstance(answers[0], TaskCrashes), "each device fails on it, and works after it"
    assert answers[1:] == list("BCDEFGH")


async def test_a_restart_that_a_slot_asks_for_comes_after_both_batches(serve: NewDispatcher) -> None:
    slot = blocked(TwoBatchSlot(0, batch_limit=1))
    dispatcher = serve(slot)
    answers = asyncio.create_task(submit_all(dispatcher, *"abc"))
    await let_tasks_run()
    slot.needs_restart.set()
    slot.unblocked.set()
    assert await answers == list("ABC")
    assert (slot.batches, slot.starts) == ([["a"], ["b"], ["c"]], 2)


async def test_a_fault_of_the_planner_ends_no_slot_and_loses_no_task(
    new_dispatcher: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 0.01)
    slots = [TwoBatchSlot(0), FakeSlot(1)]
    dispatcher = new_dispatcher(*slots)
    take_batch = dispatcher._backlog.take_batch
    faults = iter([False, True])

    def take_or_fail(slot: FakeSlot, **options: Any) -> object:
        if slot.index == 0 and len(dispatcher._backlog) and next(faults, False):
            raise ZeroDivisionError
        return take_batch(slot, **options)

    monkeypatch.setattr(dispatcher._backlog, "take_batch", take_or_fail)
    dispatcher.start()
    assert await submit_all(dispatcher, *"abcdefgh") == list("ABCDEFGH")
    assert next(faults, None) is None, "it failed with a batch in flight"
    async with asyncio.timeout(5):
        await slots[0].started.wait()
        await until(lambda: slots[0].starts >= 2)


async def test_tasks_that_continue_come_first_and_in_order(serve: NewDispatcher) -> None:
    slot = blocked(FakeSlot(0))
    dispatcher = serve(slot)
    submitted = [asyncio.create_task(dispatcher.submit("film", "film 1"))]
    await let_tasks_run()
    submitted += [
        asyncio.create_task(dispatcher.submit(job, payload, continues=payload.startswith("next")))
        for job, payload in (
            ("film", "film 2"),
            ("film", "film 3"),
            ("talk", "talk 1"),
            ("film", "next of 1"),
            ("film", "next of 2"),
        )
    ]
    await let_tasks_run()
    slot.unblocked.set()
    await asyncio.gather(*submitted)
    assert [batch[0] for batch in slot.batches] == [
        "film 1",
        "next of 1",  # what was begun has the next turn
        "talk 1",
        "next of 2",
        "film 2",
        "film 3",
    ]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["ok", "crash", "raise", "no memory"]), max_size=14),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_whatever_happens_each_task_is_answered_once(kinds: list[str], limit: int, count: int) -> None:
    async def run() -> None:
        slots = [TwoBatchSlot(index, batch_limit=limit) for index in range(count)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        try:
            answers = await submit_all(dispatcher, *kinds)
        finally:
            await dispatcher.stop()
        for kind, answer in zip(kinds, answers, strict=True):
            expected = {"crash": TaskCrashes, "raise": ValueError}.get(kind)
            assert isinstance(answer, expected) if expected else answer == kind.upper()
        ran = Counter(payload for slot in slots for batch in slot.batches for payload in batch)
        assert ran["ok"] >= kinds.count("ok")

    asyncio.run(run())
