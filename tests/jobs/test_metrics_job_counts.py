"""The number of jobs by status, which metrics show."""

import asyncio
import time

import pytest

from app.common.errors import DatabaseUnavailable
from app.database.connection import Database
from app.jobs.job import Status
from app.jobs.storage import store as module
from app.jobs.storage.store import Store
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import SUBMISSION

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@ON_BOTH
async def test_the_numbers_are_those_of_the_database(database: Database) -> None:
    store = Store(database)
    await store.refresh_counts()
    assert store.counts == dict.fromkeys(Status, 0)
    jobs = [await store.add(SUBMISSION) for _ in range(3)]
    await store.begin(jobs[0])
    await store.cancel(jobs[1])
    await Store(database).add(SUBMISSION)
    await store.refresh_counts()
    wanted = {Status.QUEUED: 2, Status.RUNNING: 1, Status.CANCELLED: 1}
    assert store.counts == dict.fromkeys(Status, 0) | wanted


async def test_the_last_numbers_stay_while_the_database_fails_or_hangs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(database)
    await store.add(SUBMISSION)
    await store.refresh_counts()
    before = store.counts
    failing = True

    async def rows(query: object) -> list[object]:
        if failing:
            raise DatabaseUnavailable("gone")
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(database, "rows", rows)
    monkeypatch.setattr(module, "_COUNT_S", 0.05)
    await store.refresh_counts()
    assert store.counts == before
    failing = False
    began = time.monotonic()
    await asyncio.gather(store.refresh_counts(), store.refresh_counts())
    assert store.counts == before
    assert time.monotonic() - began < 5
