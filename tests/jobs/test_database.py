"""Opening databases, and what they complain of."""

import asyncio
import errno
import sqlite3

import psutil
import pytest
import sqlalchemy as sa
from samples import SUBMISSION, with_database, with_store
from silence import backends, silent

from app.errors import DatabaseUnavailable, DiskFull, InvalidSetting
from app.jobs import database as module
from app.jobs.database import Database
from app.jobs.store import Store
from app.jobs.tables import metadata

pytestmark = pytest.mark.timeout(60)


def test_migrations_make_the_tables_that_the_code_knows(url):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    async def body(database):
        async with database.write() as connection:
            return await connection.run_sync(
                lambda sync: compare_metadata(
                    MigrationContext.configure(sync, opts={"compare_type": True}), metadata
                )
            )

    assert with_database(url, body) == []


def test_migrations_can_be_taken_back(url):
    from alembic import command
    from alembic.config import Config

    def downgrade(connection):
        config = Config()
        config.set_main_option("script_location", "app/jobs/migrations")
        config.attributes["connection"] = connection
        command.downgrade(config, "base")

    async def body(database):
        async with database.write() as connection:
            await connection.run_sync(downgrade)
        async with database.read() as connection:
            return await connection.run_sync(lambda sync: sa.inspect(sync).get_table_names())

    assert with_database(url, body) == ["alembic_version"]


def test_a_second_service_on_the_same_database_is_refused(url, tmp_path):
    async def body(first):
        second = Database(url, tmp_path)
        with pytest.raises(InvalidSetting, match="another whisperfleet uses this database"):
            await second.open()

    with_database(url, body)
    with_database(url, lambda database: asyncio.sleep(0))  # it is free again


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://host/database", "sqlite", "sqlite://", "sqlite:///:memory:"]
)
def test_urls_that_are_none(url, tmp_path):
    with pytest.raises(InvalidSetting, match="WHISPER_DATABASE_URL"):
        Database(url, tmp_path)


def test_a_server_that_is_not_there(tmp_path):
    url = "postgresql://somebody:secret@localhost/database?host=" + str(tmp_path)
    with pytest.raises(InvalidSetting) as refused:
        asyncio.run(Database(url, tmp_path).open())
    assert "secret" not in refused.value.message
    assert "\n" not in refused.value.message


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "whisperfleet.db").write_text("nothing of the kind" * 100)
    with pytest.raises(InvalidSetting, match="not a database"):
        asyncio.run(Database(None, tmp_path).open())


def test_a_locked_database(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BUSY_S", 0.05)
    url = f"sqlite:///{tmp_path}/jobs.db"
    with_store(url, lambda store: store.add(SUBMISSION))
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def body(store):
        with pytest.raises(DatabaseUnavailable, match="locked"):
            await store.add(SUBMISSION)
        other.execute("ROLLBACK")
        return await store.add(SUBMISSION)

    async def run():
        database = Database(url, tmp_path)
        try:
            return await body(Store(database))
        finally:
            await database.close()

    assert asyncio.run(run()).number == 2
    other.close()


async def add_many(store):
    for _ in range(1000):
        await store.add(SUBMISSION)


def test_a_full_disk(tmp_path):
    url = f"sqlite:///{tmp_path}/jobs.db"

    async def body(database):
        async with database.write() as connection:
            pages = await connection.scalar(sa.text("PRAGMA page_count"))
            await connection.execute(sa.text(f"PRAGMA max_page_count={pages}"))
        store = Store(database)
        with pytest.raises(DiskFull):
            await add_many(store)
        async with database.write() as connection:
            await connection.execute(sa.text("PRAGMA max_page_count=100000"))
        before = await store.page(None, 100, None)
        job = await store.add(SUBMISSION)
        assert len(await store.events(job, 0)) == 1
        assert (await store.page(None, 100, None))[0] == [job, *before[0]]  # nothing is half there

    with_database(url, body)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_file_that_the_disk_has_no_space_for(url, number):
    async def body(database):
        with pytest.raises(DiskFull):
            async with database.read():
                raise OSError(number, "the operating system's message")

    with_database(url, body)


def test_a_server_that_goes_away(postgresql):
    url = postgresql()

    async def body(database):
        store = Store(database)
        await store.add(SUBMISSION)
        await kill_backends(database, postgresql())
        job = await store.add(SUBMISSION)  # over a new connection
        assert job.number == 2

    with_database(url, body)


def test_one_file_is_one_databases_wherever_the_data_lies(tmp_path):
    url = f"sqlite:///{tmp_path}/jobs.db"

    async def run():
        first, second = Database(url, tmp_path / "a"), Database(url, tmp_path / "b")
        await first.open()
        with pytest.raises(InvalidSetting, match="another whisperfleet uses this database"):
            await second.open()
        await first.close()
        await second.open()
        await second.close()

    asyncio.run(run())


def test_a_first_start_that_is_killed_midway_is_no_harm(url, tmp_path, monkeypatch):
    from alembic import op

    create_table, created = op.create_table, []

    def die_at_the_second(name, *columns, **options):
        if created:
            raise KeyboardInterrupt
        created.append(name)
        return create_table(name, *columns, **options)

    async def be_killed():
        database = Database(url, tmp_path)
        try:
            await database.open()
        finally:
            await database.close()

    with monkeypatch.context() as patch:
        patch.setattr(op, "create_table", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(be_killed())
    assert created == ["jobs"]
    assert with_store(url, lambda store: store.add(SUBMISSION)).number == 1


def test_a_database_of_a_newer_version(url, tmp_path):
    async def make_newer(database):
        async with database.write() as connection:
            await connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))

    with_database(url, make_newer)
    with pytest.raises(InvalidSetting, match="9999") as refused:
        asyncio.run(Database(url, tmp_path).open())
    assert "\n" not in refused.value.message


def test_how_libpq_calls_tls(tmp_path):
    url = Database("postgresql://somebody:secret@host/database?sslmode=require", tmp_path).url
    assert dict(url.query) == {"ssl": "require"}


def test_a_server_without_tls_where_it_is_asked_for(postgresql, tmp_path):
    url = postgresql().replace("postgres@", "postgres:secret@")
    with_database(url + "&sslmode=prefer", lambda database: asyncio.sleep(0))
    with pytest.raises(InvalidSetting) as refused:
        asyncio.run(Database(url + "&sslmode=nonsense", tmp_path).open())
    assert "secret" not in refused.value.message
    assert "\n" not in refused.value.message


async def kill_backends(database, url):
    other = Database(url, None)
    async with other.read() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(
            sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
            {"name": database.url.database},
        )
    await other.close()


@pytest.fixture
def impatient(monkeypatch):
    for name in ("_ANSWER_S", "_CONNECT_S"):
        monkeypatch.setattr(module, name, 0.5)


def test_connections_that_fall_silent_are_replaced(postgresql, impatient):
    async def body(database):
        store = Store(database)
        await store.add(SUBMISSION)
        with silent(await backends(database)):
            async with asyncio.timeout(10):
                with pytest.raises(DatabaseUnavailable):
                    await store.add(SUBMISSION)
                assert (await store.add(SUBMISSION)).number == 2  # over a new one

    with_database(postgresql(), body)


def test_a_server_that_falls_silent(postgresql, impatient):
    async def body(database):
        store = Store(database)
        await store.add(SUBMISSION)
        pids = await backends(database)
        with silent([psutil.Process(pids[0]).ppid(), *pids]):
            for ask in (lambda: store.page(None, 10, None), lambda: store.add(SUBMISSION), database.keep):
                async with asyncio.timeout(10):
                    with pytest.raises(DatabaseUnavailable):
                        await ask()
        await database.keep()
        assert (await store.add(SUBMISSION)).number == 2

    with_database(postgresql(), body)


def test_a_caller_that_is_cancelled_meanwhile_comes_back(postgresql, impatient):
    async def body(database):
        store = Store(database)
        with silent(await backends(database)):
            asking = asyncio.create_task(store.page(None, 10, None))
            await asyncio.sleep(0)
            asking.cancel()
            async with asyncio.timeout(10):
                await asyncio.gather(asking, return_exceptions=True)

    with_database(postgresql(), body)


def test_the_lock_is_taken_again_where_its_connection_was_lost(postgresql, tmp_path, monkeypatch):
    url = postgresql()

    async def body(database):
        await database.keep()
        await kill_backends(database, postgresql())
        with monkeypatch.context() as patch:
            patch.setattr(database._engine.sync_engine.pool, "connect", fail_to_connect)
            for _ in range(2):
                with pytest.raises(DatabaseUnavailable):
                    await database.keep()
        await database.keep()  # and not only once
        with pytest.raises(InvalidSetting, match="another whisperfleet"):
            await Database(url, tmp_path).open()

    with_database(url, body)


def fail_to_connect():
    raise ConnectionRefusedError("nobody listens")


def test_a_lock_that_another_has_taken_is_not_taken_back(postgresql, tmp_path):
    url = postgresql()

    async def body(database):
        await kill_backends(database, postgresql())
        other = Database(url, tmp_path)
        await other.open()
        with pytest.raises(InvalidSetting, match="another whisperfleet"):
            await database.keep()
        await other.close()

    with_database(url, body)
