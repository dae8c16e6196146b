"""Opening databases, and what they complain of."""

import asyncio
import sqlite3

import pytest
import sqlalchemy as sa
from samples import SUBMISSION, with_database, with_store

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


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://host/database", "sqlite"])
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


def test_a_server_that_goes_away(postgresql):
    url = postgresql()

    async def body(database):
        store = Store(database)
        await store.add(SUBMISSION)
        other = Database(postgresql(), None)
        async with other.read() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(
                sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
                {"name": database.url.database},
            )
        await other.close()
        job = await store.add(SUBMISSION)  # over a new connection
        assert job.number == 2

    with_database(url, body)
