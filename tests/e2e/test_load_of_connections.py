"""Connections on which no request ever ends, more than the server has descriptors for."""

import contextlib
import resource
import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psutil
import pytest

from tests.e2e.running import DATA, ONE_SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(120)

HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "
DESCRIPTORS = 1024
OPENED_AT_ONCE = 50
LOG_LINES = 4


class Crowd:
    """Connections that begin a request. Each that the server closes is replaced."""

    def __init__(self, server: Server, count: int) -> None:
        self.opened = 0
        self._port = server.port
        self._count = count
        self._open: dict[int, socket.socket] = {}
        self._closed = select.poll()

    def hold(self, done: Event) -> None:
        """Keep all connections open, or try to, until `done`."""
        try:
            while not done.wait(0.05):
                self._replace()
        finally:
            for connection in self._open.values():
                connection.close()

    def _replace(self) -> None:
        for descriptor, _ in self._closed.poll(0):
            self._closed.unregister(descriptor)
            self._open.pop(descriptor).close()
        for _ in range(min(OPENED_AT_ONCE, self._count - len(self._open))):
            try:
                connection = socket.create_connection(("127.0.0.1", self._port), 5)
                connection.send(HEAD)
            except OSError:
                continue
            connection.setblocking(False)
            self._open[connection.fileno()] = connection
            self._closed.register(connection, select.POLLIN)
            self.opened += 1


@contextlib.contextmanager
def crowded(crowd: Crowd) -> Iterator[None]:
    done = Event()
    with ThreadPoolExecutor(1) as thread:
        holding = thread.submit(crowd.hold, done)
        try:
            yield
        finally:
            done.set()
    holding.result()


def check_unharmed(server: Server, log_lines: int) -> None:
    """Fails if the load has left something behind, or more than a few lines in the log."""
    # It listens on one, and this test has one.
    wait_for(lambda: len(psutil.Process(server.pid).net_connections()) <= 2)
    assert server.text(DATA / "short00.flac")
    written = server.stderr.splitlines()[log_lines:]
    assert "Traceback" not in server.stderr
    assert len(written) <= LOG_LINES, written
    assert any("were closed" in line for line in written)


def ask_at_once(server: Server, count: int) -> None:
    """As many requests as a library sends at the same moment, most of them on new connections."""
    with ThreadPoolExecutor(count) as threads:
        answers = threads.map(lambda _: server.client.get("/health"), range(count))
        assert {answer.status_code for answer in answers} == {200}


def test_more_connections_than_descriptors(commands) -> None:
    server = commands.serve(**ONE_SIMULATED, WHISPER_HEADER_TIMEOUT_S=3)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    server.wait_until_ready()
    lines = len(server.stderr.splitlines())
    crowd = Crowd(server, 1100)
    with crowded(crowd):
        wait_for(lambda: crowd.opened > 1100)
        ask_at_once(server, 32)
        assert server.text(DATA / "short00.flac")
    check_unharmed(server, lines)
