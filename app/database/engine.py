"""SQLAlchemy's engine for the database: its URL, timeouts and SQLite's settings."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.errors import InvalidSetting

CONNECT_S = 10.0
_ANSWER_S = 15.0  # the time limit of a statement in PostgreSQL
_IDLE_S = 60.0  # PostgreSQL ends a transaction in which nothing comes for so long
_BUSY_S = 5.0  # a statement waits so long while another program holds SQLite's lock
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}


def sqlite_url(path: str) -> URL:
    """The URL of a SQLite file."""
    return URL.create(_DRIVERS["sqlite"], database=path)


def parse_url(url: str) -> URL:
    """The URL with its driver. Raises InvalidSetting if it is invalid or names an unsupported database."""
    try:
        parsed = make_url(url)
        parsed = parsed.set(drivername=_DRIVERS[parsed.drivername.partition("+")[0]])
    except (ArgumentError, KeyError):
        raise _invalid_url() from None
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise _invalid_url()  # jobs must outlive the process
    if "sslmode" in parsed.query:  # libpq's name; hosting providers use it in their URLs
        parsed = parsed.update_query_pairs([("ssl", str(parsed.query["sslmode"]))]).difference_update_query(
            ["sslmode"]
        )
    return parsed


def make_engine(url: URL) -> AsyncEngine:
    """The engine for a URL from this module. Its errors have no parameters: texts and voices are private."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    arguments = {
        "timeout": CONNECT_S,
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
        connection.exec_driver_sql("BEGIN")

    return engine


def _invalid_url() -> InvalidSetting:
    return InvalidSetting(
        "WHISPER_DATABASE_URL: give a URL like postgresql://user:password@host/database or "
        "sqlite:////path/to/file.db"
    )
