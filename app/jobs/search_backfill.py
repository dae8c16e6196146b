"""Indexes the jobs of a version without search, in the background. New jobs are indexed as they change."""

import asyncio
from dataclasses import dataclass

import sqlalchemy as sa
import structlog

from app.errors import WhisperfleetError
from app.jobs.database import Database
from app.jobs.search import index_text
from app.jobs.search_terms import text_words
from app.jobs.serialization import packed_words
from app.jobs.tables import jobs, transcripts
from app.shielding import shielded
from app.transcription.helper import LONG_S, Helper

_AT_ONCE = 50  # rows without their transcripts
_PAUSE_S = 0.01  # between two jobs: all others may use the database and the helper process
_RETRY_S = 10.0  # after an error of the database

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Unindexed:
    number: int
    filename: str


class SearchBackfill:
    """Indexes all jobs that are not indexed, newest first, each in a transaction of its own.

    The rows remember which are indexed, so the next start continues after a stop.
    """

    def __init__(self, database: Database, helper: Helper) -> None:
        self._database = database
        self._helper = helper
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to index in the background."""
        self._task = asyncio.create_task(self._run(), name="search-backfill")

    async def stop(self) -> None:
        """Stop. The job that is being indexed may not be."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        indexed, below = 0, None
        while found := await self._next(below):
            for job in found:
                indexed += await self._index_with_retries(job)
                below = job.number
                await asyncio.sleep(_PAUSE_S)
        if indexed:
            log.info("all jobs can be searched", indexed=indexed)

    async def _next(self, below: int | None) -> list[_Unindexed]:
        """The newest jobs that are not indexed, among those with lower numbers than `below`."""
        while True:
            try:
                return await self._unindexed(below)
            except WhisperfleetError as error:
                await self._pause_after(error)

    async def _index_with_retries(self, job: _Unindexed) -> bool:
        """Index a job. Returns whether it is indexed; one that cannot be is left for the next start."""
        while True:
            try:
                await self._index(job)
                return True
            except WhisperfleetError as error:
                await self._pause_after(error)
            except Exception:  # its transcript cannot be read: the others must not wait for it
                log.exception("a job cannot be indexed for the search", number=job.number)
                return False

    async def _pause_after(self, error: WhisperfleetError) -> None:
        log.error("jobs cannot be indexed for the search; retrying", error=error.message)
        await asyncio.sleep(_RETRY_S)

    @shielded
    async def _unindexed(self, below: int | None) -> list[_Unindexed]:
        query = sa.select(jobs.c.number, jobs.c.filename).where(~jobs.c.indexed)
        if below is not None:
            query = query.where(jobs.c.number < below)
        query = query.order_by(jobs.c.number.desc()).limit(_AT_ONCE)
        async with self._database.read() as connection:
            return [_Unindexed(*row) for row in await connection.execute(query)]

    async def _index(self, job: _Unindexed) -> None:
        packed = await self._packed(job)
        if packed is None:
            words = text_words(job.filename)
        else:
            # Always in the process: thousands of short transcripts would hold the GIL.
            words = await self._helper.run(LONG_S, packed_words, job.filename, packed)
        await self._store(job, words)

    @shielded
    async def _packed(self, job: _Unindexed) -> bytes | None:
        query = sa.select(transcripts.c.content).where(transcripts.c.job_number == job.number)
        async with self._database.read() as connection:
            content = await connection.scalar(query)
        return None if content is None else bytes(content)

    @shielded
    async def _store(self, job: _Unindexed, words: str) -> None:
        """Store the words of a job, unless it was indexed or deleted meanwhile."""
        query = sa.select(jobs.c.number).where(jobs.c.number == job.number, ~jobs.c.indexed)
        async with self._database.write() as connection:
            if await connection.scalar(query) is not None:
                await index_text(connection, job.number, words)
