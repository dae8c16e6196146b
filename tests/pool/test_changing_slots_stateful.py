"""Whatever happens to the slots and in whatever order, each task is answered exactly once.

Slots are added, drained, removed and lost while their processes answer, crash, fail and restart.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from structlog.testing import capture_logs

from app.common.errors import (
    DeviceFailed,
    Expired,
    NotReady,
    ProcessCrashed,
    ProcessLost,
    RequeueBatch,
    TaskCrashes,
)
from app.pool.dispatcher import Dispatcher
from app.pool.failure_policy import MAX_CRASHES, MAX_LOSSES
from bench.virtual_clock import VirtualClockLoop
from tests.event_loop import let_tasks_run
from tests.pool.fake_slots import StubSlot

MOST_SLOTS = 4
LATE = "late"
LOST = ProcessLost("node 7 is gone")
FAILURES = (
    ProcessCrashed("killed"),
    DeviceFailed("CUDA failed with error an illegal memory access was encountered"),
    LOST,
    RequeueBatch("out of memory"),
    ValueError("cannot be done"),
)
START_FAILURES = (None, None, LOST, ProcessCrashed("killed"), OSError("no such model"))


class DirectedSlot(StubSlot):
    """Answers when the test says so, the first batch first. A `Slot[str, str]`."""

    def __init__(self, index: int, limit: int, *, overlaps: bool, is_stubborn: bool) -> None:
        """`is_stubborn`: it answers although it is cancelled."""
        super().__init__(index)
        self.limit = limit
        self.batches_at_once = 2 if overlaps else 1
        self.is_stubborn = is_stubborn
        self.start_failure: Exception | None = None
        self.answers_at_once = False
        self.is_removed = False
        self.sent: list[str] = []
        self.in_flight: list[list[str]] = []
        self._answers: list[asyncio.Future[None]] = []  # of these, in order

    @property
    def must_answer(self) -> bool:
        return bool(self.in_flight)

    def batch_limit(self, weight: int = 1) -> int:
        return self.limit

    async def start(self) -> None:
        await asyncio.sleep(0)
        if self.start_failure is not None:
            raise self.start_failure

    async def probe(self) -> None:
        await self.start()

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        assert not self.is_removed
        assert len(self.in_flight) < self.batches_at_once
        self.sent += payloads
        answer = asyncio.get_running_loop().create_future()
        if not self.answers_at_once:
            self.in_flight.append(list(payloads))
            self._answers.append(answer)
            try:
                await answer
            except asyncio.CancelledError:
                if not self.is_stubborn:
                    raise
                return [LATE for _ in payloads]
        return [payload.upper() for payload in payloads]

    def succeed(self) -> None:
        self._take_first().set_result(None)

    def fail(self, error: Exception) -> None:
        self._take_first().set_exception(error)
        while self._answers and isinstance(error, ProcessCrashed):
            self._take_first().set_exception(ProcessCrashed("its process is gone"))

    def _take_first(self) -> asyncio.Future[None]:
        self.in_flight.pop(0)
        return self._answers.pop(0)

    async def close(self) -> None:
        while self._answers:
            self._take_first().cancel()
        await asyncio.sleep(0)
        if self.is_stubborn:
            raise OSError("it cannot be ended")


class ChangingSlots(RuleBasedStateMachine):
    """A dispatcher on a virtual clock."""

    @initialize(retries_errors=st.booleans(), sleep_after_s=st.sampled_from([None, 30.0]))
    def begin(self, retries_errors: bool, sleep_after_s: float | None) -> None:
        self.logs = ExitStack()
        self.logs.enter_context(capture_logs())  # tracebacks would take most of the time
        self.loop = VirtualClockLoop()
        asyncio.set_event_loop(self.loop)
        self.slots: dict[int, DirectedSlot] = {}
        self.leaving: list[asyncio.Task[None]] = []
        self.asked: dict[str, asyncio.Task[str]] = {}
        self.sent: set[str] = set()
        self.deadlines: dict[str, float] = {}
        self.crashes = Counter[str]()  # in which a task was in flight
        self.losses = Counter[str]()
        self.dispatcher = Dispatcher[str, str](
            "worker",
            [],
            retries_errors=retries_errors,
            sleep_after_s=sleep_after_s,
            waits_for_slots=True,
        )
        self.loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self.dispatcher.start()

    def _settle(self, seconds: float = 0.0) -> None:
        async def wait() -> None:
            await let_tasks_run()
            await asyncio.sleep(seconds)
            await let_tasks_run()

        self.loop.run_until_complete(wait())
        for index in list(self.slots):
            self.sent.update(self.slots[index].sent)
            if self.slots[index] not in self.dispatcher.slots:
                self.slots.pop(index).is_removed = True

    def _pick(self, number: int) -> DirectedSlot:
        return list(self.slots.values())[number % len(self.slots)]

    @precondition(lambda self: len(self.slots) < MOST_SLOTS)
    @rule(
        limit=st.integers(1, 3),
        overlaps=st.booleans(),
        is_stubborn=st.booleans(),
        failure=st.sampled_from(START_FAILURES),
    )
    def add(self, limit: int, overlaps: bool, is_stubborn: bool, failure: Exception | None) -> None:
        index = self.dispatcher.free_index
        assert index == min(set(range(MOST_SLOTS + 1)) - set(self.slots))
        slot = self.slots[index] = DirectedSlot(index, limit, overlaps=overlaps, is_stubborn=is_stubborn)
        slot.start_failure = failure
        self._add(slot)

    def _add(self, slot: DirectedSlot) -> None:
        async def add() -> None:
            self.dispatcher.add_slot(slot)

        self.loop.run_until_complete(add())
        self._settle()

    @rule(
        job=st.sampled_from("abc"),
        count=st.integers(1, 6),
        key=st.integers(0, 1),
        bound_to=st.none() | st.integers(0),
        within_s=st.sampled_from([None, None, 0.5, 20.0, math.inf]),
    )
    def submit(self, job: str, count: int, key: int, bound_to: int | None, within_s: float | None) -> None:
        """`within_s`: inf for tasks that are urgent without a deadline."""
        affinity = self._pick(bound_to).index if self.slots and bound_to is not None else bound_to
        urgent = within_s == math.inf
        deadline = None if within_s is None or urgent else self.loop.time() + within_s

        async def ask(payload: str) -> str:
            task = self.dispatcher.submit(
                job, payload, key=key, affinity=affinity, deadline=deadline, urgent=urgent
            )
            return (await task).result

        for _ in range(count):
            payload = f"{job}{len(self.asked):04}"
            if deadline is not None:
                self.deadlines[payload] = deadline
            self.asked[payload] = self.loop.create_task(ask(payload))
        self._settle()

    @precondition(lambda self: any(slot.must_answer for slot in self.slots.values()))
    @rule(number=st.integers(0), failure=st.none() | st.sampled_from(FAILURES))
    def answer(self, number: int, failure: Exception | None) -> None:
        waiting = [slot for slot in self.slots.values() if slot.must_answer]
        slot = waiting[number % len(waiting)]
        if failure is None:
            slot.succeed()
        else:
            if isinstance(failure, ProcessCrashed):
                counter = self.losses if failure is LOST else self.crashes
                counter.update(payload for batch in slot.in_flight for payload in batch)
            slot.fail(failure)
        self._settle()

    @precondition(lambda self: self.slots)
    @rule(number=st.integers(0), failure=st.sampled_from(START_FAILURES))
    def restart(self, number: int, failure: Exception | None) -> None:
        slot = self._pick(number)
        slot.start_failure = failure
        slot.needs_restart.set()
        self._settle()

    @precondition(lambda self: self.slots)
    @rule(number=st.integers(0))
    def remove(self, number: int) -> None:
        slot = self._pick(number)
        self.leaving.append(self.loop.create_task(self.dispatcher.remove_slot(slot.index)))
        self._settle()
        assert slot.is_removed

    @precondition(lambda self: self.slots)
    @rule(number=st.integers(0))
    def drain(self, number: int) -> None:
        slot = self._pick(number)
        self.leaving.append(self.loop.create_task(self.dispatcher.drain_slot(slot.index)))
        self._settle()
        assert slot.is_removed or (slot.status.state == "draining" and slot.in_flight)

    @rule(job=st.sampled_from("abc"))
    def cancel(self, job: str) -> None:
        self.dispatcher.cancel(job)
        self._settle()

    @rule(number=st.integers(0))
    def disconnect(self, number: int) -> None:
        if self.asked:
            list(self.asked.values())[number % len(self.asked)].cancel()
        self._settle()

    @rule(seconds=st.sampled_from([1.0, 10.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self._settle(seconds)

    @invariant()
    def every_task_is_in_one_place(self) -> None:
        places = Counter(task.payload for task in self.dispatcher._unanswered() if not task.future.done())
        assert places == Counter(payload for payload, task in self.asked.items() if not task.done())

    @invariant()
    def no_removed_number_is_remembered(self) -> None:
        numbers = set(self.slots)
        assert [slot.index for slot in self.dispatcher.slots] == sorted(numbers)
        assert set(self.dispatcher._backlog._by_index) == numbers
        assert set(self.dispatcher._failures._health) <= numbers
        assert set(self.dispatcher._throughput._slots) <= numbers
        for task in self.dispatcher._unanswered():
            assert {task.affinity, task.failed_on} <= {None, *numbers}

    @invariant()
    def lines_keep_their_order(self) -> None:
        """Tasks that were sent before come first; the others as they were submitted."""
        for line in self.dispatcher._backlog.lines():
            waiting = [(task.payload not in self.sent, task.payload) for task in line]
            unsent = [payload for is_unsent, payload in waiting if is_unsent]
            assert unsent == sorted(unsent)
            assert [is_unsent for is_unsent, _ in waiting] == sorted(is_unsent for is_unsent, _ in waiting)

    @invariant()
    def slots_have_work_if_there_is_some(self) -> None:
        """No slot is idle while a task waits that any slot may run."""
        if any(slot.status.state == "idle" for slot in self.slots.values()):
            free = [
                task.payload
                for task in [*self.dispatcher._backlog, *self.dispatcher._backlog.urgent]
                if task.affinity is None and task.failed_on is None and not task.future.done()
            ]
            assert free == []

    @invariant()
    def no_task_waits_beyond_its_deadline(self) -> None:
        queue = self.dispatcher._backlog.urgent
        waiting = [task for task in queue if not task.future.done()]
        assert all(self.deadlines.get(task.payload, math.inf) > self.loop.time() for task in waiting)
        assert queue.size == len(list(queue)) == len(waiting)

    def teardown(self) -> None:
        if not hasattr(self, "dispatcher"):
            return
        with self.logs:
            self._answer_the_rest()
            self.loop.run_until_complete(self.dispatcher.stop())
            assert asyncio.all_tasks(self.loop) == set()
            self.loop.close()
            asyncio.set_event_loop(None)

    def _answer_the_rest(self) -> None:
        for slot in self.slots.values():
            slot.start_failure, slot.answers_at_once = None, True
            while slot.must_answer:
                slot.succeed()
        index = self.dispatcher.free_index
        last = self.slots[index] = DirectedSlot(index, 2, overlaps=False, is_stubborn=False)
        last.answers_at_once = True
        self._add(last)
        self._settle(1000)
        for payload, task in self.asked.items():
            assert task.done(), payload
            error = None if task.cancelled() else task.exception()
            if payload in self.deadlines and isinstance(error, Expired | ProcessCrashed):
                continue
            assert isinstance(error, NotReady | TaskCrashes | ValueError | None), error
            if isinstance(error, TaskCrashes):
                counted = self.crashes[payload] + max(0, self.losses[payload] - MAX_LOSSES)
                assert counted >= MAX_CRASHES
            if not task.cancelled() and error is None:
                assert task.result() == payload.upper()
        assert all(task.done() for task in self.leaving)


ChangingSlots.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestChangingSlots = ChangingSlots.TestCase
