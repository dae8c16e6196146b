"""The tasks that wait, and which of them make a slot's next batch.

Several jobs take turns; the clips of one are chosen as `batches` plans it, for slots whose limits may differ.
"""

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from app.scheduling.batching import (
    ROUNDS,
    WINDOW_BATCHES,
    BatchCost,
    SlotEstimate,
    choose_similar,
    plan_last_batches,
)
from app.scheduling.fair_queue import FairQueue
from app.scheduling.tasks import Slot, Task

P = TypeVar("P")
R = TypeVar("R")


_WEIGHT = 0.3  # of the last batch, against all before it: some batches have to be heard twice


class ThroughputEstimator:
    """For each slot, its time for a batch as a multiple of what was expected of it."""

    def __init__(self, slots: int) -> None:
        self._paces: list[float | None] = [None] * slots
        self._in_hand: dict[int, tuple[float, float]] = {}  # when it began, and how long it was to take

    def begin(self, slot: int, expected: float, now: float) -> None:
        """A slot has begun a batch that is expected to take so many seconds."""
        self._in_hand[slot] = (now, expected)

    def end(self, slot: int, now: float) -> None:
        """The slot has done it."""
        began, expected = self._in_hand.pop(slot)
        seen = (now - began) / expected
        before = self._paces[slot]
        self._paces[slot] = seen if before is None else before + _WEIGHT * (seen - before)

    def give_up(self, slot: int) -> None:
        """The batch came to nothing: that says nothing about the pace."""
        self._in_hand.pop(slot, None)

    def pace(self, slot: int) -> float:
        """That of a slot which has not done anything yet is the mean of the others'."""
        pace = self._paces[slot]
        if pace is not None:
            return pace
        known = [pace for pace in self._paces if pace is not None]
        return sum(known) / len(known) if known else 1.0

    def free_in(self, slot: int, now: float) -> float:
        """In how many seconds a slot will be free. The longer it is overdue, the longer it may still take."""
        if slot not in self._in_hand:
            return 0.0
        began, expected = self._in_hand[slot]
        return abs(began + expected * self.pace(slot) - now)


class Backlog(Generic[P, R]):
    """One fair queue for all slots."""

    def __init__(self, slots: Sequence[Slot[P, R]], paces: ThroughputEstimator, cost: BatchCost) -> None:
        self._slots = slots
        self._paces = paces
        self._cost = cost
        self._queue: FairQueue[Task[P, R]] = FairQueue()

    def put(self, task: Task[P, R]) -> None:
        """Add a task at the end of its job's line."""
        self._queue.put(task.job, task)

    def put_back(self, batch: Sequence[Task[P, R]], *, alone: bool) -> None:
        """Return tasks to the head of the queue, with or without suspicion; unwanted ones are dropped."""
        for task in reversed(batch):
            if task.unwanted:
                task.done.cancel()
                continue
            task.alone = task.alone or alone
            self._queue.put_back(task.job, task)

    def remove(self, job: str) -> list[Task[P, R]]:
        """Take a job's tasks out."""
        return self._queue.remove(job)

    def clear(self) -> list[Task[P, R]]:
        """Take everything out."""
        return self._queue.clear()

    def take_batch(self, slot: Slot[P, R]) -> list[Task[P, R]]:
        """The next tasks for a slot: those of several jobs by turns, those of one as planning has it."""
        if self._shares():
            line = self._queue.only_line(self._outlook(slot))
            if line and all(_may_share(task, line[0].key) for task in line):
                return self._queue.pick(self._plan(slot, line))
        return self._take_turns(slot)

    def _take_turns(self, slot: Slot[P, R]) -> list[Task[P, R]]:
        """The next tasks for a slot, job by job: its share of what is queued."""

        def fits(task: Task[P, R]) -> bool:
            return task.home in (None, slot.index) or self._has_lost_its_process(task.home)

        def joins(task: Task[P, R]) -> bool:
            return fits(task) and task.key == batch[0].key and not task.alone

        def most_alike(line: Sequence[Task[P, R]]) -> int:
            first = line[0]
            if not batch or first.alone or first.passed_over >= slot.batch_limit:
                return 0
            able = [place for place, task in enumerate(line) if joins(task)]
            place = min(able, key=lambda place: abs(line[place].size - batch[0].size))
            first.passed_over += place > 0
            return place

        share = self._share(slot)
        window = WINDOW_BATCHES * slot.batch_limit if share > 1 else 1
        batch: list[Task[P, R]] = []
        while task := self._queue.take(joins if batch else fits, most_alike, window):
            if task.done.done():
                continue  # cancelled meanwhile
            batch.append(task)
            if task.alone or len(batch) >= share:
                break
        return batch

    @property
    def prefetch_limit(self) -> int:
        """So many tasks of one job fill all batches in hand, and leave more than the end is planned with."""
        return 2 * ROUNDS * self._full_round()

    def _full_round(self) -> int:
        """How many tasks all slots take at once."""
        return sum(slot.batch_limit for slot in self._slots)

    def _shares(self) -> bool:
        """Whether any slot takes several tasks at once: else there is nothing to be chosen."""
        return any(slot.batch_limit > 1 for slot in self._slots)

    def _is_ending(self) -> bool:
        """Whether so little is queued that the end is planned."""
        return len(self._queue) <= ROUNDS * self._full_round()

    def _outlook(self, slot: Slot[P, R]) -> int:
        """So many tasks have to be looked at to choose a batch."""
        return len(self._queue) if self._is_ending() else WINDOW_BATCHES * slot.batch_limit

    def _share(self, slot: Slot[P, R]) -> int:
        """How many tasks are to be in the slot's next batch."""
        if slot.batch_limit == 1 or not len(self._queue):
            return 1
        if not self._is_ending():
            return slot.batch_limit
        return len(self._choose_for_the_end(slot, self._queue))

    def _plan(self, slot: Slot[P, R], line: Sequence[Task[P, R]]) -> list[int]:
        """Which of the tasks that are next in the only line make the slot's next batch."""
        first = line[0]
        # The end is planned longest first, and new tasks may come for as long as a recording is decoded.
        if not self._is_ending() or first.passed_over >= ROUNDS * len(self._slots):
            return choose_similar([task.size for task in line], slot.batch_limit, self._cost)
        places = self._choose_for_the_end(slot, line)
        first.passed_over += 0 not in places
        return places

    def _choose_for_the_end(self, slot: Slot[P, R], tasks: Iterable[Task[P, R]]) -> list[int]:
        now = asyncio.get_running_loop().time()
        able = [other for other in self._slots if other is slot or other.status.state in ("idle", "busy")]
        runners = [
            SlotEstimate(
                self._paces.free_in(other.index, now), self._paces.pace(other.index), other.batch_limit
            )
            for other in able
        ]
        return plan_last_batches([task.size for task in tasks], runners, able.index(slot), self._cost)

    def _has_lost_its_process(self, index: int | None) -> bool:
        return index is not None and self._slots[index].status.state in ("restarting", "failed")


def _may_share(task: Task[P, R], key: Hashable) -> bool:
    """Whether a task may be put into any batch of that key, on any slot."""
    return task.key == key and task.home is None and not task.alone and not task.done.done()
