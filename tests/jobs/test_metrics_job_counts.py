"""The number of jobs by status, which metrics show: it equals what the database has, whatever happened."""

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.database.connection import Database
from app.database.tables import jobs
from app.errors import DatabaseUnavailable, IllegalTransition, OutcomeUnknown, UnknownJob
from app.jobs import service as module
from app.jobs.job import Failure, Job, Status
from app.jobs.storage.cache import JobCounts
from app.jobs.storage.retention import Retention
from app.jobs.storage.store import Store
from app.settings import Settings
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH, lost_commits, opened
from tests.jobs.samples import SUBMISSION, TRANSCRIPT
from tests.jobs.sites import serving

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def stored(database: Database) -> dict[Status, int]:
    """What the database has."""
    async with database.read() as connection:
        found = Counter(await connection.scalars(sa.select(jobs.c.status)))
    return {status: found[status.value] for status in Status}


async def move(store: Store, job: Job, status: Status) -> None:
    match status:
        case Status.QUEUED:
            await store.requeue(job)
        case Status.RUNNING:
            await store.begin(job)
        case Status.SUCCEEDED:
            await store.succeed(job, TRANSCRIPT, keep_file=True)
        case Status.FAILED:
            await store.fail(job, Failure("broken", "broken_file"), keep_file=True)
        case Status.CANCELLED:
            await store.cancel(job)


@pytest.mark.parametrize("seed", range(3))
@ON_BOTH
async def test_after_any_changes_at_the_same_time(database: Database, seed: int) -> None:
    """Changes are those of several clients, who do not know of each other: some are refused."""
    choice, store = random.Random(seed), Store(database)
    added = [await store.add(SUBMISSION) for _ in range(4)]

    async def change_some() -> None:
        for _ in range(12):
            job = choice.choice(added)
            try:
                if choice.random() < 0.2:
                    await store.delete(job)
                    added.append(await store.add(SUBMISSION))
                else:
                    await move(store, job, choice.choice(list(Status)))
            except (IllegalTransition, UnknownJob):
                pass
            await asyncio.sleep(0)

    await asyncio.gather(change_some(), change_some(), change_some())
    assert store.counts.by_status() == await stored(database)
    assert not store.counts.is_doubtful
    assert min(store.counts.by_status().values()) >= 0


@pytest.mark.parametrize("committed", [True, False])
async def test_a_commit_of_unknown_outcome(database: Database, committed: bool) -> None:
    store = Store(database)
    job = await store.add(SUBMISSION)
    with lost_commits(database, committed=committed):
        with pytest.raises(OutcomeUnknown):
            await store.begin(job)
        with pytest.raises(OutcomeUnknown):
            await store.add(SUBMISSION)
        assert store.counts.is_doubtful
        with pytest.raises(DatabaseUnavailable):
            await store.recount(600)
    await store.recount(600)
    assert store.counts.by_status() == await stored(database)
    assert store.counts.is_doubtful, "the commit may still come through"
    await store.recount(0)
    assert not store.counts.is_doubtful


def test_a_doubt_lasts_as_long_as_the_commit_may_come_through() -> None:
    now = 0.0
    counts = JobCounts(lambda: now)
    counts.replace({Status.QUEUED: 2}, settled_after_s=600)
    counts.doubt()
    now = 599.0
    counts.replace({Status.QUEUED: 3}, settled_after_s=600)
    assert counts.is_doubtful
    counts.doubt()
    now = 1198.0
    counts.replace({Status.QUEUED: 4}, settled_after_s=600)
    assert counts.is_doubtful
    now = 1200.0
    counts.replace({Status.QUEUED: 5}, settled_after_s=600)
    assert not counts.is_doubtful
    assert counts.by_status()[Status.QUEUED] == 5


async def test_the_service_counts_at_its_start_and_again_after_a_commit_in_doubt(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(url) as database:
        store = Store(database)
        done = await store.begin(await store.add(SUBMISSION))
        await store.succeed(done, TRANSCRIPT, keep_file=False)
        await store.begin(await store.add(SUBMISSION))  # the next start requeues it
    monkeypatch.setattr(module, "_SWEEP_S", 0.02)
    settings = Settings(data_dir=tmp_path / "data", database_url=url, _env_file=None)
    async with serving(settings) as running:
        counts = running.store.counts
        assert counts.by_status()[Status.SUCCEEDED] == 1
        assert counts.by_status()[Status.QUEUED] + counts.by_status()[Status.RUNNING] == 1
        with lost_commits(running._database, committed=True), pytest.raises(OutcomeUnknown):
            await running.store.cancel(await running.store.add(SUBMISSION))
        while counts.by_status() != await stored(running._database):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        # Jobs whose time is over.
        running.store._retention = Retention(0.001)
        async with running._database.write() as connection:
            await connection.execute(sa.update(jobs).values(retained_since=time.time() - 60))
        await until(lambda: not counts.by_status()[Status.SUCCEEDED])
        assert counts.by_status() == await stored(running._database)
