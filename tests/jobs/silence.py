"""A PostgreSQL server that says nothing any more, and yet keeps its connections."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa

from app.jobs.database import Database


async def backends(database: Database) -> list[int]:
    """The ids of the processes that serve a database's connections."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    async with database.read() as connection:
        return list(await connection.scalars(sa.text(query)))


@contextmanager
def silent(pids: Sequence[int]) -> Iterator[None]:
    """Let processes stand still for a while."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
