"""How far running jobs have come, on its way into the database: now and then, not with every clip."""

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TypeVar

from app.errors import DatabaseUnavailable, DiskFull
from app.jobs.job import JobProgress
from app.jobs.store import Store

T = TypeVar("T")

TICK_S = 0.5
_SHARE = 1000  # news of a job are stored once in this part of the time that it has run


class ProgressBuffer:
    """The latest progress of jobs, and what decoded audio they have, by id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._progress: dict[str, JobProgress] = {}  # that is not stored yet
        self._pcm: dict[str, str] = {}  # nor this
        self._began: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._storing = asyncio.Lock()

    def begin(self, job_id: str) -> None:
        """There will be news of a job."""
        self._began[job_id] = self._told[job_id] = time.monotonic()

    def end(self, job_id: str) -> None:
        """There will be none any more."""
        for news in (self._progress, self._pcm, self._began, self._told):
            news.pop(job_id, None)

    def progressed(self, job_id: str, progress: JobProgress) -> None:
        self._progress[job_id] = progress

    def decoded(self, job_id: str, pcm: str) -> None:
        self._pcm[job_id] = pcm

    async def store_forever(self) -> None:
        """Store what has become known, whenever it is time to."""
        while True:
            await asyncio.sleep(TICK_S)
            with suppress(DatabaseUnavailable, DiskFull):
                await self._store_those([job_id for job_id in self._progress if self._is_time(job_id)])

    async def store(self) -> None:
        """Store all that is known. Raises what the store raises."""
        await self._store_those(list(self._progress))

    async def _store_those(self, job_ids: list[str]) -> None:
        async with self._storing:  # whoever finds no news is to find them stored
            pcm, self._pcm = self._pcm, {}
            progress = {job_id: self._progress.pop(job_id) for job_id in job_ids if job_id in self._progress}
            try:
                for job_id, expected in pcm.items():
                    await self._store.update(job_id, pcm=expected)
                if progress:
                    await self._store.progress(progress)
            except BaseException:  # the next time, then, but for what is not true any more
                self._pcm = _of(self._began, pcm) | self._pcm
                self._progress = _of(self._began, progress) | self._progress
                raise
            self._told |= dict.fromkeys(progress.keys() & self._told.keys(), time.monotonic())

    def _is_time(self, job_id: str) -> bool:
        # Else a recording of ten hours would come to tens of thousands of events.
        now = time.monotonic()
        return now - self._told.get(job_id, 0) >= (now - self._began.get(job_id, 0)) / _SHARE


def _of(job_ids: Collection[str], news: Mapping[str, T]) -> dict[str, T]:
    return {job_id: told for job_id, told in news.items() if job_id in job_ids}
