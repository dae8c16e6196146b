"""Hands tasks to slots: one loop for each slot takes batches from one fair queue.

The queue lives here, and a slot has one batch in flight. So a cancelled task is never sent, fast slots take
more, and a crash puts one batch under suspicion. `backlog` decides which tasks make a batch.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Generic, TypeVar

import structlog

from app.errors import NotReady, ProcessCrashed, RequeueBatch, TaskCrashes
from app.known_errors import explain
from app.scheduling.backlog import Backlog, ThroughputEstimator
from app.scheduling.batching import BatchCost
from app.scheduling.tasks import Slot, Task, TaskResult
from app.wakeup import Wakeup

P = TypeVar("P")
R = TypeVar("R")

MAX_CRASHES = 3  # of processes that had only this task in flight, before the task fails
_MAX_START_CRASHES = 3  # in a row, before the slot counts as failed
_FIRST_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0

log = structlog.get_logger(__name__)


class Dispatcher(Generic[P, R]):
    """Keeps slots busy with the tasks of many jobs."""

    def __init__(self, name: str, slots: Sequence[Slot[P, R]], cost: BatchCost = BatchCost()) -> None:
        """`name` says in errors and logs what a slot's process is: "worker", for example."""
        self.slots = slots
        self._name = name
        self._cost = cost
        self._throughput = ThroughputEstimator(len(slots))
        self._backlog = Backlog(slots, self._throughput, cost)
        self._wakeups = [Wakeup() for _ in slots]
        self._loops: list[asyncio.Task[None]] = []
        self._in_flight: dict[int, Sequence[Task[P, R]]] = {}  # by slot
        self._draining = False
        self._idle = asyncio.Event()  # no batch is in flight
        self._idle.set()

    def start(self) -> None:
        """Start all slots, in the background."""
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
    ) -> TaskResult[R]:
        """Run a task when its turn comes.

        `crash_count`: processes that crashed on this task before a restart of the service. `on_crash` is
        called with the new count whenever a process crashes that had only this task in flight. `size` is in
        the unit of `BatchCost.size_ms`.

        Raises NotReady while the last start of every slot has failed, TaskCrashes if the task crashes each
        process that runs it, and the exception that the task itself raises.
        """
        if crash_count >= MAX_CRASHES:
            raise _crashes(crash_count)
        if self._all_failed():
            raise self._not_ready()
        future = asyncio.get_running_loop().create_future()
        task = Task[P, R](
            job, payload, key, affinity, crash_count, on_crash, size, future, isolated=crash_count > 0
        )
        self._backlog.put(task.job, task)
        self._wake_idle_slots()
        # Cancelling the caller cancels the future, and a task with a cancelled future is never sent.
        return await task.future

    def cancel(self, job: str) -> None:
        """Remove a job's tasks from the queue. Those in flight run on, and are not retried."""
        for task in self._backlog.remove(job):
            task.future.cancel()
        for task in chain.from_iterable(self._in_flight.values()):
            task.cancelled = task.cancelled or task.job == job

    def _wake_idle_slots(self) -> None:
        for slot, wakeup in zip(self.slots, self._wakeups, strict=True):
            if slot.status.state == "idle":  # the others look into the queue before they wait
                wakeup.set()

    def _all_failed(self) -> bool:
        return all(slot.status.state == "failed" for slot in self.slots)

    def _not_ready(self) -> NotReady:
        return NotReady(f"no {self._name} could be started: {self.slots[0].status.error}")

    async def _keep_serving(self, slot: Slot[P, R]) -> None:
        """Start a slot and let it serve; start it again when its process has ended."""
        failures, backoff_s = 0, _FIRST_BACKOFF_S
        while True:
            slot.needs_restart.clear()
            try:
                await slot.start()
            except Exception as error:
                await slot.close()
                failures += 1
                # A crash may have a cause outside the slot, so the first ones are only retried.
                if not isinstance(error, ProcessCrashed) or failures >= _MAX_START_CRASHES:
                    self._mark_failed(slot, error)
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
                continue
            failures, backoff_s = 0, _FIRST_BACKOFF_S
            slot.status.error = None
            watch = asyncio.create_task(self._wake_for_restart(slot))
            try:
                await self._serve(slot)
            finally:
                watch.cancel()
            slot.status.state = "restarting"
            slot.status.restarts += 1
            log.warning("replacing the process", pool=self._name, slot=slot.index)
            self._wake_idle_slots()  # tasks that only this process could run may go to any slot now
            await slot.close()

    def _mark_failed(self, slot: Slot[P, R], error: Exception) -> None:
        slot.status.state, slot.status.error = "failed", explain(error)
        log.error("start failed", pool=self._name, slot=slot.index, error=slot.status.error)
        if self._all_failed():
            for task in self._backlog.clear():
                if not task.future.done():
                    task.future.set_exception(self._not_ready())

    async def _serve(self, slot: Slot[P, R]) -> None:
        """Send batch after batch until the slot's process has ended."""
        while not slot.needs_restart.is_set():
            slot.status.state = "idle"
            batch = [] if self._draining else self._backlog.take_batch(slot)
            if not batch:
                await self._wakeups[slot.index].wait()
                continue
            slot.status.state = "busy"
            try:
                results = await self._run(slot, batch)
            except RequeueBatch as error:
                log.warning("batch requeued", pool=self._name, tasks=len(batch), reason=error.message)
                self._requeue(batch, isolated=False)
                continue
            except ProcessCrashed as error:
                self._retry_after_crash(batch, error)
                return
            except Exception as error:
                self._fail(batch, error)
                continue
            slot.status.batches += 1
            for task, result in zip(batch, results, strict=True):
                if not task.future.done():
                    task.future.set_result(TaskResult(result, slot.index, task.crash_count))

    async def _run(self, slot: Slot[P, R], batch: Sequence[Task[P, R]]) -> list[R]:
        """Run a batch. Raises as `Slot.run` does, and ValueError if a result is missing."""
        now = asyncio.get_running_loop().time
        self._in_flight[slot.index] = batch
        self._idle.clear()
        self._throughput.begin(slot.index, self._cost.seconds([task.size for task in batch]), now())
        try:
            results = await slot.run([task.payload for task in batch])
            self._throughput.end(slot.index, now())
            if len(results) != len(batch):
                raise ValueError(f"{len(results)} results for {len(batch)} tasks")
            return results
        finally:
            self._throughput.discard(slot.index)
            del self._in_flight[slot.index]
            if not self._in_flight:
                self._idle.set()

    async def _wake_for_restart(self, slot: Slot[P, R]) -> None:
        await slot.needs_restart.wait()
        self._wakeups[slot.index].set()

    def _requeue(self, batch: Sequence[Task[P, R]], *, isolated: bool) -> None:
        self._backlog.requeue_batch(batch, isolated=isolated)
        self._wake_idle_slots()

    def _retry_after_crash(self, batch: Sequence[Task[P, R]], error: ProcessCrashed) -> None:
        """Requeue the tasks of a crashed process one by one: so the one at fault is found."""
        log.warning("process crashed", pool=self._name, tasks=len(batch), error=error.message)
        if len(batch) == 1:
            [task] = batch
            self._count_crash(task)
            if task.crash_count >= MAX_CRASHES:
                if not task.future.done():
                    task.future.set_exception(_crashes(task.crash_count))
                return
        self._requeue(batch, isolated=True)

    def _count_crash(self, task: Task[P, R]) -> None:
        task.crash_count += 1
        try:
            task.on_crash(task.crash_count)
        except Exception:  # a caller's fault must not end the slot's loop
            log.exception("crash not recorded", pool=self._name, job=task.job)

    def _fail(self, batch: Sequence[Task[P, R]], error: Exception) -> None:
        """An error of a single task is its own. The tasks of a larger batch are retried one by one."""
        if len(batch) == 1:
            if not batch[0].future.done():
                batch[0].future.set_exception(error)
            return
        log.warning("batch failed", pool=self._name, tasks=len(batch), error=repr(error))
        self._requeue(batch, isolated=True)


def _crashes(count: int) -> TaskCrashes:
    return TaskCrashes(f"{count} processes crashed on it")
