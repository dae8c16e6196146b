"""The peaks of jobs' recordings: stored when a recording is decoded, or made when a client asks for them."""

import asyncio
from functools import partial

import structlog

from app.errors import NOT_KEPT, STOPPING, AudioNotKept, JobNotDone, NotReady, WhisperfleetError
from app.jobs.job import Job
from app.jobs.store import Store
from app.media.uploads import Upload
from app.transcription.service import TranscriptionService

_AT_ONCE = 2  # recordings that are decoded for their peaks; the others wait

log = structlog.get_logger(__name__)


class JobPeaks:
    """The peaks of jobs, packed as `app.media.peaks` says."""

    def __init__(self, service: TranscriptionService, store: Store) -> None:
        self._service = service
        self._store = store
        self._making: dict[int, asyncio.Task[bytes]] = {}  # by the number of the job
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._stopping = False

    async def stored(self, job: Job) -> bytes | None:
        """The stored peaks of a job; None if `make` may make them.

        Raises JobNotDone if the recording will be decoded for its transcript, which makes them.
        """
        packed = await self._store.packed_peaks(job)
        if packed is None and not job.status.is_terminal and job.pcm is None:
            raise JobNotDone(
                "The recording is not decoded yet; ask again when the job is in the stage `transcribing`.",
                code="audio_not_decoded",
            )
        return packed

    async def make(self, job: Job) -> bytes:
        """Decode the recording of a job once more, and store its peaks.

        Concurrent callers share one making, which goes on if they are cancelled. Raises AudioNotKept if the
        recording is not there, NotReady if the service stops, what the store raises, and as
        `TranscriptionService.peaks` does.
        """
        making = self._making.get(job.number)
        if making is None:
            making = asyncio.create_task(self._make(job), name=f"peaks of {job.id}")
            self._making[job.number] = making
            making.add_done_callback(partial(self._made, job.number))
        await asyncio.wait([making])
        if not making.cancelled():
            return making.result()
        if self._stopping:
            raise NotReady(STOPPING)
        raise AudioNotKept(NOT_KEPT)

    async def forget(self, job: Job) -> None:
        """End the making of the peaks of a job that is deleted."""
        await self._cancel([job.number])

    async def stop(self) -> None:
        """End all making."""
        self._stopping = True
        await self._cancel(list(self._making))

    async def _make(self, job: Job) -> bytes:
        submission = job.submission
        if submission.file is None:
            raise AudioNotKept(NOT_KEPT)
        path = self._service.folder.uploads / submission.file
        upload = Upload(path, submission.filename, submission.size or 0, submission.sha256 or "")
        async with self._turns:
            try:
                packed = await self._service.peaks(upload)
            except FileNotFoundError:
                raise AudioNotKept(NOT_KEPT) from None
        await self._store.store_peaks(job.id, packed)
        return packed

    async def _cancel(self, numbers: list[int]) -> None:
        tasks = [self._making[number] for number in numbers if number in self._making]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _made(self, number: int, making: asyncio.Task[bytes]) -> None:
        """Forget a making, and log why it failed: perhaps nobody waits for it any more."""
        del self._making[number]
        error = None if making.cancelled() else making.exception()
        if error is not None:
            reason = error.message if isinstance(error, WhisperfleetError) else repr(error)
            log.info("the peaks of a recording could not be made", job=making.get_name(), reason=reason)
