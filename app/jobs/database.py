"""The connection to the database: SQLite in the data folder, or PostgreSQL by URL."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.errors import DatabaseUnavailable, DiskFull, InvalidSetting
from app.file_lock import try_lock
from app.shielding import run_shielded
from workers.messages import NO_SPACE_ERRNOS

FILE_NAME = "whisperfleet.db"
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
_BUSY_S = 5.0  # that a statement waits for another program which holds SQLite's lock
_CONNECT_S = 10.0
_ANSWER_S = 15.0  # that PostgreSQL has for a statement
_TURN_S = 30.0  # that a write waits for those before it
_DISK_FULL_STATE = "53100"  # PostgreSQL's code
_ADVISORY_LOCK = 0x77686973  # any number that no other program is likely to take: "whis"

P = ParamSpec("P")
T = TypeVar("T")


def whole(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let whatever works on the database come to its end: decorates a function that uses a connection.

    A statement of SQLite that is broken off midway keeps the database locked for everybody, until Python
    happens to collect what is left of it.
    """

    @wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_shielded(function(*args, **kwargs))

    return run


class Database:
    """One database. Reads run at once; writes take turns, as SQLite wants it."""

    def __init__(self, url: str | None, data_dir: Path) -> None:
        """`url`: of SQLAlchemy's kind, without a driver; None: a SQLite file in `data_dir`.

        Raises InvalidSetting for a URL that is none, or of a database that is not known here.
        """
        self.url = _parsed(url, data_dir)
        self._engine = _engine(self.url)
        self._writing = asyncio.Lock()
        self._guard: AsyncConnection | None = None
        self._lock: BinaryIO | None = None

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    async def open(self) -> None:
        """Bring the tables up to date, and make the database this process's own.

        Raises InvalidSetting where the database cannot be had, or another service uses it.
        """
        try:
            async with asyncio.timeout(_CONNECT_S):
                await (self._take_file() if self.is_sqlite else self._take())
            async with self.write() as connection:
                await connection.run_sync(_migrate)
        except InvalidSetting:
            await self.close()
            raise
        except Exception as error:  # drivers complain in many ways, of URLs and of servers
            await self.close()
            raise InvalidSetting(f"WHISPER_DATABASE_URL={self.name}: {_reason(error)}") from None

    async def close(self) -> None:
        """Let go of all connections."""
        if self._guard is not None:
            guard, self._guard = self._guard, None
            await guard.close()
        await self._engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def name(self) -> str:
        """The URL, without its password."""
        return self.url.render_as_string(hide_password=True)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection to ask on, for functions that are `whole`.

        Raises DatabaseUnavailable and DiskFull for what the database raises.
        """
        with _clear_errors():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction, committed at the end of the block unless that raises. Otherwise as `read`."""
        with _clear_errors():
            async with self._turn(), self._engine.begin() as connection:
                yield connection

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with asyncio.timeout(_TURN_S):
            await self._writing.acquire()
        try:
            yield
        finally:
            self._writing.release()

    async def keep(self) -> None:
        """See to it that the database is still this process's: PostgreSQL's lock goes with its connection.

        Raises InvalidSetting where another service has taken it, and DatabaseUnavailable.
        """
        if self.is_sqlite:
            return
        if self._guard is not None:
            with suppress(DatabaseUnavailable), _clear_errors():
                await self._guard.execute(sa.text("SELECT 1"))
                await self._guard.commit()
                return
            await self._let_go()
        await self._take()

    async def _let_go(self) -> None:
        if self._guard is not None:
            lost, self._guard = self._guard, None
            await lost.invalidate()
            await lost.close()

    async def _take(self) -> None:
        """Hold PostgreSQL's advisory lock, for as long as this connection lives."""
        try:
            with _clear_errors():
                self._guard = await self._engine.connect()
                taken = await self._guard.scalar(sa.select(sa.func.pg_try_advisory_lock(_ADVISORY_LOCK)))
                await self._guard.commit()
            if not taken:
                raise self._in_use()
        except BaseException:
            await self._let_go()  # what is held is locked
            raise

    async def _take_file(self) -> None:
        """Hold a lock on a file beside SQLite's, for as long as this process lives."""
        self._lock = await asyncio.to_thread(try_lock, Path(f"{self.url.database}.lock"))
        if self._lock is None:
            raise self._in_use()

    def _in_use(self) -> InvalidSetting:
        return InvalidSetting(
            f"WHISPER_DATABASE_URL={self.name}: another whisperfleet uses this database; stop it, or give "
            "this one a database of its own"
        )


def _parsed(url: str | None, data_dir: Path) -> URL:
    if url is None:
        return URL.create(_DRIVERS["sqlite"], database=str(data_dir / FILE_NAME))
    try:
        parsed = make_url(url)
        parsed = parsed.set(drivername=_DRIVERS[parsed.drivername.partition("+")[0]])
    except (ArgumentError, KeyError):
        raise _no_url() from None
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise _no_url()  # jobs are to outlive the process
    if "sslmode" in parsed.query:  # as libpq calls it, and those who hand out databases
        parsed = parsed.update_query_pairs([("ssl", str(parsed.query["sslmode"]))]).difference_update_query(
            ["sslmode"]
        )
    return parsed


def _no_url() -> InvalidSetting:
    return InvalidSetting(
        "WHISPER_DATABASE_URL: give a URL like postgresql://user:password@host/database or "
        "sqlite:////path/to/file.db"
    )


def _engine(url: URL) -> AsyncEngine:
    if url.get_backend_name() != "sqlite":
        arguments = {
            "timeout": _CONNECT_S,
            "command_timeout": _ANSWER_S,
            # A machine that lost its power is not to hold the advisory lock for hours.
            "server_settings": {
                "tcp_keepalives_idle": "30",
                "tcp_keepalives_interval": "10",
                "tcp_keepalives_count": "3",
            },
        }
        return create_async_engine(url, pool_size=8, pool_pre_ping=True, connect_args=arguments)
    engine = create_async_engine(url, connect_args={"timeout": _BUSY_S})

    @sa.event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # SQLAlchemy begins transactions, below, and not the driver
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # The driver would commit before each change of a table, and a migration be cut in two by a kill.
        connection.exec_driver_sql("BEGIN")

    return engine


def _migrate(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(files("app.jobs") / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@contextmanager
def _clear_errors() -> Iterator[None]:
    """What the database and its connection complain of, in the service's own terms."""
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
