"""Open databases, and the processes of a PostgreSQL server."""

import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import sqlalchemy as sa

from app.jobs.database import Database


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """The database at a URL, open."""
    database = Database(url, Path("/nowhere"))
    await database.open()
    try:
        yield database
    finally:
        await database.close()


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
