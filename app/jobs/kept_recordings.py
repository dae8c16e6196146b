"""The peaks of kept recordings, and the voices in them, which are made when clients ask."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import structlog

from app.common.concurrency import end_tasks
from app.common.errors import NOT_KEPT, STOPPING, AudioNotKept, JobNotDone, NotReady, WhisperfleetError
from app.intake.uploads import Upload
from app.jobs.corrections import windows_by_clip
from app.jobs.job import Job
from app.jobs.storage.store import Store
from app.media.sound_copies import until_made
from app.pool.helper import Helper, work_s
from app.recording.media_service import MediaService

_AT_ONCE = 2  # recordings that are decoded at the same time for one kind of result; the others wait

T = TypeVar("T")

log = structlog.get_logger(__name__)


class KeptRecordings:
    """Makes peaks and voices once for all clients that wait for them. It goes on if they are cancelled.

    Raises AudioNotKept if the recording is not there, NotReady if the service stops, and as `MediaService`
    and the store do.
    """

    def __init__(self, media: MediaService, store: Store, helper: Helper) -> None:
        self._media = media
        self._store = store
        self._helper = helper
        self._tasks: dict[tuple[str, int], asyncio.Task[Any]] = {}  # by what they make, and the job's number
        self._decoding: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_AT_ONCE))
        self._stopping = False

    async def stored_peaks(self, job: Job) -> bytes | None:
        """The stored peaks of a job, packed as `app.media.peaks` says; None if `peaks` may compute them.

        Raises JobNotDone if the recording will be decoded for its transcript, which gives them.
        """
        packed = await self._store.packed_peaks(job)
        if packed is None and not job.status.is_terminal and job.pcm is None:
            raise JobNotDone(
                "The recording is not decoded yet; ask again when the job is in the stage `transcribing`.",
                code="audio_not_decoded",
            )
        return packed

    async def peaks(self, job: Job) -> bytes:
        """Decode the recording of a job once more, and store its peaks."""

        async def compute(upload: Upload) -> bytes:
            packed = await self._media.peaks(upload, job.submission.options.selection)
            await self._store.update(job.id, packed_peaks=packed)
            return packed

        return await self._shared("peaks", job, compute)

    async def voices(self, job: Job) -> list[bytes]:
        """Embed and store the voices in the clips of a job that has succeeded.

        `app.transcript.speakers.voices` packs them. Empty if nobody speaks, or if each channel is a speaker.
        """
        if job.submission.options.channels == "separate":
            return []

        async def embed(upload: Upload) -> list[bytes]:
            base = await self._store.transcript(job)
            windows = await self._helper.run(work_s(job.duration, base.content), windows_by_clip, base)
            voices = await self._media.voices(upload, windows, job.submission.options.selection)
            await self._store.store_voices(job, voices)
            return list(voices.values())

        return await self._shared("voices", job, embed)

    async def cancel(self, job: Job) -> None:
        """Cancel what is made for a job that is deleted, and wait until it has ended."""
        await end_tasks(*(task for (_, number), task in self._tasks.items() if number == job.number))

    async def stop(self) -> None:
        """Cancel all that is made, and wait until it has ended."""
        self._stopping = True
        await end_tasks(*self._tasks.values())

    async def _shared(self, kind: str, job: Job, work: Callable[[Upload], Awaitable[T]]) -> T:
        """What `work` makes of the recording of a job. Only the first of concurrent callers starts it."""
        if self._stopping:
            raise NotReady(STOPPING)
        key = (kind, job.number)
        task: asyncio.Task[T] | None = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(self._make(kind, job, work), name=f"{kind} of {job.id}")
            self._tasks[key] = task
            task.add_done_callback(partial(self._end, kind, job))
        return await until_made(task, is_stopping=lambda: self._stopping)

    async def _make(self, kind: str, job: Job, work: Callable[[Upload], Awaitable[T]]) -> T:
        submission = job.submission
        if submission.file is None:
            raise AudioNotKept(NOT_KEPT)
        path = self._media.folder.uploads / submission.file
        upload = Upload(path, submission.filename, submission.size or 0, submission.sha256 or "")
        async with self._decoding[kind]:
            try:
                return await work(upload)
            except FileNotFoundError:
                raise AudioNotKept(NOT_KEPT) from None

    def _end(self, kind: str, job: Job, task: asyncio.Task[Any]) -> None:
        """Drop a task that has ended, and log why it failed: perhaps nobody waits for it any more."""
        del self._tasks[kind, job.number]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            reason = error.message if isinstance(error, WhisperfleetError) else repr(error)
            log.info(f"the {kind} of a recording could not be made", job=job.id, reason=reason)
