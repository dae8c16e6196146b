"""Open databases, and the processes of a PostgreSQL server."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import DatabaseUnavailable
from app.database.connection import FILE_NAME, Database, _migrate

# For tests of what the two kinds do differently: SQL that has dialects, types, locks, errors and concurrency.
ON_BOTH = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


@cache
def _empty_file() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        engine = sa.create_engine(f"sqlite:///{path}")
        with engine.begin() as connection:
            _migrate(connection)
        engine.dispose()
        return path.read_bytes()


def put_tables(path: Path) -> None:
    """Write a SQLite file that has all tables, without jobs. Migrating each test's own would take long."""
    path.write_bytes(_empty_file())


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """The database at a URL, open."""
    database = Database(url, Path("/nowhere"))
    await database.open()
    try:
        yield database
    finally:
        await database.close()


@contextmanager
def lost_commits(database: Database, *, committed: bool, reads: bool = False) -> Iterator[None]:
    """All writes fail at the commit, also if they are `committed`. So do later reads, unless `reads`."""
    dialect = database._engine.sync_engine.dialect
    commit, read = dialect.do_commit, database.read
    is_lost = False

    def do_commit(connection: Any) -> None:
        nonlocal is_lost
        if not database._write_lock.locked():  # the connection that holds PostgreSQL's lock
            return commit(connection)
        commit(connection) if committed else dialect.do_rollback(connection)
        is_lost = True
        raise dialect.loaded_dbapi.OperationalError("the connection was lost")

    @asynccontextmanager
    async def read_unless_lost() -> AsyncIterator[AsyncConnection]:
        if is_lost and not reads:
            raise DatabaseUnavailable("the connection was lost")
        async with read() as connection:
            yield connection

    dialect.do_commit = do_commit  # type: ignore[method-assign]
    database.read = read_unless_lost  # type: ignore[method-assign]
    try:
        yield
    finally:
        dialect.do_commit = commit  # type: ignore[method-assign]
        database.read = read  # type: ignore[method-assign]


class ForgetfulProxy:
    """Stands between a service and PostgreSQL's socket file."""

    def __init__(self, url: str) -> None:
        direct = make_url(url)
        self._path = f"{direct.query['host']}/.s.PGSQL.5432"
        self._database = direct.database
        self._clients: list[asyncio.StreamWriter] = []
        self._kept: list[asyncio.StreamWriter] = []
        self.url = ""

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.url = f"postgresql://postgres@{host}:{port}/{self._database}"
        return server

    def forget(self) -> None:
        """Cut all connections of clients. PostgreSQL does not notice it."""
        for client in self._clients:
            client.transport.abort()
        self._clients.clear()

    def end(self) -> None:
        """Cut everything."""
        self.forget()
        for writer in self._kept:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(self._path)
        self._clients.append(writer)
        self._kept.append(to_server)
        copying = asyncio.create_task(_copy(reader, to_server))
        await _copy(from_server, writer)
        writer.close()
        await copying


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)


@asynccontextmanager
async def forgetful_proxy(url: str) -> AsyncIterator[ForgetfulProxy]:
    """A proxy before a PostgreSQL database, on loopback."""
    proxy = ForgetfulProxy(url)
    server = await proxy.start()
    try:
        yield proxy
    finally:
        server.close()
        proxy.end()


async def backends(database: Database) -> list[int]:
    """The ids of the processes that serve a database's connections."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    async with database.read() as connection:
        return list(await connection.scalars(sa.text(query)))


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Stop processes for a while: they keep their connections, and do not answer."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
