"""Connections on which no request ever ends, more than the server has descriptors for."""

import contextlib
import resource
import select
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from threading import Event

import psutil
import pytest

from tests.e2e.burden import burden
from tests.e2e.running import DATA, ONE_SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(120)

HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "
DESCRIPTORS = 1024
OPENED_AT_ONCE = 50
LOG_LINES = 4
ELSEWHERE = {"WHISPER_TRUSTED_PROXIES": "10.0.0.0/8"}  # so that no client of a test counts as a proxy


class Crowd:
    """Connections that begin a request. Each that the server closes is replaced."""

    def __init__(self, server: Server, count: int, sources: Sequence[str], drips: bool = False) -> None:
        self.opened = 0
        self.refused = 0
        self._port = server.port
        self._count = count
        self._sources = cycle(sources)
        self._drips = drips
        self._open: dict[int, socket.socket] = {}
        self._closed = select.poll()

    def hold(self, done: Event) -> None:
        """Keep all connections open, or try to, until `done`."""
        try:
            drip_at = time.monotonic()
            while not done.wait(0.05):
                self._replace()
                if self._drips and (now := time.monotonic()) >= drip_at:
                    drip_at = now + 1
                    for connection in self._open.values():
                        with contextlib.suppress(OSError):
                            connection.send(b"x")
        finally:
            for connection in self._open.values():
                connection.close()

    def _replace(self) -> None:
        for descriptor, _ in self._closed.poll(0):
            self._closed.unregister(descriptor)
            self._open.pop(descriptor).close()
        for _ in range(min(OPENED_AT_ONCE, self._count - len(self._open))):
            try:
                connection = socket.create_connection(("127.0.0.1", self._port), 5, (next(self._sources), 0))
                connection.send(HEAD)
            except OSError:
                self.refused += 1
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


def started(commands, descriptors: int | None = DESCRIPTORS, **settings: object) -> Server:
    """A server that may have so many descriptors."""
    server = commands.serve(**ONE_SIMULATED, **settings)
    if descriptors is not None:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (descriptors, descriptors))
    return server.wait_until_ready()


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
    server = started(commands, WHISPER_HEADER_TIMEOUT_S=3)
    lines = len(server.stderr.splitlines())
    crowd = Crowd(server, 1100, ["127.0.0.1"])
    with crowded(crowd):
        wait_for(lambda: crowd.opened > 1100)
        ask_at_once(server, 32)
        assert server.text(DATA / "short00.flac")
    check_unharmed(server, lines)


@pytest.mark.soak
@pytest.mark.parametrize("drips", [False, True])
@pytest.mark.parametrize(
    ("count", "sources", "settings", "descriptors"),
    [
        (1200, ["127.0.0.1"], {}, DESCRIPTORS),
        (1200, ["127.0.0.1"], ELSEWHERE, DESCRIPTORS),
        (1200, [f"127.0.0.{number}" for number in range(2, 62)], ELSEWHERE, DESCRIPTORS),
        (4500, [f"127.0.0.{number}" for number in range(2, 62)], ELSEWHERE, None),
    ],
)
def test_others_are_answered_beside_heads_that_never_end(
    commands, count, sources, settings, descriptors, drips
) -> None:
    server = started(commands, descriptors, WHISPER_HEADER_TIMEOUT_S=5, **settings)
    lines = len(server.stderr.splitlines())
    crowd = Crowd(server, count, sources, drips)
    with crowded(crowd):
        with burden(server, memory_mib=100, disk_mib=2):
            time.sleep(6)
        with burden(server, memory_mib=100, disk_mib=2, address="127.0.0.100"):
            time.sleep(6)
        ask_at_once(server, 32)
        assert server.text(DATA / "short00.flac")
    print(f"{crowd.opened} connections were opened, {crowd.refused} were not")
    assert crowd.opened > count
    check_unharmed(server, lines)
