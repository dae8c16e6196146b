"""The jobs used last, in memory."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from app.common.concurrency import spawn_shared
from app.common.errors import IllegalTransition, JobNotDone, PreconditionFailed, UnknownJob, UploadConflict
from app.jobs.job import Job

# Errors of a transaction that has written nothing.
UNWRITTEN = (IllegalTransition, JobNotDone, PreconditionFailed, UnknownJob, UploadConflict)


_LookUp = tuple[str, str | None, int]  # the id, whose job it must be, and the writes before it


class JobCache:
    """The jobs used last, as the database has them: many clients poll the same jobs.

    All writes to the database must use `writing`. If others may write to it (`is_shared`), it stays empty.
    """

    def __init__(self, max_jobs: int = 1000, *, is_shared: bool = False) -> None:
        self._max_jobs = 0 if is_shared else max_jobs
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._writes = 0
        self._look_ups: dict[_LookUp, asyncio.Future[Job]] = {}

    async def get(
        self, job_id: str, owner: str | None, look_up: Callable[[str, str | None], Coroutine[Any, Any, Job]]
    ) -> Job:
        """The cached job, or the one that `look_up` reads from the database, once for all who wait.

        `owner`: whose it must be; None: anybody's. Another owner's job is looked up as one that does not
        exist: the answer takes as long.
        """
        job = self._jobs.get(job_id)
        if job is not None and owner in (None, job.submission.owner):
            return job
        key = (job_id, owner, writes := self._writes)
        reading = self._look_ups.get(key)
        if reading is None:
            reading = self._look_ups[key] = spawn_shared(look_up(job_id, owner))
            reading.add_done_callback(lambda _: self._look_ups.pop(key))
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

    def clear(self) -> None:
        """Forget all jobs."""
        self._jobs.clear()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Surround a write to the database. After one that may have been committed, all is read anew."""
        try:
            yield
        except UNWRITTEN:
            raise
        except BaseException:  # the write may have been committed before the connection failed
            self._jobs.clear()
            raise
        finally:
            self._writes += 1
