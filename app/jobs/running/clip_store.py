"""Stores the results and voices of clips of unfinished jobs: a restarted service does not make them again."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.concurrency import Wakeup
from app.database.connection import Database, Then
from app.database.tables import clips, voices
from app.errors import WhisperfleetError
from app.jobs.job import Job
from app.jobs.serialization import pack_result, unpack_result
from app.jobs.storage.voices import read_voices
from app.transcript.timeline import ClipResult
from app.transcription.clip_decoding import ClipKey, ClipRequest
from app.transcription.result_cache import Embed, Transcribe
from workers.messages import Span

_RETRY_S = 1.0  # after an error of the database
_FLUSH_S = 2.0  # a stop waits so long for unstored rows

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row to store."""

    table: sa.Table
    key: Mapping[str, Any]
    values: Mapping[str, Any] = field(repr=False)  # of the other columns
    stored: asyncio.Future[None]

    def set_stored(self) -> None:
        if not self.stored.done():
            self.stored.set_result(None)


class ClipStore:
    """Stores all waiting rows in one transaction: a fast fleet finishes hundreds of clips per second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unstored: list[_Row] = []
        self._wakeup = Wakeup()
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def start(self) -> None:
        """Start to store rows in the background."""
        self._task = asyncio.create_task(self._store_forever(), name="clip-store")

    async def stop(self) -> None:
        """Store the waiting rows, and stop. Gives up if the database fails for too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_S):
                await self._idle.wait()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def load(self, job: Job) -> "StoredClipResults":
        """The stored results and voices of a job's clips."""
        rows = await self._database.rows(sa.select(clips).where(clips.c.job_number == job.number))
        voices_by_clip = await self._database.query(read_voices, job)
        results = {_clip_key(row): row.result for row in rows if row.result is not None}
        published = frozenset(_clip_key(row) for row in rows if row.published)
        crash_counts = {_clip_key(row): row.crash_count for row in rows}
        return StoredClipResults(self, job.number, results, voices_by_clip, crash_counts, published)

    def put(
        self, job_number: int, clip: ClipKey, crash_count: int, result: ClipResult | None
    ) -> asyncio.Future[None]:
        """Store a clip's result, or how many workers crashed on it, in the background, with retries.

        The future is done once that is stored.
        """
        packed = None if result is None else pack_result(result)
        start, end, language, channel = clip
        key = {
            "job_number": job_number,
            "start": start,
            "end": end,
            "language": language or "",
            "channel": channel,
        }
        return self._put(clips, key, {"crash_count": crash_count, "result": packed})

    def put_voices(self, job_number: int, clip: Span, content: bytes) -> asyncio.Future[None]:
        """Store the voices in a clip, as `put` stores its result."""
        key = {"job_number": job_number, "start": clip[0], "end": clip[1]}
        return self._put(voices, key, {"content": content})

    def _put(
        self, table: sa.Table, key: Mapping[str, Any], values: Mapping[str, Any]
    ) -> asyncio.Future[None]:
        stored = asyncio.get_running_loop().create_future()
        self._unstored.append(_Row(table, key, values, stored))
        self._idle.clear()
        self._wakeup.set()
        return stored

    async def _store_forever(self) -> None:
        while True:
            await self._wakeup.wait()
            rows, self._unstored = self._unstored, []
            try:
                await self._store(rows)
            except WhisperfleetError as error:
                log.error("clip results cannot be stored; retrying", rows=len(rows), error=error.message)
                self._unstored = rows + self._unstored
                self._wakeup.set()
                await asyncio.sleep(_RETRY_S)
            if not self._unstored:
                self._idle.set()

    async def _store(self, rows: Sequence[_Row]) -> None:
        async def replace_all(connection: AsyncConnection, then: Then) -> None:
            for row in rows:
                await _replace(connection, row)
                then(row.set_stored)

        try:
            await self._database.transact(replace_all)
        except IntegrityError:  # the job of one of these rows was deleted
            if len(rows) == 1:
                rows[0].set_stored()
            else:
                for row in rows:
                    await self._store([row])


class StoredClipResults:
    """The stored results and voices of one job's clips; see `app.transcription.result_cache.ClipResults`."""

    def __init__(
        self,
        store: ClipStore,
        job_number: int,
        results: dict[ClipKey, bytes],  # packed: unpacking thousands of them at once would block the loop
        voices: dict[Span, bytes],
        crash_counts: dict[ClipKey, int],
        published: frozenset[ClipKey],
    ) -> None:
        self.published = published  # the results that are in the transcript so far
        self._store = store
        self._job_number = job_number
        self._results = results
        self._voices = voices
        self._crash_counts = crash_counts

    async def get_or_transcribe(self, request: ClipRequest, transcribe: Transcribe) -> ClipResult:
        """The clip's stored result, or else a new one, which is stored before this returns."""
        key = request.key
        if key in self._results:
            return unpack_result(self._results[key])
        result = await transcribe(request)
        # Store the result even if the caller is cancelled.
        await asyncio.shield(self._store.put(self._job_number, key, self.crash_count(key), result))
        return result

    async def get_or_embed(self, clip: Span, embed: Embed) -> bytes:
        """The clip's stored voices, or else new ones, which are stored before this returns."""
        if clip in self._voices:
            return self._voices[clip]
        content = await embed(clip)
        await asyncio.shield(self._store.put_voices(self._job_number, clip, content))
        return content

    def crash_count(self, clip: ClipKey) -> int:
        """How many workers crashed while this clip was their only one."""
        return self._crash_counts.get(clip, 0)

    def record_crash(self, clip: ClipKey, count: int) -> None:
        """Store the new number of such crashes."""
        self._crash_counts[clip] = count
        self._store.put(self._job_number, clip, count, None)


def _clip_key(row: sa.Row[Any]) -> ClipKey:
    return (row.start, row.end, row.language or None, row.channel)


async def _replace(connection: AsyncConnection, row: _Row) -> None:
    """Insert a row in place of the one with its key. Databases differ in their syntax for an upsert."""
    same_key = [row.table.c[name] == value for name, value in row.key.items()]
    await connection.execute(sa.delete(row.table).where(*same_key))
    await connection.execute(sa.insert(row.table).values({**row.key, **row.values}))
