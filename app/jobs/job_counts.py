"""How many jobs have each status, counted along with the changes in the database."""

import time
from collections import Counter
from collections.abc import Callable, Mapping

from app.jobs.job import Status


class JobCounts:
    """The number of jobs by status. The database counts at the start, and after a commit in doubt only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: Counter[Status] = Counter()
        self._doubted_at: float | None = None  # when a commit seemed to fail that may still come through

    @property
    def is_doubtful(self) -> bool:
        """Whether the jobs must be counted again."""
        return self._doubted_at is not None

    def by_status(self) -> dict[Status, int]:
        """The number of jobs with each status."""
        return {status: self._counts[status] for status in Status}

    def change(self, before: Status | None, after: Status | None) -> None:
        """A job has another status since a commit that succeeded. None: it is new, or deleted."""
        if before is not None:
            self._counts[before] -= 1
        if after is not None:
            self._counts[after] += 1

    def doubt(self) -> None:
        """A commit seemed to fail. It may have succeeded, or do so within some minutes."""
        self._doubted_at = self._clock()

    def replace(self, counts: Mapping[Status, int], settled_after_s: float) -> None:
        """The database has counted. A commit that seemed to fail is settled after `settled_after_s`."""
        self._counts = Counter(counts)
        if self._doubted_at is not None and self._clock() - self._doubted_at > settled_after_s:
            self._doubted_at = None
