"""Front ends that share a database: their leases, their locks, and who may take over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.common.errors import InvalidSetting
from app.database import connection
from app.database import front_ends as module
from app.database.connection import Database, known_versions
from app.database.front_ends import FrontEnd, FrontEndRow
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH, opened

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

IN_USE = "another whisperfleet"


@pytest.fixture(autouse=True)
def _short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LEASE_S", 0.6), ("RENEW_S", 0.1), ("_MAX_GAP_S", 0.3), ("_RETRY_S", 0.1)):
        monkeypatch.setattr(module, name, value)


@asynccontextmanager
async def front_end(url: str, name: str | None) -> AsyncIterator[FrontEnd]:
    """A front end with a lease, which ends as if its process was killed."""
    database = Database(url, Path("/nowhere"), name)
    await database.open()
    this = FrontEnd(database)
    try:
        await this.start()
        yield this
    finally:
        await kill(this)


async def kill(this: FrontEnd) -> None:
    if this._task is not None:
        this._task.cancel()
        await asyncio.wait([this._task])
    await this._database.close()


@ON_BOTH
async def test_front_ends_know_each_other(url: str) -> None:
    async with front_end(url, "a") as a, front_end(url, "b") as b:
        assert [row.name for row in b.others] == ["a"]
        await until(lambda: not a.is_alone)
        assert (a.others[0].name, a.others[0].epoch, b.others[0].epoch) == ("b", b.epoch, a.epoch)
        assert a.epoch != b.epoch
        await b.stop()
        await until(lambda: a.is_alone)
        assert a.holds


@ON_BOTH
async def test_locks_of_front_ends(url: str, tmp_path: Path) -> None:
    for first, second, is_refused in (
        (None, None, True),
        (None, "a", True),  # an older version, too, wants the database alone
        ("a", None, True),
        ("a", "a", True),
        ("a", "b", False),
    ):
        one, other = Database(url, tmp_path, first), Database(url, tmp_path, second)
        await one.open()
        if is_refused:
            with pytest.raises(InvalidSetting, match=IN_USE):
                await other.open()
        else:
            await other.open()
            await other.verify_lock()
        await one.close()
        await other.close()


@ON_BOTH
async def test_nobody_takes_over_from_one_that_renews_its_lease_late(url: str) -> None:
    async with front_end(url, "a") as a, front_end(url, "b") as b:
        epoch = a.epoch
        for one in (a, b):  # the database is gone for all, for more than a lease
            await one._database._write_lock.acquire()
        await asyncio.sleep(1.0)
        for one in (a, b):
            one._database._write_lock.release()
        for _ in range(20):
            await asyncio.sleep(0.05)
            assert not a.expired
            assert not b.expired
        assert a.epoch == epoch


@ON_BOTH
async def test_takeover_after_the_end_of_a_lease(url: str) -> None:
    ended: list[int] = []
    async with front_end(url, "b") as b:
        async with front_end(url, "a") as a:
            await until(lambda: not b.is_alone)
            epoch = a.epoch
        assert await b.take_over({"a", None}) == set()
        await until(lambda: bool(b.expired))
        assert b.is_alone

        async def end_runs() -> None:
            ended.append(a.epoch)

        a.on_lost = end_runs
        await a._database.open()
        assert await b.take_over({"a", "b", None}) == {"a"}
        assert not b.expired
        assert not await a._renew(), "it is late"
        a._task = asyncio.create_task(a._renew_forever())
        await until(lambda: a.epoch != epoch)
        assert ended == [epoch]
        await until(lambda: not b.is_alone)
        await kill(a)


def test_nobody_takes_over_before_the_database_has_answered_for_one_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    b, row = FrontEnd(Database(None, tmp_path, "b")), FrontEndRow("a", 1, "host", "boot", "", 22, 9.0)

    def seen_expired(until_s: float, row: FrontEndRow = row) -> frozenset[str]:
        nonlocal now
        while now < until_s:
            b._observe({row: False})
            now += 0.1
        return b.expired

    assert seen_expired(0.55) == set()
    assert seen_expired(0.75) == {"a"}
    now += 1.0  # the database did not answer, or this process stood still
    assert seen_expired(now + 0.45) == set()
    assert seen_expired(now + 0.25) == {"a"}
    assert seen_expired(now + 0.45, replace(row, expires_at=10.0)) == set(), (
        "it has renewed the lease meanwhile"
    )


@ON_BOTH
async def test_no_takeover_from_one_that_has_come_back(url: str) -> None:
    async with front_end(url, "b") as b:
        async with front_end(url, "a") as a:
            await until(lambda: not b.is_alone)
        await until(lambda: bool(b.expired))
        await a._database.open()
        assert await a._renew()
        assert await b.take_over({"a"}) == set()
        await a._database.close()


@ON_BOTH
async def test_one_that_is_alone_may_take_over_at_once(url: str) -> None:
    async with front_end(url, "a"), front_end(url, "b"):
        pass
    async with front_end(url, None) as alone:
        assert alone.is_alone
        assert alone.expired == {"a", "b"}
        assert alone.holds
        assert alone._task is None


async def test_sqlite_serves_one_machine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "boot_id", lambda: "this")
    async with front_end(url, "a"):
        monkeypatch.setattr(module, "boot_id", lambda: "another")
        with pytest.raises(InvalidSetting, match="another machine uses this database"):
            async with front_end(url, "b"):
                pass
    async with front_end(url, "a") as rebooted:
        assert rebooted.is_alone


async def test_a_name_that_cannot_be_one_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"WHISPER_FRONT_END=\.\./a"):
        FrontEnd(Database(None, tmp_path, "../a"))


@ON_BOTH
async def test_epochs_are_never_used_twice(url: str) -> None:
    async with opened(url):
        pass
    epochs = []
    for name in ("a", "b", "a", "a", None):
        async with front_end(url, name) as one:
            epochs.append(one.epoch)
    databases = [Database(url, Path("/nowhere"), f"c{number}") for number in range(4)]
    for database in databases:
        await database.open()
    many = [FrontEnd(database) for database in databases]
    await asyncio.gather(*(one.start() for one in many))
    epochs += [one.epoch for one in many]
    assert sorted(set(epochs)) == list(range(1, 10))
    assert await databases[0].scalar(sa.select(sa.func.count()).select_from(module.front_ends)) == 7
    for one in many:
        await kill(one)


@ON_BOTH
async def test_a_newer_version_that_suits_this_one_is_no_reason_to_stop(url: str, tmp_path: Path) -> None:
    async with opened(url) as database:
        await database.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    async with opened(url):
        pass


@ON_BOTH
async def test_a_migration_waits_for_front_ends_that_it_would_break(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = known_versions()
    async with front_end(url, "old"):
        monkeypatch.setattr(connection, "known_versions", lambda: [*known, "9999"])
        monkeypatch.setattr(connection, "OLDEST_READER", "9999")
        monkeypatch.setattr(connection, "_upgrade", lambda connection: None)
        with pytest.raises(InvalidSetting, match=r"front ends that run \(old\)"):
            await Database(url, tmp_path, "new").open()
        monkeypatch.setattr(connection, "OLDEST_READER", known[-1])
        new = Database(url, tmp_path, "new")
        await new.open()
        await new.close()
