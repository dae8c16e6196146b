"""Waiting tasks that are urgent. One that is not sent by its deadline is worth nothing, and is dropped."""

import asyncio
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from app.common.errors import Expired
from app.pool.tasks import Task

P = TypeVar("P")
R = TypeVar("R")


class UrgentQueue(Generic[P, R]):
    """Owners take turns, task by task, and of each owner's tasks the one with the earliest deadline is next.

    One without a deadline is due at once. A task whose deadline passes gets the error Expired. One that its
    caller cancels leaves the queue.
    """

    def __init__(self) -> None:
        # The owner to be served next is first, and so is each owner's next task.
        self._owners: OrderedDict[str, list[Task[P, R]]] = OrderedDict()
        self.size = 0
        self.expired = 0  # tasks so far

    def __iter__(self) -> Iterator[Task[P, R]]:
        """All tasks, owner by owner."""
        return chain.from_iterable(self._owners.values())

    def put(self, task: Task[P, R], *, first: bool = False) -> None:
        """Add a task. `first`: its owner gets the next turn."""
        insort(self._owners.setdefault(task.work.owner, []), task, key=_due)
        self.size += 1
        if first:
            self._owners.move_to_end(task.work.owner, last=False)
        task.future.add_done_callback(lambda _: self._remove(task))
        if task.deadline is not None:
            timer = asyncio.get_running_loop().call_at(task.deadline, self._expire, task)
            task.future.add_done_callback(lambda _: timer.cancel())

    def take(self, fits: Callable[[Task[P, R]], bool]) -> Task[P, R] | None:
        """Remove and return the next task that fits, and give its owner the last turn. None if none does."""
        now = asyncio.get_running_loop().time()
        live = (task for task in self if not task.future.done())
        in_time = (task for task in live if task.deadline is None or task.deadline > now)
        task = next(filter(fits, in_time), None)
        if task is not None:
            self._remove(task)
            if task.work.owner in self._owners:
                self._owners.move_to_end(task.work.owner)
        return task

    def _remove(self, task: Task[P, R]) -> bool:
        """Remove a task. Returns False if it is not in the queue."""
        line = self._owners.get(task.work.owner, [])
        place = bisect_left(line, _due(task), key=_due)
        while place < len(line) and line[place] is not task:  # others may be due with it
            place += 1
        if place == len(line):
            return False
        del line[place]
        if not line:
            del self._owners[task.work.owner]
        self.size -= 1
        return True

    def _expire(self, task: Task[P, R]) -> None:
        """Drop a task whose deadline has passed, unless it was sent."""
        if self._remove(task) and not task.future.done():
            task.future.set_exception(Expired("no slot was free for the task by its deadline"))
            self.expired += 1


def _due(task: Task[P, R]) -> float:
    return task.queued_at if task.deadline is None else task.deadline
