"""The jobs in the database. Each change of status is one transaction, with the event that announces it."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import (
    DiskFull,
    IllegalTransition,
    JobNotDone,
    LostLease,
    OutcomeUnknown,
    UnknownJob,
    WhisperfleetError,
)
from app.database.connection import Database, Then
from app.database.front_ends import FrontEnd
from app.database.tables import clips, deliveries, job_terms, jobs, passages, peaks, shared_links, uploads
from app.database.tables import terms as term_lists
from app.intake.budgets import Used
from app.intake.resumable_rows import mark_used
from app.jobs.corrections import PackedCorrection, keep_corrected
from app.jobs.events import (
    Event,
    NewEvents,
    last_segments_event,
    read_events,
    read_segments_events,
)
from app.jobs.job import TRANSITIONS, Again, Job, JobError, JobProgress, Stage, Status, Submission
from app.jobs.passages import Sentence, find_sentences
from app.jobs.search_terms import query_terms, query_words, tag_word
from app.jobs.serialization import (
    PackedTranscript,
    Summary,
    first_words,
    pack_with_summary,
    packed_passages,
    spoken_language,
)
from app.jobs.storage.cache import JobCache
from app.jobs.storage.published_clips import (
    LIVE_CHANNEL,
    PackedClip,
    PublishedClip,
    drop_published,
    publish_clips,
    put_corrected,
    read_corrected,
    read_published,
)
from app.jobs.storage.retention import ENDED, IN_TRASH, Retention
from app.jobs.storage.revisions import (
    KEPT,
    ORIGINAL,
    ListedRevision,
    add_revision,
    corrected_meanwhile,
    list_revisions,
    read_revision,
    transcript_changed,
)
from app.jobs.storage.rows import job_from_row, submission_row
from app.jobs.storage.search import find_jobs, index_details, index_text, put_passages, read_passages
from app.jobs.storage.service_clock import ServiceClock
from app.jobs.storage.usage import ADD_USED, rename_usage, used_by
from app.jobs.storage.voices import (
    add_known_speakers,
    add_voices,
    drop_known_speakers,
    drop_voices,
    move_voices,
    read_known_speakers,
    read_voices,
)
from app.jobs.webhooks.outbox import add_webhook
from app.pool.helper import Helper, work_s
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.term_list import packed_terms, parse_terms
from app.transcript.terms import Term
from app.transcript.timeline import Transcript
from workers.messages import Span, seconds

_QUEUED_AT_ONCE = 300  # of one owner; what comes later passes none of them
_COUNT_S = 1.0  # whoever asks for the numbers of jobs waits so long

T = TypeVar("T")

_trash, _other_list = jobs.alias(), term_lists.alias()
_NUMBERS_IN_TRASH = sa.select(_trash.c.number).where(_trash.c.trashed_at.is_not(None))  # an index has them

_JOB_BYTES, _TEXT_BYTES_PER_S = 10_000, 20  # in the rows of a job, and of each of its texts


class QueuedRow(NamedTuple):
    """A queued job. Times in s."""

    id: str
    number: int
    owner: str
    size: int | None  # bytes
    total_s: float | None
    done_s: float
    has_file: bool


def _queued() -> sa.Select[*tuple[Any, ...]]:
    """See `Store.queued`, which is asked before each start."""
    columns = (jobs.c.id, jobs.c.number, jobs.c.owner, jobs.c.size, jobs.c.total_s, jobs.c.done_s)
    has_file = sa.or_(jobs.c.file.is_not(None), jobs.c.parent.is_not(None)).label("has_file")
    place = sa.func.row_number().over(partition_by=jobs.c.owner, order_by=jobs.c.number).label("place")
    all_queued = sa.select(*columns, has_file, place).where(jobs.c.status == Status.QUEUED.value).subquery()
    query = sa.select(*(all_queued.c[name] for name in QueuedRow._fields))
    return query.where(all_queued.c.place <= _QUEUED_AT_ONCE).order_by(all_queued.c.number)


_QUEUED = _queued()


class Store:
    """Jobs, their events and transcripts. Raises what `Database` raises.

    A job in the trash is unknown to all functions but those that say otherwise. What a run writes counts only
    while the job is this front end's: each transaction of a run first changes the job's row, or locks it,
    where the epoch is its own (`_is_own`). What it would write later is refused, or skipped.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float] = time.time,
        helper: Helper | None = None,
        retention: Retention | None = None,
        service_clock: ServiceClock | None = None,
        front_end: FrontEnd | None = None,
    ) -> None:
        """`helper` packs transcripts. Without `retention`, no job expires. `front_end`: that runs jobs."""
        self._database = database
        self.front_end = front_end or FrontEnd(database)
        self._retention = retention or Retention()
        self._clock = clock
        self._service_clock = service_clock or ServiceClock(database, clock)
        self._helper = helper or Helper()
        self._cache = JobCache(is_shared=database.is_shared)
        self.counts: dict[Status, int] = {}  # of all jobs by status, at the last `refresh_counts`
        self._counting: asyncio.Task[None] | None = None
        # Called with the job's id and each event, once the event is in the database.
        self.on_event: Callable[[str, Event], None] = lambda job_id, event: None
        # Whether somebody waits for the events of a job.
        self.is_followed: Callable[[str], bool] = lambda job_id: False
        # Called once a webhook is in the database, with the id of its job, and how many others of its owner
        # are given up: too many wait.
        self.on_webhook: Callable[[str, int], None] = lambda job_id, given_up: None
        self.on_end: Callable[[Job], None] = lambda job: None  # called once a job has ended
        self.on_used: Callable[[Used], None] = lambda used: None  # called once it is in the database

    async def add(
        self,
        submission: Submission,
        known: Sequence[KnownSpeaker] = (),
        terms: tuple[Term, ...] = (),
        live_id: str | None = None,
    ) -> Job:
        """Add a job to the queue, and mark its resumable upload as used if it has one.

        `known`: the voices that its client knows. `terms`: what it is transcribed with. `live_id`: the id of
        a job whose recording still comes, which runs from now on.

        Raises sqlalchemy's IntegrityError if its idempotency key is in use, and as `mark_used`. If it
        transcribes another job again, also UnknownJob, JobNotDone while a third one does so, and
        PreconditionFailed if the transcript has changed.
        Raises OutcomeUnknown if the job may be in the database, now or a little later.
        """
        values = submission_row(submission) | {
            "has_terms": bool(terms),
            "id": live_id or uuid.uuid4().hex,
            "status": Status.QUEUED.value,
            "created_at": self._clock(),
            "failed_spans": [],
            **asdict(JobProgress()),
        }
        if live_id is not None:
            values |= {"status": Status.RUNNING.value, "stage": Stage.RECORDING.value, **self._claim}
            values["started_at"] = values["created_at"]

        async def insert(connection: AsyncConnection, then: Then) -> Job:
            if submission.again is not None:
                await self._check_parent(connection, submission.again)
            if submission.idempotency_key is not None:  # a job in the trash keeps it only until then
                of_key = jobs.c.idempotency_key == submission.idempotency_key
                trashed = sa.and_(jobs.c.owner == submission.owner, of_key, IN_TRASH)
                await connection.execute(sa.update(jobs).where(trashed).values(idempotency_key=None))
            await connection.execute(sa.insert(jobs).values(values))
            if submission.from_upload and submission.file is not None:
                await mark_used(connection, submission.file, values["id"], self._service_clock())
            job = await self._get(connection, values["id"])
            if submission.again is None:  # lists and searches leave out the others
                await index_text(connection, job, "")
            await add_known_speakers(connection, job, known)
            if terms:
                row = {"job_number": job.number, "content": packed_terms(terms)}
                await connection.execute(sa.insert(job_terms).values(row))
            await self._add_events(connection, then, job, self._clock())
            return job

        try:
            return await self._write(insert)
        except OutcomeUnknown as unknown:
            try:
                return await self.get(values["id"])  # nobody subscribes to a job that is new
            except WhisperfleetError:
                raise unknown from None

    async def _check_parent(self, connection: AsyncConnection, again: Again, child: str = "") -> None:
        """Raise the error of a job that cannot transcribe its parent again now. `child`: its id, if any."""
        parent = await self._get(connection, again.parent, lock=True)
        if parent.status is not Status.SUCCEEDED or parent.revision != again.revision:
            raise _not_correctable(parent)
        of_parent = sa.and_(jobs.c.parent == parent.id, jobs.c.id != child, jobs.c.status.not_in(ENDED))
        other = await connection.scalar(sa.select(jobs.c.id).where(of_parent))
        if other is not None:
            raise JobNotDone(
                f"The job is being transcribed again already, by the job {other}. Wait until that has ended, "
                "or delete it.",
                code="transcribed_again",
            )

    async def children(self, job: Job) -> list[Job]:
        """The jobs that transcribe or transcribed a job again, oldest first; in the trash, too."""
        return await self._oldest(jobs.c.parent == job.id)

    async def get(self, job_id: str, owner: str | None = None) -> Job:
        """A job; `owner`: whose it must be, None: anybody's. Raises UnknownJob."""
        return await self._cache.get(job_id, owner, self._look_up)

    async def get_any(self, job_id: str, owner: str | None = None) -> Job:
        """As `get`, also a job in the trash."""
        return await self._database.query(partial(self._get, trashed=True), job_id, owner)

    async def _look_up(self, job_id: str, owner: str | None = None) -> Job:
        return await self._database.query(self._get, job_id, owner)

    async def rename_owners(self, names: Mapping[str, str]) -> None:
        """Give what owners (keys of `names`) have in the database to others (values).

        A job loses its idempotency key if the new owner has used the same one, and a list of terms is lost if
        the new owner has one.
        """

        async def rename(connection: AsyncConnection, then: Then) -> None:
            for before, after in names.items():
                used = sa.select(jobs.c.idempotency_key).where(
                    jobs.c.owner == after, jobs.c.idempotency_key.is_not(None)
                )
                twice = sa.and_(jobs.c.owner == before, jobs.c.idempotency_key.in_(used))
                await connection.execute(sa.update(jobs).where(twice).values(idempotency_key=None))
                has_list = sa.exists().where(_other_list.c.owner == after)
                lost = sa.and_(term_lists.c.owner == before, has_list)
                await connection.execute(sa.delete(term_lists).where(lost))
                for table in (jobs, uploads, deliveries, shared_links, term_lists):
                    await connection.execute(
                        sa.update(table).where(table.c.owner == before).values(owner=after)
                    )
                await rename_usage(connection, before, after)
            then(self._cache.clear)

        if names:
            await self._write(rename)

    async def drop_webhooks(self, owner: str) -> None:
        """Forget the receivers of an owner's jobs, and what they have not got yet."""

        async def drop(connection: AsyncConnection, then: Then) -> None:
            await connection.execute(sa.update(jobs).where(jobs.c.owner == owner).values(webhook_url=None))
            await connection.execute(sa.delete(deliveries).where(deliveries.c.owner == owner))
            then(self._cache.clear)

        await self._write(drop)

    async def find(self, owner: str, idempotency_key: str) -> Job | None:
        """The owner's job with an idempotency key."""
        of_key = jobs.c.idempotency_key == idempotency_key
        query = sa.select(jobs).where(jobs.c.owner == owner, of_key, ~IN_TRASH)
        found = await self._database.rows(query)
        return self._job(found[0]) if found else None

    async def page(
        self,
        status: Status | None,
        limit: int,
        after: Job | None,
        text: str | None = None,
        owner: str | None = None,
        tags: Sequence[str] = (),
        parent: Job | None = None,
        trashed: bool = False,
    ) -> tuple[list[Job], bool]:
        """Jobs, newest first, and whether there are more. `after`: the last job of the previous page.

        `owner`: whose; None: of all owners. `text`: for each word of it, the job's text or what people call
        it must have a word that begins with it. If it has none, no job matches. `tags`: all of them.
        `parent`: the jobs that transcribe it again, which are left out otherwise. `trashed`: those in the
        trash, instead of all others.
        """
        below = None if after is None else after.number
        query = sa.select(jobs).order_by(jobs.c.number.desc()).limit(limit + 1)
        if text is not None or tags:
            words = [] if text is None else query_words(text)
            terms = [*words, *map(tag_word, tags)] if words or text is None else []
            find = partial(
                find_jobs, status=status, below=below, limit=limit + 1, owner=owner, trashed=trashed
            )
            found = await self._database.query(find, terms) if terms else []
            query = query.where(jobs.c.number.in_(found))
        else:
            if status is not None:
                query = query.where(jobs.c.status == status.value)
            if below is not None:
                query = query.where(jobs.c.number < below)
            of_parent = jobs.c.parent.is_(None) if parent is None else jobs.c.parent == parent.id
            is_wanted = jobs.c.number.in_(_NUMBERS_IN_TRASH) if trashed else ~IN_TRASH
            query = query.where(_of(owner), of_parent, is_wanted)
        rows = await self._database.rows(query)
        return [self._job(row) for row in rows[:limit]], len(rows) > limit

    async def matches(self, found: Sequence[Job], text: str) -> dict[int, list[Sentence]]:
        """The sentences of some jobs that have most words of a text, by the numbers of the jobs.

        None: their titles, notes or tags match.
        """
        terms = query_terms(text)
        content = await self._database.query(read_passages, [job.number for job in found])

        def find() -> dict[int, list[Sentence]]:
            return {number: find_sentences(content[number], terms) for number in content}

        return await asyncio.to_thread(find)

    async def add_passages(self, limit: int) -> None:
        """Let the search find sentences of jobs that an earlier version has transcribed, newest first."""
        has_some = sa.exists().where(passages.c.job_number == jobs.c.number)
        has_transcript = sa.and_(jobs.c.status == Status.SUCCEEDED.value, jobs.c.parent.is_(None))
        query = sa.select(jobs).where(has_transcript, ~has_some)
        for row in await self._database.rows(query.order_by(jobs.c.number.desc()).limit(limit)):
            job = self._job(row)
            with suppress(UnknownJob):  # it is deleted meanwhile
                packed = await self.transcript(job)
                length_s = work_s(job.duration, packed.content)
                content = await self._helper.run(length_s, packed_passages, packed.content)
                await self._write(partial(_add_passages, job.id, packed.revision, content))

    async def queued(self) -> list[QueuedRow]:
        """What the order of jobs depends on, of each owner's first `_QUEUED_AT_ONCE` jobs, oldest first."""
        return [QueuedRow(*row) for row in await self._database.rows(_QUEUED)]

    async def count(self, statuses: Collection[Status]) -> int:
        """The number of jobs with one of some statuses."""
        return sum((await self.count_by_owner(statuses)).values())

    async def count_by_owner(self, statuses: Collection[Status]) -> dict[str, int]:
        """The numbers of jobs with one of some statuses."""
        query = (
            sa.select(jobs.c.owner, sa.func.count())
            .where(jobs.c.status.in_([status.value for status in statuses]))
            .group_by(jobs.c.owner)
        )
        return dict(tuple(row) for row in await self._database.rows(query))

    async def bytes_by_owner(self) -> Counter[str]:
        """About how many bytes the jobs of each owner hold, with their recordings."""
        texts = 1 + sa.case((jobs.c.revision > KEPT, KEPT), else_=jobs.c.revision)
        rows = _JOB_BYTES + texts * _TEXT_BYTES_PER_S * sa.func.coalesce(jobs.c.duration, 0.0)
        size = sa.case((jobs.c.file.is_(None), 0), else_=sa.func.coalesce(jobs.c.size, 0))
        sums = sa.select(jobs.c.owner, sa.func.sum(size + rows)).group_by(jobs.c.owner)
        return Counter({owner: int(total) for owner, total in await self._database.rows(sums)})

    async def refresh_counts(self) -> None:
        """Count the jobs anew, for `counts`. They stay as they are if the database fails.

        Waits a second at most: then they are refreshed later.
        """
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count())
        await asyncio.wait([self._counting], timeout=_COUNT_S)

    async def _count(self) -> None:
        query = sa.select(jobs.c.status, sa.func.count()).group_by(jobs.c.status)
        with suppress(WhisperfleetError):
            found = dict(tuple(row) for row in await self._database.rows(query))
            self.counts = {status: found.get(status.value, 0) for status in Status}

    async def statuses(self, ids: Sequence[str], owner: str | None = None) -> dict[str, Status]:
        """The statuses of an owner's jobs, by id, in the order of `ids`. Others are left out."""
        query = sa.select(jobs.c.id, jobs.c.status).where(jobs.c.id.in_(ids), _of(owner), ~IN_TRASH)
        found = {row.id: Status(row.status) for row in await self._database.rows(query)}
        return {job_id: found[job_id] for job_id in ids if job_id in found}

    async def named(self, ids: Sequence[str], owner: str | None = None) -> list[Job]:
        """The jobs of an owner with these ids, newest first. Others are left out."""
        query = sa.select(jobs).where(jobs.c.id.in_(ids), _of(owner), ~IN_TRASH)
        query = query.order_by(jobs.c.number.desc())
        return [self._job(row) for row in await self._database.rows(query)]

    async def advance_clock(self) -> None:
        """Advance the time of service. On a full disk, it goes on for a day: what expires makes space."""
        lag_s = self._service_clock.lag_s
        with suppress(DiskFull):
            await (self._service_clock.advance if self.front_end.leads else self._service_clock.follow)()
        if lag_s != self._service_clock.lag_s:
            self._cache.clear()  # the jobs in it have dates

    async def with_status(self, statuses: Collection[Status]) -> list[Job]:
        """All jobs with one of some statuses, oldest first."""
        return await self._oldest(jobs.c.status.in_([status.value for status in statuses]) & ~IN_TRASH)

    async def expired(self, limit: int) -> list[Job]:
        """The first `limit` jobs whose time is over; in the trash, too."""
        return await self._oldest(self._retention.expired(self._service_clock()), limit)

    async def with_expired_recordings(self, limit: int) -> list[Job]:
        """The first `limit` jobs that stay although the time of their recording is over."""
        return await self._oldest(self._retention.recording_expired(self._service_clock()), limit)

    async def _oldest(self, condition: sa.ColumnElement[bool], limit: int | None = None) -> list[Job]:
        query = sa.select(jobs).where(condition).order_by(jobs.c.number).limit(limit)
        return [self._job(row) for row in await self._database.rows(query)]

    async def files(self) -> set[str]:
        """The names of all files in the uploads folder that belong to jobs."""
        query = sa.select(jobs.c.file).where(jobs.c.file.is_not(None))
        return {row.file for row in await self._database.rows(query)}

    async def begin(self, job: Job) -> Job:
        """Mark a queued job as running, by this front end. Raises IllegalTransition."""
        stage = Stage.DOWNLOADING if job.submission.is_download else Stage.DECODING
        changes: dict[str, Any] = asdict(replace(job.progress, stage=stage)) | self._claim
        if job.started_at is None:
            changes["started_at"] = self._clock()
        return await self._transition(job, Status.RUNNING, changes)

    async def set_result_digest(self, job: Job, digest: str) -> Job:
        """Store the digest of everything that clip results depend on.

        Removes the clip results, the voices and the decoded audio of another digest. Raises UnknownJob, and
        LostLease.
        """
        if job.result_digest == digest:
            return job

        async def change(connection: AsyncConnection, then: Then) -> Job:
            changed = await self._change(
                connection, job.id, fence=self._is_own, result_digest=digest, pcm=None
            )
            event = await drop_published(connection, job)
            await drop_voices(connection, job)
            then(self._cache.put, changed)
            if event is not None:
                then(self.on_event, job.id, event)
            return changed

        return await self._write(change)

    async def requeue(self, job: Job, *, interrupted: bool = False) -> Job:
        """Return a running job to the queue; its clip results are kept. Raises IllegalTransition.

        `interrupted`: its front end has ended in its middle.
        """
        changes = {"stage": Stage.QUEUED.value, "interruptions": job.interruptions + interrupted}
        return await self._transition(job, Status.QUEUED, changes, fence=_is_same_run(job))

    async def adopt(self, job: Job) -> Job:
        """Let this front end go on with a running job of one that has ended. Raises LostLease, UnknownJob."""
        fence = sa.and_(_is_same_run(job), jobs.c.status == Status.RUNNING.value)

        async def change(connection: AsyncConnection, then: Then) -> Job:
            adopted = await self._change(connection, job.id, fence=fence, **self._claim)
            then(self._cache.put, adopted)
            return adopted

        return await self._write(change)

    async def succeed(
        self, job: Job, transcript: Transcript, keep_file: bool, *, had_live_text: bool = False
    ) -> Job:
        """Mark a running job as succeeded, and store its transcript. Raises IllegalTransition.

        Speakers are known only now, so with them an event says that all segments have changed. So it is if
        the transcript so far was that of a live stream (`had_live_text`). What people have corrected in that
        becomes the first revision.
        """
        content = await self._helper.run(transcript.seconds, pack_with_summary, transcript)
        changes = _done(transcript) | ({} if keep_file else {"file": None})
        options = job.submission.options
        has_speakers = options.diarize or options.channels == "separate"
        changed = (0, transcript.samples) if has_speakers or had_live_text else None
        more: dict[str, Any] = {"transcript": content, "changed_segments": changed}
        corrected, done = None, None

        async def succeed(connection: AsyncConnection, then: Then) -> Job | None:
            if had_live_text and await read_corrected(connection, job) != corrected:
                return None
            return await self._transit(
                connection, then, job, Status.SUCCEEDED, changes, fence=self._is_own, **more
            )

        while done is None:  # or else somebody has corrected it meanwhile
            if had_live_text:
                corrected = await self._database.query(read_corrected, job)
            if corrected is not None:
                length_s = work_s(transcript.seconds, corrected, content[0])
                more["correction"] = await self._helper.run(length_s, keep_corrected, corrected, content[0])
            done = await self._write(succeed)
        return done

    async def succeed_again(
        self, job: Job, transcript: Transcript, correction: PackedCorrection | None, *, replaces_voices: bool
    ) -> Job:
        """Mark a running job as succeeded, and store what it makes of its parent's transcript.

        `transcript`: its own. `correction`: of the parent's; None: nothing differs. `replaces_voices`: those
        of the job become the parent's, if it has some. Raises IllegalTransition, UnknownJob, and
        PreconditionFailed if the parent's transcript is another by now.
        """
        again = job.submission.again
        assert again is not None
        changes = _done(transcript) | {"language": spoken_language(transcript)}

        async def revise(connection: AsyncConnection, then: Then) -> None:
            parent = await self._get(connection, again.parent)
            if parent.revision != again.revision:
                raise corrected_meanwhile()
            if correction is not None:
                await self._correct(connection, then, parent.id, correction)
            await move_voices(connection, job, parent if replaces_voices else None)

        return await self._transition(job, Status.SUCCEEDED, changes, fence=self._is_own, also=revise)

    async def fail(
        self, job: Job, failure: JobError, keep_file: bool, transcript: Transcript | None = None
    ) -> Job:
        """Mark a running job as failed, with its partial transcript, if any. Raises IllegalTransition."""
        changes: dict[str, Any] = {"error": {"message": failure.message, "code": failure.code}}
        changes |= {} if keep_file or job.submission.file is None else {"file": None}
        content = None
        if transcript is not None:
            changes |= _done(transcript)
            if job.submission.again is None:  # a parent's transcript stays as it is
                content = await self._helper.run(transcript.seconds, pack_with_summary, transcript)
        return await self._transition(job, Status.FAILED, changes, fence=self._is_own, transcript=content)

    async def reopen(self, job: Job) -> Job:
        """Return a failed job to the queue. Results of clips stay, and a transcript until the next one.

        Raises IllegalTransition, UnknownJob, and for one that transcribes another again what `add` raises.
        """
        nothing = dict.fromkeys(("error", "started_at", "finished_at", "retained_since"))
        changes = {"interruptions": 0, **nothing, **asdict(JobProgress())}

        async def reopen(connection: AsyncConnection, then: Then) -> None:
            if job.submission.again is not None:
                await self._check_parent(connection, job.submission.again, job.id)
            of_job, has_failed = clips.c.job_number == job.number, clips.c.result.is_(None)
            await connection.execute(sa.delete(clips).where(of_job, has_failed))

        return await self._transition(job, Status.QUEUED, changes, also=reopen, since=[Status.FAILED])

    async def cancel(self, job: Job) -> Job:
        """Mark an unfinished job as cancelled. Raises IllegalTransition."""
        return await self._transition(job, Status.CANCELLED, {})

    async def trash(self, job: Job) -> list[Job]:
        """Put a job into the trash with those that transcribe it again. Cancel those that are unfinished.

        Nothing changes if it is there. Returns those that were cancelled: they keep what they have.
        """

        async def trash(connection: AsyncConnection, then: Then) -> list[Job]:
            values = {"trashed_at": self._service_clock()}
            family = await self._family(connection, job)
            cancelled = [
                await self._transit(connection, then, each, Status.CANCELLED, values)
                for each in family
                if not each.status.is_terminal
            ]
            await connection.execute(sa.update(jobs).where(_of_family(job), ~IN_TRASH).values(values))
            for each in family:
                then(self._cache.discard, each.id)
            return cancelled

        return await self._write(trash)

    async def restore(self, job: Job) -> Job:
        """Take a job out of the trash with those that transcribe it again. What was cancelled there goes on.

        Nothing changes if it is not there. Raises UnknownJob.
        """

        async def restore(connection: AsyncConnection, then: Then) -> Job:
            trashed = [each for each in await self._family(connection, job) if each.trashed_at is not None]
            since = jobs.c.retained_since + self._service_clock() - jobs.c.trashed_at
            change = sa.update(jobs).where(_of_family(job), IN_TRASH)
            await connection.execute(change.values(trashed_at=None, retained_since=since))
            values = {"stage": Stage.QUEUED.value, "finished_at": None, "retained_since": None}
            for each in trashed:
                if each.status is Status.CANCELLED:
                    since_cancelled = [Status.CANCELLED]
                    await self._transit(connection, then, each, Status.QUEUED, values, since=since_cancelled)
            return await self._get(connection, job.id)

        return await self._write(restore)

    async def _family(self, connection: AsyncConnection, job: Job) -> list[Job]:
        """A job, and those that transcribe it again; in the trash, too. Locks their rows."""
        query = sa.select(jobs).where(_of_family(job)).order_by(jobs.c.number)
        rows = await connection.execute(query.with_for_update())
        return [self._job(row) for row in rows]

    async def delete(self, job: Job, *, only_expired: bool = False) -> bool:
        """Delete a job with its clips, voices, events and transcript, and the jobs that transcribed it again.

        It may be in the trash. Their unsent webhooks stay. `only_expired`: unless somebody has corrected it
        meanwhile, restored it, or has it transcribed again. Returns whether there was such a job.
        """
        condition = self._retention.expired(self._service_clock()) if only_expired else sa.true()

        async def delete(connection: AsyncConnection, then: Then) -> bool:
            with_children = (await connection.scalars(sa.select(jobs.c.id).where(_of_family(job)))).all()
            rows = await connection.execute(sa.delete(jobs).where(jobs.c.number == job.number, condition))
            if rows.rowcount:
                await connection.execute(sa.delete(jobs).where(jobs.c.parent == job.id))
                for job_id in with_children:
                    then(self._cache.discard, job_id)
            return bool(rows.rowcount)

        return await self._write(delete)

    async def drop_recording(self, job: Job) -> bool:
        """Forget the expired recording and voices of a job that stays.

        Returns whether they were there, and expired.
        """
        is_expired = self._retention.recording_expired(self._service_clock())

        async def drop(connection: AsyncConnection, then: Then) -> bool:
            change = sa.update(jobs).where(jobs.c.number == job.number, is_expired)
            rows = await connection.execute(change.values(file=None))
            if rows.rowcount:
                await drop_voices(connection, job)
                then(self._cache.put, await self._get(connection, job.id))
            return bool(rows.rowcount)

        return await self._write(drop)

    async def update(
        self, job_id: str, *, by_run: bool = False, packed_peaks: bytes | None = None, **changes: Any
    ) -> Job | None:
        """Change what is known of a job's recording, without an event. Returns the job.

        Skips a job that is deleted, or if its run does this (`by_run`), one that another front end runs; it
        returns None then. The job may be in the trash. `packed_peaks`: to store with it. `changes`: of the
        columns of the job.
        """
        fence = self._is_own if by_run else sa.true()

        async def change(connection: AsyncConnection, then: Then) -> Job:
            job = await self._change(connection, job_id, fence=fence, trashed=True, **changes)
            if "filename" in changes:
                await index_details(connection, job)
            if packed_peaks is not None:
                await self._database.serialize(connection, job_id)
                await connection.execute(sa.delete(peaks).where(peaks.c.job_number == job.number))
                row = {"job_number": job.number, "content": packed_peaks}
                await connection.execute(sa.insert(peaks).values(row))
            if job.trashed_at is None:
                then(self._cache.put, job)  # many clients poll it: they must not all ask the database
            return job

        with suppress(UnknownJob, LostLease):
            return await self._write(change)
        return None

    async def describe(self, job: Job, check: Callable[[Job], None], **changes: Any) -> Job:
        """Change the `title`, the `notes` or the `tags` of a job, without an event.

        `check` gets the job as it is before, and may raise to leave it so. Raises UnknownJob.
        """

        async def change(connection: AsyncConnection, then: Then) -> Job:
            check(await self._get(connection, job.id, lock=True))
            described = await self._change(connection, job.id, **changes)
            await index_details(connection, described)
            then(self._cache.put, described)
            return described

        return await self._write(change)

    async def packed_peaks(self, job: Job) -> bytes | None:
        """The packed peaks of a job's recording, if they are stored."""
        content = await self._database.scalar(
            sa.select(peaks.c.content).where(peaks.c.job_number == job.number)
        )
        return None if content is None else bytes(content)

    async def store_progress(
        self,
        progress: Mapping[str, JobProgress],
        published: Mapping[str, Sequence[PublishedClip]] = MappingProxyType({}),
    ) -> None:
        """Store the progress of jobs and their newly published clips, by id.

        Skips jobs that do not run, or that another front end runs.
        """
        ids = sorted({*progress, *published})
        query = (
            sa.select(jobs)
            .where(jobs.c.id.in_(ids), jobs.c.status == Status.RUNNING.value, self._is_own)
            .order_by(jobs.c.number)  # all lock rows in this order
            .with_for_update()
        )

        async def change(connection: AsyncConnection, then: Then) -> None:
            running = [self._job(row) for row in await connection.execute(query)]
            new = await NewEvents.after_stored(connection, running)
            with_clips = [(job, published[job.id]) for job in running if job.id in published]
            segments = await publish_clips(connection, new, with_clips)
            rows = []
            for job in running:
                # First, so a client that sees the progress has the text.
                if job.number in segments:
                    then(self._publish, job, segments[job.number])
                if job.id in progress:
                    further = replace(job, progress=job.progress.advance_to(progress[job.id]))
                    rows.append({"of_job": job.number, **asdict(further.progress)})
                    then(self._publish, further, new.add(further, "job.progress", self._clock()))
            if rows:
                of_job = jobs.c.number == sa.bindparam("of_job")
                await connection.execute(sa.update(jobs).where(of_job), rows)
            await new.store(connection)

        await self._write(change)

    async def transcript(self, job: Job, revision: int | None = None) -> PackedTranscript:
        """A revision of the transcript of a job that has succeeded, by default the newest.

        Raises UnknownRevision, and UnknownJob if the job is deleted.
        """
        return await self._database.query(read_revision, job, revision)

    async def voices(self, job: Job) -> list[bytes]:
        """The voices in the clips of a job, from `pack_voices`, in order; empty without `diarize`."""
        return list((await self._database.query(read_voices, job)).values())

    async def store_voices(self, job: Job, content: Mapping[Span, bytes]) -> None:
        """Store the voices in the clips of a job, unless its recording is gone: they go with it."""

        async def store(connection: AsyncConnection, then: Then) -> None:
            if (await self._get(connection, job.id, lock=True)).submission.file is not None:
                await drop_voices(connection, job)
                await add_voices(connection, job, content)

        with suppress(UnknownJob):
            await self._write(store)

    async def known_speakers(self, job: Job) -> tuple[KnownSpeaker, ...]:
        """The voices that the client of a job knows, while it may run."""
        return await self._database.query(read_known_speakers, job)

    async def terms(self, job: Job) -> tuple[Term, ...]:
        """The terms that a job was submitted with."""
        if not job.submission.has_terms:
            return ()
        query = sa.select(job_terms.c.content).where(job_terms.c.job_number == job.number)
        content = await self._database.scalar(query)
        return () if content is None else parse_terms(content)  # None: it is deleted meanwhile

    async def revisions(self, job: Job) -> list[ListedRevision]:
        """All revisions of the transcript of a job that has succeeded, newest first."""
        return await self._database.query(list_revisions, job)

    async def correct(
        self, job: Job, correction: PackedCorrection, *, by_link: bool = False, author: str | None = None
    ) -> Job:
        """Store a correction as the newest revision of a job's transcript, and queue the webhook.

        `by_link`: somebody made it by a shared link. `author`: the id of that, or the owner of the request.

        Raises PreconditionFailed if the newest is not the one before it, JobNotDone, and UnknownJob.
        """
        of_job = partial(self._correct, job_id=job.id, correction=correction)
        return await self._write(partial(of_job, by_link=by_link, author=author))

    async def _correct(
        self,
        connection: AsyncConnection,
        then: Then,
        job_id: str,
        correction: PackedCorrection,
        **more: Any,
    ) -> Job:
        """See `correct`. `more`: see `add_revision`."""
        now = self._clock()
        transcript, summary, changed, by_people, reason, restored = correction
        is_next = sa.and_(jobs.c.status == Status.SUCCEEDED.value, jobs.c.revision == transcript.revision - 1)
        values = {"revision": transcript.revision, **_listed(summary)}
        if by_people:
            values |= {"corrected_at": now, "retained_since": self._service_clock()}
        change = sa.update(jobs).where(jobs.c.id == job_id, is_next).values(values)
        rows = (await connection.execute(change)).rowcount
        corrected = await self._get(connection, job_id)
        if not rows:
            raise _not_correctable(corrected)
        more |= {"reason": reason, "restored": restored}
        await add_revision(connection, corrected, transcript, summary, changed, now, **more)
        then(self._cache.put, corrected)
        await self._add_webhook(connection, then, corrected, "job.corrected", now)
        return corrected

    async def _add_webhook(
        self, connection: AsyncConnection, then: Then, job: Job, kind: str, now: float
    ) -> None:
        """See `add_webhook`. Does nothing for a job without a receiver."""
        if job.submission.webhook_url is not None:
            given_up = await add_webhook(connection, job, kind, now, self._service_clock())
            then(self.on_webhook, job.id, given_up)

    async def published_clips(self, job: Job, span: Span | None = None) -> list[PackedClip] | None:
        """The published clips of a job, in order. `span`: only those that may have segments there.

        None if the job has succeeded: its transcript has all segments. Raises UnknownJob.
        """
        published = await self._database.query(read_published, job, span)
        # Read last: the clips are deleted in the transaction of the success.
        now = await self._look_up(job.id)
        return None if now.status is Status.SUCCEEDED else published

    async def has_live_text(self, job: Job) -> bool:
        """Whether the transcript of a job grows or waits for its end, and is that of a live stream."""
        if job.status.is_terminal:
            return False
        is_live = sa.and_(clips.c.job_number == job.number, clips.c.channel == LIVE_CHANNEL)
        return bool(await self._database.scalar(sa.select(sa.exists().where(is_live, clips.c.published))))

    async def correct_live_text(self, job: Job, content: bytes, version: int, since: int) -> int:
        """Store the corrected text of a live job that has not ended, and say so by an event.

        `content`: a packed transcript, made from the text of this `version`, which differs from the sample
        `since` on. Returns the new version. Raises PreconditionFailed for any other version, and UnknownJob.
        """

        async def correct(connection: AsyncConnection, then: Then) -> int:
            now = await self._get(connection, job.id)
            number, (_, end) = await last_segments_event(connection, job)
            if now.status.is_terminal or number != version:
                raise transcript_changed()
            await put_corrected(connection, job, content)
            new = await NewEvents.after_stored(connection, [now])
            event = new.add_segments(now, (since, end))
            then(self._publish, now, event)
            await new.store(connection)
            return event.number

        return await self._write(correct)

    async def segments_version(self, job: Job) -> int:
        """A number that grows whenever the published clips of a job change."""
        number, _ = await self._database.query(last_segments_event, job)
        return number

    async def segments_events(self, job: Job, first: int) -> dict[int, Span]:
        """The spans of a job's events of type `SEGMENTS`, by number, beginning with the number `first`."""
        return await self._database.query(read_segments_events, job, first)

    async def events(self, job: Job, after: int, limit: int = 500) -> list[Event]:
        """A job's events with higher numbers than `after`, in order."""
        return await self._database.query(read_events, job.number, after, limit)

    async def has_events(self, job: Job, after: int) -> bool:
        """Whether a job has events with higher numbers than `after`."""
        return bool(await self.events(job, after, limit=1))

    async def _transition(self, job: Job, status: Status, changes: Mapping[str, Any], **more: Any) -> Job:
        """See `_transit`, in a transaction of its own."""
        return await self._write(partial(self._transit, before=job, status=status, changes=changes, **more))

    async def _transit(
        self,
        connection: AsyncConnection,
        then: Then,
        before: Job,
        status: Status,
        changes: Mapping[str, Any],
        transcript: tuple[bytes, Summary] | None = None,
        correction: PackedCorrection | None = None,
        changed_segments: Span | None = None,
        also: Callable[[AsyncConnection, Then], Awaitable[None]] | None = None,
        since: Sequence[Status] = (),
        fence: sa.ColumnElement[bool] = sa.true(),
    ) -> Job:
        """Change a job's status and other columns, and add an event.

        `transcript`: to store, from `pack_with_summary`. `correction`: of it. `changed_segments`: where
        its segments differ from those that are published, for an event before that. `also`: what else is part
        of the transaction. `since`: the statuses that may become the new one, if not those of `TRANSITIONS`.
        `fence`: without it, LostLease is raised.

        A terminal status also queues the job's webhook, and removes its clips, and its voices unless it
        succeeds. A failed job keeps both, or its published clips alone if its recording goes, and so does one
        that goes into the trash. Raises IllegalTransition, also for one that is there, and UnknownJob.
        """
        now = self._clock()
        allowed = [each.value for each in since or [old for old, new in TRANSITIONS.items() if status in new]]
        values: dict[str, Any] = {"status": status.value, **changes}
        if status.is_terminal:
            values |= {"finished_at": now, "retained_since": self._service_clock()}
            values |= {"stage": Stage.DONE.value, "pcm": None}
        if transcript is not None:
            values |= _listed(transcript[1])
        if correction is not None:
            values |= {"revision": correction.transcript.revision, "corrected_at": now}
            values |= _listed(correction.summary)
        may_change = sa.and_(jobs.c.status.in_(allowed), ~IN_TRASH, fence)
        change = sa.update(jobs).where(jobs.c.id == before.id, may_change).values(values)
        changed = (await connection.execute(change)).rowcount
        job = await self._get(connection, before.id, trashed=True)
        if not changed:
            if job.status.value in allowed and job.trashed_at is None:
                raise _lost(job)
            raise IllegalTransition(f"Job {job.id} is {job.status} and cannot become {status}.")
        may_go_on = job.trashed_at is not None or (status is Status.FAILED and "file" not in changes)
        if status.is_terminal and not may_go_on:
            removed = sa.not_(clips.c.published) if status is Status.FAILED else sa.true()
            of_job = clips.c.job_number == job.number
            await connection.execute(sa.delete(clips).where(of_job, removed))
            await drop_known_speakers(connection, job)
            if status is not Status.SUCCEEDED:
                await drop_voices(connection, job)
        for used in used_by(before, job):
            await connection.execute(ADD_USED, used._asdict())
            then(self.on_used, used)
        if also is not None:
            await also(connection, then)
        if transcript is not None:
            content, summary = transcript
            if job.submission.title_from_text and job.submission.title is None and job.excerpt:
                job = await self._change(connection, job.id, title=first_words(job.excerpt))
            original = PackedTranscript(ORIGINAL, content)
            await add_revision(connection, job, original, summary, 0, now)
        if correction is not None:
            of_correction = (correction.transcript, correction.summary, correction.changed, now)
            await add_revision(connection, job, *of_correction, reason=correction.reason)
        await self._add_events(connection, then, job, now, changed_segments)
        if status.is_terminal:
            then(self.on_end, job)
            await self._add_webhook(connection, then, job, f"job.{status}", now)
        return job

    async def _add_events(
        self, connection: AsyncConnection, then: Then, job: Job, now: float, segments: Span | None = None
    ) -> None:
        """Announce the status of a job, and before that where its `segments` have changed."""
        new = await NewEvents.after_stored(connection, [job])
        if segments is not None:
            then(self._publish, job, new.add_segments(job, segments))
        then(self._publish, job, new.add(job, f"job.{job.status}", now))
        await new.store(connection)

    def _publish(self, job: Job, event: Event) -> None:
        self._cache.put(job)
        self.on_event(job.id, event)

    @property
    def _claim(self) -> dict[str, Any]:
        """The columns of a job that say that this front end runs it."""
        return {"front_end": self.front_end.name, "epoch": self.front_end.epoch}

    @property
    def _is_own(self) -> sa.ColumnElement[bool]:
        """The fence: whether this front end runs a job, or did so last."""
        return jobs.c.epoch == self.front_end.epoch

    async def _write(self, work: Callable[[AsyncConnection, Then], Awaitable[T]]) -> T:
        """See `Database.transact`. All changes of jobs go through this function."""
        return await self._database.transact(work, self._cache.writing())

    async def _change(
        self,
        connection: AsyncConnection,
        job_id: str,
        *,
        trashed: bool = False,
        fence: sa.ColumnElement[bool] = sa.true(),
        **changes: Any,
    ) -> Job:
        """Change columns of a job. `trashed`: also of one in the trash. `fence`: see `_transit`.

        Raises UnknownJob, and LostLease.
        """
        is_changed = True
        if changes:
            change = sa.update(jobs).where(jobs.c.id == job_id, fence).values(changes)
            is_changed = bool((await connection.execute(change)).rowcount)
        job = await self._get(connection, job_id, trashed=trashed)
        if not is_changed:
            raise _lost(job)
        return job

    async def _get(
        self,
        connection: AsyncConnection,
        job_id: str,
        owner: str | None = None,
        *,
        trashed: bool = False,
        lock: bool = False,
    ) -> Job:
        """A job. `trashed`: also one in the trash. `lock`: nobody else changes it in this transaction.

        Raises UnknownJob.
        """
        query = sa.select(jobs).where(jobs.c.id == job_id, _of(owner), sa.true() if trashed else ~IN_TRASH)
        row = (await connection.execute(query.with_for_update() if lock else query)).one_or_none()
        if row is None:
            why = "it may have been deleted, or its time may be over"
            raise UnknownJob(f"There is no job {job_id!r}; {why}.")
        return self._job(row)

    def _job(self, row: sa.Row[Any]) -> Job:
        return job_from_row(row, self._retention, self._service_clock.lag_s)


def _of(owner: str | None) -> sa.ColumnElement[bool]:
    """Whether a job is an owner's; None: anybody's."""
    return sa.true() if owner is None else jobs.c.owner == owner


def _is_same_run(job: Job) -> sa.ColumnElement[bool]:
    """Whether no other front end has begun to run a job since it was read."""
    return jobs.c.epoch.is_not_distinct_from(job.epoch)


def _of_family(job: Job) -> sa.ColumnElement[bool]:
    """Whether a job is this one, or transcribes it again."""
    return sa.or_(jobs.c.id == job.id, jobs.c.parent == job.id)


async def _add_passages(
    job_id: str, revision: int, content: bytes, connection: AsyncConnection, then: Then
) -> None:
    """Store the passages of a revision, unless a correction has stored those of another one."""
    query = sa.select(jobs.c.number).where(jobs.c.id == job_id, jobs.c.revision == revision)
    if (number := await connection.scalar(query)) is not None:
        await put_passages(connection, number, content)


def _done(transcript: Transcript) -> dict[str, Any]:
    """The columns of a job that has transcribed all of it."""
    total_s = seconds(transcript.samples - transcript.start)
    # Everything outside the clips is silence.
    columns = {"duration": seconds(transcript.samples), "done_s": total_s, "total_s": total_s}
    return columns | {"failed_spans": list(transcript.failed_spans)}


def _listed(summary: Summary) -> dict[str, Any]:
    """The columns of a job that say what its transcript is about."""
    return {
        "excerpt": summary.excerpt,
        "speakers": summary.speakers,
        "language": summary.language,
        "languages": summary.languages,
        "failed_spans": list(summary.failed_spans),
    }


def _lost(job: Job) -> LostLease:
    return LostLease(f"The front end {job.front_end} runs the job {job.id} by now.")


def _not_correctable(job: Job) -> WhisperfleetError:
    """Why a correction cannot be stored."""
    if job.status is not Status.SUCCEEDED:
        return JobNotDone(f"The job is {job.status}; only the transcript of a job that succeeded can change.")
    return transcript_changed(job.revision)
