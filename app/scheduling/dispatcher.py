"""Hands tasks to slots: one loop for each slot takes batches from one fair queue.

The queue lives here, and a slot has one batch in flight, or two if its process prepares one while it runs the
other. So a cancelled task is never sent, fast slots take more, and a crash puts few tasks under suspicion.
`backlog` decides which tasks make a batch, and `failure_policy` what a failure means.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from typing import Generic, TypeGuard, TypeVar

import structlog

from app.errors import DeviceFailed, NotReady, ProcessCrashed
from app.known_errors import explain
from app.scheduling.backlog import Backlog, ThroughputEstimator
from app.scheduling.batching import BatchCost
from app.scheduling.failure_policy import (
    Action,
    FailSlot,
    FailTask,
    FailurePolicy,
    RecordCrash,
    Requeue,
    RestartSlot,
    check_crash_count,
    restart_reason,
)
from app.scheduling.tasks import Batch, Outcome, OverlappingSlot, RestartReason, Slot, Task, TaskResult
from app.wakeup import Wakeup
from app.work import current_work, log_ids

P = TypeVar("P")
R = TypeVar("R")

log = structlog.get_logger(__name__)


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
        on_batch: Callable[[Batch[P, R], Outcome], None] = lambda batch, outcome: None,
    ) -> None:
        """`name` says in errors and logs what a slot's process is: "worker", for example.

        `retries_errors`: run a task once more, on another slot if there is one, before an error that it
        raises counts as its own. `sleep_after_s`: end a slot's process after so long without work, and start
        it again when there is some; not that of the first `always_awake` slots. None: never.
        `on_batch` is called when a batch has ended.
        """
        self.slots = slots
        self._name = name
        self._cost = cost
        # By slot. Found once: checking a protocol takes as long as planning a batch.
        self._overlapping = [slot if _overlaps(slot) else None for slot in slots]
        self._sleep_after_s = [None if index < always_awake else sleep_after_s for index in range(len(slots))]
        self._failures = FailurePolicy[P, R](name, len(slots), retries_errors=retries_errors)
        self._throughput = ThroughputEstimator(len(slots))
        self._backlog = Backlog(slots, self._throughput, cost)
        self._wakeups = [Wakeup() for _ in slots]
        self._loops: list[asyncio.Task[None]] = []
        self._in_flight: list[deque[Batch[P, R]]] = [deque() for _ in slots]  # by slot, in order
        self._on_batch = on_batch
        self._draining = False
        self._idle = asyncio.Event()  # no batch is in flight
        self._idle.set()

    def start(self, awake: int | None = None) -> None:
        """Start the first `awake` slots, or all, in the background. The others start when there is work."""
        for slot in self.slots[awake:] if awake is not None else ():
            slot.status.state = "asleep"
        self._loops = [
            asyncio.create_task(self._keep_serving(slot), name=f"{self._name}-{slot.index}")
            for slot in self.slots
        ]

    async def stop(self) -> None:
        """End all processes, whatever they are doing, and wait until they are gone."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await asyncio.gather(*(slot.close() for slot in self.slots))

    async def drain(self, timeout_s: float) -> None:
        """Send no more batches, and wait until those in flight are answered, `timeout_s` at most."""
        self._draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        await asyncio.sleep(0)  # lets the callers of `submit` receive their results

    @property
    def prefetch_limit(self) -> int:
        """How many unfinished tasks of one job are enough to keep all slots busy with full batches."""
        return self._backlog.prefetch_limit

    def running(self, slot: int) -> Batch[P, R] | None:
        """The batch that a slot's process runs now; None if it has none."""
        in_flight = self._in_flight[slot]
        return in_flight[0] if in_flight else None

    def backlog(self) -> tuple[int, float]:
        """How many tasks wait, and for how long the oldest has (s; 0 if none waits)."""
        oldest = self._backlog.oldest_queued_at()
        waited_s = 0.0 if oldest is None else asyncio.get_running_loop().time() - oldest
        return len(self._backlog), waited_s

    async def submit(
        self,
        job: str,
        payload: P,
        *,
        key: Hashable = None,
        affinity: int | None = None,
        crash_count: int = 0,
        on_crash: Callable[[int], None] = lambda crash_count: None,
        size: float = 0.0,
        weight: int = 1,
        continues: bool = False,
    ) -> TaskResult[R]:
        """Run a task when its turn comes.

        `crash_count`: processes that crashed on this task before a restart of the service. `on_crash` is
        called with the new count whenever a process crashes that had only this task in flight. `size` is in
        the unit of `BatchCost.size_ms`. `weight`: see `Slot.batch_limit`. `continues`: the task continues
        what an earlier one of the job began, and comes before those that do not.

        Raises NotReady while the last start of every slot has failed, TaskCrashes if the task crashes each
        process that runs it, and the exception that the task itself raises.
        """
        check_crash_count(crash_count)
        if self._all_failed():
            raise self._not_ready()
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        task = Task[P, R](
            job,
            payload,
            key,
            affinity,
            crash_count,
            on_crash,
            size,
            weight,
            continues,
            future,
            loop.time(),
            isolated=crash_count > 0,
            work=current_work(),
        )
        self._backlog.put_task(task)
        self._wake_slots()
        # Cancelling the caller cancels the future, and a task with a cancelled future is never sent.
        return await task.future

    def cancel(self, job: str) -> None:
        """Remove a job's tasks from the queue. Those in flight run on, and are not retried."""
        for task in [*self._backlog.remove(job), *(task for task in self._failures.held if task.job == job)]:
            task.future.cancel()
        in_flight = (task for batches in self._in_flight for batch in batches for task in batch.tasks)
        for task in in_flight:
            task.cancelled = task.cancelled or task.job == job

    def _wake_slots(self) -> None:
        """Wake the idle slots, and those asleep that are needed."""
        for slot, wakeup in zip(self.slots, self._wakeups, strict=True):
            if slot.status.state == "idle":  # the others look into the queue before they wait
                wakeup.set()
        self._wake_sleepers()

    def _wake_sleepers(self) -> None:
        """Wake as many slots that are asleep as the waiting tasks need."""
        asleep = [slot for slot in self.slots if slot.status.state == "asleep"]
        if not asleep or self._draining:
            return
        # Not those that start for other reasons: something may be wrong with them.
        soon_free = [slot for slot in self.slots if slot.status.state == "idle" or slot.status.waking]
        lacking = len(self._backlog) - sum(slot.batch_limit() for slot in soon_free)
        for slot in asleep:
            if lacking <= 0:
                break
            lacking -= slot.batch_limit()
            slot.status.state, slot.status.waking = "loading", True
            self._wakeups[slot.index].set()

    def _all_failed(self) -> bool:
        return all(slot.status.state == "failed" for slot in self.slots)

    def _not_ready(self) -> NotReady:
        return NotReady(f"no {self._name} could be started: {self.slots[0].status.error}")

    async def _keep_serving(self, slot: Slot[P, R]) -> None:
        """Start a slot and let it serve; start it again when its process has ended."""
        while True:
            while slot.status.state == "asleep":
                await self._wakeups[slot.index].wait()
            slot.needs_restart.clear()
            slot.status.ending = None
            try:
                await slot.start()
                if self._failures.needs_probe(slot.index):
                    await slot.probe()
            except Exception as error:
                await slot.close()
                self._note_failed_start(slot, error)
                await asyncio.sleep(self._failures.next_backoff(slot.index))
                continue
            self._note_start(slot)
            watch = asyncio.create_task(self._wake_for_restart(slot))
            try:
                await self._serve(slot)
            except Exception as error:  # a fault of this service must not end the slot's loop
                log.exception("slot not served", pool=self._name, slot=slot.index)
                slot.status.ending = RestartReason.ERROR
                for batch in reversed(self._in_flight[slot.index].copy()):
                    self._end(slot, batch.tasks, succeeded=False)
                    self._requeue(batch.tasks, isolated=False)
                self._mark_failed(slot, explain(error))
            finally:
                watch.cancel()
            if slot.status.state != "asleep":
                self._note_end(slot)
            self._wake_slots()  # tasks that only this process could run may go to any slot now
            await slot.close()
            if slot.status.state == "failed":
                await asyncio.sleep(self._failures.next_backoff(slot.index))

    def _note_end(self, slot: Slot[P, R]) -> None:
        reason = slot.status.ending or RestartReason.CRASH
        log.warning("replacing the process", pool=self._name, slot=slot.index, reason=str(reason))
        slot.status.restarts_by[reason] += 1
        if slot.status.state != "failed":
            slot.status.state = "restarting"

    def _note_start(self, slot: Slot[P, R]) -> None:
        self._perform(self._failures.after_start(slot.index))
        slot.status.waking = False
        slot.status.error = None

    def _note_failed_start(self, slot: Slot[P, R], error: Exception) -> None:
        if isinstance(error, DeviceFailed):
            reason = restart_reason(error)
            log.warning(
                "replacing the process",
                pool=self._name,
                slot=slot.index,
                reason=str(reason),
                error=error.message,
            )
            slot.status.restarts_by[reason] += 1
        if slot.status.state != "failed":
            slot.status.error = explain(error)
        self._perform(self._failures.after_failed_start(slot.index, error))

    def _perform(self, actions: Sequence[Action[P, R]]) -> None:
        """Do what the failure policy has decided."""
        for action in actions:
            match action:
                case RecordCrash(task):
                    self._record_crash(task)
                case FailTask(task, error):
                    if not task.future.done():
                        task.future.set_exception(error)
                case Requeue(tasks, isolated):
                    self._requeue(tasks, isolated=isolated)
                case FailSlot(index, reason):
                    self._mark_failed(self.slots[index], reason)
                case RestartSlot(index, reason):
                    if self.slots[index].status.state != "failed":
                        self.slots[index].status.error = reason
                    self.slots[index].status.ending = RestartReason.DEVICE
                    self.slots[index].needs_restart.set()

    def _mark_failed(self, slot: Slot[P, R], reason: str) -> None:
        slot.status.state, slot.status.error, slot.status.waking = "failed", reason, False
        log.error("slot failed", pool=self._name, slot=slot.index, error=reason)
        if self._all_failed():
            for task in [*self._backlog.clear(), *self._failures.held]:
                if not task.future.done():
                    task.future.set_exception(self._not_ready())
        self._wake_slots()

    async def _serve(self, slot: Slot[P, R]) -> None:
        """Send batch after batch until the slot's process has ended, or the slot is to sleep."""
        now = asyncio.get_running_loop().time
        used_at = now()
        before: list[Task[P, R]] = []  # the batch that an overlapping slot has, and has not answered
        while not slot.needs_restart.is_set() or before:
            batch = self._next_batch(slot, before)
            if not batch and not before:
                slot.status.state = "idle"
                if self._may_sleep(slot, now() - used_at):
                    slot.status.state = "asleep"
                    log.info("no work: ending the process", pool=self._name, slot=slot.index)
                    return
                await self._wakeups[slot.index].wait(self._sleeps_in(slot, now() - used_at))
                continue
            slot.status.state = "busy"
            self._wake_sleepers()
            with structlog.contextvars.bound_contextvars(**log_ids(task.work for task in [*before, *batch])):
                goes_on = await self._send(slot, before, batch)
            if not goes_on:
                return
            before = batch if self._overlapping[slot.index] else []
            used_at = now()
            if not before and slot.status.state == "busy":  # else it has failed meanwhile
                slot.status.state = "idle"  # tasks that come now wake no other slot
            await asyncio.sleep(0)  # callers submit what continues the tasks that are answered

    def _next_batch(self, slot: Slot[P, R], before: Sequence[Task[P, R]]) -> list[Task[P, R]]:
        """The next batch for a slot that has not answered `before`; empty if it must wait for that."""
        if self._draining or slot.needs_restart.is_set() or any(task.isolated for task in before):
            return []
        batch = self._backlog.take_batch(slot)
        if before and any(task.isolated for task in batch):
            self._backlog.requeue_batch(batch, isolated=True)  # until it is the only one in flight
            return []
        return batch

    async def _send(self, slot: Slot[P, R], before: Sequence[Task[P, R]], batch: list[Task[P, R]]) -> bool:
        """Send a batch, and settle the tasks that are answered: its own, or those of the batch before.

        Returns whether the slot's process can run another.
        """
        payloads = [task.payload for task in batch]
        expected_s = self._begin(slot, batch) if batch else None
        overlapping = self._overlapping[slot.index]
        try:
            if overlapping is None:
                return await self._settle(slot, batch, slot.run(payloads, expected_s))
            answer = overlapping.exchange(payloads or None, expected_s)
            return await self._settle(slot, before, answer, following=batch)
        except Exception as error:  # the same for a batch
            log.exception("batch not settled", pool=self._name, slot=slot.index)
            slot.status.ending = RestartReason.ERROR
            for task in [*before, *batch]:
                if not task.future.done():
                    task.future.set_exception(error)
            return False

    def _begin(self, slot: Slot[P, R], batch: Sequence[Task[P, R]]) -> float | None:
        """A batch is sent to a slot. Returns what it should take (s), if that is known."""
        now, clock = time.time(), asyncio.get_running_loop().time()
        self._in_flight[slot.index].append(Batch(slot.index, batch, now, sent=now, began=clock))
        self._idle.clear()
        cost_s = self._cost.seconds([task.size for task in batch])
        self._throughput.begin(slot.index, cost_s, clock)
        return self._throughput.expected(slot.index, cost_s)

    def _end(self, slot: Slot[P, R], batch: Sequence[Task[P, R]], *, succeeded: bool) -> Batch[P, R] | None:
        """A batch that was sent is answered, or its process is gone. Does nothing for an empty one."""
        if not batch:
            return None
        now = asyncio.get_running_loop().time()
        if succeeded:
            self._throughput.end(slot.index, now)
        else:
            self._throughput.discard(slot.index, now)
        in_flight = self._in_flight[slot.index]
        ended = in_flight.popleft()
        ended.end = max(ended.start, time.time())
        ended.took_s = now - ended.began
        if in_flight:
            in_flight[0].start, in_flight[0].began = ended.end, now
        if not any(self._in_flight):
            self._idle.set()
        return ended

    async def _settle(
        self,
        slot: Slot[P, R],
        batch: Sequence[Task[P, R]],
        answer: Awaitable[list[R] | None],
        following: Sequence[Task[P, R]] = (),
    ) -> bool:
        """Wait for the answer to a batch, and settle its tasks. `following`: the slot has got them since.

        Returns whether the slot's process can run another batch.
        """
        results: list[R] = []
        error: Exception | None = None
        is_gone = True  # unless the process has answered
        ended = None
        try:
            results = await answer or []
            if len(results) != len(batch):
                error = ValueError(f"{len(results)} results for {len(batch)} tasks")
            is_gone = False
        except Exception as raised:
            error = raised
            is_gone = isinstance(error, ProcessCrashed)
        finally:
            ended = self._end(slot, batch, succeeded=error is None and not is_gone)
            if is_gone:
                lost = self._end(slot, following, succeeded=False)
                ended = ended or lost  # a batch that was only prepared has not taken any time
        outcome = Outcome.OK
        if error is None:
            self._succeed(slot, batch, results)
        else:
            outcome = self._fail(slot, batch, following, error, is_gone=is_gone)
        if ended is not None:
            self._report(ended, outcome)
        return not is_gone

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
        actions = self._failures.after_failure(slot.index, batch, following, error)
        self._perform(actions)
        return Outcome.FAILED if any(isinstance(action, FailTask) for action in actions) else Outcome.REQUEUED

    def _report(self, batch: Batch[P, R], outcome: Outcome) -> None:
        try:
            self._on_batch(batch, outcome)
        except Exception:  # a caller's fault must not end the slot's loop
            log.exception("batch not reported", pool=self._name, slot=batch.slot)

    def _succeed(self, slot: Slot[P, R], batch: Sequence[Task[P, R]], results: Sequence[R]) -> None:
        if not batch:
            return
        slot.status.batches += 1
        self._perform(self._failures.after_success(slot.index, batch))
        for task, result in zip(batch, results, strict=True):
            if not task.future.done():
                task.future.set_result(TaskResult(result, slot.index, task.crash_count))

    async def _wake_for_restart(self, slot: Slot[P, R]) -> None:
        await slot.needs_restart.wait()
        self._wakeups[slot.index].set()

    def _requeue(self, batch: Sequence[Task[P, R]], *, isolated: bool) -> None:
        self._backlog.requeue_batch(batch, isolated=isolated)
        self._wake_slots()

    def _record_crash(self, task: Task[P, R]) -> None:
        try:
            task.on_crash(task.crash_count)
        except Exception:  # a caller's fault must not end the slot's loop
            log.exception("crash not recorded", pool=self._name, job=task.job)

    def _may_sleep(self, slot: Slot[P, R], idle_s: float) -> bool:
        """Whether a slot has been idle for so long that its process ends."""
        limit = self._sleep_after_s[slot.index]
        return limit is not None and idle_s >= limit and not len(self._backlog)

    def _sleeps_in(self, slot: Slot[P, R], idle_s: float) -> float | None:
        """The time until then (s); None: it never sleeps."""
        limit = self._sleep_after_s[slot.index]
        return None if limit is None else max(limit - idle_s, 0.01)


def _overlaps(slot: Slot[P, R]) -> TypeGuard[OverlappingSlot[P, R]]:
    return isinstance(slot, OverlappingSlot) and slot.overlaps
