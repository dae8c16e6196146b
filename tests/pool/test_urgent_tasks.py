"""Urgent tasks: their batches beside the others, their turns, and what becomes of late ones."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.common.errors import DeviceFailed, Expired, ProcessCrashed, ProcessLost, RequeueBatch
from app.pool.batching import BatchCost
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import Task
from app.pool.urgent_queue import UrgentQueue
from app.telemetry.work import Work, working_for
from bench import virtual_clock
from tests.event_loop import let_tasks_run
from tests.pool.fake_slots import FakeSlot, NewDispatcher, TwoBatchSlot
from tests.pool.test_fair_queue import check_turns

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


class Submitting:
    """Submits tasks of owners. A payload says whose it is: "film 1"; those of drafts have deadlines.

    Those of captions are urgent without one.
    """

    def __init__(self, dispatcher: Dispatcher[str, str]) -> None:
        self.dispatcher = dispatcher
        self.tasks: dict[str, asyncio.Task[Any]] = {}

    def __call__(self, payload: str, within_s: float | None = None, **options: Any) -> None:
        owner, _, _ = payload.partition(" ")
        deadline = None if within_s is None else asyncio.get_running_loop().time() + within_s
        with working_for(Work(payload, owner=owner)):
            submitted = self.dispatcher.submit(
                options.pop("job", owner), payload, deadline=deadline, urgent="caption" in payload, **options
            )
            self.tasks[payload] = asyncio.create_task(submitted)

    async def outcomes(self) -> dict[str, object]:
        await asyncio.wait(self.tasks.values())
        return {
            payload: "cancelled" if task.cancelled() else task.exception() or task.result().result
            for payload, task in self.tasks.items()
        }


async def batches_of(
    slot: FakeSlot, *submissions: tuple[Any, ...], cost: BatchCost = BatchCost()
) -> list[list[str]]:
    """The batches of a slot that starts when all tasks wait: payload, key, time to the deadline (s)."""
    dispatcher = Dispatcher[str, str]("worker", [slot], cost)
    submit = Submitting(dispatcher)
    for payload, key, *within_s in submissions:
        submit(payload, *within_s, key=key)
    await let_tasks_run()
    dispatcher.start()
    outcomes = await submit.outcomes()
    await dispatcher.stop()
    assert outcomes == {payload: payload.upper() for payload, *_ in submissions}
    return slot.batches


def films(count: int) -> list[tuple[str, str]]:
    return [(f"film {number}", "k") for number in range(count)]


def drafts(count: int, key: str = "k") -> list[tuple[str, str, float]]:
    return [(f"draft {number}", key, 10.0 + number) for number in range(count)]


def urgent_counts(batches: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Of each batch, how many tasks it has and how many of these are urgent."""
    return [(len(batch), sum("film" not in payload for payload in batch)) for batch in batches]


async def test_urgent_tasks_have_batches_of_their_own() -> None:
    captions = [(f"caption {number}", "k") for number in range(2)]
    batches = await batches_of(FakeSlot(0, batch_limit=4), *films(8), *drafts(3), *captions)
    assert urgent_counts(batches) == [(4, 4), (1, 1), (4, 0), (4, 0)], "which come first"


async def test_films_do_not_starve() -> None:
    batches = await batches_of(FakeSlot(0), *films(2), *drafts(9))
    assert urgent_counts(batches) == [*[(1, 1)] * 4, (1, 0)] * 2 + [(1, 1)]


async def test_urgent_tasks_of_two_kinds_take_turns() -> None:
    batches = await batches_of(FakeSlot(0, batch_limit=4), *drafts(6), ("caption", "other"))
    assert sorted(urgent_counts(batches)) == [(1, 1), (2, 2), (4, 4)]


async def test_urgent_tasks_are_sent_one_by_one_where_a_batch_saves_no_time() -> None:
    slot = FakeSlot(0, batch_limit=4)
    cost = BatchCost(fixed_ms=5, task_ms=450, size_ms=0.1)
    batches = await batches_of(slot, *drafts(3), ("film", "k"), cost=cost)
    assert urgent_counts(batches) == [(1, 1), (1, 1), (1, 1), (1, 0)]


async def test_films_of_many_are_sent_one_by_one_where_a_batch_saves_no_time() -> None:
    cost = BatchCost(fixed_ms=5, task_ms=450, size_ms=0.1)
    waiting = [(f"owner{number} film", "k") for number in range(4)]
    assert list(map(len, await batches_of(FakeSlot(0, batch_limit=4), *waiting, cost=cost))) == [1] * 4


async def test_an_urgent_batch_is_ready_behind_the_one_that_runs(serve: NewDispatcher) -> None:
    slot = TwoBatchSlot(0, batch_limit=4)
    submit = Submitting(serve(slot))
    await let_tasks_run()
    slot.unblocked.clear()
    submit("film 0", key="k")
    await let_tasks_run()
    for number in range(1, 9):
        submit(f"film {number}", key="k")
    for number in range(6):
        submit(f"caption {number}", key="k")
    await let_tasks_run()
    assert slot.in_flight[-1] == [["film 0"], [f"caption {number}" for number in range(4)]]
    slot.unblocked.set()
    await submit.outcomes()
    assert [len(batch) for batch in slot.batches] == [1, 4, 2, 4, 4]


async def test_of_an_owner_a_caption_is_first() -> None:
    waiting = [("own draft 1", "k", 1.0), ("own caption 1", "k"), ("own caption 2", "k")]
    batches = await batches_of(FakeSlot(0), *waiting)
    assert batches == [["own caption 1"], ["own caption 2"], ["own draft 1"]]


async def test_a_draft_that_its_caller_cancels_is_never_sent(new_dispatcher: NewDispatcher) -> None:
    slot = FakeSlot(0)
    dispatcher = new_dispatcher(slot)
    submit = Submitting(dispatcher)
    submit("draft 1", 10)
    await let_tasks_run()
    submit.tasks["draft 1"].cancel()
    submit("draft 2", 10)
    await let_tasks_run()
    assert dispatcher._backlog.urgent.size == 1
    dispatcher.start()
    assert await submit.outcomes() == {"draft 1": "cancelled", "draft 2": "DRAFT 2"}
    assert (slot.batches, dispatcher.expired) == ([["draft 2"]], 0)


def test_a_draft_expires_although_no_slot_takes_batches() -> None:
    class NeverStarts(FakeSlot):
        async def start(self) -> None:
            await asyncio.sleep(1000)

    async def work() -> None:
        dispatcher = Dispatcher[str, str]("worker", [NeverStarts(0)])
        dispatcher.start()
        submit = Submitting(dispatcher)
        now = asyncio.get_running_loop().time
        for within_s in (3.0, 1.0, 2.0, -1.0):
            submit(f"draft {within_s}", within_s)
        submit("film", None)
        submit("caption", None)
        for at in (0.0, 1.0, 2.0, 3.0):
            await asyncio.sleep(at - now())
            await let_tasks_run()
            assert dispatcher.expired == 1 + int(at)
            assert isinstance(submit.tasks[f"draft {at or -1.0}"].exception(), Expired)
        assert not submit.tasks["film"].done()
        assert dispatcher.backlog() == (2, 3.0)
        submit.tasks["film"].cancel()
        submit.tasks["caption"].cancel()
        await dispatcher.stop()

    virtual_clock.run(work())


FAILURES = [
    ProcessCrashed("killed"),
    ProcessLost("its node is gone"),
    DeviceFailed("CUDA failed with error an illegal memory access was encountered"),
    ValueError("cannot be done"),
]


class FailsOnce(FakeSlot):
    """Its first batch fails."""

    def __init__(self, error: Exception, batch_limit: int = 4) -> None:
        super().__init__(0, batch_limit=batch_limit)
        self.error: Exception | None = error

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str | Exception]:
        if self.error is not None:
            self.batches.append(list(payloads))
            error, self.error = self.error, None
            raise error
        return await super().run(payloads, expected_s)


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
async def test_a_failure_costs_the_drafts_and_others_are_retried(
    new_dispatcher: NewDispatcher, error: Exception
) -> None:
    slot = FailsOnce(error)
    dispatcher = new_dispatcher(slot, retries_errors=True)
    submit = Submitting(dispatcher)
    counts: list[int] = []
    for payload, within_s in (("film", None), ("draft 1", 10), ("draft 2", 10), ("caption", None)):
        submit(payload, within_s, on_crash=counts.append)
    await let_tasks_run()
    dispatcher.start()
    outcomes = await submit.outcomes()
    first = slot.batches[0]
    drafts = [payload for payload in first if "draft" in payload]
    assert len(drafts) in (1, 2)
    assert outcomes == {payload: error if payload in drafts else payload.upper() for payload in outcomes}
    sent = Counter(payload for batch in slot.batches for payload in batch)
    assert {payload: sent[payload] for payload in first} == {
        payload: 1 if payload in drafts else 2 for payload in first
    }
    assert counts == []


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
async def test_a_draft_that_was_alone_is_not_retried(serve: NewDispatcher, error: Exception) -> None:
    slot = FailsOnce(error)
    submit = Submitting(serve(slot, retries_errors=True))
    submit("draft", 10)
    assert await submit.outcomes() == {"draft": error}
    assert slot.batches == [["draft"]]
    submit("film")
    assert (await submit.outcomes())["film"] == "FILM"


async def test_a_draft_under_suspicion_is_alone_in_flight(new_dispatcher: NewDispatcher) -> None:
    """Its caller says how many processes have crashed on what it is made of."""
    slot = TwoBatchSlot(0, batch_limit=4)
    dispatcher = new_dispatcher(slot)
    submit = Submitting(dispatcher)
    for number in range(8):
        submit(f"owner{number} film")
        submit(f"owner{number} draft", 10.0)
    submit("suspect draft", 1.0, crash_count=1)
    await let_tasks_run()
    dispatcher.start()
    await submit.outcomes()
    assert [flight for flight in slot.in_flight if any("suspect draft" in batch for batch in flight)] == [
        [["suspect draft"]]
    ]


async def test_drafts_of_a_batch_that_lacked_memory_are_sent_again(new_dispatcher: NewDispatcher) -> None:
    submitted = [("film 1", "k"), ("draft 1", "k", 10.0), ("draft 2", "k", 10.0)]
    batches = await batches_of(FailsOnce(RequeueBatch("out of memory")), *submitted)
    assert Counter(payload for batch in batches for payload in batch)["draft 1"] == 2


async def test_drafts_go_to_another_slot_when_theirs_is_removed_or_drains(serve: NewDispatcher) -> None:
    slots = [FakeSlot(index) for index in range(2)]
    dispatcher = serve(*slots)
    await let_tasks_run()
    for slot in slots:
        slot.unblocked.clear()
    submit = Submitting(dispatcher)
    for number in range(4):
        submit(f"draft {number}", 10.0 + number)
    await let_tasks_run()
    assert [slot.batches for slot in slots] == [[["draft 0"]], [["draft 1"]]]
    await dispatcher.remove_slot(0)
    slots[1].unblocked.set()
    assert await submit.outcomes() == {f"draft {number}": f"DRAFT {number}" for number in range(4)}
    assert slots[1].batches[1:] == [["draft 0"], ["draft 2"], ["draft 3"]]
    await dispatcher.drain_slot(1)
    assert dispatcher.slots == []


async def test_cancelling_a_job_cancels_its_drafts_and_draining_sends_none(serve: NewDispatcher) -> None:
    slot = FakeSlot(0)
    dispatcher = serve(slot)
    await let_tasks_run()
    slot.unblocked.clear()
    submit = Submitting(dispatcher)
    submit("film")
    await let_tasks_run()
    submit("draft 1", 10.0, job="cancelled")
    submit("draft 2", 0.001)
    await let_tasks_run()
    dispatcher.cancel("cancelled")
    draining = asyncio.create_task(dispatcher.drain(10))
    await let_tasks_run()
    slot.unblocked.set()
    await draining
    outcomes = await submit.outcomes()
    assert (outcomes["film"], outcomes["draft 1"]) == ("FILM", "cancelled")
    assert isinstance(outcomes["draft 2"], Expired)
    assert slot.batches == [["film"]]


class TimedSlot(FakeSlot):
    """Takes exactly the expected time for a batch of films, and a third of it for drafts alone."""

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        self.batches.append(list(payloads))
        sizes = [float(payload.rpartition(":")[2]) for payload in payloads]
        part = 1 / 3 if all(payload.startswith("draft") for payload in payloads) else 1
        await asyncio.sleep(BatchCost().seconds(sizes) * part)
        return list(payloads)


def film_batches(slots: int, *, drafts: int) -> list[list[list[str]]]:
    """The batches of one film on some slots, while so many drafts are submitted in turn."""

    async def work() -> list[list[list[str]]]:
        workers = [TimedSlot(index, batch_limit=8) for index in range(slots)]
        dispatcher = Dispatcher[str, str]("worker", workers)
        dispatcher.start()
        await let_tasks_run()
        submit = Submitting(dispatcher)
        for number in range(60 * slots):
            size = 10 + number * 37 % 90
            submit(f"film {number}:{size}", size=size)
        for number in range(drafts):
            submit(f"draft {number}:10", 5.0, key="draft", size=10)
            await asyncio.sleep(0.1)
        await submit.outcomes()
        await dispatcher.stop()
        return [[batch for batch in slot.batches if batch[0].startswith("film")] for slot in workers]

    return virtual_clock.run(work())


def test_the_last_batches_of_a_film_are_planned_with_drafts_beside_it() -> None:
    batches = film_batches(4, drafts=20)
    counts = [sum(map(len, slot)) for slot in batches]
    assert sum(counts) == 240
    assert max(counts) - min(counts) <= 10, "no slot has a round more than the others"


class SlowSlot(FakeSlot):
    """Takes so many times as long for a batch as expected. Notes when, and what it has in flight."""

    def __init__(self, factor: float, *, batches_at_once: int = 1) -> None:
        super().__init__(0, batch_limit=8)
        self.factor = factor
        self.batches_at_once = batches_at_once
        self.seconds: list[float] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._turn = asyncio.Lock()

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        async with self._turn:
            self.batches.append(list(payloads))
            self.seconds.append(self.factor * BatchCost().seconds([50] * len(payloads)))
            await asyncio.sleep(self.seconds[-1])
        self._in_flight -= 1
        return list(payloads)


def beside_a_stream(slot: SlowSlot, jobs: int, *, with_stream: bool = True) -> None:
    """Transcribe many films on the slot while a stream is open."""

    async def work() -> None:
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await let_tasks_run()
        with dispatcher.expecting_urgent() if with_stream else nullcontext():
            tasks = [dispatcher.submit(f"job{number % jobs}", "film", size=50) for number in range(40)]
            await asyncio.gather(*tasks)
        await dispatcher.stop()

    virtual_clock.run(work())


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("batches_at_once", [1, 2])
def test_while_a_stream_is_open_slow_slots_take_short_batches(jobs: int, batches_at_once: int) -> None:
    slot = SlowSlot(1.5, batches_at_once=batches_at_once)  # a full batch takes 0.77 s
    beside_a_stream(slot, jobs)
    assert max(slot.seconds[3:]) <= 0.5
    assert max(map(len, slot.batches)) >= 3, "as many as it can in that time"
    assert slot.most_in_flight == 1
    without = SlowSlot(1.5, batches_at_once=batches_at_once)
    beside_a_stream(without, jobs, with_stream=False)
    assert max(map(len, without.batches)) == 8
    assert without.most_in_flight == batches_at_once


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_slot_that_takes_long_for_a_task_takes_one_at_a_time(jobs: int) -> None:
    slot = SlowSlot(10, batches_at_once=2)
    beside_a_stream(slot, jobs)
    assert {len(batch) for batch in slot.batches[1:]} == {1}, "once its speed is known"


@pytest.mark.parametrize("jobs", [1, 3])
def test_while_a_stream_is_open_fast_slots_take_full_batches(jobs: int) -> None:
    slot = SlowSlot(0.3, batches_at_once=2)
    beside_a_stream(slot, jobs)
    assert max(map(len, slot.batches)) == 8
    assert slot.most_in_flight == 2


@given(st.lists(st.tuples(st.sampled_from("XYZ"), st.integers(1, 9))))
def test_owners_take_fair_turns_and_the_deadlines_of_each_are_in_order(lines: list[tuple[str, int]]) -> None:
    async def work() -> None:
        queue = UrgentQueue[str, str]()
        for owner, deadline in lines:
            with working_for(Work(owner=owner)):
                future = asyncio.get_running_loop().create_future()
                task = Task[str, str](
                    "job", owner, "k", None, 0, print, 0.0, 1, False, future, deadline=deadline
                )
            queue.put(task)
        taken = []
        while (first := queue.take(lambda task: True)) is not None:
            taken.append((first.payload, first.deadline))
        assert sorted(taken) == sorted(lines)
        check_turns([owner for owner, _ in taken])
        for name in "XYZ":
            deadlines = [deadline for owner, deadline in taken if owner == name]
            assert deadlines == sorted(deadlines)

    virtual_clock.run(work())


class WatchedSlot(FakeSlot):
    """A batch takes a second. Checks that it gets urgent tasks and others apart, and one batch at a time."""

    def __init__(self, index: int, batch_limit: int) -> None:
        super().__init__(index, batch_limit=batch_limit)
        self.runs = False

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str | Exception]:
        assert not self.runs
        self.runs = True
        now = asyncio.get_running_loop().time()
        urgent = "film" not in payloads[0]
        for payload in payloads:
            assert ("film" not in payload) == urgent
            assert "draft" not in payload or float(payload.rpartition(":")[2]) >= now, "sent too late"
        await asyncio.sleep(1)
        self.runs = False
        return await super().run(payloads, expected_s)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),  # owner
            st.sampled_from("kl"),  # key
            st.none() | st.just("urgent") | st.integers(0, 12),  # time to the deadline (s)
            st.sampled_from([0.0, 0.0, 0.3, 2.0]),  # time to the next one (s)
        ),
        max_size=40,
    ),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),  # limits of the slots
)
def test_whatever_waits_no_task_is_lost(
    submissions: list[tuple[str, str, int | str | None, float]], limits: list[int]
) -> None:
    async def work() -> None:
        slots = [WatchedSlot(index, limit) for index, limit in enumerate(limits)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        submit = Submitting(dispatcher)
        dispatcher.start()
        for number, (owner, key, urgency, pause_s) in enumerate(submissions):
            within_s = urgency if isinstance(urgency, int) else None
            deadline = asyncio.get_running_loop().time() + (within_s or 0)
            kind = "film" if urgency is None else "caption" if within_s is None else "draft"
            submit(f"{owner} {kind} {key}{number:02}:{deadline}", within_s, key=key)
            await asyncio.sleep(pause_s)
        outcomes = await submit.outcomes() if submissions else {}
        await dispatcher.stop()

        sent = Counter(payload for slot in slots for batch in slot.batches for payload in batch)
        for payload, outcome in outcomes.items():
            is_expired = isinstance(outcome, Expired)
            assert is_expired or outcome == payload.upper()
            assert sent[payload] == (0 if is_expired else 1)
            assert not is_expired or "draft" in payload
        assert dispatcher.expired == len(outcomes) - sent.total()
        assert dispatcher._backlog.urgent.size == len(dispatcher._backlog) == 0

    virtual_clock.run(work())
