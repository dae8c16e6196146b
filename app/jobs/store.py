"""The jobs in the database. Each change of status is one transaction, with the event that announces it."""

import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import IllegalTransition, OutcomeUnknown, UnknownJob, WhisperfleetError
from app.jobs.database import Database
from app.jobs.events import Event, add_event, add_webhook, read_events
from app.jobs.job import TRANSITIONS, Failure, Job, JobProgress, Stage, Status, Submission
from app.jobs.job_cache import JobCache
from app.jobs.serialization import pack_transcript
from app.jobs.tables import clips, job_from_row, jobs, peaks, progress_row, submission_row, transcripts
from app.shielding import shielded
from app.transcript.timeline import Transcript
from app.transcription.helper import Helper
from workers.messages import Span, seconds


class QueuedRow(NamedTuple):
    """A queued job. Times in s."""

    id: str
    number: int
    owner: str
    size: int | None  # bytes
    total_s: float | None
    done_s: float
    has_file: bool


class Store:
    """Jobs, their events and transcripts. Raises what `Database` raises."""

    def __init__(
        self, database: Database, clock: Callable[[], float] = time.time, helper: Helper | None = None
    ) -> None:
        """`helper` packs transcripts."""
        self._database = database
        self._clock = clock
        self._helper = helper or Helper()
        self._cache = JobCache()
        # Called with the job's id and each event, once the event is in the database.
        self.on_event: Callable[[str, Event], None] = lambda job_id, event: None
        # Called once a webhook is in the database.
        self.on_delivery: Callable[[], None] = lambda: None

    @shielded
    async def add(self, submission: Submission) -> Job:
        """Add a job to the queue. Raises sqlalchemy's IntegrityError if its idempotency key is in use.

        Raises OutcomeUnknown if the job may be in the database, now or a little later.
        """
        values = submission_row(submission) | {
            "id": uuid.uuid4().hex,
            "status": Status.QUEUED.value,
            "created_at": self._clock(),
            "failed_spans": [],
            **progress_row(JobProgress()),
        }
        try:
            async with self._write() as connection:
                await connection.execute(sa.insert(jobs).values(values))
                job = await _get(connection, values["id"])
                event = await add_event(connection, job, f"job.{job.status}", self._clock())
        except OutcomeUnknown as unknown:
            try:
                return await self.get(values["id"])  # nobody subscribes to a job that is new
            except WhisperfleetError:
                raise unknown from None
        self._publish(job, event)
        return job

    async def get(self, job_id: str) -> Job:
        """Raises UnknownJob."""
        return await self._cache.get(job_id, self._look_up)

    @shielded
    async def _look_up(self, job_id: str) -> Job:
        async with self._database.read() as connection:
            return await _get(connection, job_id)

    @shielded
    async def find(self, owner: str, idempotency_key: str) -> Job | None:
        """The owner's job with an idempotency key."""
        query = sa.select(jobs).where(jobs.c.owner == owner, jobs.c.idempotency_key == idempotency_key)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return job_from_row(row) if row else None

    @shielded
    async def page(self, status: Status | None, limit: int, after: Job | None) -> tuple[list[Job], bool]:
        """Jobs, newest first, and whether there are more. `after`: the last job of the previous page."""
        query = sa.select(jobs).order_by(jobs.c.number.desc()).limit(limit + 1)
        if status is not None:
            query = query.where(jobs.c.status == status.value)
        if after is not None:
            query = query.where(jobs.c.number < after.number)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return [job_from_row(row) for row in rows[:limit]], len(rows) > limit

    @shielded
    async def queued(self) -> list[QueuedRow]:
        """What the order of jobs depends on, of each queued job, oldest first."""
        columns = (jobs.c.id, jobs.c.number, jobs.c.owner, jobs.c.size, jobs.c.total_s, jobs.c.done_s)
        has_file = jobs.c.file.is_not(None).label("has_file")
        query = sa.select(*columns, has_file).where(jobs.c.status == Status.QUEUED.value)
        async with self._database.read() as connection:
            return [QueuedRow(*row) for row in await connection.execute(query.order_by(jobs.c.number))]

    @shielded
    async def count(self, statuses: Collection[Status], owner: str | None = None) -> int:
        """The number of jobs with one of some statuses, of one owner if `owner` is given."""
        query = sa.select(sa.func.count()).where(jobs.c.status.in_([status.value for status in statuses]))
        if owner is not None:
            query = query.where(jobs.c.owner == owner)
        async with self._database.read() as connection:
            return int(await connection.scalar(query) or 0)

    @shielded
    async def with_status(
        self,
        statuses: Collection[Status],
        finished_before: float | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """All jobs with one of some statuses, oldest first, or the first `limit`.

        `finished_before`: Unix time in s.
        """
        query = sa.select(jobs).where(jobs.c.status.in_([status.value for status in statuses]))
        if finished_before is not None:
            query = query.where(jobs.c.finished_at < finished_before)
        query = query.order_by(jobs.c.number).limit(limit)
        async with self._database.read() as connection:
            return [job_from_row(row) for row in await connection.execute(query)]

    @shielded
    async def files(self) -> set[str]:
        """The names of all files in the uploads folder that belong to jobs."""
        async with self._database.read() as connection:
            return set(await connection.scalars(sa.select(jobs.c.file).where(jobs.c.file.is_not(None))))

    async def begin(self, job: Job) -> Job:
        """Mark a queued job as running. Raises IllegalTransition."""
        stage = Stage.DECODING if job.submission.file else Stage.DOWNLOADING
        changes: dict[str, Any] = progress_row(replace(job.progress, stage=stage))
        if job.started_at is None:
            changes["started_at"] = self._clock()
        return await self._transition(job.id, Status.RUNNING, changes)

    @shielded
    async def set_result_digest(self, job: Job, digest: str) -> Job:
        """Store the digest of everything that clip results depend on.

        Removes the clip results and the decoded audio of another digest. Raises UnknownJob.
        """
        if job.result_digest == digest:
            return job
        values = {"identity": digest, "pcm": None}
        async with self._write() as connection:
            await connection.execute(sa.delete(clips).where(clips.c.job_number == job.number))
            await connection.execute(sa.update(jobs).where(jobs.c.id == job.id).values(values))
            job = await _get(connection, job.id)
        self._cache.put(job)
        return job

    async def requeue(self, job: Job) -> Job:
        """Return a running job to the queue; its clip results are kept. Raises IllegalTransition."""
        return await self._transition(job.id, Status.QUEUED, {"stage": Stage.QUEUED.value})

    async def succeed(self, job: Job, transcript: Transcript, keep_file: bool) -> Job:
        """Mark a running job as succeeded, and store its transcript. Raises IllegalTransition."""
        content = await self._helper.run(transcript.seconds, pack_transcript, transcript)
        duration = seconds(transcript.samples)
        changes = {
            "duration": duration,
            "done_s": duration,  # everything outside the clips is silence
            "total_s": duration,
            "language": transcript.language,
            "failed_spans": list(transcript.failed_spans),
            **({} if keep_file else {"file": None}),
        }
        return await self._transition(job.id, Status.SUCCEEDED, changes, content)

    async def fail(self, job: Job, failure: Failure, failed_spans: Sequence[Span], keep_file: bool) -> Job:
        """Mark an unfinished job as failed. Raises IllegalTransition."""
        changes = {
            "error": {"message": failure.message, "code": failure.code},
            "failed_spans": list(failed_spans),
            **({} if keep_file else {"file": None}),
        }
        return await self._transition(job.id, Status.FAILED, changes)

    async def cancel(self, job: Job) -> Job:
        """Mark an unfinished job as cancelled. Raises IllegalTransition."""
        return await self._transition(job.id, Status.CANCELLED, {})

    @shielded
    async def delete(self, job: Job) -> None:
        """Delete a job with its clips, events and transcript. Its unsent webhooks stay."""
        async with self._write() as connection:
            await connection.execute(sa.delete(jobs).where(jobs.c.number == job.number))
        self._cache.discard(job.id)

    @shielded
    async def update(self, job_id: str, **changes: Any) -> None:
        """Change `file`, `size`, `sha256`, `filename` or `pcm` of a job, without an event."""
        async with self._write() as connection:
            await connection.execute(sa.update(jobs).where(jobs.c.id == job_id).values(changes))
            row = (await connection.execute(sa.select(jobs).where(jobs.c.id == job_id))).one_or_none()
        if row is not None:
            self._cache.put(job_from_row(row))  # many clients poll it: they must not all ask the database

    @shielded
    async def store_peaks(self, job_id: str, content: bytes, **changes: Any) -> None:
        """Store the packed peaks of a job, and make changes as `update` does. Skips a job that is deleted."""
        async with self._write() as connection:
            number = await connection.scalar(sa.select(jobs.c.number).where(jobs.c.id == job_id))
            if number is None:
                return
            if changes:
                await connection.execute(sa.update(jobs).where(jobs.c.number == number).values(changes))
            await connection.execute(sa.delete(peaks).where(peaks.c.job_number == number))
            await connection.execute(sa.insert(peaks).values(job_number=number, content=content))
            job = await _get(connection, job_id)
        self._cache.put(job)

    @shielded
    async def packed_peaks(self, job: Job) -> bytes | None:
        """The packed peaks of a job's recording, if they are stored."""
        query = sa.select(peaks.c.content).where(peaks.c.job_number == job.number)
        async with self._database.read() as connection:
            content = await connection.scalar(query)
        return None if content is None else bytes(content)

    @shielded
    async def store_progress(self, progress: Mapping[str, JobProgress]) -> None:
        """Store the progress of jobs, by id. Skips jobs that do not run."""
        changed: list[tuple[Job, Event]] = []
        async with self._write() as connection:
            for job_id, new in progress.items():
                query = sa.select(jobs).where(jobs.c.id == job_id, jobs.c.status == Status.RUNNING.value)
                row = (await connection.execute(query)).one_or_none()
                if row is None:
                    continue
                job = job_from_row(row)
                job = replace(job, progress=job.progress.advance_to(new))
                change = sa.update(jobs).where(jobs.c.id == job_id).values(progress_row(job.progress))
                await connection.execute(change)
                changed.append((job, await add_event(connection, job, "job.progress", self._clock())))
        for job, event in changed:
            self._publish(job, event)

    @shielded
    async def packed_transcript(self, job: Job) -> bytes:
        """The transcript of a job that has succeeded, for `unpack_transcript`. Raises UnknownJob if it is
        deleted.
        """
        query = sa.select(transcripts.c.content).where(transcripts.c.job_number == job.number)
        async with self._database.read() as connection:
            content = await connection.scalar(query)
        if content is None:
            raise UnknownJob(f"The transcript of job {job.id!r} is gone.")
        return bytes(content)

    @shielded
    async def events(self, job: Job, after: int, limit: int = 500) -> list[Event]:
        """A job's events with higher numbers than `after`, in order."""
        async with self._database.read() as connection:
            return await read_events(connection, job, after, limit)

    async def has_events(self, job: Job, after: int) -> bool:
        """Whether a job has events with higher numbers than `after`."""
        return bool(await self.events(job, after, limit=1))

    @shielded
    async def _transition(
        self, job_id: str, status: Status, changes: Mapping[str, Any], transcript: bytes | None = None
    ) -> Job:
        """Change a job's status and other columns, and add an event, in one transaction.

        A terminal status also removes the job's clips and queues its webhook. Raises IllegalTransition and
        UnknownJob.
        """
        allowed = [before.value for before, after in TRANSITIONS.items() if status in after]
        values: dict[str, Any] = {"status": status.value, **changes}
        if status.is_terminal:
            values |= {"finished_at": self._clock(), "stage": Stage.DONE.value, "pcm": None}
        change = sa.update(jobs).where(jobs.c.id == job_id, jobs.c.status.in_(allowed)).values(values)
        async with self._write() as connection:
            changed = (await connection.execute(change)).rowcount
            job = await _get(connection, job_id)
            if not changed:
                raise IllegalTransition(f"Job {job_id} is {job.status} and cannot become {status}.")
            if status.is_terminal:
                await connection.execute(sa.delete(clips).where(clips.c.job_number == job.number))
            if transcript is not None:
                row = {"job_number": job.number, "content": transcript}
                await connection.execute(sa.insert(transcripts).values(row))
            event = await add_event(connection, job, f"job.{status}", self._clock())
            has_webhook = status.is_terminal and job.submission.webhook_url is not None
            if has_webhook:
                await add_webhook(connection, job, event, self._clock())
        self._publish(job, event)
        if has_webhook:
            self.on_delivery()
        return job

    def _publish(self, job: Job, event: Event) -> None:
        self._cache.put(job)
        self.on_event(job.id, event)

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[AsyncConnection]:
        with self._cache.writing():
            async with self._database.write() as connection:
                yield connection


async def _get(connection: AsyncConnection, job_id: str) -> Job:
    row = (await connection.execute(sa.select(jobs).where(jobs.c.id == job_id))).one_or_none()
    if row is None:
        raise UnknownJob(f"There is no job {job_id!r}; it may have been deleted, or its time may be over.")
    return job_from_row(row)
