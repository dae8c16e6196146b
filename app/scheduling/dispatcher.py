"""Who does what: one puller for each slot takes work from one fair queue.

The queue lives here and a slot has one batch in hand at a time: so cancelling is exact, fast slots take
more, and when a process dies one batch is under suspicion. Which tasks make a batch is up to `backlog`.
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
from app.scheduling.tasks import Done, Slot, Task

P = TypeVar("P")
R = TypeVar("R")

MAX_CRASHES = 3  # of processes that had only this task in hand, before the task is given up
_FIRST_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0

log = structlog.get_logger(__name__)


class Dispatcher(Generic[P, R]):
    """Keeps slots busy with the tasks of many jobs."""

    def __init__(self, name: str, slots: Sequence[Slot[P, R]], cost: BatchCost = BatchCost()) -> None:
        self.slots = slots
        self._name = name
        self._cost = cost
        self._paces = ThroughputEstimator(len(slots))
        self._backlog = Backlog(slots, self._paces, cost)
        self._wakeups = [asyncio.Event() for _ in slots]
        self._pullers: list[asyncio.Task[None]] = []
        self._in_hand: dict[int, list[Task[P, R]]] = {}  # by slot
        self._draining = False
        self._nothing_in_hand = asyncio.Event()
        self._nothing_in_hand.set()

    def start(self) -> None:
        """Bring up all slots, in the background."""
        self._pullers = [
            asyncio.create_task(self._pull(slot), name=f"{self._name}-{slot.index}") for slot in self.slots
        ]

    async def stop(self) -> None:
        """End all processes, whatever they are doing, and wait until they are gone."""
        for puller in self._pullers:
            puller.cancel()
        await asyncio.gather(*self._pullers, return_exceptions=True)
        await asyncio.gather(*(slot.close() for slot in self.slots))

    async def drain(self, timeout_s: float) -> None:
        """Hand out no more work, and wait until all that is in hand is done, for at most so long."""
        self._draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._nothing_in_hand.wait()
        await asyncio.sleep(0)  # for those who wait for it to take what was done

    @property
    def prefetch_limit(self) -> int:
        """How many tasks of one job are enough: with more, batches are no fuller and plans no better."""
        return self._backlog.prefetch_limit

    async def submit(
        self,
        job: str,
        payload: P,
        *,
        key: Hashable = None,
        home: int | None = None,
        deaths: int = 0,
        on_crash: Callable[[int], None] = lambda deaths: None,
        size: float = 0.0,
    ) -> Done[R]:
        """Have a piece of work done in its turn.

        `deaths` is how many processes have died of the task already, before a restart of the service;
        `on_crash` is told the new count whenever another one dies that had nothing else in hand. `size` is
        in the unit of `BatchCost.size_ms`.

        Raises NotReady where every slot has failed to come up, TaskCrashes where the task kills each process
        that takes it on, and what the work itself raises.
        """
        if deaths >= MAX_CRASHES:
            raise _deadly(deaths)
        if self._hopeless():
            raise self._not_ready()
        done = asyncio.get_running_loop().create_future()
        task = Task[P, R](job, payload, key, home, deaths, on_crash, size, done, alone=deaths > 0)
        self._backlog.put(task)
        self._wake()
        # If the caller is cancelled so is the future, and whoever takes the task drops it.
        return await task.done

    def cancel(self, job: str) -> None:
        """Take a job out of the queue; what a slot has in hand of it goes on, and is not tried again."""
        for task in self._backlog.remove(job):
            task.done.cancel()
        for task in chain.from_iterable(self._in_hand.values()):
            task.unwanted = task.unwanted or task.job == job

    def _wake(self) -> None:
        for slot, wakeup in zip(self.slots, self._wakeups, strict=True):
            if slot.status.state == "idle":  # the others look before they wait
                wakeup.set()

    def _hopeless(self) -> bool:
        return all(slot.status.state == "failed" for slot in self.slots)

    def _not_ready(self) -> NotReady:
        return NotReady(f"no {self._name} could be started: {self.slots[0].status.error}")

    async def _pull(self, slot: Slot[P, R]) -> None:
        """Bring a slot up, let it serve, and begin again when its process is gone."""
        failures, backoff_s = 0, _FIRST_BACKOFF_S
        while True:
            slot.died.clear()
            try:
                await slot.start()
            except Exception as error:
                await slot.close()
                failures += 1
                # A process may be killed while it starts, too; that alone says nothing against the slot.
                if not isinstance(error, ProcessCrashed) or failures >= MAX_CRASHES:
                    self._failed(slot, error)
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
                continue
            failures, backoff_s = 0, _FIRST_BACKOFF_S
            slot.status.error = None
            watch = asyncio.create_task(self._wake_at_death(slot))
            try:
                await self._serve(slot)
            finally:
                watch.cancel()
            slot.status.state = "restarting"
            slot.status.restarts += 1
            log.warning("replacing the process", room=self._name, slot=slot.index)
            self._wake()  # tasks whose home it was are everybody's now
            await slot.close()

    def _failed(self, slot: Slot[P, R], error: Exception) -> None:
        slot.status.state, slot.status.error = "failed", explain(error)
        log.error("start failed", room=self._name, slot=slot.index, error=slot.status.error)
        if self._hopeless():
            for task in self._backlog.clear():
                if not task.done.done():
                    task.done.set_exception(self._not_ready())

    async def _serve(self, slot: Slot[P, R]) -> None:
        """Take batch after batch until the slot's process is gone."""
        now = asyncio.get_running_loop().time
        while not slot.died.is_set():
            slot.status.state = "idle"
            batch = [] if self._draining else self._backlog.take_batch(slot)
            if not batch:
                await self._wait(slot)
                continue
            slot.status.state = "busy"
            self._in_hand[slot.index] = batch
            self._nothing_in_hand.clear()
            self._paces.begin(slot.index, self._cost.seconds([task.size for task in batch]), now())
            try:
                results = await slot.run([task.payload for task in batch])
                self._paces.end(slot.index, now())
                answers = list(zip(batch, results, strict=True))
            except RequeueBatch as error:
                log.warning("batch given back", room=self._name, tasks=len(batch), reason=error.message)
                self._put_back(batch, alone=False)
                continue
            except ProcessCrashed as error:
                self._retry(batch, error)
                return
            except Exception as error:
                self._fail(batch, error)
                continue
            finally:
                self._paces.give_up(slot.index)
                del self._in_hand[slot.index]
                if not self._in_hand:
                    self._nothing_in_hand.set()
            slot.status.batches += 1
            for task, result in answers:
                if not task.done.done():
                    task.done.set_result(Done(result, slot.index, task.deaths))

    async def _wait(self, slot: Slot[P, R]) -> None:
        """Until there may be work for the slot, or its process is gone."""
        wakeup = self._wakeups[slot.index]
        await wakeup.wait()
        wakeup.clear()

    async def _wake_at_death(self, slot: Slot[P, R]) -> None:
        await slot.died.wait()
        self._wakeups[slot.index].set()

    def _put_back(self, batch: Sequence[Task[P, R]], *, alone: bool) -> None:
        self._backlog.put_back(batch, alone=alone)
        self._wake()

    def _retry(self, batch: Sequence[Task[P, R]], error: ProcessCrashed) -> None:
        """Put the tasks of a dead process back, one by one, so that the guilty one shows itself."""
        log.warning("process died at work", room=self._name, tasks=len(batch), error=error.message)
        if len(batch) == 1:
            [task] = batch
            self._blame(task)
            if task.deaths >= MAX_CRASHES:
                if not task.done.done():
                    task.done.set_exception(_deadly(task.deaths))
                return
        self._put_back(batch, alone=True)

    def _blame(self, task: Task[P, R]) -> None:
        task.deaths += 1
        try:
            task.on_crash(task.deaths)
        except Exception:  # whoever keeps count elsewhere must not cost the slot its puller
            log.exception("death not noted", room=self._name, job=task.job)

    def _fail(self, batch: Sequence[Task[P, R]], error: Exception) -> None:
        """What a batch of one raises is its own; of several, each has to show it alone."""
        if len(batch) == 1:
            if not batch[0].done.done():
                batch[0].done.set_exception(error)
            return
        log.warning("batch failed", room=self._name, tasks=len(batch), error=repr(error))
        self._put_back(batch, alone=True)


def _deadly(deaths: int) -> TaskCrashes:
    return TaskCrashes(f"{deaths} processes crashed on it")
