"""The fair queue: jobs take turns, item by item, so that a short one never waits behind a long one. Pure."""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """One line of items for each job. The order within a job is kept; jobs are served in turn."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()  # the next job to be served is first
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        """All items, job by job."""
        return chain.from_iterable(self._lines.values())

    def lines(self) -> Iterator[Sequence[T]]:
        """The items of each job, in the order of the line."""
        return iter(self._lines.values())

    def put(self, job: str, item: T) -> None:
        """Add an item at the end of its job's line. A new job gets the last turn."""
        self._lines.setdefault(job, deque()).append(item)
        self._size += 1

    def put_first(self, job: str, item: T, behind: Callable[[T], bool] = lambda other: False) -> None:
        """Add an item at the head of its job's line, and give that job the next turn.

        The items at the head for which `behind` holds stay before it.
        """
        line = self._lines.setdefault(job, deque())
        line.insert(sum(1 for _ in takewhile(behind, line)), item)
        self._lines.move_to_end(job, last=False)
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
        for job, line in self._lines.items():
            place = next((at for at, item in enumerate(islice(line, 1 + passing)) if fits(item)), None)
            if place is not None:
                place = place or choose(list(islice(line, most)))
                item = line[place]
                del line[place]
                del self._lines[job]
                if line:
                    self._lines[job] = line
                self._size -= 1
                return item
        return None

    def only_line(self, most: int) -> Sequence[T]:
        """The first `most` items of the only job that has any; empty if several jobs have items."""
        return list(islice(self, most)) if len(self._lines) == 1 else ()

    def take_at(self, places: Collection[int]) -> list[T]:
        """Take the items at these places in the line of the job whose turn it is, in order."""
        job, line = next(iter(self._lines.items()))
        first = [line.popleft() for _ in range(max(places) + 1)]
        line.extendleft(item for place, item in reversed([*enumerate(first)]) if place not in places)
        if line:
            self._lines.move_to_end(job)
        else:
            del self._lines[job]
        self._size -= len(places)
        return [first[place] for place in sorted(places)]

    def remove(self, job: str) -> list[T]:
        """Take all items of a job."""
        line = self._lines.pop(job, deque())
        self._size -= len(line)
        return list(line)

    def clear(self) -> list[T]:
        """Take all items of all jobs."""
        return [item for job in list(self._lines) for item in self.remove(job)]
