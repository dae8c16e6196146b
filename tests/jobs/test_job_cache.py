"""When jobs are cached."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import IllegalTransition, UnknownJob
from app.jobs.job import Job
from app.jobs.storage.cache import JobCache
from app.jobs.storage.store import Store
from tests.jobs.databases import opened
from tests.jobs.samples import SUBMISSION

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


@pytest.fixture
async def jobs(tmp_path: Path) -> list[Job]:
    async with opened(f"sqlite:///{tmp_path}/jobs.db") as database:
        return [await Store(database).add(SUBMISSION) for _ in range(3)]


def look_up(*found: Job) -> Callable[[str, str | None], Coroutine[Any, Any, Job]]:
    """Finds these jobs, in order, and fails after that."""
    jobs = iter(found)

    async def find(job_id: str, owner: str | None) -> Job:
        return next(jobs)

    return find


async def test_a_job_is_looked_up_once(jobs: list[Job]) -> None:
    cache, find = JobCache(), look_up(jobs[0])
    for _ in range(3):
        assert await cache.get(jobs[0].id, None, find) is jobs[0]


async def test_clients_that_ask_at_once_share_a_look_up(jobs: list[Job]) -> None:
    cache, asked, answer = JobCache(), 0, asyncio.Event()

    async def find(job_id: str, owner: str | None) -> Job:
        nonlocal asked
        asked += 1
        await answer.wait()
        return jobs[0]

    clients = [asyncio.create_task(cache.get(jobs[0].id, None, find)) for _ in range(50)]
    await asyncio.sleep(0)
    clients[0].cancel()  # a client that disconnects does not end the look-up of the others
    await asyncio.sleep(0)
    answer.set()
    assert await asyncio.gather(*clients[1:]) == [jobs[0]] * 49
    assert asked == 1


async def test_a_client_that_asks_after_a_write_does_not_share_an_older_look_up(jobs: list[Job]) -> None:
    cache, answer = JobCache(), asyncio.Event()

    async def find_old(job_id: str, owner: str | None) -> Job:
        await answer.wait()
        return jobs[0]

    reading = asyncio.create_task(cache.get(jobs[0].id, None, find_old))
    await asyncio.sleep(0)
    with cache.writing():
        pass
    assert await cache.get(jobs[0].id, None, look_up(jobs[1])) is jobs[1]
    answer.set()
    await reading


async def test_a_look_up_that_fails_is_tried_again(jobs: list[Job]) -> None:
    cache = JobCache()

    async def fail(job_id: str, owner: str | None) -> Job:
        raise UnknownJob("gone")

    with pytest.raises(UnknownJob):
        await cache.get(jobs[0].id, None, fail)
    assert await cache.get(jobs[0].id, None, look_up(jobs[0])) is jobs[0]


async def test_an_illegal_transition_keeps_the_cache(jobs: list[Job]) -> None:
    cache = JobCache()
    cache.put(jobs[0])
    with pytest.raises(IllegalTransition), cache.writing():
        raise IllegalTransition("the job is done")
    assert await cache.get(jobs[0].id, None, look_up()) is jobs[0]


async def test_the_cache_is_bounded(jobs: list[Job]) -> None:
    cache = JobCache(max_jobs=2)
    for job in jobs:
        cache.put(job)
    assert await cache.get(jobs[2].id, None, look_up()) is jobs[2]
    assert await cache.get(jobs[1].id, None, look_up()) is jobs[1]
    assert await cache.get(jobs[0].id, None, look_up(jobs[0])) is jobs[0]
    cache.discard(jobs[0].id)
    assert await cache.get(jobs[0].id, None, look_up(jobs[0])) is jobs[0]


async def test_an_updated_job_stays_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that poll a job must not all ask the database because the job was updated."""
    async with opened(f"sqlite:///{tmp_path}/jobs.db") as database:
        store = Store(database)
        job = await store.add(SUBMISSION)
        monkeypatch.setattr(store, "_look_up", look_up())
        await store.update(job.id, pcm="1000 boot")
        assert (await store.get(job.id)).pcm == "1000 boot"
        await store.delete(job)
        await store.update(job.id, pcm="2000 boot")
        monkeypatch.undo()
        with pytest.raises(UnknownJob):
            await store.get(job.id)


async def test_a_failed_write_empties_the_cache(jobs: list[Job]) -> None:
    cache = JobCache()
    cache.put(jobs[0])
    with pytest.raises(KeyError), cache.writing():
        raise KeyError
    assert await cache.get(jobs[0].id, None, look_up(jobs[1])) is jobs[1]


async def test_a_lookup_during_a_write_is_not_cached(jobs: list[Job]) -> None:
    cache, writing = JobCache(), asyncio.Event()

    async def find_old(job_id: str, owner: str | None) -> Job:
        await writing.wait()
        return jobs[0]

    reading = asyncio.create_task(cache.get(jobs[0].id, None, find_old))
    await asyncio.sleep(0)
    with cache.writing():
        writing.set()
    assert await reading is jobs[0]
    assert await cache.get(jobs[0].id, None, look_up(jobs[1])) is jobs[1]
