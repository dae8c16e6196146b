"""The peaks of jobs' recordings: stored when a recording is decoded, or computed when a client asks."""

import asyncio
from functools import partial

import structlog

from app.errors import NOT_KEPT, STOPPING, AudioNotKept, JobNotDone, NotReady, WhisperfleetError
from app.jobs.job import Job
from app.jobs.storage.store import Store
from app.media.uploads import Upload
from app.transcription.media_service import MediaService

_AT_ONCE = 2  # recordings that are decoded for their peaks; the others wait

log = structlog.get_logger(__name__)


class JobPeaks:
    """The peaks of jobs, packed as `app.media.peaks` says."""

    def __init__(self, media: MediaService, store: Store) -> None:
        self._media = media
        self._store = store
        self._tasks: dict[int, asyncio.Task[bytes]] = {}  # by the number of the job
        self._decoding = asyncio.Semaphore(_AT_ONCE)
        self._stopping = False

    async def stored(self, job: Job) -> bytes | None:
        """The stored peaks of a job; None if `compute` may compute them.

        Raises JobNotDone if the recording will be decoded for its transcript, which gives them.
        """
        packed = await self._store.packed_peaks(job)
        if packed is None and not job.status.is_terminal and job.pcm is None:
            raise JobNotDone(
                "The recording is not decoded yet; ask again when the job is in the stage `transcribing`.",
                code="audio_not_decoded",
            )
        return packed

    async def compute(self, job: Job) -> bytes:
        """Decode the recording of a job once more, and store its peaks.

        Concurrent callers share one task, which goes on if they are cancelled. Raises AudioNotKept if the
        recording is not there, NotReady if the service stops, what the store raises, and as
        `MediaService.peaks` does.
        """
        if self._stopping:
            raise NotReady(STOPPING)
        task = self._tasks.get(job.number)
        if task is None:
            task = asyncio.create_task(self._compute(job), name=f"peaks of {job.id}")
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

    async def _compute(self, job: Job) -> bytes:
        submission = job.submission
        if submission.file is None:
            raise AudioNotKept(NOT_KEPT)
        path = self._media.folder.uploads / submission.file
        upload = Upload(path, submission.filename, submission.size or 0, submission.sha256 or "")
        async with self._decoding:
            try:
                packed = await self._media.peaks(upload, submission.options.selection)
            except FileNotFoundError:
                raise AudioNotKept(NOT_KEPT) from None
        await self._store.store_peaks(job.id, packed)
        return packed

    async def _cancel_tasks(self, numbers: list[int]) -> None:
        tasks = [self._tasks[number] for number in numbers if number in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, job: Job, task: asyncio.Task[bytes]) -> None:
        """Drop a task that has ended, and log why it failed: perhaps nobody waits for it any more."""
        del self._tasks[job.number]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            reason = error.message if isinstance(error, WhisperfleetError) else repr(error)
            log.info("the peaks of a recording could not be made", job=job.id, reason=reason)
