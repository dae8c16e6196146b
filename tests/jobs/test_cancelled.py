"""Callers of the database that are cancelled midway."""

import asyncio
from pathlib import Path

import pytest

from app.jobs.database import Database
from app.jobs.job import JobStatus, Submission
from app.jobs.store import Store
from app.options import Options

pytestmark = pytest.mark.timeout(60)

SUBMISSION = Submission("a.wav", "0" * 32, 1, "", None, "tiny", Options(), None, "", None, "")


def test_whoever_is_cancelled_leaves_the_database_to_others(tmp_path: Path) -> None:
    """SQLite stays locked where a statement is broken off."""

    async def check() -> None:
        database = Database(None, tmp_path)
        await database.open()
        store = Store(database)
        for step in range(80):
            adding = asyncio.create_task(store.add(SUBMISSION))
            await asyncio.sleep(step * 5e-5)
            adding.cancel()
            await asyncio.gather(adding, return_exceptions=True)
            before = await store.count([JobStatus.QUEUED])
            async with asyncio.timeout(2):
                await store.add(SUBMISSION)
            assert await store.count([JobStatus.QUEUED]) == before + 1
        await database.close()

    asyncio.run(check())
