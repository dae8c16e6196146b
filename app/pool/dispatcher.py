"""The dispatcher of tasks to slots: one loop for each slot takes batches from one fair queue.

The queue lives here, and a slot has one batch in flight, or two if one must be ready when the other has run.
So a cancelled task is never sent, fast slots take more, and a crash puts few tasks under suspicion. Urgent
tasks come before the others, whenever a slot takes a batch.
`backlog` decides which tasks make a batch, and `failure_policy` what a failure means.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from typing import Generic, TypeVar

import structlog

from app.common.concurrency import BackgroundTasks, Wakeup, end_tasks
from app.common.errors import DeviceFailed, NotReady, ProcessCrashed
from app.common.known_errors import explain
from app.pool.backlog import Backlog, ThroughputEstimator
from app.pool.batching import PLANNED_ROUNDS, BatchCost
from app.pool.failure_policy import (
    MAX_CRASHES,
    Action,
    FailSlot,
    FailTask,
    FailurePolicy,
    RecordCrash,
    Requeue,
    RestartSlot,
    crashes_processes,
    restart_reason,
)
from app.pool.tasks import Batch, Outcome, RestartReason, Slot, Task, TaskResult
from app.telemetry.work import log_ids
from workers import calls

P = TypeVar("P")
R = TypeVar("R")

_MOST_IN_A_ROW = 4  # urgent batches while others wait: these do not starve

log = structlog.get_logger(__name__)


class _ServedSlot(Generic[P, R]):
    """A slot, its loop, and its batches in flight."""

    def __init__(self, slot: Slot[P, R], sleep_after_s: float | None) -> None:
        """`sleep_after_s`: see `Dispatcher`."""
        self.slot = slot
        self.index = slot.index
        self.sleep_after_s = sleep_after_s
        self.wakeup = Wakeup()
        # In order; and the runs of the slot that answer them.
        self.in_flight: dict[Batch[P, R], asyncio.Task[Sequence[R | Exception]]] = {}
        self.urgent_in_a_row = 0  # batches, the last ones that were sent
        self.loop: asyncio.Task[None] | None = None
        self.is_removed = False  # the dispatcher has taken its tasks back, and ignores what it still answers
        self.closed = asyncio.Event()  # removed, and its process has ended

    def tasks(self) -> Iterator[Task[P, R]]:
        """The tasks in flight, in order."""
        return chain.from_iterable(batch.tasks for batch in self.in_flight)

    @property
    def has_others(self) -> bool:
        """Whether a batch in flight has tasks that are not urgent."""
        return not all(batch.tasks[0].urgent for batch in self.in_flight)  # as its others


class Dispatcher(Generic[P, R]):
    """Keeps slots busy with the tasks of many jobs."""

    def __init__(
        self,
        name: str,
        slots: Sequence[Slot[P, R]],
        cost: BatchCost = BatchCost(),
        *,
        retries_errors: bool = False,
        sleep_after_s: float | None = None,
        always_awake: int = 0,
        waits_for_slots: bool = False,
        charges_owners: bool = False,
        can_run: Callable[[Slot[P, R], P], bool] = lambda slot, payload: True,
        kind_of: Callable[[P], Hashable] = lambda payload: None,
        on_batch: Callable[[Slot[P, R], Batch[P, R], Outcome], None] = lambda slot, batch, outcome: None,
    ) -> None:
        """`name` says in errors and logs what a slot's process is: "worker", for example.

        `retries_errors`: run a task once more, on another slot if there is one, before an error that it
        raises counts as its own. `sleep_after_s`: end a slot's process after so long without work, and start
        it again when there is some; not that of the first `always_awake` slots. None: never.
        `waits_for_slots`: slots come and go, so tasks wait while there are none. `charges_owners`:
        who has taken more time gets fewer turns, see `FairQueue.charge`. `can_run`: whether a slot may get a
        task with a payload. Both only for slots that take one task at a time. `kind_of`: how long a task
        of some size takes is learned for each slot and kind; tasks with equal keys have one kind. `on_batch`
        is called when a batch of a slot has ended.
        """
        self._name = name
        self._cost = cost
        self._sleep_after_s = sleep_after_s
        self._always_awake = always_awake
        self._waits_for_slots = waits_for_slots
        self._charges_owners = charges_owners
        self._failures = FailurePolicy[P, R](name, retries_errors=retries_errors)
        self._throughput = ThroughputEstimator()
        self._backlog = Backlog[P, R](self._throughput, cost, can_run, kind_of)
        self._kind_of = kind_of
        self._served: dict[int, _ServedSlot[P, R]] = {}  # by number, in order
        self._closing = BackgroundTasks()  # of slots that are removed
        self._on_batch = on_batch
        self._is_started = False
        self._draining = False
        self._idle = asyncio.Event()  # no batch is in flight
        self._idle.set()
        self._batch_ended = asyncio.Event()  # set for a moment whenever a batch in flight has ended
        for slot in slots:
            self.add_slot(slot)

    @property
    def slots(self) -> list[Slot[P, R]]:
        """Those that are not removed, by number."""
        return [served.slot for served in self._served.values()]

    @property
    def free_index(self) -> int:
        """The lowest number that no slot has."""
        return next(index for index in count() if index not in self._served)

    def add_slot(self, slot: Slot[P, R]) -> None:
        """Serve a slot. Its number may have been that of another one. It starts as soon as all have.

        Raises ValueError if a slot has that number.
        """
        if slot.index in self._served:
            raise ValueError(f"there is a slot {slot.index}")
        sleep_after_s = None if slot.index < self._always_awake else self._sleep_after_s
        served = _ServedSlot(slot, sleep_after_s)
        self._served = dict(sorted([*self._served.items(), (slot.index, served)]))
        self._backlog.add_slot(slot)
        if self._is_started:
            self._start_loop(served)

    def start(self, awake: int | None = None) -> None:
        """Start the first `awake` slots, or all, in the background. The others start when there is work."""
        self._is_started = True
        for number, served in enumerate(self._served.values()):
            if awake is not None and number >= awake:
                served.slot.status.state = "asleep"
            self._start_loop(served)

    def _start_loop(self, served: _ServedSlot[P, R]) -> None:
        served.loop = asyncio.create_task(self._keep_serving(served), name=f"{self._name}-{served.index}")

    async def stop(self) -> None:
        """End all processes, whatever they are doing, and wait until they are gone."""
        self._is_started = False
        await end_tasks(*(served.loop for served in self._served.values()))
        await asyncio.gather(*(self._close(slot) for slot in self.slots), *self._closing)
        for served in self._served.values():
            served.closed.set()

    async def drain_slot(self, index: int) -> None:
        """Send a slot no more batches, and remove it when those in flight are answered.

        Tasks whose `affinity` is the slot still run there, one by one. Takes effect before the first await;
        returns once the slot's process has ended, or at once if there is no such slot. The draining goes on
        if the caller is cancelled.
        """
        served = self._served.get(index)
        if served is None:
            return
        slot = served.slot
        if slot.status.state != "draining" and (served.in_flight or slot.status.is_serving):
            log.info("draining", pool=self._name, slot=index)
            slot.status.state = "draining"
            self._backlog.stop_planning_for(slot)
            served.wakeup.set()
            self._slot_has_left()
        elif slot.status.state != "draining":
            self._remove(served)
        await served.closed.wait()

    async def remove_slot(self, index: int) -> None:
        """Take a slot away at once. Its tasks are requeued as they were; later answers of it are ignored.

        Takes effect before the first await; returns once the slot's process has ended, or at once if there is
        no such slot. The process ends although the caller is cancelled.
        """
        served = self._served.get(index)
        if served is not None:
            self._remove(served)
            await served.closed.wait()

    def _remove(self, served: _ServedSlot[P, R]) -> None:
        log.info("slot removed", pool=self._name, slot=served.index)
        tasks = list(served.tasks())
        batches = list(served.in_flight)
        for batch in batches:
            self._end(served, batch)
        for batch in batches[:1]:  # the others have not run
            self._report(served.slot, batch, Outcome.REQUEUED)
        served.is_removed = True
        del self._served[served.index]
        self._backlog.remove_slot(served.slot)
        self._backlog.requeue_batch(tasks, isolated=False)
        self._perform(self._failures.after_removal(served.index))
        self._throughput.forget(served.index)
        for task in self._unanswered():  # another slot may get the number
            task.affinity = None if task.affinity == served.index else task.affinity
            task.failed_on = None if task.failed_on == served.index else task.failed_on
        self._slot_has_left()
        self._closing.spawn(self._end_process(served))

    def _unanswered(self) -> Iterator[Task[P, R]]:
        yield from self._backlog
        yield from self._backlog.urgent
        yield from self._failures.held
        yield from self._in_flight()

    def _in_flight(self) -> Iterator[Task[P, R]]:
        for served in self._served.values():
            yield from served.tasks()

    def _slot_has_left(self) -> None:
        """The waiting tasks go to the other slots, if there are any."""
        if not self._waits_for_slots and self._none_can_serve():
            self._refuse_waiting()
        self._wake_slots()

    async def _end_process(self, served: _ServedSlot[P, R]) -> None:
        """End the loop and the process of a slot that is removed. Nothing else waits for that."""
        await end_tasks(served.loop)
        await self._close(served.slot)
        served.closed.set()

    async def _close(self, slot: Slot[P, R]) -> None:
        try:
            await slot.close()
        except Exception:  # it must not end the slot's loop, nor keep others from being closed
            log.exception("process not ended", pool=self._name, slot=slot.index)

    async def drain(self, timeout_s: float) -> None:
        """Send no more batches, and wait until those in flight are answered, `timeout_s` at most."""
        self._draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        await asyncio.sleep(0)  # lets the callers of `submit` receive their results

    @contextmanager
    def expecting_urgent(self) -> Iterator[None]:
        """Keep other batches short where they are long: urgent tasks may come at any time.

        A slot has one batch of half a second then, if a full one takes longer, or of one task.
        """
        self._backlog.urgent_callers += 1
        try:
            yield
        finally:
            self._backlog.urgent_callers -= 1

    @property
    def expired(self) -> int:
        """How many tasks were dropped because of their deadlines."""
        return self._backlog.urgent.expired

    @property
    def prefetch_limit(self) -> int:
        """How many unfinished tasks of one job keep batches full, with a margin of as many again.

        Without slots, as many as for the smallest one: some tasks must wait for those that come.
        """
        return 2 * PLANNED_ROUNDS * max(1, self._backlog.full_round())

    def running(self, slot: int) -> Batch[P, R] | None:
        """The first batch that a slot's process runs now; None if it has none."""
        served = self._served.get(slot)
        return next(iter(served.in_flight), None) if served is not None else None

    def backlog(self) -> tuple[int, float]:
        """How many tasks without a deadline wait, and for how long the oldest has (s; 0 if none waits)."""
        oldest = self._backlog.oldest_queued_at()
        waited_s = 0.0 if oldest is None else asyncio.get_running_loop().time() - oldest
        return len(self._backlog) + len(list(self._backlog.urgent_without_deadline())), waited_s

    async def submit(
        self,
        job: Hashable,
        payload: P,
        *,
        key: Hashable = None,
        affinity: int | None = None,
        crash_count: int = 0,
        on_crash: Callable[[int], None] = lambda crash_count: None,
        isolated: bool = False,
        size: float = 0.0,
        weight: int = 1,
        continues: bool = False,
        deadline: float | None = None,
        urgent: bool = False,
    ) -> TaskResult[R]:
        """Run a task when its turn comes.

        `crash_count`: processes that crashed by the fault of this task before a restart of the service.
        `on_crash` is called with the new count when it changes. `isolated`: the task may be what crashes
        processes, and shares none with others. `size` is in the unit of `BatchCost.size_ms`. `weight`: see
        `Slot.batch_limit`. `continues`: the task continues what an earlier one of the job began, and comes
        before those that do not.

        Raises NotReady while there is no slot or the last start of every slot has failed, TaskCrashes if the
        task crashes each process that runs it, Interrupted if its processes are killed for other reasons
        again and again, and the exception that the task itself raises. With
        `waits_for_slots`, a task waits while there is no slot.

        `urgent`: the task comes before those that are not, in a batch of urgent ones. Their owners take
        turns, whatever continues: one who sends more has no more places. See `expecting_urgent`.

        `deadline` (time of the event loop): the result is worth nothing if the task is sent later. Such a
        task is urgent; of an owner's, those without a deadline are first, and the others are sent by their
        deadlines: a nearer one is also an earlier place. Cancel the caller to replace one that waits. Raises
        Expired if the task was not sent by then. It is never retried: it raises the error of its batch,
        ProcessCrashed if its process crashed or was lost, or its device failed. Then it may be what crashes
        processes, and the next one like it would, too. So the caller must submit no further one of the same
        input until a task without a deadline that has this input is answered: that one is isolated if it
        crashes processes, and counted.
        """
        if crash_count >= MAX_CRASHES:
            raise crashes_processes(crash_count)
        if self._none_can_serve():
            raise self._not_ready()
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        task = Task[P, R](
            job,
            payload,
            key,
            affinity if affinity in self._served else None,
            crash_count,
            on_crash,
            size,
            weight,
            continues,
            future,
            loop.time(),
            deadline,
            urgent or deadline is not None,
            isolated=isolated or crash_count > 0,
            crashes_before=crash_count,
        )
        self._backlog.put_task(task)
        self._wake_slots()
        # Cancelling the caller cancels the future, and a task with a cancelled future is never sent.
        return await task.future

    def cancel(self, job: Hashable) -> None:
        """Remove a job's tasks from the queue. Those in flight run on, and are not retried."""
        for task in [*self._backlog.remove(job), *(task for task in self._failures.held if task.job == job)]:
            task.future.cancel()
        if self._backlog.urgent.size:
            for task in [task for task in self._backlog.urgent if task.job == job]:
                task.future.cancel()
        for task in self._in_flight():
            task.cancelled = task.cancelled or task.job == job

    def has_in_flight(self, job: Hashable) -> bool:
        """Whether a batch in flight has tasks of a job."""
        return any(task.job == job for task in self._in_flight())

    async def until_ended(self, job: Hashable) -> None:
        """Wait until no batch in flight has tasks of a job."""
        while self.has_in_flight(job):
            await self._batch_ended.wait()

    def _wake_slots(self) -> None:
        """Wake the slots that can take what waits, and those asleep that are needed."""
        # First those without any work: they take what is urgent.
        for served in sorted(self._served.values(), key=lambda served: len(served.in_flight)):
            # The others look into the queue with each answer: what comes until then fills their next batch.
            if self._backlog.urgent.size or not served.has_others:
                served.wakeup.set()
        self._wake_sleepers()

    def _wake_sleepers(self) -> None:
        """Wake as many slots that are asleep as the waiting tasks need."""
        asleep = [served for served in self._served.values() if served.slot.status.state == "asleep"]
        if not asleep or self._draining:
            return
        # Not those that start for other reasons: something may be wrong with them.
        soon_free = [slot for slot in self.slots if slot.status.state == "idle" or slot.status.waking]
        waiting = len(self._backlog) + self._backlog.urgent.size
        lacking = waiting - sum(slot.batch_limit() for slot in soon_free)
        for served in asleep:
            if lacking <= 0:
                break
            status = served.slot.status
            lacking -= served.slot.batch_limit()
            status.state, status.waking = "loading", True
            served.wakeup.set()

    def _none_can_serve(self) -> bool:
        """Whether tasks would wait for nothing: no slot is left but those that failed."""
        if any(served.slot.status.state not in ("failed", "draining") for served in self._served.values()):
            return False
        return not self._waits_for_slots or any(slot.status.state == "failed" for slot in self.slots)

    def _not_ready(self) -> NotReady:
        failed = (slot.status.error for slot in self.slots if slot.status.state == "failed")
        return NotReady(f"no {self._name} could be started: {next(failed, 'there is none')}")

    def _refuse_waiting(self) -> None:
        for task in [*self._backlog.clear(), *self._backlog.urgent, *self._failures.held]:
            if not task.future.done():
                task.future.set_exception(self._not_ready())

    async def _keep_serving(self, served: _ServedSlot[P, R]) -> None:
        """Start a slot and let it serve; start it again when its process has ended, until it is removed."""
        slot = served.slot
        while not served.is_removed:
            while slot.status.state == "asleep":
                await served.wakeup.wait()
            if not await self._start_process(served):
                continue
            watch = asyncio.create_task(slot.needs_restart.wait())
            watch.add_done_callback(lambda _: served.wakeup.set())
            try:
                await self._serve(served)
            except Exception as error:  # a fault of this service must not end the slot's loop
                log.exception("slot not served", pool=self._name, slot=slot.index)
                slot.status.ending = RestartReason.ERROR
                self._requeue_in_flight(served)
                self._mark_failed(slot, explain(error))
            finally:
                watch.cancel()
                for batch in list(served.in_flight):  # this loop is cancelled
                    self._end(served, batch)
            if served.is_removed:
                return
            if slot.status.state == "draining":
                self._remove(served)
                return
            if slot.status.state != "asleep":
                if slot.status.ending is None:
                    self._failures.after_idle_crash(slot.index, asyncio.get_running_loop().time())
                self._count_restart(slot, slot.status.ending or RestartReason.CRASH)
                if slot.status.state != "failed":
                    slot.status.state = "restarting"
            self._wake_slots()  # tasks that only this process could run may go to any slot now
            await self._close(slot)
            if slot.status.state == "failed":
                await asyncio.sleep(self._failures.next_backoff(slot.index))

    def _give_up(self, served: _ServedSlot[P, R], tasks: Sequence[Task[P, R]], error: Exception) -> None:
        """A fault of this service has kept a batch from being settled. `tasks`: all that were in flight."""
        log.exception("batch not settled", pool=self._name, slot=served.index)
        served.slot.status.ending = RestartReason.ERROR
        for task in tasks:
            if not task.future.done():
                task.future.set_exception(error)
        self._requeue_in_flight(served)

    def _requeue_in_flight(self, served: _ServedSlot[P, R]) -> None:
        """End what a fault of this service has left in flight, and requeue it unless it is answered."""
        for batch in reversed(list(served.in_flight)):
            self._end(served, batch)
            self._requeue([task for task in batch.tasks if not task.future.done()], isolated=False)

    async def _start_process(self, served: _ServedSlot[P, R]) -> bool:
        """Start a slot's process. Returns False, after a pause, if that fails."""
        slot = served.slot
        slot.needs_restart.clear()
        slot.status.ending = None
        try:
            await slot.start()
            if self._failures.needs_probe(slot.index):
                await slot.probe()
        except Exception as error:
            await self._close(slot)
            if not served.is_removed:
                if isinstance(error, DeviceFailed):
                    self._count_restart(slot, restart_reason(error), error=error.message)
                if slot.status.state != "failed":
                    slot.status.error = explain(error)
                self._perform(self._failures.after_failed_start(slot.index, error))
                await asyncio.sleep(self._failures.next_backoff(slot.index))
            return False
        if not served.is_removed:
            self._perform(self._failures.after_start(slot.index))
            slot.status.waking = False
            slot.status.error = None
        return not served.is_removed

    def _count_restart(self, slot: Slot[P, R], reason: RestartReason, **details: str) -> None:
        log.warning("replacing the process", pool=self._name, slot=slot.index, reason=str(reason), **details)
        slot.status.restarts_by[reason] += 1

    def _perform(self, actions: Sequence[Action[P, R]]) -> None:
        """Do what the failure policy has decided."""
        for action in actions:
            match action:
                case RecordCrash(task):
                    try:
                        task.context.run(task.on_crash, task.crash_count)
                    except Exception:  # a caller's fault must not end the slot's loop
                        log.exception("crash not recorded", pool=self._name, job=str(task.job))
                case FailTask(task, error):
                    if not task.future.done():
                        task.future.set_exception(error)
                case Requeue(tasks, isolated, pause_s):
                    self._requeue(tasks, isolated=isolated, pause_s=pause_s)
                case FailSlot(index, reason):
                    self._mark_failed(self._served[index].slot, reason)
                case RestartSlot(index, reason):
                    slot = self._served[index].slot
                    if slot.status.state != "failed":
                        slot.status.error = reason
                    slot.status.ending = RestartReason.DEVICE
                    slot.needs_restart.set()

    def _mark_failed(self, slot: Slot[P, R], reason: str) -> None:
        log.error("slot failed", pool=self._name, slot=slot.index, error=reason)
        slot.status.error, slot.status.waking = reason, False
        if slot.status.state != "draining":  # else it is about to be removed
            slot.status.state = "failed"
        if self._none_can_serve():
            self._refuse_waiting()
        self._wake_slots()

    async def _serve(self, served: _ServedSlot[P, R]) -> None:
        """Send batch after batch until the slot's process has ended, or the slot has drained or may sleep."""
        slot, in_flight = served.slot, served.in_flight
        now = asyncio.get_running_loop().time
        used_at = now()
        while not slot.needs_restart.is_set() or in_flight:
            if self._send_batch(served):
                await asyncio.sleep(0)  # other slots get their first batch before this one its second
                continue
            sleeps_in_s = None
            if not in_flight:
                if slot.status.state == "draining":
                    return
                slot.status.state = "idle"
                idle_s, sleep_after_s = now() - used_at, served.sleep_after_s
                if sleep_after_s is not None and idle_s >= sleep_after_s and not len(self._backlog):
                    slot.status.state = "asleep"
                    log.info("no work: ending the process", pool=self._name, slot=slot.index)
                    return
                # Once more after that time if what waits is for other slots.
                sleeps_in_s = sleep_after_s and max(sleep_after_s - idle_s % sleep_after_s, 0.01)
            await served.wakeup.wait(sleeps_in_s)
            answered = [batch for batch, run in in_flight.items() if run.done()]
            if not answered:
                continue
            # A crash takes what is in flight, but not what is answered.
            answered.sort(key=lambda batch: isinstance(in_flight[batch].exception(), ProcessCrashed))
            for batch in answered:
                tasks = list(served.tasks())
                try:
                    with structlog.contextvars.bound_contextvars(**log_ids([task.work for task in tasks])):
                        can_go_on = self._settle(served, batch)
                except Exception as error:
                    self._give_up(served, tasks, error)
                    return
                if not can_go_on:
                    return
            used_at = now()
            if not in_flight and slot.status.state == "busy":  # else it has failed meanwhile
                slot.status.state = "idle"  # tasks that come now wake no other slot
            await asyncio.sleep(0)  # callers submit what continues the tasks that are answered

    def _send_batch(self, served: _ServedSlot[P, R]) -> bool:
        """Send the next batch if there is one and the slot takes one."""
        slot, tasks = served.slot, self._next_batch(served)
        if not tasks:
            return False
        if slot.status.state != "draining":
            slot.status.state = "busy"
            self._wake_sleepers()
        now, clock = time.time(), asyncio.get_running_loop().time()
        cost_s = self._cost.seconds([task.size for task in tasks])
        kind = self._kind_of(tasks[0].payload)
        # Urgent ones are mostly small batches: what these take says nothing of the others.
        kind = ("urgent", kind) if tasks[0].urgent else kind
        expected_s = self._throughput.begin(served.index, cost_s, clock, kind)
        # At least the time that was too short for a task, whatever slot that was.
        expected_s = max(expected_s or 0.0, *(task.hung_s for task in tasks)) or None
        context, call = calls.separate()
        context.run(structlog.contextvars.bind_contextvars, **log_ids([task.work for task in tasks]))
        batch = Batch(served.index, tasks, now, now, clock, expected_s, parts=call.parts)
        work = slot.run([task.payload for task in tasks], batch.expected_s)
        run = asyncio.create_task(work, context=context)
        run.add_done_callback(lambda run: run.cancelled() or run.exception())  # else asyncio would log it
        run.add_done_callback(lambda run: served.wakeup.set())
        served.in_flight[batch] = run
        served.urgent_in_a_row = served.urgent_in_a_row + 1 if tasks[0].urgent else 0
        self._idle.clear()
        return True

    def _next_batch(self, served: _ServedSlot[P, R]) -> list[Task[P, R]]:
        """The next batch for a slot; empty if it must answer one first."""
        slot, in_flight, backlog = served.slot, served.in_flight, self._backlog
        if self._draining or slot.needs_restart.is_set() or any(task.isolated for task in served.tasks()):
            return []
        # If it is removed, its loop, which another slot's removal has woken, has not ended yet.
        if served.is_removed or len(in_flight) >= slot.batches_at_once:
            return []
        batch: list[Task[P, R]] = []
        if backlog.urgent.size and served.urgent_in_a_row < _MOST_IN_A_ROW:
            batch = backlog.take_urgent(slot)
        batch = batch or backlog.take_batch(slot, behind_others=served.has_others)
        if backlog.urgent.size and served.urgent_in_a_row >= _MOST_IN_A_ROW:
            batch = batch or backlog.take_urgent(slot)
        if in_flight and any(task.isolated for task in batch):
            # It will be the next one, and the only one in flight.
            if not batch[0].urgent:
                served.urgent_in_a_row = _MOST_IN_A_ROW
            backlog.requeue_batch(batch, isolated=True)
            return []
        return batch

    def _end(
        self, served: _ServedSlot[P, R], ended: Batch[P, R], *, succeeded: bool = False, hung: bool = False
    ) -> None:
        """A batch in flight is answered, or its process is gone; `hung`: it took too long."""
        now = asyncio.get_running_loop().time()
        run = served.in_flight.pop(ended)
        run.cancel()  # if its process is gone, and it waits for another answer than that
        if succeeded:
            self._throughput.end(served.index, now)
        else:
            self._throughput.discard(served.index, now, hung=hung)
        ended.end = max(ended.start, time.time())
        ended.took_s = now - ended.began
        if hung:
            for task in ended.tasks:
                task.hung_s = max(task.hung_s, ended.took_s)
        for following in list(served.in_flight)[:1]:
            following.start, following.began = ended.end, now
        if not any(other.in_flight for other in self._served.values()):
            self._idle.set()
        self._batch_ended.set()
        self._batch_ended.clear()

    def _settle(self, served: _ServedSlot[P, R], batch: Batch[P, R]) -> bool:
        """Settle the tasks of a batch whose run has ended. Returns whether the process can run more."""
        results: Sequence[R | Exception] = ()
        error: Exception | None = None
        try:
            results = served.in_flight[batch].result()
            if len(results) != len(batch.tasks):
                error = ValueError(f"{len(results)} results for {len(batch.tasks)} tasks")
        except Exception as raised:
            error = raised
        following: Iterable[Batch[P, R]] = ()
        is_gone = isinstance(error, ProcessCrashed)
        if is_gone:
            batch, *following = served.in_flight  # it ran the first one
        hung = error is not None and restart_reason(error) is RestartReason.HANG
        has_run = not any(isinstance(result, Exception) for result in (error, *results))
        self._end(served, batch, succeeded=has_run, hung=hung)
        for other in following:
            self._end(served, other)
        slot = served.slot
        if error is not None:
            not_begun = [task for other in following for task in other.tasks]
            outcome = self._fail(slot, batch.tasks, not_begun, error, is_gone=is_gone)
        else:
            slot.status.batches += 1
            outcome = self._answer(slot, batch.tasks, results)
        self._report(slot, batch, outcome)
        return not is_gone

    def _answer(
        self, slot: Slot[P, R], batch: Sequence[Task[P, R]], results: Sequence[R | Exception]
    ) -> Outcome:
        """Answer the tasks of a batch that has run. One with an error has failed as if it had been alone.

        Returns what became of the others, or of it if all have failed.
        """
        outcome = Outcome.OK
        succeeded = []
        for task, result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                outcome = self._fail(slot, [task], (), result, is_gone=False)
                continue
            succeeded.append(task)
            if not task.future.done():
                crashes = task.crash_count + task.hangs
                task.future.set_result(TaskResult(result, slot.index, crashes))
        if not succeeded:
            return outcome
        self._perform(self._failures.after_success(slot.index, succeeded))
        return Outcome.OK

    def _fail(
        self,
        slot: Slot[P, R],
        batch: Sequence[Task[P, R]],
        following: Sequence[Task[P, R]],
        error: Exception,
        *,
        is_gone: bool,
    ) -> Outcome:
        """A batch has failed. Returns what becomes of it."""
        if is_gone:
            reason = explain(error)
            log.warning("a process ended with work", pool=self._name, slot=slot.index, error=reason)
            slot.status.ending = restart_reason(error)
            if slot.status.state != "failed":
                slot.status.error = reason
        now = asyncio.get_running_loop().time()
        actions = self._failures.after_failure(slot.index, batch, following, error, now)
        self._perform(actions)
        return Outcome.FAILED if any(isinstance(action, FailTask) for action in actions) else Outcome.REQUEUED

    def _report(self, slot: Slot[P, R], batch: Batch[P, R], outcome: Outcome) -> None:
        if self._charges_owners:
            self._backlog.charge(batch.tasks[0].work.owner, batch.took_s)
        try:
            self._on_batch(slot, batch, outcome)
        except Exception:  # a caller's fault must not end the slot's loop
            log.exception("batch not reported", pool=self._name, slot=batch.slot)

    def _requeue(self, batch: Sequence[Task[P, R]], *, isolated: bool, pause_s: float = 0.0) -> None:
        if pause_s > 0:
            held = self._failures.held
            held.extend(batch)

            def resume() -> None:
                waiting = [task for task in batch if task in held]
                held[:] = [task for task in held if task not in waiting]
                self._requeue(waiting, isolated=isolated)

            asyncio.get_running_loop().call_later(pause_s, resume)
            return
        self._backlog.requeue_batch(batch, isolated=isolated)
        self._wake_slots()
