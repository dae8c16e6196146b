"""The backlog of waiting tasks, from which each slot gets its next batch.

Owners take turns, and so do the jobs of each. The tasks of a single job are chosen as `batching` plans it,
also for slots with different limits. Urgent tasks wait in a queue of their own, and no plan counts them.
"""

import asyncio
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeVar

from app.pool.batching import (
    PLANNED_ROUNDS,
    WINDOW_BATCHES,
    BatchCost,
    SlotEstimate,
    choose_similar,
    efficient_count,
    plan_last_batches,
)
from app.pool.fair_queue import FairQueue
from app.pool.tasks import Slot, Task
from app.pool.urgent_queue import UrgentQueue

P = TypeVar("P")
R = TypeVar("R")

_LATEST_WEIGHT = 0.3  # of the last batch in the average: a single batch may take unusually long
_PASSED_SUSPECTS = 128  # tasks that wait for another slot than the one on which they failed
_LEAST_RATIO = 1e-3  # plans divide by it, and an answer may come without any time on the clock
_BATCHES_TO_KNOW = 3  # the first one may compile kernels
# Of a batch for which urgent tasks may have to wait. With 0.5 s, first words come after more than a second.
_SHORT_S = 0.45


@dataclass(slots=True)
class _Speed:
    """Of one slot with tasks of one kind."""

    ratio: float
    batches: int = 0  # from which it is known


@dataclass(slots=True)
class _Throughput:
    """Of one slot."""

    speeds: dict[Hashable, _Speed] = field(default_factory=dict)  # by the kind of tasks
    in_flight: deque[tuple[Hashable, float]] = field(default_factory=deque)  # kind and expected seconds
    began: float = 0.0  # the first of these batches


class ThroughputEstimator:
    """How long each slot takes for a batch, as a multiple of the time that `BatchCost` expects.

    Each kind of tasks has its own ratios: one model may take fifty times as long as another.
    """

    def __init__(self) -> None:
        self._slots: defaultdict[int, _Throughput] = defaultdict(_Throughput)
        self._means: dict[Hashable, float] = {}  # of the ratios that are known, by kind

    def forget(self, slot: int) -> None:
        """The slot is removed. Another one with its number starts anew."""
        self._slots.pop(slot, None)

    def begin(self, slot: int, cost_s: float, now: float, kind: Hashable = None) -> float | None:
        """A slot has got a batch of this cost and kind, which it runs after those that it has.

        Returns how long that should take (s); None until the slot has run some batches of the kind.
        """
        estimate = self._slots[slot]
        if not estimate.in_flight:
            estimate.began = now
        estimate.in_flight.append((kind, cost_s))
        speed = estimate.speeds.get(kind)
        return cost_s * speed.ratio if speed is not None and speed.batches >= _BATCHES_TO_KNOW else None

    def end(self, slot: int, now: float) -> None:
        """The slot has finished its first batch."""
        kind, latest = self._take_first(slot, now)
        speed = self._slots[slot].speeds.setdefault(kind, _Speed(latest))
        speed.ratio += _LATEST_WEIGHT * (latest - speed.ratio)
        speed.batches += 1
        known = [other.speeds[kind].ratio for other in self._slots.values() if kind in other.speeds]
        self._means[kind] = sum(known) / len(known)

    def discard(self, slot: int, now: float, *, hung: bool = False) -> None:
        """The slot's first batch failed, so its time does not count.

        `hung`: it took too long for what it should take, which is not known any more.
        """
        kind, _ = self._take_first(slot, now)
        speed = self._slots[slot].speeds.get(kind)
        if hung and speed is not None:
            speed.batches = 0

    def _take_first(self, slot: int, now: float) -> tuple[Hashable, float]:
        """The kind of the slot's first batch, and the ratio of its time until now. The next one begins."""
        estimate = self._slots[slot]
        kind, cost_s = estimate.in_flight.popleft()
        began, estimate.began = estimate.began, now
        return kind, max(_LEAST_RATIO, (now - began) / cost_s)

    def ratio(self, slot: int, kind: Hashable = None) -> float:
        """The slot's ratio with tasks of a kind; before its first batch of them, the mean of the others'."""
        speed = self._slots[slot].speeds.get(kind)
        return self._means.get(kind, 1.0) if speed is None else speed.ratio

    def free_in(self, slot: int, now: float) -> float:
        """Seconds until the slot is free, as estimated."""
        estimate = self._slots[slot]
        if not estimate.in_flight:
            return 0.0
        first_s, *next_s = (cost_s * self.ratio(slot, kind) for kind, cost_s in estimate.in_flight)
        # If the first is overdue by x seconds, assume x more.
        return abs(estimate.began + first_s - now) + sum(next_s)


class Backlog(FairQueue[Task[P, R]]):
    """The fair queue of all slots, with batches for each of them.

    It has the tasks that are not urgent, and `urgent` has the others.
    """

    def __init__(
        self,
        throughput: ThroughputEstimator,
        cost: BatchCost,
        can_run: Callable[[Slot[P, R], P], bool] = lambda slot, payload: True,
        kind_of: Callable[[P], Hashable] = lambda payload: None,
    ) -> None:
        """`can_run`, `kind_of`: see `Dispatcher`."""
        super().__init__()
        self.urgent = UrgentQueue[P, R]()
        self.urgent_callers = 0  # see `Dispatcher.expecting_urgent`
        self._slots: list[Slot[P, R]] = []  # for which batches are planned: all but those that drain
        self._by_index: dict[int, Slot[P, R]] = {}
        self._throughput = throughput
        self._cost = cost
        self._can_run = can_run
        self._kind_of = kind_of

    def add_slot(self, slot: Slot[P, R]) -> None:
        """Plan batches for a slot, too."""
        self._by_index[slot.index] = slot
        insort(self._slots, slot, key=lambda other: other.index)

    def stop_planning_for(self, slot: Slot[P, R]) -> None:
        """Plan no more batches for a slot that drains. It takes the tasks that only its process can run."""
        self._slots = [other for other in self._slots if other is not slot]

    def remove_slot(self, slot: Slot[P, R]) -> None:
        """Forget a slot: its number may be used for another one."""
        self.stop_planning_for(slot)
        del self._by_index[slot.index]

    def put_task(self, task: Task[P, R]) -> None:
        """Add a task at the end of its job's line, or before those that do not continue if it does.

        A job whose task continues has the next turn: what was begun in its turn is finished first.
        """
        if task.urgent:
            self.urgent.put(task)
        elif task.continues:
            self.put_first(task.job, task, task.work.owner, behind=lambda other: other.continues)
        else:
            self.put(task.job, task, task.work.owner)

    def requeue_batch(self, batch: Sequence[Task[P, R]], *, isolated: bool) -> None:
        """Return a batch to the head of the queue, without the tasks that were cancelled meanwhile.

        Urgent tasks stay in order of their deadlines; their owners get the next turns.
        """
        for task in reversed(batch):
            if task.cancelled:
                task.future.cancel()
                continue
            task.isolated = task.isolated or isolated
            if task.urgent:
                self.urgent.put(task, first=True)
            else:
                self.put_first(task.job, task, task.work.owner)

    def take_urgent(self, slot: Slot[P, R]) -> list[Task[P, R]]:
        """Remove and return the next urgent tasks for a slot, which may run together."""
        batch: list[Task[P, R]] = []
        most = 1

        def joins(task: Task[P, R]) -> bool:
            same = not batch or (task.key == batch[0].key and not task.isolated)
            return same and self._fits(slot, task)

        while len(batch) < most and (task := self.urgent.take(joins)):
            batch.append(task)
            if task.isolated:
                break
            most = efficient_count([task.size] * slot.batch_limit(task.weight), self._cost)
        return batch

    def take_batch(self, slot: Slot[P, R], *, behind_others: bool = False) -> list[Task[P, R]]:
        """Remove and return the next tasks for a slot; none if a busy slot leaves the last ones to others.

        `behind_others`: it has a batch of tasks that are not urgent. There is no second one if an urgent task
        would wait for both of them for long.

        A free slot takes a task that waits alone. A single job's tasks are chosen as `batching` plans it. The
        tasks of several jobs are taken in turns, and so are tasks that cannot share every batch. A slot that
        drains takes the tasks that only it can run, one by one.
        """
        if not len(self):
            return []
        if slot.status.state == "draining":
            return self._take_in_turns(slot, 1)
        if len(self) == 1 and not self._throughput.free_in(slot.index, asyncio.get_running_loop().time()):
            return self._take_in_turns(slot, 1)  # there is nothing to plan
        first = next(iter(self))
        if behind_others and self._is_long(slot, first):
            return []
        # The last batches are planned.
        few_left = len(self) <= PLANNED_ROUNDS * self.full_round()
        if any(other.batch_limit() > 1 for other in self._slots):  # else there is nothing to choose
            line = self.only_line(len(self) if few_left else WINDOW_BATCHES * slot.batch_limit())
            if line and all(_can_batch_with_others(task, line[0].key) for task in line):
                places = self._choose(slot, line, few_left=few_left)
                return self.take_at(places) if places else []
        quota = efficient_count([first.size] * self._limit(slot, first), self._cost)
        if few_left and quota > 1:
            quota = len(self._plan_last(slot, self, first))  # 0: the others are to run them
        return self._take_in_turns(slot, quota)

    def _take_in_turns(self, slot: Slot[P, R], quota: int) -> list[Task[P, R]]:
        """Remove and return the next tasks for a slot, job by job, `quota` at most."""

        batch: list[Task[P, R]] = []
        fits = partial(self._fits, slot)

        def joins(task: Task[P, R]) -> bool:
            return fits(task) and task.key == batch[0].key and not task.isolated

        def most_similar(line: Sequence[Task[P, R]]) -> int:
            first = line[0]
            if first.isolated or first.passed_over >= slot.batch_limit():
                return 0
            able = [place for place, task in enumerate(line) if joins(task)]
            place = next((place for place in able if line[place].continues), None)
            if place is None:
                # A task that continues comes whatever its size, so the others need not be like it.
                size = next((task.size for task in batch if not task.continues), first.size)
                place = min(able, key=lambda place: abs(line[place].size - size))
            if place > 0:
                first.passed_over += 1  # often enough, and it is taken whatever its size
            return place

        if quota == 0:
            return []
        window = WINDOW_BATCHES * slot.batch_limit() if quota > 1 else 1
        while task := (
            self.take(joins, most_similar, window) if batch else self.take(fits, passing=_PASSED_SUSPECTS)
        ):
            if task.future.done():
                continue  # its caller was cancelled
            batch.append(task)
            quota = min(quota, slot.batch_limit(task.weight))
            if task.isolated or len(batch) >= quota:
                break
        return batch

    def _is_long(self, slot: Slot[P, R], task: Task[P, R]) -> bool:
        """Whether urgent tasks would wait for long for a full batch of tasks like this one."""
        if not self.urgent_callers:
            return False
        full_s = self._cost.seconds([task.size] * slot.batch_limit(task.weight))
        return full_s * self._ratio(slot, task) > _SHORT_S

    def _limit(self, slot: Slot[P, R], task: Task[P, R]) -> int:
        """How many tasks like this one the slot takes at once now."""
        if not self._is_long(slot, task):
            return slot.batch_limit(task.weight)
        return max(1, self._cost.capacity(_SHORT_S / self._ratio(slot, task), task.size))

    def _ratio(self, slot: Slot[P, R], task: Task[P, R]) -> float:
        return self._throughput.ratio(slot.index, self._kind_of(task.payload))

    def _fits(self, slot: Slot[P, R], task: Task[P, R]) -> bool:
        """Whether a slot may run a task now."""
        if not self._can_run(slot, task.payload):
            return False
        if task.affinity == slot.index:  # it runs on no other slot, also after an error
            return True
        if task.failed_on == slot.index and self._others_serve(slot):
            return False
        is_draining = slot.status.state == "draining"
        return not is_draining and (task.affinity is None or self._is_lost_to(task.affinity, task))

    def oldest_queued_at(self) -> float | None:
        """When the task without a deadline was submitted that waits longest (time of the event loop).

        None if none waits.

        Looks at the heads of the lines only. A line is in order, except that tasks that continue come first.
        """
        heads = (task for line in self.lines() for task in _head(line))
        waiting = chain(heads, self.urgent_without_deadline())
        return min((task.queued_at for task in waiting), default=None)

    def urgent_without_deadline(self) -> Iterator[Task[P, R]]:
        """The urgent tasks that wait as long as it takes."""
        return (task for task in self.urgent if task.deadline is None)

    def full_round(self) -> int:
        """How many tasks like the first one all slots take at once."""
        weight = next((task.weight for task in self), 1)
        return sum(slot.batch_limit(weight) for slot in self._slots)

    def _choose(self, slot: Slot[P, R], line: Sequence[Task[P, R]], *, few_left: bool) -> list[int]:
        """The places of the slot's next batch in the only job's line; none if the others are to run them."""
        first = line[0]
        # The last batches are planned longest first, and new tasks may come while a recording is decoded:
        # the first task in line must not wait for ever.
        if few_left and first.passed_over < PLANNED_ROUNDS * len(self._slots):
            places = self._plan_last(slot, line, first)
        else:
            continuing = [place for place, task in enumerate(line) if task.continues and first.continues]
            sizes = [task.size for task in line]
            places = choose_similar(sizes, self._limit(slot, first), self._cost, continuing)
        if places and 0 not in places:
            first.passed_over += 1
        return places

    def _plan_last(self, slot: Slot[P, R], tasks: Iterable[Task[P, R]], first: Task[P, R]) -> list[int]:
        now = asyncio.get_running_loop().time()
        kind = self._kind_of(first.payload)
        candidates = [other for other in self._slots if other is slot or other.status.is_serving]
        estimates = [
            SlotEstimate(
                self._throughput.free_in(other.index, now),
                self._throughput.ratio(other.index, kind),
                self._limit(other, first),
            )
            for other in candidates
        ]
        return plan_last_batches([task.size for task in tasks], estimates, candidates.index(slot), self._cost)

    def _is_lost_to(self, index: int, task: Task[P, R]) -> bool:
        """Whether a slot has lost the process that a task continues with, or cannot run the task any more."""
        slot = self._by_index[index]
        is_gone = slot.status.waking or slot.status.state in ("restarting", "failed", "asleep")
        return is_gone or not self._can_run(slot, task.payload)

    def _others_serve(self, slot: Slot[P, R]) -> bool:
        return any(other is not slot and other.status.is_serving for other in self._slots)


def _head(line: Sequence[Task[P, R]]) -> Iterator[Task[P, R]]:
    """The tasks of a line that continue and come first, and the first one that does not."""
    for task in line:
        yield task
        if not task.continues:
            return


def _can_batch_with_others(task: Task[P, R], key: Hashable) -> bool:
    """Whether a task may join any batch of that key, on any slot."""
    return task.key == key and task.affinity is None and not task.isolated and not task.future.done()
