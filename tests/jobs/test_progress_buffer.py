"""What is told of running jobs, when, and that none of it is lost."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from app.errors import DatabaseUnavailable
from app.jobs import progress_buffer as module
from app.jobs.job import JobProgress, Stage
from app.jobs.progress_buffer import ProgressBuffer

pytestmark = pytest.mark.timeout(30)


def at(done_s: float) -> JobProgress:
    return JobProgress(Stage.TRANSCRIBING, done_s)


class Store:
    """Remembers what it was told; with `fails` set it does not."""

    def __init__(self) -> None:
        self.fails = False
        self.stored: list[Any] = []
        self.told = asyncio.Event()

    async def update(self, job_id: str, *, pcm: str) -> None:
        await self._note((job_id, pcm))

    async def progress(self, news: Mapping[str, JobProgress]) -> None:
        await self._note(dict(news))

    async def _note(self, told: Any) -> None:
        self.told.set()
        await asyncio.sleep(0)
        if self.fails:
            raise DatabaseUnavailable("gone")
        self.stored.append(told)


def news_of(*job_ids: str) -> tuple[ProgressBuffer, Store]:
    store = Store()
    news = ProgressBuffer(store)  # type: ignore[arg-type]
    for job_id in job_ids:
        news.begin(job_id)
    return news, store


def test_the_latest_is_stored_once() -> None:
    async def check() -> None:
        news, store = news_of("a", "b")
        for done_s in (1.0, 2.0):
            news.progressed("a", at(done_s))
        news.progressed("b", at(5.0))
        news.decoded("a", "100 boot")
        await news.store()
        await news.store()
        assert store.stored == [("a", "100 boot"), {"a": at(2.0), "b": at(5.0)}]

    asyncio.run(check())


def test_nothing_is_lost_where_storing_fails() -> None:
    async def check() -> None:
        news, store = news_of("a", "b", "done")
        store.fails = True
        for job_id in ("a", "b", "done"):
            news.progressed(job_id, at(1.0))
            news.decoded(job_id, "100 boot")
        storing = asyncio.create_task(news.store())
        await store.told.wait()
        news.progressed("b", at(2.0))  # meanwhile
        news.decoded("b", "200 boot")
        news.end("done")
        with pytest.raises(DatabaseUnavailable):
            await storing
        store.fails = False
        await news.store()
        assert store.stored[:-1] == [("a", "100 boot"), ("b", "200 boot")]
        assert store.stored[-1] == {"a": at(1.0), "b": at(2.0)}

    asyncio.run(check())


def test_it_is_stored_by_and_by_and_goes_on_where_the_database_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TICK_S", 0.001)

    async def check() -> None:
        news, store = news_of("a")
        store.fails = True
        news.progressed("a", at(1.0))
        storing = asyncio.create_task(news.store_forever())
        await store.told.wait()
        store.fails = False
        while not store.stored:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert store.stored == [{"a": at(1.0)}]
        storing.cancel()
        await asyncio.gather(storing, return_exceptions=True)

    asyncio.run(check())


def test_whoever_finds_no_news_finds_them_stored() -> None:
    """An end that is stored while progress is on its way comes after it."""

    async def check() -> None:
        news, store = news_of("a")
        news.progressed("a", at(1.0))
        first = asyncio.create_task(news.store())
        await store.told.wait()
        assert store.stored == []
        await news.store()
        assert store.stored == [{"a": at(1.0)}]
        await first

    asyncio.run(check())


def test_the_longer_a_job_runs_the_less_often_it_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    news, _ = news_of("a")
    told = []
    for step in range(36_000):  # of a second each: ten hours
        now[0] = 1001.0 + step
        if news._is_time("a"):
            news._told["a"] = now[0]
            told.append(step)
    assert told[:100] == list(range(100))
    assert 2000 < len(told) < 5000
    assert 30 < told[-1] - told[-2] < 40
