"""A cache of jobs in front of the database: many clients poll the same jobs."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from app.jobs.job import Job


class JobCache:
    """The jobs used last, as the database has them. All writes to the database must use `writing`."""

    def __init__(self, max_jobs: int = 1000) -> None:
        self._max_jobs = max_jobs
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._writes = 0

    async def get(self, job_id: str, look_up: Callable[[str], Awaitable[Job]]) -> Job:
        """The cached job, or the one that `look_up` reads from the database."""
        if job_id in self._jobs:
            return self._jobs[job_id]
        writes = self._writes
        job = await look_up(job_id)
        if self._writes == writes:  # otherwise the job may be out of date already
            self.put(job)
        return job

    def put(self, job: Job) -> None:
        """Cache a job as it was just read or written."""
        self._jobs[job.id] = job
        self._jobs.move_to_end(job.id)
        if len(self._jobs) > self._max_jobs:
            self._jobs.popitem(last=False)

    def discard(self, job_id: str) -> None:
        """Forget a job."""
        self._jobs.pop(job_id, None)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Surround a write to the database. If it fails, the cache is emptied."""
        try:
            yield
        except BaseException:
            self._jobs.clear()  # the write may have been committed before the connection failed
            raise
        finally:
            self._writes += 1
