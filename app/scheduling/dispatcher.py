"""Hands tasks to slots: one loop for each slot takes batches from one fair queue.

The queue lives here, and a slot has one batch in flight, or two if its process prepares one while it runs the
other. So a cancelled task is never sent, fast slots take more, and a crash puts few tasks under suspicion.
`backlog` decides which tasks make a batch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeGuard, TypeVar

import structlog

from app.errors import DeviceFailed, NotReady, ProcessCrashed, RequeueBatch, TaskCrashes
from app.known_errors import explain
from app.scheduling.backlog import Backlog, ThroughputEstimator
from app.scheduling.batching import BatchCost
from app.scheduling.tasks import OverlappingSlot, Slot, Task, TaskResult
from app.wakeup import Wakeup

P = TypeVar("P")
R = TypeVar("R")

MAX_CRASHES = 3  # of processes that had only this task in flight, before the task fails
_MAX_START_CRASHES = 3  # in a row, before the slot counts as failed
_MAX_DEVICE_FAILURES = 3  # without a batch that succeeds between them, before the slot is quarantined
_MAX_SLOT_ERRORS = 5  # that tasks raise on one slot only, before its process is replaced
_FIRST_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Health(Generic[P, R]):
    """What went wrong with a slot since its last batch that succeeded."""

    start_crashes: int = 0
    device_failures: int = 0
    errors: int = 0  # of tasks that succeeded on another slot
    backoffs: int = 0
    suspect: Task[P, R] | None = None  # the only task in flight when the device failed

    def reset(self) -> None:
        """A batch succeeded."""
        self.start_crashes = self.device_failures = self.errors = self.backoffs = 0

    def next_backoff(self) -> float:
        """The time before the next start (s), which grows with every call."""
        backoff_s: float = _FIRST_BACKOFF_S * 2**self.backoffs
        self.backoffs += backoff_s < _MAX_BACKOFF_S
        return min(backoff_s, _MAX_BACKOFF_S)


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
    ) -> None:
        """`name` says in errors and logs what a slot's process is: "worker", for example.

        `retries_errors`: run a task once more, on another slot if there is one, before an error that it
        raises counts as its own. `sleep_after_s`: end a slot's process after so long without work, and start
        it again when there is some; not that of the first `always_awake` slots. None: never.
        """
        self.slots = slots
        self._name = name
        self._cost = cost
        # By slot. Found once: checking a protocol takes as long as planning a batch.
        self._overlapping = [slot if _overlaps(slot) else None for slot in slots]
        self._retries_errors = retries_errors
        self._sleep_after_s = [None if index < always_awake else sleep_after_s for index in range(len(slots))]
        self._health = [_Health[P, R]() for _ in slots]
        self._held: list[Task[P, R]] = []  # those that the open suspicions would make fail
        self._throughput = ThroughputEstimator(len(slots))
        self._backlog = Backlog(slots, self._throughput, cost)
        self._wakeups = [Wakeup() for _ in slots]
        self._loops: list[asyncio.Task[None]] = []
        self._in_flight: list[list[Task[P, R]]] = [[] for _ in slots]
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
        if crash_count >= MAX_CRASHES:
            raise _crashes(crash_count)
        if self._all_failed():
            raise self._not_ready()
        future = asyncio.get_running_loop().create_future()
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
            isolated=crash_count > 0,
        )
        self._backlog.put_task(task)
        self._wake_slots()
        # Cancelling the caller cancels the future, and a task with a cancelled future is never sent.
        return await task.future

    def cancel(self, job: str) -> None:
        """Remove a job's tasks from the queue. Those in flight run on, and are not retried."""
        for task in [*self._backlog.remove(job), *(task for task in self._held if task.job == job)]:
            task.future.cancel()
        for task in chain.from_iterable(self._in_flight):
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
        health = self._health[slot.index]
        while True:
            while slot.status.state == "asleep":
                await self._wakeups[slot.index].wait()
            slot.needs_restart.clear()
            try:
                await slot.start()
                if health.device_failures or health.suspect:
                    await slot.probe()
            except Exception as error:
                await slot.close()
                self._note_failed_start(slot, error)
                await asyncio.sleep(health.next_backoff())
                continue
            self._end_suspicion(health, is_task_at_fault=True)
            self._note_start(slot)
            watch = asyncio.create_task(self._wake_for_restart(slot))
            try:
                await self._serve(slot)
            except Exception as error:  # a fault of this service must not end the slot's loop
                log.exception("slot not served", pool=self._name, slot=slot.index)
                lost = list(self._in_flight[slot.index])
                self._end(slot, lost, succeeded=False)
                self._requeue(lost, isolated=False)
                self._mark_failed(slot, explain(error))
            finally:
                watch.cancel()
            if slot.status.state != "asleep":
                self._note_end(slot)
            self._wake_slots()  # tasks that only this process could run may go to any slot now
            await slot.close()
            if slot.status.state == "failed":
                await asyncio.sleep(health.next_backoff())

    def _note_end(self, slot: Slot[P, R]) -> None:
        log.warning("replacing the process", pool=self._name, slot=slot.index)
        slot.status.restarts += 1
        if slot.status.state != "failed":
            slot.status.state = "restarting"

    def _note_start(self, slot: Slot[P, R]) -> None:
        health = self._health[slot.index]
        health.start_crashes = 0
        if not health.device_failures:
            health.backoffs = 0
        slot.status.waking = False
        slot.status.error = None

    def _note_failed_start(self, slot: Slot[P, R], error: Exception) -> None:
        health = self._health[slot.index]
        self._end_suspicion(health, is_task_at_fault=False)
        if isinstance(error, DeviceFailed):
            slot.status.restarts += 1
            self._note_device_failure(slot, error)
            return
        # A crash may have a cause outside the slot, so the first ones are only retried.
        health.start_crashes += isinstance(error, ProcessCrashed)
        if not isinstance(error, ProcessCrashed) or health.start_crashes >= _MAX_START_CRASHES:
            self._mark_failed(slot, explain(error))

    def _note_device_failure(self, slot: Slot[P, R], error: DeviceFailed) -> None:
        health = self._health[slot.index]
        health.device_failures += 1
        if health.device_failures >= _MAX_DEVICE_FAILURES:
            reason = f"quarantined, since its device failed {health.device_failures} times in a row"
            self._mark_failed(slot, f"{reason}: {explain(error)}")

    def _note_error_of_slot(self, slot: Slot[P, R]) -> None:
        """A task that raised an error on this slot has succeeded on another."""
        health = self._health[slot.index]
        health.errors += 1
        if health.errors >= _MAX_SLOT_ERRORS:
            health.errors = 0
            self._note_device_failure(slot, DeviceFailed("tasks that fail on it succeed on other slots"))
            slot.needs_restart.set()

    def _mark_failed(self, slot: Slot[P, R], reason: str) -> None:
        slot.status.state, slot.status.error, slot.status.waking = "failed", reason, False
        log.error("slot failed", pool=self._name, slot=slot.index, error=reason)
        if self._all_failed():
            for task in [*self._backlog.clear(), *self._held]:
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
            if not await self._send(slot, before, batch):
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
            for task in [*before, *batch]:
                if not task.future.done():
                    task.future.set_exception(error)
            return False

    def _begin(self, slot: Slot[P, R], batch: Sequence[Task[P, R]]) -> float | None:
        """A batch is sent to a slot. Returns what it should take (s), if that is known."""
        self._in_flight[slot.index] += batch
        self._idle.clear()
        cost_s = self._cost.seconds([task.size for task in batch])
        self._throughput.begin(slot.index, cost_s, asyncio.get_running_loop().time())
        return self._throughput.expected(slot.index, cost_s)

    def _end(self, slot: Slot[P, R], batch: Sequence[Task[P, R]], *, succeeded: bool) -> None:
        """A batch that was sent is answered, or its process is gone. Does nothing for an empty one."""
        if not batch:
            return
        now = asyncio.get_running_loop().time()
        if succeeded:
            self._throughput.end(slot.index, now)
        else:
            self._throughput.discard(slot.index, now)
        del self._in_flight[slot.index][: len(batch)]
        if not any(self._in_flight):
            self._idle.set()

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
        try:
            results = await answer or []
            if len(results) != len(batch):
                error = ValueError(f"{len(results)} results for {len(batch)} tasks")
            is_gone = False
        except Exception as raised:
            error = raised
            is_gone = isinstance(error, ProcessCrashed)
        finally:
            self._end(slot, batch, succeeded=error is None and not is_gone)
            if is_gone:
                self._end(slot, following, succeeded=False)
        if error is None:
            self._succeed(slot, batch, results)
        elif isinstance(error, DeviceFailed):
            self._retry_after_device_failure(slot, [*batch, *following], error)
        elif isinstance(error, ProcessCrashed):
            self._retry_after_crash([*batch, *following], error)
        elif isinstance(error, RequeueBatch):
            log.warning("batch requeued", pool=self._name, tasks=len(batch), reason=error.message)
            self._requeue(batch, isolated=False)
        else:
            self._retry_or_fail(slot, batch, error)
        return not is_gone

    def _succeed(self, slot: Slot[P, R], batch: Sequence[Task[P, R]], results: Sequence[R]) -> None:
        if not batch:
            return
        slot.status.batches += 1
        self._health[slot.index].reset()
        for task, result in zip(batch, results, strict=True):
            if task.has_raised and task.failed_on not in (None, slot.index):
                self._note_error_of_slot(self.slots[task.failed_on])
            if not task.future.done():
                task.future.set_result(TaskResult(result, slot.index, task.crash_count))

    async def _wake_for_restart(self, slot: Slot[P, R]) -> None:
        await slot.needs_restart.wait()
        self._wakeups[slot.index].set()

    def _requeue(self, batch: Sequence[Task[P, R]], *, isolated: bool) -> None:
        self._backlog.requeue_batch(batch, isolated=isolated)
        self._wake_slots()

    def _retry_after_crash(self, batch: Sequence[Task[P, R]], error: ProcessCrashed) -> None:
        """Requeue the tasks of a crashed process one by one: so the one at fault is found."""
        log.warning("process crashed", pool=self._name, tasks=len(batch), error=error.message)
        if len(batch) == 1:
            self._count_crash(batch[0])
        self._requeue_suspects(batch)

    def _retry_after_device_failure(
        self, slot: Slot[P, R], batch: Sequence[Task[P, R]], error: DeviceFailed
    ) -> None:
        """Requeue the tasks one by one. The slot's next process shows whether a task was at fault.

        If that process passes its probe, the device works, and the failure counts as a crash of the only
        task in flight.
        """
        log.warning("device failed", pool=self._name, slot=slot.index, tasks=len(batch), error=error.message)
        if len(batch) == 1:
            self._health[slot.index].suspect = batch[0]
            batch[0].failed_on = slot.index
            batch[0].open_suspicions += 1
        self._requeue_suspects(batch)
        if len(batch) > 1 or not batch[0].crash_count:  # else the task is known to make devices fail
            self._note_device_failure(slot, error)

    def _end_suspicion(self, health: _Health[P, R], *, is_task_at_fault: bool) -> None:
        task, health.suspect = health.suspect, None
        if task is None:
            return
        task.open_suspicions -= 1
        if is_task_at_fault:
            self._count_crash(task)
        if task in self._held:
            self._held.remove(task)
            self._requeue_suspects([task])

    def _requeue_suspects(self, batch: Sequence[Task[P, R]]) -> None:
        """Requeue tasks, each for a batch of its own, except those that had their last chance."""
        retried = []
        for task in batch:
            if task.crash_count >= MAX_CRASHES:
                if not task.future.done():
                    task.future.set_exception(_crashes(task.crash_count))
            elif task.crash_count + task.open_suspicions >= MAX_CRASHES:
                self._held.append(task)
            else:
                retried.append(task)
        self._requeue(retried, isolated=True)

    def _count_crash(self, task: Task[P, R]) -> None:
        task.crash_count += 1
        try:
            task.on_crash(task.crash_count)
        except Exception:  # a caller's fault must not end the slot's loop
            log.exception("crash not recorded", pool=self._name, job=task.job)

    def _retry_or_fail(self, slot: Slot[P, R], batch: Sequence[Task[P, R]], error: Exception) -> None:
        """Retry the tasks of a larger batch one by one, and a single task once, on another slot.

        A single task that raises an error again has failed.
        """
        if len(batch) > 1:
            log.warning("batch failed", pool=self._name, tasks=len(batch), error=repr(error))
            self._requeue(batch, isolated=True)
            return
        [task] = batch
        if self._retries_errors and not task.has_raised:
            log.warning("task failed", pool=self._name, slot=slot.index, error=repr(error))
            task.failed_on, task.has_raised = slot.index, True
            self._requeue(batch, isolated=True)
        elif not task.future.done():
            task.future.set_exception(error)

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


def _crashes(count: int) -> TaskCrashes:
    return TaskCrashes(f"{count} processes crashed on it")
