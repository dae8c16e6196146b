"""Work on a job's recording that several clients may wait for: once for each job."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

import structlog

from app.errors import NOT_KEPT, STOPPING, AudioNotKept, NotReady, WhisperfleetError
from app.jobs.job import Job
from app.media.uploads import Upload
from app.transcription.media_service import MediaService

_AT_ONCE = 2  # recordings that are decoded at the same time; the others wait

T = TypeVar("T")

log = structlog.get_logger(__name__)


class SharedTasks(Generic[T]):
    """One task for each job, which its callers share."""

    def __init__(self, name: str, media: MediaService) -> None:
        self._name = name
        self._media = media
        self._tasks: dict[int, asyncio.Task[T]] = {}  # by the number of the job
        self._decoding = asyncio.Semaphore(_AT_ONCE)
        self._stopping = False

    async def run(self, job: Job, work: Callable[[Upload], Awaitable[T]]) -> T:
        """What `work` makes of the recording of a job. Only the first of concurrent callers starts it.

        It goes on if they are cancelled. Raises AudioNotKept if the recording is not there, NotReady if the
        service stops, and as `work` does.
        """
        if self._stopping:
            raise NotReady(STOPPING)
        task = self._tasks.get(job.number)
        if task is None:
            task = asyncio.create_task(self._run(job, work), name=f"{self._name} of {job.id}")
            self._tasks[job.number] = task
            task.add_done_callback(partial(self._end, job))
        await asyncio.wait([task])
        if not task.cancelled():
            return task.result()
        if self._stopping:
            raise NotReady(STOPPING)
        raise AudioNotKept(NOT_KEPT)

    async def cancel(self, job: Job) -> None:
        """Cancel the task of a job that is deleted, and wait until it has ended."""
        await self._cancel_tasks([job.number])

    async def stop(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        self._stopping = True
        await self._cancel_tasks(list(self._tasks))

    async def _run(self, job: Job, work: Callable[[Upload], Awaitable[T]]) -> T:
        submission = job.submission
        if submission.file is None:
            raise AudioNotKept(NOT_KEPT)
        path = self._media.folder.uploads / submission.file
        upload = Upload(path, submission.filename, submission.size or 0, submission.sha256 or "")
        async with self._decoding:
            try:
                return await work(upload)
            except FileNotFoundError:
                raise AudioNotKept(NOT_KEPT) from None

    async def _cancel_tasks(self, numbers: list[int]) -> None:
        tasks = [self._tasks[number] for number in numbers if number in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, job: Job, task: asyncio.Task[T]) -> None:
        """Drop a task that has ended, and log why it failed: perhaps nobody waits for it any more."""
        del self._tasks[job.number]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            reason = error.message if isinstance(error, WhisperfleetError) else repr(error)
            log.info(f"the {self._name} of a recording could not be made", job=job.id, reason=reason)
