"""A fake internet in this process: names, addresses and sites behind socket pairs. It sends no packets.

It records all connections. A connection to an address without a site fails the test.
"""

import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

MEDIA = "93.184.215.14"
OTHER = "151.101.1.140"


@dataclass
class Answer:
    """The response of a site to a request."""

    body: bytes | Callable[[], Iterator[bytes]] = b""
    kind: str = "audio/mpeg"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    declared: bool = True  # with a Content-Length

    def chunks(self) -> Iterator[bytes]:
        length = (
            {"Content-Length": str(len(self.body))} if self.declared and isinstance(self.body, bytes) else {}
        )
        headers = {"Content-Type": self.kind, "Connection": "close", **length, **self.headers}
        lines = [f"HTTP/1.1 {self.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
        yield ("\r\n".join(lines) + "\r\n\r\n").encode()
        yield from [self.body] if isinstance(self.body, bytes) else self.body()


def redirect(url: str) -> Answer:
    return Answer(status=302, headers={"Location": url})


class _End(socket.socket):
    """One end of a socket pair that ignores TCP options, which it does not have."""

    def setsockopt(self, *_: Any) -> None: ...


class Internet:
    """`resolver` and `connect` replace `socket.getaddrinfo` and `socket.create_connection`."""

    def __init__(self, names: dict[str, Any], pages: dict[str, Answer]) -> None:
        self.names = names  # addresses of each name, or an iterator with the addresses for each call
        self.pages = pages  # by URL
        self.connected: list[str] = []
        self.requests: list[str] = []
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    def resolver(self, host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        addresses = self.names.get(host)
        if addresses is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if isinstance(addresses, Iterator):
            addresses = next(addresses)
        return [(0, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    def connect(self, address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        host, port = address
        self.connected.append(host)
        if host not in (MEDIA, OTHER) or port != 80:
            pytest.fail(f"unexpected connection to {host} port {port}")
        ours, theirs = socket.socketpair()
        end = _End(fileno=theirs.detach())
        end.settimeout(timeout)
        thread = threading.Thread(target=self._serve, args=(ours,), daemon=True)
        self._threads.append(thread)
        self._sockets.append(ours)
        thread.start()
        return end

    def close(self) -> None:
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _serve(self, sock: socket.socket) -> None:
        with sock, suppress(OSError), sock.makefile("rb") as file:
            if not (request := file.readline()):
                return
            method, path, _ = request.decode().split()
            headers = dict(iter(lambda: _header(file.readline()), ("", "")))
            url = f"http://{headers['host']}{path}"
            self.requests.append(f"{method} {url}")
            for chunk in self.pages.get(url, Answer(b"nothing", status=404)).chunks():
                sock.sendall(chunk)


def _header(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode().partition(":")
    return name.strip().lower(), value.strip()


@contextmanager
def internet(names: dict[str, Any], pages: dict[str, Answer]) -> Iterator[Internet]:
    world = Internet(names, pages)
    try:
        yield world
    finally:
        world.close()


# For spawned child processes, which import this module again.


def _stuck() -> Iterator[bytes]:
    yield bytes(300_000)
    threading.Event().wait()


WORLD = Internet(
    {"media.example": [MEDIA], "private.example": ["10.0.0.1"]},
    {
        "http://media.example/talk.mp3": Answer(b"ID3" + bytes(500_000)),
        "http://media.example/there": redirect("http://private.example/talk.mp3"),
        "http://media.example/stuck.mp3": Answer(_stuck, headers={"Content-Length": "400000"}),
    },
)


def resolver(host: str, port: int, **options: Any) -> list[tuple[Any, ...]]:
    return WORLD.resolver(host, port, **options)


def crashing_resolver(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def connect(address: tuple[str, int], timeout: float | None = None) -> socket.socket:
    return WORLD.connect(address, timeout)


def connect_with_full_disk(address: tuple[str, int], timeout: float | None = None) -> socket.socket:
    raise OSError(errno.ENOSPC, "No space left on device")


class WithoutYtDlp:
    """A resolver that hides yt-dlp from the process that unpickles it."""

    def __call__(self, *_: Any, **__: Any) -> list[tuple[Any, ...]]:
        raise AssertionError("the name was resolved")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_hide_yt_dlp, ())


def _hide_yt_dlp() -> Any:
    sys.modules["yt_dlp"] = None  # type: ignore[assignment]
    return resolver
