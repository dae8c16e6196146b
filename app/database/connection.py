"""The connection to the database: SQLite in the data folder, or PostgreSQL by URL."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.common.concurrency import run_shielded
from app.common.errors import DatabaseUnavailable, DiskFull, InvalidSetting, OutcomeUnknown
from app.common.files import try_lock
from app.database.tables import front_ends, metadata, readers
from workers.messages import NO_SPACE_ERRNOS

P = ParamSpec("P")
T = TypeVar("T")
Then = Callable[..., None]  # takes a function and its arguments: calls it after the commit

FILE_NAME = "whisperfleet.db"
SEARCH_MODULE = "fts5"  # of SQLite
_CONNECT_S = 10.0
_ANSWER_S = 15.0  # the time limit of a statement in PostgreSQL
_IDLE_S = 60.0  # PostgreSQL ends a transaction in which nothing comes for so long
_BUSY_S = 5.0  # a statement waits so long while another program holds SQLite's lock
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
_WRITE_LOCK_S = 30.0  # a write waits so long for earlier writes
_DISK_FULL_STATE = "53100"  # PostgreSQL's code
# Programs that know the tables from this version on may use the newest ones. A migration that they would not
# survive raises it: then all front ends must stop before the first new one starts.
OLDEST_READER = "0023"
_LAST_OLDER = "2bf9b34"  # the last commit that migrates older tables than the first migration makes
_MIGRATIONS = files("app.database") / "migrations"
_versions = sa.Table(  # Alembic's
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32)),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
# The transactions that are seen, and those that are not: each that writes has a number of its own.
_SNAPSHOT = sa.select(sa.cast(sa.func.txid_current_snapshot(), sa.Text))
_ADVISORY_LOCK = 0x77686973  # "whis": a number that no other program is likely to use
_MIGRATION_LOCK = sa.text(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK + 1})")
_IMMEDIATE = "begin_immediate"
_END_MS = 5000  # in which a process of PostgreSQL ends
# PostgreSQL's processes: a number is used again, with another start.
_IS_OURS = "pid || ' ' || extract(epoch FROM backend_start) = ANY(:ours)"
_END_OURS = sa.text(f"SELECT pg_terminate_backend(pid, :wait_ms) FROM pg_stat_activity WHERE {_IS_OURS}")
_THIS_AND_OURS = sa.text(
    "SELECT pid || ' ' || extract(epoch FROM backend_start) FROM pg_stat_activity "
    f"WHERE pid = pg_backend_pid() OR {_IS_OURS}"
)


class Database:
    """One database. Reads run concurrently; writes take turns, as SQLite requires.

    One process at a time uses it, or several front ends that have names: a lock ensures that. `rows`,
    `scalar`, `query`, `execute` and `transact` run to completion although their caller is cancelled: a SQLite
    statement that is cancelled midway keeps the database locked until it is garbage-collected. `read` and
    `write` are for callers that nobody cancels.
    """

    def __init__(self, url: str | None, data_dir: Path, front_end: str | None = None) -> None:
        """`url`: a SQLAlchemy URL without a driver. None: a SQLite file in `data_dir`.

        `front_end`: the name of this process, if it shares the database with others that have other names.

        Raises InvalidSetting if the URL is invalid or names an unsupported database.
        """
        file_url = URL.create(_DRIVERS["sqlite"], database=str(data_dir / FILE_NAME))
        self.url = file_url if url is None else _parse_url(url)
        self.front_end = front_end
        self._engine = _engine(self.url)
        # SQLite would refuse a transaction that begins to write after another process has written.
        self._writing = self._engine.execution_options(**{_IMMEDIATE: True})
        self._write_lock = asyncio.Lock()
        self._is_open = False
        self._lock_connection: AsyncConnection | None = None  # holds PostgreSQL's advisory lock
        self._lock_backends: set[str] = set()  # of that connection, and of those before which may live on
        self._lock_files: list[BinaryIO] = []
        self._watching: sqlite3.Connection | None = None  # see `state`

    @property
    def is_shared(self) -> bool:
        """Whether other front ends may use it, too."""
        return self.front_end is not None

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @property
    def name(self) -> str:
        """The URL, without its password."""
        return self.url.render_as_string(hide_password=True)

    async def open(self) -> None:
        """Acquire the database's lock and create or migrate its tables; does nothing if it is open.

        Raises InvalidSetting if the database cannot be used, or another service uses it.
        """
        if self._is_open:
            return
        try:
            async with asyncio.timeout(_CONNECT_S):
                await (self._acquire_file_lock() if self.is_sqlite else self._acquire_lock())
            async with self.write() as connection:
                if self.is_sqlite:
                    await _check_fts5(connection)
                else:  # front ends take turns, as they do with SQLite
                    await connection.execute(_MIGRATION_LOCK)
                await connection.run_sync(_migrate)
        except InvalidSetting:
            await self.close()
            raise
        except Exception as error:  # each driver has its own errors for bad URLs and unreachable servers
            await self.close()
            raise InvalidSetting(f"WHISPER_DATABASE_URL={self.name}: {_reason(error)}") from None
        self._is_open = True

    async def close(self) -> None:
        """Close all connections and release the lock."""
        self._is_open = False
        if self._lock_connection is not None:
            connection, self._lock_connection = self._lock_connection, None
            await connection.close()
        await self._engine.dispose()
        if self._watching is not None:
            self._watching.close()
            self._watching = None
        while self._lock_files:
            self._lock_files.pop().close()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection for queries. Raises DatabaseUnavailable and DiskFull for the database's errors."""
        with translate_errors():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction, committed if the block succeeds.

        Raises as `read` does, OutcomeUnknown for an error of the commit, and IntegrityError.
        """
        committing = False
        try:
            with translate_errors():
                async with asyncio.timeout(_WRITE_LOCK_S):
                    await self._write_lock.acquire()
                try:
                    async with self._writing.begin() as connection:
                        yield connection
                        committing = True
                finally:
                    self._write_lock.release()
        except DatabaseUnavailable as error:
            if committing:
                raise OutcomeUnknown(error.message) from error
            raise

    async def rows(self, query: sa.Select[*tuple[Any, ...]]) -> Sequence[sa.Row[*tuple[Any, ...]]]:
        """All rows of a query. Raises as `read` does."""

        async def fetch(connection: AsyncConnection) -> Sequence[sa.Row[*tuple[Any, ...]]]:
            return (await connection.execute(query)).all()

        return await self.query(fetch)

    async def scalar(self, query: sa.Select[*tuple[Any, ...]]) -> Any:
        """The first column of a query's first row; None if there is none. Raises as `read` does."""
        return await self.query(AsyncConnection.scalar, query)

    async def query(
        self, work: Callable[Concatenate[AsyncConnection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns for a connection and the arguments. Raises as `read` does."""

        async def run() -> T:
            async with self.read() as connection:
                return await work(connection, *args, **kwargs)

        return await run_shielded(run())

    async def execute(self, *statements: sa.Executable) -> None:
        """Execute statements in one transaction. Raises as `write` does."""

        async def work(connection: AsyncConnection, then: Then) -> None:
            for statement in statements:
                await connection.execute(statement)

        await self.transact(work)

    async def transact(
        self,
        work: Callable[[AsyncConnection, Then], Awaitable[T]],
        around: AbstractContextManager[object] | None = None,
    ) -> T:
        """Run `work` in a transaction, and what must follow its commit: the calls that it passes to `then`.

        They follow although the caller is cancelled meanwhile, and only if the transaction has succeeded.
        `around` surrounds all of it. Returns what `work` returns. Raises as `write` does.
        """
        following: list[Callable[[], object]] = []

        async def run() -> T:
            with around or nullcontext():
                async with self.write() as connection:
                    result = await work(
                        connection, lambda call, *args: following.append(partial(call, *args))
                    )
                for call in following:
                    call()
            return result

        return await run_shielded(run())

    async def serialize(self, connection: AsyncConnection, what: str) -> None:
        """Let no two front ends have a transaction with this call (about the same thing) at the same time."""
        if self.is_shared and not self.is_sqlite:  # of which writes take turns
            lock = sa.func.pg_advisory_xact_lock(sa.func.hashtext(what))
            await connection.execute(sa.select(lock))

    async def state(self) -> object:
        """What differs from the last answer if anybody has committed a change since; perhaps also if not.

        Raises as `read` does.
        """
        if not self.is_sqlite:
            return await self.scalar(_SNAPSHOT)
        try:
            return await run_shielded(asyncio.to_thread(self._data_version))
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"The service's database does not answer ({error}).") from error

    def _data_version(self) -> int:
        """SQLite's counter of others' commits, for one connection: so it is always the same one."""
        if self._watching is None:
            path = str(self.url.database)
            self._watching = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False)
        (version,) = self._watching.execute("PRAGMA data_version").fetchone()
        return int(version)

    async def verify_lock(self) -> None:
        """Check that this process holds the lock: PostgreSQL releases it when its connection is lost.

        Acquires it again in that case. Raises InvalidSetting if another service has acquired it, and
        DatabaseUnavailable.
        """
        if self.is_sqlite:
            return
        if self._lock_connection is not None:
            with suppress(DatabaseUnavailable), translate_errors():
                await self._lock_connection.execute(sa.text("SELECT 1"))
                await self._lock_connection.commit()
                return
            await self._release()
        await self._acquire_lock()

    async def _acquire_lock(self) -> None:
        """Acquire PostgreSQL's advisory lock, which lasts as long as its connection.

        Behind a proxy that has lost its state, a connection lives on for PostgreSQL, and has the lock.
        """
        query = sa.select(sa.func.pg_try_advisory_lock(_ADVISORY_LOCK))
        if self.front_end is not None:
            of_name = sa.func.pg_try_advisory_lock(_ADVISORY_LOCK, sa.func.hashtext(self.front_end))
            query = sa.select(sa.and_(sa.func.pg_try_advisory_lock_shared(_ADVISORY_LOCK), of_name))
        before = self._lock_backends
        try:
            with translate_errors():
                connection = self._lock_connection = await self._engine.connect()
                with suppress(DBAPIError):  # not allowed
                    await connection.execute(_END_OURS, {"ours": [*before], "wait_ms": _END_MS})
                await connection.rollback()
                self._lock_backends = {*await connection.scalars(_THIS_AND_OURS, {"ours": [*before]})}
                acquired = await connection.scalar(query)
                await connection.commit()
            if not acquired:
                lives_on = DatabaseUnavailable("A lost connection of the service still locks the database.")
                raise lives_on if before & self._lock_backends else self._in_use()
        except BaseException:
            await self._release()  # `verify_lock` takes any connection here for one that holds the lock
            raise

    async def _release(self) -> None:
        """Close the connection of the advisory lock."""
        if self._lock_connection is not None:
            connection, self._lock_connection = self._lock_connection, None
            await connection.invalidate()
            await connection.close()

    async def _acquire_file_lock(self) -> None:
        """Lock a file beside SQLite's, until `close` or the end of the process; with a name, another one."""
        path = f"{self.url.database}.lock"
        of_name = [] if self.front_end is None else [f"{path}-{self.front_end}"]
        for name in (path, *of_name):
            shared = self.is_shared and name is path
            lock = await asyncio.to_thread(try_lock, Path(name), shared=shared)
            if lock is None:
                raise self._in_use()
            self._lock_files.append(lock)
        await asyncio.to_thread(_make_private, str(self.url.database))

    def _in_use(self) -> InvalidSetting:
        return InvalidSetting(
            f"WHISPER_DATABASE_URL={self.name}: another whisperfleet uses this database; stop it, or give "
            "this one a database of its own"
        )


def _parse_url(url: str) -> URL:
    """The URL with its driver. Raises InvalidSetting if it is invalid or names an unsupported database."""
    invalid = InvalidSetting(
        "WHISPER_DATABASE_URL: give a URL like postgresql://user:password@host/database or "
        "sqlite:////path/to/file.db"
    )
    try:
        parsed = make_url(url)
        parsed = parsed.set(drivername=_DRIVERS[parsed.drivername.partition("+")[0]])
    except (ArgumentError, KeyError):
        raise invalid from None
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise invalid  # jobs must outlive the process
    if "sslmode" in parsed.query:  # libpq's name; hosting providers use it in their URLs
        with_ssl = parsed.update_query_pairs([("ssl", str(parsed.query["sslmode"]))])
        parsed = with_ssl.difference_update_query(["sslmode"])
    return parsed


def _engine(url: URL) -> AsyncEngine:
    """The engine for a URL. Its errors have no parameters: texts and voices are private."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    arguments = {
        "timeout": _CONNECT_S,
        "command_timeout": _ANSWER_S,
        # The server must release the advisory lock soon after a client machine has lost its power.
        "server_settings": {
            "tcp_keepalives_idle": "30",
            "tcp_keepalives_interval": "10",
            "tcp_keepalives_count": "3",
            # A connection that only a proxy has lost would keep the locks of its transaction.
            "idle_in_transaction_session_timeout": f"{1000 * _IDLE_S:.0f}",
        },
    }
    return create_async_engine(
        url, pool_size=8, pool_pre_ping=True, hide_parameters=True, connect_args=arguments
    )


def _sqlite_engine(url: URL) -> AsyncEngine:
    engine = create_async_engine(url, hide_parameters=True, connect_args={"timeout": _BUSY_S})

    @sa.event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions: `begin` does
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # The driver would commit before each change of a table, and a kill could leave half a migration.
        is_write = connection.get_execution_options().get(_IMMEDIATE)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def _make_private(path: str) -> None:
    """Let nobody else read SQLite's files. It creates the further ones with the mode of the first."""
    with suppress(OSError):  # another user's, or none can be: SQLite says why
        Path(path).touch(0o600)
        for file in (path, f"{path}-wal", f"{path}-shm"):
            if Path(file).exists():
                Path(file).chmod(0o600)


async def _check_fts5(connection: AsyncConnection) -> None:
    query = sa.text("SELECT count(*) FROM pragma_module_list WHERE name = :name")
    if not await connection.scalar(query, {"name": SEARCH_MODULE}):
        raise InvalidSetting(
            "The SQLite library of this Python lacks FTS5, which the search of jobs needs. Use a Python "
            "whose SQLite has it, or set WHISPER_DATABASE_URL to a PostgreSQL database."
        )


def known_versions() -> list[str]:
    """The versions of the tables that this program knows, oldest first."""
    versions = _MIGRATIONS / "versions"
    return sorted(path.name[:4] for path in versions.iterdir() if path.name.endswith(".py"))


def _migrate(connection: sa.Connection) -> None:
    """Create the tables, or migrate those of an older version."""
    known = known_versions()
    has_tables = sa.inspect(connection).has_table(_versions.name)
    present = connection.scalar(sa.select(_versions)) if has_tables else None
    if present is None:
        metadata.create_all(connection, checkfirst=False)  # tables of another program are no jobs
        _versions.create(connection, checkfirst=True)
        connection.execute(sa.insert(_versions).values(version_num=known[-1]))
        connection.execute(sa.insert(readers).values(oldest=OLDEST_READER))
        return
    if present < known[0]:
        raise InvalidSetting(
            "a version of whisperfleet that was never released has written the database (its tables are of "
            f"version {present}, this one begins with {known[0]}). Start it once with the commit "
            f"{_LAST_OLDER}, which changes the tables, or give this one a database of its own"
        )
    if present not in known:
        if sa.inspect(connection).has_table(readers.name):
            oldest = connection.scalar(sa.select(readers.c.oldest))
            if oldest is not None and oldest <= known[-1]:
                return
        raise InvalidSetting(
            f"a newer version of whisperfleet has written the database (its tables are of version {present}, "
            f"this one knows up to {known[-1]}). Start the newer version again, or restore a backup from "
            "before its first start"
        )
    if present != known[-1]:
        _check_readers(connection)
        _upgrade(connection)
        connection.execute(sa.delete(readers))
        connection.execute(sa.insert(readers).values(oldest=OLDEST_READER))


def _check_readers(connection: sa.Connection) -> None:
    """Raise InvalidSetting if a front end runs whose program may not use the newest tables."""
    if sa.inspect(connection).has_table(front_ends.name):
        is_live = front_ends.c.expires_at > clock_of(connection.dialect.name)
        is_older = front_ends.c.version < int(OLDEST_READER)
        names = connection.scalars(sa.select(front_ends.c.name).where(is_live, is_older)).all()
        if names:
            raise InvalidSetting(
                f"this version changes the database so that the versions of front ends that run "
                f"({', '.join(names)}) cannot use it. Stop them first"
            )


def clock_of(kind: str) -> sa.ColumnElement[float]:
    """The clock of a database of that kind: Unix time (s)."""
    if kind == "sqlite":
        return sa.literal_column("((julianday('now') - 2440587.5) * 86400)", sa.Float)
    return sa.literal_column("extract(epoch FROM clock_timestamp())::float8", sa.Float)


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command  # takes a tenth of a second
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS))
    command.upgrade(config, "head")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise DiskFull or DatabaseUnavailable in place of the errors of the database and its connection."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except (DBAPIError, PoolTimeout, OSError) as error:
        if _is_disk_full(error):
            raise DiskFull("The disk of the service's database is full; try again later.") from error
        raise DatabaseUnavailable(
            f"The service's database does not answer ({_reason(error)}); try again later."
        ) from error


def _is_disk_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_SPACE_ERRNOS
    origin = getattr(error, "orig", None)
    return "disk is full" in str(origin) or getattr(origin, "sqlstate", None) == _DISK_FULL_STATE


def _reason(error: BaseException) -> str:
    origin = getattr(error, "orig", None) or error
    return str(origin).splitlines()[0].removeprefix("(").strip() if str(origin) else type(origin).__name__
