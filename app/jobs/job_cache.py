"""A cache of jobs in front of the database: many clients poll the same jobs."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from app.errors import IllegalTransition, JobNotDone, PreconditionFailed, UnknownJob, UploadConflict
from app.jobs.job import Job

# Errors of a transaction that has written nothing.
UNWRITTEN = (IllegalTransition, JobNotDone, PreconditionFailed, UnknownJob, UploadConflict)


class JobCache:
    """The jobs used last, as the database has them. All writes to the database must use `writing`."""

    def __init__(self, max_jobs: int = 1000) -> None:
        self._max_jobs = max_jobs
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._writes = 0
        self._look_ups: dict[tuple[str, int], asyncio.Future[Job]] = {}  # by id, and the writes before it

    async def get(self, job_id: str, look_up: Callable[[str], Coroutine[Any, Any, Job]]) -> Job:
        """The cached job, or the one that `look_up` reads from the database, once for all who wait."""
        if job_id in self._jobs:
            return self._jobs[job_id]
        writes = self._writes
        reading = self._look_ups.get((job_id, writes))
        if reading is None:
            reading = self._look_ups[job_id, writes] = asyncio.ensure_future(look_up(job_id))
            reading.add_done_callback(partial(self._forget_look_up, (job_id, writes)))
        job = await asyncio.shield(reading)
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

    def _forget_look_up(self, key: tuple[str, int], reading: "asyncio.Future[Job]") -> None:
        del self._look_ups[key]
        if not reading.cancelled():
            reading.exception()  # marks it as retrieved: all who waited may be gone

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Surround a write to the database. If the database fails, the cache is emptied."""
        try:
            yield
        except UNWRITTEN:
            raise
        except BaseException:
            self._jobs.clear()  # the write may have been committed before the connection failed
            raise
        finally:
            self._writes += 1
