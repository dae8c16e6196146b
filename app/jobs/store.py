"""The jobs in the database: every change of state is legal, told as an event, and one transaction."""

import asyncio
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import IllegalTransition, InvalidInput, UnknownJob
from app.jobs.database import Database, whole
from app.jobs.job import TRANSITIONS, Failure, Job, JobProgress, JobStatus, Stage, Submission, timestamp
from app.jobs.serialization import pack_transcript, unpack_transcript
from app.jobs.tables import (
    clips,
    deliveries,
    events,
    job_from_row,
    jobs,
    progress_row,
    submission_row,
    transcripts,
)
from app.transcript.timeline import Transcript
from workers.messages import Span, seconds

NOTHING: Mapping[str, int] = {}
_REMEMBERED = 1000  # jobs
_LAST = frozenset(f"job.{status}" for status in JobStatus if status.is_terminal)


class Event(NamedTuple):
    """Something that became of a job."""

    number: int  # counts from 1 in each job, without a gap
    type: str  # "job." and the new status, or "job.progress"
    data: str  # the job as it was then, JSON

    @property
    def is_last(self) -> bool:
        """Whether no further event can follow."""
        return self.type in _LAST


class Store:
    """Jobs, their events and transcripts. Raises what `Database` raises."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        # Jobs as they are in the database, which nobody else writes to: many clients ask again and again.
        self._recent: OrderedDict[str, Job] = OrderedDict()
        self._writes = 0
        # Told of each event once it is in the database.
        self.on_event: Callable[[str, Event], None] = lambda job_id, event: None
        self.on_delivery: Callable[[], None] = lambda: None

    @whole
    async def add(self, submission: Submission) -> Job:
        """A new job, queued. Raises sqlalchemy's IntegrityError where its idempotency key is taken."""
        values = submission_row(submission) | {
            "id": uuid.uuid4().hex,
            "status": JobStatus.QUEUED.value,
            "created_at": self._clock(),
            "failed_spans": [],
            **progress_row(JobProgress()),
        }
        async with self._write() as connection:
            await connection.execute(sa.insert(jobs).values(values))
            job = await _get(connection, values["id"])
            event = await self._record(connection, job, f"job.{job.status}")
        self._remember(job)
        self.on_event(job.id, event)
        return job

    async def get(self, job_id: str) -> Job:
        """Raises UnknownJob."""
        return self._recent.get(job_id) or await self._look_up(job_id)

    @whole
    async def find(self, owner: str, idempotency_key: str) -> Job | None:
        """The job that was handed in under a key."""
        query = sa.select(jobs).where(jobs.c.owner == owner, jobs.c.idempotency_key == idempotency_key)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return job_from_row(row) if row else None

    @whole
    async def page(self, status: JobStatus | None, limit: int, after: str | None) -> tuple[list[Job], bool]:
        """Jobs, the newest first, and whether there are more. Raises InvalidInput for an unknown `after`."""
        query = sa.select(jobs).order_by(jobs.c.number.desc()).limit(limit + 1)
        if status is not None:
            query = query.where(jobs.c.status == status.value)
        async with self._database.read() as connection:
            if after is not None:
                number = await connection.scalar(sa.select(jobs.c.number).where(jobs.c.id == after))
                if number is None:
                    raise InvalidInput(f"There is no job {after!r} to go on after.", param="after")
                query = query.where(jobs.c.number < number)
            rows = (await connection.execute(query)).all()
        return [job_from_row(row) for row in rows[:limit]], len(rows) > limit

    @whole
    async def next_queued(
        self, running: Mapping[str, int] = NOTHING, passing_over: Collection[str] = ()
    ) -> Job | None:
        """The job whose turn it is: the longest waiting one of the owner who has the fewest `running`.

        `passing_over`: ids of jobs that are not to be taken now.
        """
        waiting = sa.select(jobs.c.owner, sa.func.min(jobs.c.number)).group_by(jobs.c.owner)
        waiting = waiting.where(jobs.c.status == JobStatus.QUEUED.value, jobs.c.id.not_in(list(passing_over)))
        async with self._database.read() as connection:
            firsts = [(running.get(owner, 0), number) for owner, number in await connection.execute(waiting)]
            if not firsts:
                return None
            query = sa.select(jobs).where(jobs.c.number == min(firsts)[1])
            row = (await connection.execute(query)).one_or_none()
        return job_from_row(row) if row else None

    @whole
    async def count(self, statuses: Collection[JobStatus], owner: str | None = None) -> int:
        """How many jobs there are of some statuses, of one owner if one is given."""
        query = sa.select(sa.func.count()).where(jobs.c.status.in_([status.value for status in statuses]))
        if owner is not None:
            query = query.where(jobs.c.owner == owner)
        async with self._database.read() as connection:
            return int(await connection.scalar(query) or 0)

    @whole
    async def in_state(
        self, statuses: Collection[JobStatus], finished_before: float | None = None
    ) -> list[Job]:
        """All jobs of some statuses, the oldest first; of those that are done, done before a Unix time."""
        query = sa.select(jobs).where(jobs.c.status.in_([status.value for status in statuses]))
        if finished_before is not None:
            query = query.where(jobs.c.finished_at < finished_before)
        async with self._database.read() as connection:
            return [job_from_row(row) for row in await connection.execute(query.order_by(jobs.c.number))]

    @whole
    async def files(self) -> set[str]:
        """The names in the uploads folder that jobs refer to."""
        async with self._database.read() as connection:
            return set(await connection.scalars(sa.select(jobs.c.file).where(jobs.c.file.is_not(None))))

    async def begin(self, job: Job) -> Job:
        """A queued job runs. Raises IllegalTransition."""
        stage = Stage.DECODING if job.submission.file else Stage.DOWNLOADING
        changes: dict[str, Any] = progress_row(replace(job.progress, stage=stage))
        if job.started_at is None:
            changes["started_at"] = self._clock()
        return await self._move(job.id, JobStatus.RUNNING, changes)

    @whole
    async def identify(self, job: Job, identity: str) -> Job:
        """Note what the results of a job's clips depend on; what is stored under another identity goes.

        Raises UnknownJob.
        """
        if job.identity == identity:
            return job
        values = {"identity": identity, "pcm": None}
        async with self._write() as connection:
            await connection.execute(sa.delete(clips).where(clips.c.job_number == job.number))
            await connection.execute(sa.update(jobs).where(jobs.c.id == job.id).values(values))
            job = await _get(connection, job.id)
        self._remember(job)
        return job

    async def requeue(self, job: Job) -> Job:
        """A running job waits again, with all that was done of it. Raises IllegalTransition."""
        return await self._move(job.id, JobStatus.QUEUED, {"stage": Stage.QUEUED.value})

    async def succeed(self, job: Job, transcript: Transcript, keep_file: bool) -> Job:
        """A running job is done. Raises IllegalTransition."""
        content = await asyncio.to_thread(pack_transcript, transcript)
        duration = seconds(transcript.samples)
        changes = {
            "duration": duration,
            "done_s": duration,  # what is left beside the clips is silence
            "total_s": duration,
            "language": transcript.language,
            "failed_spans": list(transcript.failed_spans),
            **({} if keep_file else {"file": None}),
        }

        async def store(connection: AsyncConnection) -> None:
            row = {"job_number": job.number, "content": content}
            await connection.execute(sa.insert(transcripts).values(row))

        return await self._move(job.id, JobStatus.SUCCEEDED, changes, store)

    async def fail(self, job: Job, failure: Failure, failed_spans: Sequence[Span], keep_file: bool) -> Job:
        """An unfinished job is given up. Raises IllegalTransition."""
        changes = {
            "error": {"message": failure.message, "code": failure.code},
            "failed_spans": list(failed_spans),
            **({} if keep_file else {"file": None}),
        }
        return await self._move(job.id, JobStatus.FAILED, changes)

    async def cancel(self, job: Job) -> Job:
        """An unfinished job is not wanted any more. Raises IllegalTransition."""
        return await self._move(job.id, JobStatus.CANCELLED, {})

    @whole
    async def delete(self, job: Job) -> None:
        """Forget a job and all that belongs to it, except webhooks that are still to be sent."""
        async with self._write() as connection:
            await connection.execute(sa.delete(jobs).where(jobs.c.number == job.number))
        self._recent.pop(job.id, None)

    @whole
    async def update(self, job_id: str, **changes: Any) -> None:
        """Note something about a job that is no event: `file`, `size`, `sha256`, `filename` or `pcm`."""
        self._recent.pop(job_id, None)
        async with self._write() as connection:
            await connection.execute(sa.update(jobs).where(jobs.c.id == job_id).values(changes))
        self._recent.pop(job_id, None)

    @whole
    async def progress(self, news: Mapping[str, JobProgress]) -> None:
        """Note how far running jobs have come, by id; jobs that do not run are passed over."""
        told: list[tuple[Job, Event]] = []
        async with self._write() as connection:
            for job_id, progress in news.items():
                query = sa.select(jobs).where(jobs.c.id == job_id, jobs.c.status == JobStatus.RUNNING.value)
                row = (await connection.execute(query)).one_or_none()
                if row is None:
                    continue
                job = job_from_row(row)
                job = replace(job, progress=progress.after(job.progress))
                change = sa.update(jobs).where(jobs.c.id == job_id).values(progress_row(job.progress))
                await connection.execute(change)
                told.append((job, await self._record(connection, job, "job.progress")))
        for job, event in told:
            self._remember(job)
            self.on_event(job.id, event)

    @whole
    async def transcript(self, job: Job) -> Transcript:
        """What was heard in a recording whose job has succeeded."""
        query = sa.select(transcripts.c.content).where(transcripts.c.job_number == job.number)
        async with self._database.read() as connection:
            content = await connection.scalar(query)
        if content is None:
            raise UnknownJob(f"The transcript of job {job.id!r} is gone.")
        return await asyncio.to_thread(unpack_transcript, content)

    @whole
    async def events(self, job: Job, after: int, limit: int = 500) -> list[Event]:
        """A job's events with higher numbers than `after`, in order."""
        query = (
            sa.select(events.c.number, events.c.type, events.c.data)
            .where(events.c.job_number == job.number, events.c.number > after)
            .order_by(events.c.number)
            .limit(limit)
        )
        async with self._database.read() as connection:
            return [Event(*row) for row in await connection.execute(query)]

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._database.write() as connection:
                yield connection
        except BaseException:
            self._recent.clear()  # it may be in the database and yet have failed on its way back
            raise
        finally:
            self._writes += 1

    @whole
    async def _look_up(self, job_id: str) -> Job:
        before = self._writes
        async with self._database.read() as connection:
            job = await _get(connection, job_id)
        if self._writes == before:  # or it may be out of date already
            self._remember(job)
        return job

    def _remember(self, job: Job) -> None:
        self._recent[job.id] = job
        self._recent.move_to_end(job.id)
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)

    @whole
    async def _move(
        self,
        job_id: str,
        status: JobStatus,
        changes: Mapping[str, Any],
        also: Callable[[AsyncConnection], Any] | None = None,
    ) -> Job:
        """Change a job's status and what goes with it, and tell of it: all of that or nothing.

        A job that is at its end needs neither its clips nor its decoded audio any more.
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
            if also is not None:
                await also(connection)
            event = await self._record(connection, job, f"job.{status}")
            announced = status.is_terminal and job.submission.webhook_url is not None
            if announced:
                await self._announce(connection, job, event)
        self._remember(job)
        self.on_event(job_id, event)
        if announced:
            self.on_delivery()
        return job

    async def _record(self, connection: AsyncConnection, job: Job, kind: str) -> Event:
        of_job = events.c.job_number == job.number
        last = await connection.scalar(sa.select(sa.func.max(events.c.number)).where(of_job))
        event = Event((last or 0) + 1, kind, json.dumps(job.public(self._clock()), ensure_ascii=False))
        await connection.execute(sa.insert(events).values(job_number=job.number, **event._asdict()))
        return event

    async def _announce(self, connection: AsyncConnection, job: Job, event: Event) -> None:
        """Have a webhook sent, now and until it is received."""
        body = json.dumps(
            {"type": event.type, "timestamp": timestamp(job.finished_at), "data": json.loads(event.data)},
            ensure_ascii=False,
        )
        values = {
            "id": f"msg_{uuid.uuid4().hex}",
            "url": job.submission.webhook_url,
            "body": body,
            "attempts": 0,
            "next_at": self._clock(),
        }
        await connection.execute(sa.insert(deliveries).values(values))


async def _get(connection: AsyncConnection, job_id: str) -> Job:
    row = (await connection.execute(sa.select(jobs).where(jobs.c.id == job_id))).one_or_none()
    if row is None:
        raise UnknownJob(f"There is no job {job_id!r}; it may have been deleted, or its time may be over.")
    return job_from_row(row)
