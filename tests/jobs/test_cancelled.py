"""Callers of the store that are cancelled midway."""

import asyncio
from pathlib import Path

import pytest

from app.jobs.job import JobStatus
from app.jobs.store import Store
from tests.jobs.databases import opened
from tests.jobs.samples import SUBMISSION

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def test_a_cancelled_caller_does_not_leave_sqlite_locked(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/jobs.db") as database:
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
