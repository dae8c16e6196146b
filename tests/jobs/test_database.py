"""Opening databases, their locks and their errors."""

import asyncio
import errno
import sqlite3
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import DatabaseUnavailable, DiskFull, InvalidSetting
from app.database import connection as sql_connection
from app.database.connection import Database
from app.database.tables import jobs, metadata, transcripts
from app.jobs.job import JobProgress, Stage
from app.jobs.link_secrets import LinkSecrets
from app.jobs.serialization import pack_with_summary
from app.jobs.shared_links import SharedLinks
from app.jobs.storage.rows import submission_row
from app.jobs.storage.service_clock import ServiceClock
from app.jobs.storage.store import Store
from tests.jobs.databases import ON_BOTH, backends, forgetful_proxy, opened, stopped
from tests.jobs.samples import SUBMISSION, TRANSCRIPT, submission
from tests.postgresql import NewDatabase

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

OLDEST = Path(__file__).parents[1] / "data" / "database_0006"  # the statements that made its tables
IN_USE = "another whisperfleet uses this database"


def difference(connection: sa.Connection) -> Any:
    """In what a database's tables differ from those of the code."""

    def is_in_code(name: str | None, kind: str, parents: object) -> bool:
        return kind != "table" or not str(name).startswith("search")  # each database has its own

    options = {"compare_type": True, "include_name": is_in_code}
    return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)


@ON_BOTH
async def test_a_new_database_has_the_tables_of_the_code(database: Database) -> None:
    async with database.write() as connection:
        assert await connection.run_sync(difference) == []


@ON_BOTH
async def test_migrations_give_the_oldest_database_the_tables_of_the_code(
    empty_url: str, kind: str, tmp_path: Path
) -> None:
    database = Database(empty_url, tmp_path)
    async with database.write() as connection:
        for statement in (OLDEST / f"{kind}.sql").read_text().split(";\n\n"):
            await connection.exec_driver_sql(statement)
    await database.close()
    async with opened(empty_url) as database:
        async with database.write() as connection:
            assert await connection.run_sync(difference) == []
        job = await Store(database).add(SUBMISSION)
        assert await Store(database).page(None, 10, None, SUBMISSION.filename) == ([job], False)


async def migrated_to(database: Database, revision: str) -> None:
    """Make a database of an earlier version, from the oldest one."""
    kind = "sqlite" if database.is_sqlite else "postgresql"

    def migrate(connection: sa.Connection) -> None:
        for statement in (OLDEST / f"{kind}.sql").read_text().split(";\n\n"):
            connection.exec_driver_sql(statement)
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(files("app.database") / "migrations"))
        command.upgrade(config, revision)

    async with database.write() as connection:
        await connection.run_sync(migrate)


@ON_BOTH
async def test_jobs_of_before_titles_are_found_by_name_text_and_sentence(
    empty_url: str, tmp_path: Path
) -> None:
    database = Database(empty_url, tmp_path)
    await migrated_to(database, "0010")
    content, summary = pack_with_summary(TRANSCRIPT)
    row = submission_row(SUBMISSION) | asdict(JobProgress(Stage.DONE))
    row |= {"id": "a" * 32, "status": "succeeded", "created_at": 1.0, "failed_spans": []}
    row = {
        name: value
        for name, value in row.items()
        if name not in ("title", "notes", "tags", "title_from_text", "has_terms")
    }
    then = sa.table("jobs", *(sa.column(name, jobs.c[name].type) for name in row))
    number, vector = ("rowid", ":words")
    if not database.is_sqlite:
        number, vector = "job_number", "array_to_tsvector(string_to_array(:words, ' '))"
    index = sa.text(f"INSERT INTO search ({number}, words) VALUES (1, {vector})")
    async with database.write() as connection:
        await connection.execute(sa.insert(then).values(row))
        await connection.execute(sa.insert(transcripts).values(job_number=1, content=content))
        await connection.execute(index, {"words": f"talk flac {summary.words}"})
    await database.close()
    async with opened(empty_url) as migrated:
        store = Store(migrated)
        (job,), _ = await store.page(None, 10, None, "talk grüße")
        assert (job.id, job.submission.title, job.submission.tags) == ("a" * 32, None, ())
        assert await store.matches([job], "grüße") == {}
        await store.add_passages(10)
        found = await store.matches([job], "grüße")
        assert [sentence.text for sentence in found[1]] == ["Grüße an 世界."] * 2
        await store.describe(job, lambda _: None, title="Begrüßung", tags=["Team"])
        assert (await store.page(None, 10, None, "begrußung welt", tags=["team"]))[0] == []
        assert [j.id for j in (await store.page(None, 10, None, "begrußung 世界", tags=["team"]))[0]] == [
            job.id
        ]


async def test_links_of_before_have_owners_and_stay_valid(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with opened(url) as database:
        job = await Store(database).add(submission(owner="ann"))
        async with database.write() as connection:
            for statement in (
                *(f"ALTER TABLE shared_links DROP COLUMN {name}" for name in ("owner", "has_revisions")),
                *("DROP TABLE link_secrets", "DROP INDEX jobs_by_size"),
                *("DROP INDEX jobs_by_trash", "ALTER TABLE jobs DROP COLUMN trashed_at"),
                *("ALTER TABLE jobs DROP COLUMN has_terms", "DROP TABLE job_terms", "DROP TABLE terms"),
                *(f"ALTER TABLE revisions DROP COLUMN {name}" for name in ("reason", "restored", "author")),
                *("ALTER TABLE jobs DROP COLUMN languages", "DROP TABLE usage"),
                *("DROP TABLE front_ends", "DROP TABLE readers", "ALTER TABLE jobs DROP COLUMN front_end"),
                "ALTER TABLE jobs DROP COLUMN epoch",
                "INSERT INTO secrets VALUES ('links', x'07', 0)",
                f"INSERT INTO shared_links VALUES ('1', 'x', {job.number}, 1, 0, 0, 1e12)",
                f"INSERT INTO shared_links VALUES ('2', 'y', {job.number}, 0, 0, 0, 1e12)",
                "UPDATE alembic_version SET version_num = '0016'",
            ):
                await connection.exec_driver_sql(statement)
    async with opened(url) as database:
        secrets, links = LinkSecrets(database), SharedLinks(database, ServiceClock(database))
        await secrets.load()
        await links.load()
        assert secrets.by_owner.keys() == {"ann", "link"}
        assert secrets.by_owner["link"] == b"\7"
        assert {link.id: link.has_revisions for link in links.of_job(job)} == {"1": True, "2": False}
        await links.load(withdrawn="bob")
        assert len(links.of_job(job)) == 2
        await links.load(withdrawn="ann")
        assert links.of_job(job) == []


async def test_sqlite_without_full_text_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.database.connection.SEARCH_MODULE", "fts0")
    with pytest.raises(InvalidSetting, match=r"lacks FTS5.*set WHISPER_DATABASE_URL to a PostgreSQL"):
        await Database(None, tmp_path).open()
    monkeypatch.undo()
    async with opened(f"sqlite:///{tmp_path}/whisperfleet.db"):  # its lock is released
        pass


@ON_BOTH
async def test_a_second_service_on_the_same_database_is_refused(url: str, tmp_path: Path) -> None:
    async with opened(url):
        with pytest.raises(InvalidSetting, match=IN_USE):
            await Database(url, tmp_path).open()
    async with opened(url):  # its lock is released
        pass


async def test_an_open_database_can_be_opened_again(database: Database) -> None:
    await database.open()
    assert (await Store(database).add(SUBMISSION)).number == 1


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://host/database", "sqlite", "sqlite://", "sqlite:///:memory:"]
)
def test_invalid_urls(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="WHISPER_DATABASE_URL"):
        Database(url, tmp_path)


async def test_an_unreachable_server(tmp_path: Path) -> None:
    url = "postgresql://somebody:secret@localhost/database?host=" + str(tmp_path)
    with pytest.raises(InvalidSetting) as refused:
        await Database(url, tmp_path).open()
    assert "secret" not in refused.value.message
    assert "\n" not in refused.value.message


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "whisperfleet.db").write_text("nothing of the kind" * 100)
    with pytest.raises(InvalidSetting, match="not a database"):
        await Database(None, tmp_path).open()


async def test_a_locked_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_connection, "_BUSY_S", 0.05)
    async with opened(f"sqlite:///{tmp_path}/jobs.db") as database:
        store = Store(database)
        await store.add(SUBMISSION)
        other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailable, match="locked"):
            await store.add(SUBMISSION)
        other.execute("ROLLBACK")
        assert (await store.add(SUBMISSION)).number == 2
        other.close()


async def add_many(store: Store) -> None:
    for _ in range(1000):
        await store.add(SUBMISSION)


async def test_a_full_disk(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/jobs.db") as database:
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
        assert (await store.page(None, 100, None))[0] == [job, *before[0]], "a job was stored in part"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_disk_without_space_for_a_file(database: Database, number: int) -> None:
    with pytest.raises(DiskFull):
        async with database.read():
            raise OSError(number, "the operating system's message")


async def test_lost_connections_are_replaced(postgresql: NewDatabase) -> None:
    async with opened(postgresql()) as database:
        store = Store(database)
        await store.add(SUBMISSION)
        await kill_backends(database, postgresql())
        assert (await store.add(SUBMISSION)).number == 2


async def test_a_sqlite_file_is_locked_for_all_data_folders(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    first, second = Database(url, tmp_path / "a"), Database(url, tmp_path / "b")
    await first.open()
    with pytest.raises(InvalidSetting, match=IN_USE):
        await second.open()
    await first.close()
    await second.open()
    await second.close()


@ON_BOTH
def test_a_first_start_that_is_killed_midway_does_no_harm(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    async def start() -> None:
        database = Database(empty_url, tmp_path)
        try:
            await database.open()
        finally:
            await database.close()

    async def start_again() -> None:
        async with opened(empty_url) as database:
            assert (await Store(database).add(SUBMISSION)).number == 1

    with monkeypatch.context() as patch:
        patch.setattr("app.database.connection._versions.create", killed)  # after the tables
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(start())
    asyncio.run(start_again())


@pytest.mark.parametrize(
    ("version", "what"), [("9999", "a newer version"), ("0005", "Start it once with the commit")]
)
async def test_a_database_of_another_version(url: str, tmp_path: Path, version: str, what: str) -> None:
    async with opened(url) as database, database.write() as connection:
        await connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{version}'"))
        await connection.execute(sa.text(f"UPDATE readers SET oldest = '{version}'"))
    with pytest.raises(InvalidSetting, match=rf"{what}.*") as refused:
        await Database(url, tmp_path).open()
    assert version in refused.value.message
    assert "\n" not in refused.value.message


def test_libpqs_name_for_tls(tmp_path: Path) -> None:
    url = Database("postgresql://somebody:secret@host/database?sslmode=require", tmp_path).url
    assert dict(url.query) == {"ssl": "require"}


async def test_a_server_without_tls(postgresql: NewDatabase, tmp_path: Path) -> None:
    url = postgresql().replace("postgres@", "postgres:secret@")
    async with opened(url + "&sslmode=prefer"):
        pass
    with pytest.raises(InvalidSetting) as refused:
        await Database(url + "&sslmode=nonsense", tmp_path).open()
    assert "secret" not in refused.value.message
    assert "\n" not in refused.value.message


async def kill_backends(database: Database, url: str) -> None:
    """End a database's connections, by means of another database on the same server."""
    other = Database(url, Path("/nowhere"))
    async with other.read() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(
            sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
            {"name": database.url.database},
        )
    await other.close()


@pytest.fixture
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ANSWER_S", "_CONNECT_S"):
        monkeypatch.setattr(sql_connection, name, 0.5)


@pytest.mark.usefixtures("_short_timeouts")
async def test_silent_connections_are_replaced(postgresql: NewDatabase) -> None:
    async with opened(postgresql()) as database:
        store = Store(database)
        await store.add(SUBMISSION)
        with stopped(await backends(database)):
            async with asyncio.timeout(10):
                with pytest.raises(DatabaseUnavailable):
                    await store.add(SUBMISSION)
                assert (await store.add(SUBMISSION)).number == 2, "over a new connection"


@pytest.mark.usefixtures("_short_timeouts")
async def test_a_silent_server(postgresql: NewDatabase) -> None:
    async with opened(postgresql()) as database:
        store = Store(database)
        await store.add(SUBMISSION)
        pids = await backends(database)
        with stopped([psutil.Process(pids[0]).ppid(), *pids]):
            for call in (
                lambda: store.page(None, 10, None),
                lambda: store.add(SUBMISSION),
                database.verify_lock,
            ):
                async with asyncio.timeout(10):
                    with pytest.raises(DatabaseUnavailable):
                        await call()
        await database.verify_lock()
        assert (await store.add(SUBMISSION)).number == 2


@pytest.mark.usefixtures("_short_timeouts")
async def test_a_cancelled_caller_returns_from_a_silent_server(postgresql: NewDatabase) -> None:
    async with opened(postgresql()) as database:
        store = Store(database)
        with stopped(await backends(database)):
            reading = asyncio.create_task(store.page(None, 10, None))
            await asyncio.sleep(0)
            reading.cancel()
            async with asyncio.timeout(10):
                await asyncio.gather(reading, return_exceptions=True)


async def test_a_lost_lock_is_acquired_again(
    postgresql: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgresql()
    async with opened(url) as database:
        await database.verify_lock()
        await kill_backends(database, postgresql())
        with monkeypatch.context() as patch:
            patch.setattr(database._engine.sync_engine.pool, "connect", fail_to_connect)
            for _ in range(2):
                with pytest.raises(DatabaseUnavailable):
                    await database.verify_lock()
        await database.verify_lock()  # a failure does not prevent later attempts
        with pytest.raises(InvalidSetting, match="another whisperfleet"):
            await Database(url, tmp_path).open()


def fail_to_connect() -> None:
    raise ConnectionRefusedError("nobody listens")


@pytest.mark.usefixtures("_short_timeouts")
async def test_what_a_proxy_has_lost_locks_nothing(
    postgresql: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_connection, "_IDLE_S", 0.3)
    direct = postgresql()
    async with forgetful_proxy(direct) as proxy, opened(proxy.url) as database:
        store = Store(database)
        job = await store.add(SUBMISSION)
        await database.verify_lock()
        change = sa.update(jobs).values(stage="x")

        async def lose_the_connection(connection: AsyncConnection, then: object) -> None:
            await connection.execute(change)
            proxy.forget()
            await connection.execute(change)

        with pytest.raises(DatabaseUnavailable):
            await database.transact(lose_the_connection)
        await database.verify_lock()
        with pytest.raises(InvalidSetting, match="another whisperfleet"):
            await Database(direct, Path("/nowhere")).open()
        async with asyncio.timeout(10):
            assert await store.delete(job), "its row is locked for a moment"


async def test_a_lock_of_a_lost_connection_that_cannot_be_ended(
    postgresql: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_connection, "_END_MS", 50)
    async with forgetful_proxy(postgresql()) as proxy, opened(proxy.url) as database:
        [lock] = [lock.partition(" ")[0] for lock in database._lock_backends]
        with stopped([int(lock)]):
            proxy.forget()
            with pytest.raises(DatabaseUnavailable, match="lost connection"):
                await database.verify_lock()
        await database.verify_lock()


async def test_a_lost_lock_that_another_service_has_acquired(postgresql: NewDatabase, tmp_path: Path) -> None:
    url = postgresql()
    async with opened(url) as database:
        await kill_backends(database, postgresql())
        other = Database(url, tmp_path)
        await other.open()
        with pytest.raises(InvalidSetting, match="another whisperfleet"):
            await database.verify_lock()
        await other.close()
