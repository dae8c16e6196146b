"""Stores the results and voices of clips of unfinished jobs: a restarted service does not make them again."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.concurrency import Wakeup, end_tasks
from app.common.errors import Interrupted, WhisperfleetError
from app.database.connection import Database, Then
from app.database.front_ends import FrontEnd
from app.database.tables import clips, jobs, voices
from app.intake.budgets import Used
from app.jobs.job import Job, Status
from app.jobs.storage.usage import ADD_USED
from app.jobs.storage.voices import read_voices
from app.recording.clip_decoding import ClipKey, ClipRequest
from app.recording.result_cache import Embed, Transcribe
from app.transcript.packed import PackedResult, pack_result
from app.transcript.timeline import ClipResult
from workers.messages import Span

_UNFINISHED = [status.value for status in Status if not status.is_terminal]
_TICK_S = 0.5  # a result waits so long for others, which are stored in the same transaction
_USED_S = 10.0  # what requests and streams use waits so long for rows: a transaction takes CPU time of each
_LATE_S = 1.0  # after which waiting results are late
_RETRY_S = 1.0  # after an error of the database
_FLUSH_S = 2.0  # a stop waits so long for unstored rows
# After so many ends of the whole service in the middle of a job, its clips run one at a time. Each is marked
# meanwhile, by adding this to its count of crashes, so that the next end leaves the mark. With as many marks,
# the clip is set aside.
_ALONE_AFTER, _MARK, _MAX_MARKS = 3, 100, 9
_TRUSTED_AFTER = 100  # clips of a job that have run alone: what was in flight is among them

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _UnstoredRow:
    """A row to store."""

    table: sa.Table
    values: Mapping[str, Any] = field(repr=False)
    put_at: float  # monotonic, in s
    stored: asyncio.Future[None]


class ClipStore:
    """Stores the rows of all jobs that come within `_TICK_S` in one transaction.

    A kill loses them, so they may be used before they are stored, but not shown: call `flush` before that.
    """

    def __init__(self, database: Database, front_end: FrontEnd | None = None) -> None:
        """`front_end`: only results of its own jobs are stored."""
        self._database = database
        self._front_end = front_end or FrontEnd(database)
        self._unstored: list[_UnstoredRow] = []
        self._used: list[Used] = []  # that is not stored
        self._storing = asyncio.Lock()
        self._wakeup = Wakeup()
        self._task: asyncio.Task[None] | None = None
        self.alone = asyncio.Lock()  # held while a clip runs that may end the whole service

    def start(self) -> None:
        """Start to store rows in the background."""
        self._task = asyncio.create_task(self._store_forever(), name="clip-store")

    async def stop(self) -> None:
        """Store the waiting rows, and stop. Gives up if the database fails for too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_S):
                await self._flush_with_retries()
        await end_tasks(self._task)

    async def flush(self) -> None:
        """Store the waiting rows now. Those that cannot be stored go on waiting, and the error is raised."""
        async with self._storing:
            error = await self._store(tuple(self._unstored))
        if error is not None:
            raise error

    async def keep_up(self, stored: asyncio.Future[None]) -> None:
        """Wait for a row if earlier ones are late: a kill would lose much while the database fails."""
        if self._unstored and time.monotonic() - self._unstored[0].put_at > _LATE_S:
            await asyncio.shield(stored)  # the row is stored even if the caller is cancelled

    async def load(self, job: Job) -> "StoredClipResults":
        """The stored results and voices of a job's clips."""
        rows = await self._database.rows(sa.select(clips).where(clips.c.job_number == job.number))
        voices_by_clip = await self._database.query(read_voices, job)
        results = {_clip_key(row): row.result for row in rows if row.result is not None}
        published = frozenset(_clip_key(row) for row in rows if row.published)
        crash_counts = {_clip_key(row): row.crash_count for row in rows}
        alone = _TRUSTED_AFTER if job.interruptions >= _ALONE_AFTER else 0
        return StoredClipResults(self, job.number, results, voices_by_clip, crash_counts, published, alone)

    def put(
        self, job_number: int, clip: ClipKey, crash_count: int, result: bytes | None
    ) -> asyncio.Future[None]:
        """Store a clip's packed result, or how many workers crashed on it, in the background, with retries.

        The future is done once that is stored, or the job has ended or is another front end's.
        """
        start, end, language, channel = clip
        row = {
            "job_number": job_number,
            "start": start,
            "end": end,
            "language": language or "",
            "channel": channel,
            "crash_count": crash_count,
            "result": result,
        }
        return self._put(clips, row)

    def put_voices(self, job_number: int, clip: Span, content: bytes) -> asyncio.Future[None]:
        """Store the voices in a clip, as `put` stores its result."""
        row = {"job_number": job_number, "start": clip[0], "end": clip[1], "content": content}
        return self._put(voices, row)

    def put_used(self, used: Used) -> None:
        """Store what a request or a stream has used: with the next rows, or within `_USED_S`."""
        self._used.append(used)

    def _put(self, table: sa.Table, values: Mapping[str, Any]) -> asyncio.Future[None]:
        stored = asyncio.get_running_loop().create_future()
        values = {**values, "of_epoch": self._front_end.epoch}
        self._unstored.append(_UnstoredRow(table, values, time.monotonic(), stored))
        self._wakeup.set()
        return stored

    async def _store_forever(self) -> None:
        while True:
            await self._wakeup.wait(_USED_S)
            await asyncio.sleep(_TICK_S)
            await self._flush_with_retries()

    async def _flush_with_retries(self) -> None:
        while True:
            try:
                return await self.flush()
            except WhisperfleetError as error:
                rows = len(self._unstored)
                log.error("clip results cannot be stored; retrying", rows=rows, error=error.message)
                await asyncio.sleep(_RETRY_S)

    async def _store(self, rows: Sequence[_UnstoredRow]) -> WhisperfleetError | None:
        """Store rows, all in one transaction or else those of each job. Returns why some still wait."""
        if not rows and not self._used:
            return None

        async def store(connection: AsyncConnection, then: Then) -> None:
            if used := [each._asdict() for each in self._used]:
                await connection.execute(ADD_USED, used)
                then(self._used.__delitem__, slice(len(used)))
            for table, upsert in _UPSERTS.items():
                if values := [row.values for row in rows if row.table is table]:
                    await connection.execute(upsert, values)
            then(self._forget, rows)

        try:
            await self._database.transact(store)
        except Exception as error:
            of_jobs: dict[int, list[_UnstoredRow]] = defaultdict(list)
            for row in rows:
                of_jobs[row.values["job_number"]].append(row)
            if len(of_jobs) > 1:  # the rows of one may be the reason
                errors = [await self._store(of_job) for of_job in of_jobs.values()]
                return next(filter(None, errors), None)
            if isinstance(error, WhisperfleetError):
                return error
            log.exception("clip results can never be stored, and are dropped", rows=len(rows))
            self._forget(rows)
        return None

    def _forget(self, rows: Sequence[_UnstoredRow]) -> None:
        done = set(rows)
        self._unstored = [row for row in self._unstored if row not in done]
        for row in rows:
            if not row.stored.done():
                row.stored.set_result(None)


@dataclass(slots=True)
class StoredClipResults:
    """The stored results and voices of one job's clips; see `app.recording.result_cache.ClipResults`."""

    store: ClipStore
    job_number: int
    results: dict[ClipKey, bytes]  # packed: unpacking thousands of them at once would block the loop
    voices: dict[Span, bytes]
    crash_counts: dict[ClipKey, int]  # with the marks
    published: frozenset[ClipKey]  # the results that are in the transcript so far
    alone: int  # how many clips run one at a time, since the service has ended in the middle of the job

    async def get_or_transcribe(self, request: ClipRequest, transcribe: Transcribe) -> PackedResult:
        """The clip's stored result, or else a new one, which is stored soon. Waits if that is late."""
        key = request.key
        if key in self.results:
            return PackedResult.unpack(self.results[key])
        result = await (self._transcribe_alone(request, transcribe) if self.alone else transcribe(request))
        content = pack_result(result)
        await self.store.keep_up(self.store.put(self.job_number, key, self.crash_count(key), content))
        return PackedResult(result, content)

    async def _transcribe_alone(self, request: ClipRequest, transcribe: Transcribe) -> ClipResult:
        """Transcribe a clip that may be what ends the whole service, while no other such clip runs.

        Raises Interrupted if the service has ended with it too often.
        """
        key = request.key
        if (marks := self.crash_counts.get(key, 0) // _MARK) >= _MAX_MARKS:
            raise Interrupted(
                f"the whole service ended {marks} times in the middle of it: perhaps the machine lacks memory"
            )
        async with self.store.alone:
            self._mark(key, _MARK)
            try:
                await self.store.flush()
                return await transcribe(request)
            finally:
                self.alone = max(0, self.alone - 1)
                self._mark(key, -_MARK)

    async def get_or_embed(self, clip: Span, embed: Embed) -> bytes:
        """The clip's stored voices, or else new ones, in the same way."""
        if clip in self.voices:
            return self.voices[clip]
        content = await embed(clip)
        await self.store.keep_up(self.store.put_voices(self.job_number, clip, content))
        return content

    def crash_count(self, clip: ClipKey) -> int:
        """How many workers crashed while this clip was their only one."""
        return self.crash_counts.get(clip, 0) % _MARK

    def is_suspect(self, clip: ClipKey) -> bool:
        """Whether one has, or the whole service may have ended on it."""
        return self.alone > 0 or self.crash_count(clip) > 0

    def record_crash(self, clip: ClipKey, count: int) -> None:
        """Store the new number of such crashes."""
        self._mark(clip, count - self.crash_count(clip))

    def _mark(self, clip: ClipKey, change: int) -> None:
        """Change what is stored of a clip's crashes, and of the ends of the service."""
        self.crash_counts[clip] = count = self.crash_counts.get(clip, 0) + change
        self.store.put(self.job_number, clip, count, None)


def _clip_key(row: sa.Row[Any]) -> ClipKey:
    return (row.start, row.end, row.language or None, row.channel)


def _upsert(table: sa.Table, key: Sequence[str], values: Sequence[str]) -> sa.Insert:
    """Inserts the row of a clip, or else changes these values of the row with its key; NULL changes nothing.

    Does nothing for a job that is deleted or has ended, or that another front end runs.
    """
    columns = [sa.bindparam(name, type_=table.c[name].type) for name in (*key, *values)]
    row = sa.select(jobs.c.number, *columns).where(
        jobs.c.number == sa.bindparam("job_number"),
        sa.or_(*(jobs.c.status == status for status in _UNFINISHED)),
        jobs.c.epoch == sa.bindparam("of_epoch", type_=jobs.c.epoch.type),
    )
    row = row.with_for_update(read=True)  # or another front end could begin in between
    insert = postgresql.insert(table).from_select(("job_number", *key, *values), row)
    return insert.on_conflict_do_update(  # SQLite has PostgreSQL's syntax
        index_elements=["job_number", *key],
        set_={name: sa.func.coalesce(insert.excluded[name], table.c[name]) for name in values},
    )


_UPSERTS = {
    clips: _upsert(clips, ("start", "end", "language", "channel"), ("crash_count", "result")),
    voices: _upsert(voices, ("start", "end"), ("content",)),
}
