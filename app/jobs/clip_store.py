"""What was heard of the clips of unfinished jobs: stored as it arrives, and there again after a restart."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.engines.clip_request import ClipKey, ClipRequest
from app.errors import WhisperfleetError
from app.jobs.database import Database, whole
from app.jobs.job import Job
from app.jobs.serialization import pack_result, unpack_result
from app.jobs.tables import clips
from app.transcription.result_cache import Transcribe
from workers.messages import ClipResult

_RETRY_S = 1.0  # after the database could not take what was heard
_FLUSH_S = 2.0  # that a stop waits for what is still to be stored

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Row:
    """A clip to be stored: what was heard in it, or that a worker died of it."""

    job_number: int
    clip: ClipKey
    deaths: int
    result: bytes | None
    stored: asyncio.Future[None]

    def values(self) -> dict[str, Any]:
        start, end, language = self.clip
        key = {"job_number": self.job_number, "start": start, "end": end, "language": language or ""}
        return key | {"deaths": self.deaths, "result": self.result}


class ClipStore:
    """Stores clips, all that wait in one transaction: a fast fleet finishes hundreds in a second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Row] = []
        self._wakeup = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def start(self) -> None:
        """Begin to store."""
        self._writer = asyncio.create_task(self._write(), name="clip-store")

    async def stop(self) -> None:
        """Store what waits, unless the database fails for too long, and then no more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_S):
                await self._idle.wait()
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)

    @whole
    async def recall(self, job: Job) -> "StoredRecording":
        """What is known of a job's clips, and where more of it goes."""
        query = sa.select(clips).where(clips.c.job_number == job.number)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        deaths = {_key(row): row.deaths for row in rows}
        return StoredRecording(self, job.number, await asyncio.to_thread(_unpacked, rows), deaths)

    def put(
        self, job_number: int, clip: ClipKey, deaths: int, result: ClipResult | None
    ) -> asyncio.Future[None]:
        """Have a clip stored; the future is done when it is. While the database fails, it is tried again."""
        stored = asyncio.get_running_loop().create_future()
        packed = None if result is None else pack_result(result)
        self._waiting.append(_Row(job_number, clip, deaths, packed, stored))
        self._idle.clear()
        self._wakeup.set()
        return stored

    async def _write(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            rows, self._waiting = self._waiting, []
            try:
                await self._store(rows)
            except WhisperfleetError as error:
                log.error("clips cannot be stored; trying again", clips=len(rows), error=error.message)
                self._waiting = rows + self._waiting
                self._wakeup.set()
                await asyncio.sleep(_RETRY_S)
            if not self._waiting:
                self._idle.set()

    @whole
    async def _store(self, rows: Sequence[_Row]) -> None:
        try:
            async with self._database.write() as connection:
                for row in rows:
                    await _replace(connection, row)
        except IntegrityError:
            # A job among these has been deleted. Of one row alone that says all.
            if len(rows) > 1:
                for row in rows:
                    await self._store([row])
                return
        for row in rows:
            if not row.stored.done():
                row.stored.set_result(None)


class StoredRecording:
    """The stored results of one job's clips; see `app.transcription.result_cache.ClipResults`."""

    def __init__(
        self,
        store: ClipStore,
        job_number: int,
        results: dict[ClipKey, ClipResult],
        crash_counts: dict[ClipKey, int],
    ) -> None:
        self._store = store
        self._job_number = job_number
        self._results = results
        self._crash_counts = crash_counts

    async def get_or_transcribe(self, request: ClipRequest, transcribe: Transcribe) -> ClipResult:
        """The clip's stored result, or else the new one, once that is stored."""
        key = request.key
        if key in self._results:
            return self._results[key]
        result = await transcribe(request)
        # The result is worth storing even if the caller is cancelled.
        await asyncio.shield(self._store.put(self._job_number, key, self.crash_count(key), result))
        return result

    def crash_count(self, clip: ClipKey) -> int:
        """How many workers crashed while this clip was their only one."""
        return self._crash_counts.get(clip, 0)

    def record_crash(self, clip: ClipKey, count: int) -> None:
        """Store the new number of such crashes."""
        self._crash_counts[clip] = count
        self._store.put(self._job_number, clip, count, None)


def _key(row: sa.Row[Any]) -> ClipKey:
    return (row.start, row.end, row.language or None)


def _unpacked(rows: Sequence[sa.Row[Any]]) -> dict[ClipKey, ClipResult]:
    """The results in rows that have one. Costs CPU time for a long recording: call it in a thread."""
    return {_key(row): unpack_result(row.result) for row in rows if row.result is not None}


async def _replace(connection: AsyncConnection, row: _Row) -> None:
    """Store a row in place of the one with its key: alike in every database."""
    start, end, language = row.clip
    same = (
        clips.c.job_number == row.job_number,
        clips.c.start == start,
        clips.c.end == end,
        clips.c.language == (language or ""),
    )
    await connection.execute(sa.delete(clips).where(*same))
    await connection.execute(sa.insert(clips).values(row.values()))
