"""All about jobs, for the HTTP side: hand one in, look it up, follow it, delete it."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import structlog
from sqlalchemy.exc import IntegrityError

from app.errors import (
    IllegalTransition,
    InvalidSetting,
    KeyReused,
    NotReady,
    QueueFull,
    UnknownJob,
    WhisperfleetError,
)
from app.jobs.clip_store import ClipStore
from app.jobs.database import Database
from app.jobs.job import Job, JobStatus, Submission
from app.jobs.outbox import DatabaseOutbox
from app.jobs.runner import JobRunner
from app.jobs.store import Event, Store
from app.jobs.subscriptions import Subscriptions
from app.jobs.webhooks import Webhooks
from app.media.downloads import clean as clean_downloads
from app.settings import Settings
from app.transcript.timeline import Transcript
from app.transcription.service import TranscriptionService

UNFINISHED = (JobStatus.QUEUED, JobStatus.RUNNING)
FINISHED = (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED)
DRAIN_S = 4.0  # that batches in hand have to end when the service stops; Docker kills after 10 s
_SWEEP_S = 60.0  # between two looks for jobs whose time is over

log = structlog.get_logger(__name__)


class JobService:
    """The jobs of one data folder and one database."""

    def __init__(self, service: TranscriptionService, settings: Settings) -> None:
        """Raises InvalidSetting for a database that cannot be."""
        self._service = service
        self._settings = settings
        self._database = Database(settings.database_url, settings.data_dir)
        self._store = Store(self._database)
        self._clips = ClipStore(self._database)
        self._runner = JobRunner(service, self._store, self._clips, settings)
        self._followers = Subscriptions()
        self._store.on_event = self._followers.tell
        self._webhooks = Webhooks(
            DatabaseOutbox(self._database), settings.webhook_secret, settings.webhook_allow_private
        )
        self._store.on_delivery = self._webhooks.wake
        self._sweeper: asyncio.Task[None] | None = None
        self._admission = asyncio.Lock()
        self._stopping = False

    async def start(self) -> None:
        """Take up what was left: jobs that were running wait again, and files that nobody needs go.

        Raises InvalidSetting where the database cannot be used.
        """
        await self._database.open()
        for job in await self._store.in_state([JobStatus.RUNNING]):
            await self._store.requeue(job)
        for job in await self._store.in_state([JobStatus.CANCELLED]):
            await self._store.delete(job)  # its deletion was cut short
        waiting = await self._store.in_state([JobStatus.QUEUED])
        await asyncio.to_thread(self._clean, await self._store.files(), {job.id for job in waiting})
        if waiting:
            log.info("going on with unfinished jobs", jobs=len(waiting))
        self._clips.start()
        if self._settings.webhook_secret is not None:
            self._webhooks.start()  # else they wait for a start with a secret
        self._runner.start()
        self._sweeper = asyncio.create_task(self._sweep(), name="job-sweeper")

    def _clean(self, uploads: set[str], waiting: set[str]) -> None:
        """Remove files that no job needs; not where they may be those of another database's jobs."""
        note = self._settings.data_dir / "database"
        name = "" if self._settings.database_url is None else self._database.name
        if note.exists() and note.read_text() != name:
            log.warning(
                "the recordings here are of jobs in another database, and left alone",
                remove_to_go_on=str(note),
            )
            return
        note.write_text(name)
        self._service.folder.clean(uploads, waiting)
        clean_downloads(self._service.folder.uploads)

    def close_to_clients(self) -> None:
        """Take no more jobs, and end what is told of those that are there: the service is about to stop."""
        self._stopping = True
        self._followers.dismiss()

    async def stop(self) -> None:
        """Let batches in hand end, for a while; what is not done by then is left to the next start."""
        self.close_to_clients()
        await self._service.drain(DRAIN_S)
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self._runner.stop()
        await self._webhooks.stop()
        await self._database.close()

    async def check_capacity(self, owner: str) -> None:
        """Raise QueueFull where no further job can be taken of `owner`."""
        # Those that could run at this moment do not wait, whether they have been begun yet or not.
        room = self._settings.max_queued_jobs + self._service.jobs_at_once
        if await self._store.count(UNFINISHED) >= room:
            raise QueueFull(
                f"{self._settings.max_queued_jobs} jobs are waiting already, as many as this service takes "
                "(WHISPER_MAX_QUEUED_JOBS); try again later."
            )
        limit = self._settings.max_jobs_per_key
        if limit is not None and await self._store.count(UNFINISHED, owner) >= limit:
            raise QueueFull(
                f"{limit} of your jobs are not done yet, as many as one API key may have "
                "(WHISPER_MAX_JOBS_PER_KEY); try again when one is."
            )

    async def submit(self, submission: Submission) -> tuple[Job, bool]:
        """Take a job on, unless it was taken on before: the job, and whether it is a new one.

        The same idempotency key stands for the same job. Raises KeyReused where the key stands for another
        request, QueueFull, NotReady while the service stops, and what the database raises.
        """
        if self._stopping:
            raise NotReady("The service is stopping; send the request again.")
        key = submission.idempotency_key
        async with self._admission:  # or many at once would all find room for one
            if key is not None:
                earlier = await self._store.find(submission.owner, key)
                if earlier is not None:
                    return _same(earlier, submission), False
            await self.check_capacity(submission.owner)
            try:
                job = await self._store.add(submission)
            except IntegrityError:
                raise KeyReused(f"The Idempotency-Key {key!r} is in use.") from None
        self._runner.wake()
        return job, True

    async def knows(self, owner: str, key: str | None) -> bool:
        """Whether a request under an idempotency key was taken on before."""
        return key is not None and await self._store.find(owner, key) is not None

    async def has_events(self, job: Job, after: int) -> bool:
        """Whether a job has events with higher numbers than `after`."""
        return bool(await self._store.events(job, after, limit=1))

    def public(self, job: Job) -> dict[str, Any]:
        """A job as clients see it now."""
        return job.public(time.time())

    async def get(self, job_id: str) -> Job:
        """Raises UnknownJob."""
        return await self._store.get(job_id)

    async def page(self, status: JobStatus | None, limit: int, after: str | None) -> tuple[list[Job], bool]:
        """See `Store.page`."""
        return await self._store.page(status, limit, after)

    async def transcript(self, job: Job) -> Transcript:
        """What was heard in the recording of a job that has succeeded."""
        return await self._store.transcript(job)

    async def delete(self, job_id: str) -> None:
        """Stop a job if it is not done, and forget it with all that belongs to it. Raises UnknownJob."""
        job = await self._store.get(job_id)
        if not job.status.is_terminal:
            # It may come to its end just now.
            with suppress(IllegalTransition):
                await self._store.cancel(job)
            # After that, or the runner might begin it in between.
            await self._runner.cancel(job_id)
            job = await self._store.get(job_id)
        await self._remove(job)

    async def follow(self, job: Job, after: int) -> AsyncGenerator[Event]:
        """All events of a job with higher numbers than `after`, as they happen; ends with the job.

        The last one of a job that is deleted is its cancellation. Ends early where the service stops.
        """
        with self._followers.follow(job.id) as live:
            if self._stopping:
                return
            while stored := await self._store.events(job, after):
                for event in stored:
                    yield event
                    after = event.number
                if stored[-1].is_last:
                    return
            try:
                job = await self._store.get(job.id)
                if job.status.is_terminal and not await self.has_events(job, after):
                    return  # what `after` counts is more than there ever was
            except UnknownJob:
                live.put_nowait(None)  # deleted: of that we were told, or it was over before we listened
            while (event_or_end := await live.get()) is not None:
                if event_or_end.number > after:
                    yield event_or_end
                    after = event_or_end.number
                if event_or_end.is_last:
                    return

    async def _remove(self, job: Job) -> None:
        # The row first: a job is there with all that belongs to it, or not at all. The next start clears
        # files that have outlived their row.
        await self._store.delete(job)
        paths = [self._service.folder.pcm / job.id]
        if job.submission.file:
            paths.append(self._service.folder.uploads / job.submission.file)
        for path in paths:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _sweep(self) -> None:
        """Delete jobs that ended longer ago than results are kept; see that the database is still ours."""
        while True:
            try:
                await self._database.keep()
                over = time.time() - self._settings.result_ttl_s
                for job in await self._store.in_state(FINISHED, finished_before=over):
                    await self._remove(job)
            except InvalidSetting as error:
                log.critical("stopping", error=error.message)
                signal.raise_signal(signal.SIGTERM)
                return
            except (WhisperfleetError, OSError) as error:
                log.error("old jobs cannot be deleted; trying again", error=repr(error))
            await asyncio.sleep(min(_SWEEP_S, self._settings.result_ttl_s / 2))


def _same(earlier: Job, submission: Submission) -> Job:
    if earlier.submission.fingerprint != submission.fingerprint:
        raise KeyReused(
            f"The Idempotency-Key {submission.idempotency_key!r} stands for another request. Use a new key "
            "for each new job, and the same one only to send the same request again.",
            param="Idempotency-Key",
        )
    return earlier
