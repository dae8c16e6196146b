"""The fair queue: jobs take turns, item by item, so that a short one never waits behind a long one. Pure."""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Lines of items, one for each job. The order within a job is kept; jobs are served in turn."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()  # the next job to be served is first
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, job: str, item: T) -> None:
        """Add an item at the end of its job's line; a new job takes the last turn."""
        self._lines.setdefault(job, deque()).append(item)
        self._size += 1

    def put_back(self, job: str, item: T) -> None:
        """Return an item to the head of its job's line, and that job to the head of the turns."""
        self._lines.setdefault(job, deque()).appendleft(item)
        self._lines.move_to_end(job, last=False)
        self._size += 1

    def take(self, fits: Callable[[T], bool]) -> T | None:
        """The first item in line of the next job whose first item fits; None if no job has one."""
        for job, line in self._lines.items():
            if fits(line[0]):
                item = line.popleft()
                del self._lines[job]
                if line:
                    self._lines[job] = line
                self._size -= 1
                return item
        return None

    def remove(self, job: str) -> list[T]:
        """Take a job out of the queue, with all its items."""
        line = self._lines.pop(job, deque())
        self._size -= len(line)
        return list(line)

    def clear(self) -> list[T]:
        """Empty the queue: what was in it."""
        return [item for job in list(self._lines) for item in self.remove(job)]
