"""Who does what: one puller for each slot takes work from one fair queue.

The queue lives here and a slot has one batch in hand at a time: so cancelling is exact, fast slots take
more, and when a process dies one batch is under suspicion.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Generic, NamedTuple, Protocol, TypeVar

import structlog

from app.errors import ChildDied, NotReady, TaskFailed, TryAgain
from app.fleet.queue import FairQueue
from app.trouble import explain

P = TypeVar("P")
R = TypeVar("R")
Work = TypeVar("Work", contravariant=True)

MAX_DEATHS = 3  # of processes that had only this task in hand, before the task is given up
_FIRST_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Status:
    """What a slot does and has done; `GET /v1/workers` shows it."""

    state: str = "loading"  # loading | idle | busy | restarting | failed
    batches: int = 0
    restarts: int = 0
    error: str | None = None


class Slot(Protocol[Work, R]):
    """A place where work is done: it keeps its device for life, whatever becomes of its process."""

    index: int
    status: Status
    died: asyncio.Event  # its process is gone, or is to be replaced

    @property
    def batch_limit(self) -> int:
        """How many tasks it takes at once."""

    async def start(self) -> None:
        """Bring up the process, in place of the last one if there was one. Raises what hinders it."""

    async def run(self, payloads: Sequence[Work]) -> list[R]:
        """Do a batch of work.

        Raises ChildDied if the process ends, or hangs, over it, and TryAgain where the batch cannot be done
        as it is and none of its tasks is to blame.
        """

    async def close(self) -> None:
        """End the process."""


class Done(NamedTuple, Generic[R]):
    """What came of a task: its result, the slot that did it, and how many processes had died of it before."""

    result: R
    slot: int
    deaths: int


@dataclass(slots=True, eq=False)
class Task(Generic[P, R]):
    """One piece of work. Tasks with equal keys may share a batch.

    `home` is the one slot that may do it, for as long as that slot's process lives.
    """

    job: str
    payload: P
    key: Hashable
    home: int | None
    deaths: int  # of processes that had it alone in hand
    on_death: Callable[[int], None]
    done: asyncio.Future[Done[R]]
    alone: bool = False  # not to share a batch: it may be what kills processes
    unwanted: bool = False  # its job was cancelled while a slot had it in hand


class Dispatcher(Generic[P, R]):
    """Keeps slots busy with the tasks of many jobs."""

    def __init__(self, name: str, slots: Sequence[Slot[P, R]]) -> None:
        self.slots = slots
        self._name = name
        self._queue: FairQueue[Task[P, R]] = FairQueue()
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

    async def submit(
        self,
        job: str,
        payload: P,
        *,
        key: Hashable = None,
        home: int | None = None,
        deaths: int = 0,
        on_death: Callable[[int], None] = lambda deaths: None,
    ) -> Done[R]:
        """Have a piece of work done in its turn.

        `deaths` is how many processes have died of the task already, before a restart of the service;
        `on_death` is told the new count whenever another one dies that had nothing else in hand.

        Raises NotReady where every slot has failed to come up, TaskFailed where the task kills each process
        that takes it on, and what the work itself raises.
        """
        if deaths >= MAX_DEATHS:
            raise _deadly(deaths)
        if self._hopeless():
            raise self._not_ready()
        done = asyncio.get_running_loop().create_future()
        task = Task[P, R](job, payload, key, home, deaths, on_death, done, alone=deaths > 0)
        self._queue.put(job, task)
        self._wake()
        # If the caller is cancelled so is the future, and whoever takes the task drops it.
        return await task.done

    def cancel(self, job: str) -> None:
        """Take a job out of the queue; what a slot has in hand of it goes on, and is not tried again."""
        for task in self._queue.remove(job):
            task.done.cancel()
        for task in chain.from_iterable(self._in_hand.values()):
            task.unwanted = task.unwanted or task.job == job

    def _wake(self) -> None:
        for wakeup in self._wakeups:
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
                if not isinstance(error, ChildDied) or failures >= MAX_DEATHS:
                    self._failed(slot, error)
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
                continue
            failures, backoff_s = 0, _FIRST_BACKOFF_S
            slot.status.error = None
            await self._serve(slot)
            slot.status.state = "restarting"
            slot.status.restarts += 1
            log.warning("replacing the process", room=self._name, slot=slot.index)
            await slot.close()

    def _failed(self, slot: Slot[P, R], error: Exception) -> None:
        slot.status.state, slot.status.error = "failed", explain(error)
        log.error("start failed", room=self._name, slot=slot.index, error=slot.status.error)
        if self._hopeless():
            for task in self._queue.clear():
                if not task.done.done():
                    task.done.set_exception(self._not_ready())

    async def _serve(self, slot: Slot[P, R]) -> None:
        """Take batch after batch until the slot's process is gone."""
        while not slot.died.is_set():
            slot.status.state = "idle"
            batch = self._take_batch(slot)
            if not batch:
                await self._wait(slot)
                continue
            slot.status.state = "busy"
            self._in_hand[slot.index] = batch
            self._nothing_in_hand.clear()
            try:
                results = await slot.run([task.payload for task in batch])
                answers = list(zip(batch, results, strict=True))
            except TryAgain as error:
                log.warning("batch given back", room=self._name, tasks=len(batch), reason=error.message)
                self._put_back(batch, alone=False)
                continue
            except ChildDied as error:
                self._retry(batch, error)
                return
            except Exception as error:
                self._fail(batch, error)
                continue
            finally:
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
        waits = [asyncio.create_task(event.wait()) for event in (wakeup, slot.died)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        wakeup.clear()

    def _take_batch(self, slot: Slot[P, R]) -> list[Task[P, R]]:
        """The next tasks for a slot: its share of what is queued, among the slots that have nothing to do."""

        def fits(task: Task[P, R]) -> bool:
            return task.home in (None, slot.index) or self._has_lost_its_process(task.home)

        def joins(task: Task[P, R]) -> bool:
            return fits(task) and task.key == batch[0].key and not task.alone

        idle = sum(other.status.state == "idle" for other in self.slots)
        share = min(slot.batch_limit, -(-len(self._queue) // max(idle, 1)))
        batch: list[Task[P, R]] = []
        while not self._draining and (task := self._queue.take(joins if batch else fits)):
            if task.done.done():
                continue  # cancelled meanwhile
            batch.append(task)
            if task.alone or len(batch) >= share:
                break
        return batch

    def _has_lost_its_process(self, index: int | None) -> bool:
        return index is not None and self.slots[index].status.state in ("restarting", "failed")

    def _put_back(self, batch: Sequence[Task[P, R]], *, alone: bool) -> None:
        """Return tasks to the head of the queue, with or without suspicion; unwanted ones are dropped."""
        for task in reversed(batch):
            if task.unwanted:
                task.done.cancel()
                continue
            task.alone = task.alone or alone
            self._queue.put_back(task.job, task)
        self._wake()

    def _retry(self, batch: Sequence[Task[P, R]], error: ChildDied) -> None:
        """Put the tasks of a dead process back, one by one, so that the guilty one shows itself."""
        log.warning("process died at work", room=self._name, tasks=len(batch), error=error.message)
        if len(batch) == 1:
            [task] = batch
            self._blame(task)
            if task.deaths >= MAX_DEATHS:
                if not task.done.done():
                    task.done.set_exception(_deadly(task.deaths))
                return
        self._put_back(batch, alone=True)

    def _blame(self, task: Task[P, R]) -> None:
        task.deaths += 1
        try:
            task.on_death(task.deaths)
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


def _deadly(deaths: int) -> TaskFailed:
    return TaskFailed(f"{deaths} processes died of it")
