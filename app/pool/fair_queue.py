"""The fair queue: owners take turns, and so do the jobs of each, item by item. Pure.

So a short job never waits behind a long one, nor behind the many jobs of somebody else. Owners whose items
are charged get fewer turns the more these cost.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """One line of items for each job. The order within a job is kept."""

    def __init__(self) -> None:
        # The owner to be served next is first, and so is each owner's next job.
        self._owners: OrderedDict[str, OrderedDict[Hashable, deque[T]]] = OrderedDict()
        self._size = 0
        # Of the owners that were charged, the others are due now. The clock runs in what items cost.
        self._due_at: dict[str, float] = {}
        self._now = 0.0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        """All items, job by job."""
        return chain.from_iterable(self.lines())

    def lines(self) -> Iterator[Sequence[T]]:
        """The items of each job, owner by owner."""
        return chain.from_iterable(jobs.values() for jobs in self._owners.values())

    def put(self, job: Hashable, item: T, owner: str = "") -> None:
        """Add an item at the end of its job's line. A new job gets its owner's last turn."""
        self._owners.setdefault(owner, OrderedDict()).setdefault(job, deque()).append(item)
        self._size += 1

    def put_first(
        self, job: Hashable, item: T, owner: str = "", behind: Callable[[T], bool] = lambda other: False
    ) -> None:
        """Add an item at the head of its job's line, and give that job the next turn.

        The items at the head for which `behind` holds stay before it.
        """
        jobs = self._owners.setdefault(owner, OrderedDict())
        line = jobs.setdefault(job, deque())
        line.insert(sum(1 for _ in takewhile(behind, line)), item)
        jobs.move_to_end(job, last=False)
        self._owners.move_to_end(owner, last=False)
        self._size += 1

    def take(
        self,
        fits: Callable[[T], bool],
        choose: Callable[[Sequence[T]], int] = lambda line: 0,
        most: int = 1,
        passing: int = 0,
    ) -> T | None:
        """An item of the next job whose first item fits; None if no job has one.

        `choose` gets the first `most` items of that job's line, and returns the place of the one to take. If
        the first item does not fit, one of the next `passing` is taken that does.
        """
        owners = sorted(self._owners, key=self._due) if self._due_at else self._owners
        for owner in owners:
            for job, line in self._owners[owner].items():
                place = next((at for at, item in enumerate(islice(line, 1 + passing)) if fits(item)), None)
                if place is not None:
                    place = place or choose(list(islice(line, most)))
                    item = line[place]
                    del line[place]
                    self._now = self._due(owner)
                    self._end_turn(owner, job, taken=1)
                    return item
        return None

    def charge(self, owner: str, cost: float) -> None:
        """An item of an owner has cost so much: its next turn comes when the others have had as much.

        Nothing is saved up: who had no items for a while is due as any other.
        """
        self._due_at = {other: due for other, due in self._due_at.items() if due > self._now}
        self._due_at[owner] = self._due(owner) + cost

    def only_line(self, most: int) -> Sequence[T]:
        """The first `most` items of the only job that has any; empty if several jobs have items."""
        if len(self._owners) != 1 or len(next(iter(self._owners.values()))) != 1:
            return ()
        return list(islice(self, most))

    def take_at(self, places: Collection[int]) -> list[T]:
        """Take the items at these places in the line of the job whose turn it is, in order."""
        owner, jobs = next(iter(self._owners.items()))
        job, line = next(iter(jobs.items()))
        first = [line.popleft() for _ in range(max(places) + 1)]
        line.extendleft(item for place, item in reversed([*enumerate(first)]) if place not in places)
        self._end_turn(owner, job, taken=len(places))
        return [first[place] for place in sorted(places)]

    def remove(self, job: Hashable) -> list[T]:
        """Take all items of a job."""
        removed: list[T] = []
        for owner, jobs in list(self._owners.items()):
            removed += jobs.pop(job, ())
            if not jobs:
                del self._owners[owner]
        self._size -= len(removed)
        return removed

    def clear(self) -> list[T]:
        """Take all items of all jobs."""
        items = list(self)
        self._owners.clear()
        self._size = 0
        return items

    def _due(self, owner: str) -> float:
        return max(self._due_at.get(owner, 0.0), self._now)

    def _end_turn(self, owner: str, job: Hashable, taken: int) -> None:
        """Give a job and its owner the last turns, if they have items left."""
        jobs = self._owners[owner]
        if jobs[job]:
            jobs.move_to_end(job)
        else:
            del jobs[job]
        if jobs:
            self._owners.move_to_end(owner)
        else:
            del self._owners[owner]
        self._size -= taken
