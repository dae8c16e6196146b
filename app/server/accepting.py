"""The connections of the server: which of them stay, and how long each may wait for the head of a request.

A connection without a complete request costs a client nothing, and needs no key. So if there are too many,
the oldest of them is closed for a new one: a head that arrives at once is answered, however many never end.
"""

import asyncio
import json
import os
import socket
from collections import Counter
from collections.abc import Iterable
from functools import partial
from ipaddress import ip_address
from typing import Any, cast

import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.server.listening import QUEUE, STREAM_PATH
from app.server.requests import Proxies
from app.server.steady_protocol import Steady
from app.server.web_sockets import WebSocketConnection, is_handshake
from app.settings import Settings
from app.telemetry.rare_warnings import RareWarning

MAX_HEADS = 1024  # incomplete ones, of up to 64 KiB each
HEADS_PER_ADDRESS = 128
# In one step of the event loop, before their heads are read: far fewer than the heads of an address.
ACCEPTED_AT_ONCE = 16
RESERVED = 64  # connections beyond the limit, one for each address that has none

log = structlog.get_logger("whisperfleet.connections")


class Connections:
    """The open connections of a server, by what they wait for. `limit`: how many there may be."""

    def __init__(self, settings: Settings, limit: int) -> None:
        self.header_timeout_s = settings.header_timeout_s
        self.stream_paths = {STREAM_PATH, settings.root_path + STREAM_PATH}
        self._limit = limit
        self._proxies = Proxies(settings.trusted_proxies)
        # The oldest is first in each of these.
        self._heads: dict[HttpConnection, None] = {}  # with an incomplete head
        self._heads_of: dict[bytes, dict[HttpConnection, None]] = {}  # the same, by address
        self._idle: dict[HttpConnection, None] = {}  # after a response
        self._held = Counter[bytes]()  # all connections, by address
        self._evicted = RareWarning(log, "connections without a request were closed to make place for others")
        self._refused = RareWarning(
            log, "connections were refused: all have requests (WHISPER_MAX_CONNECTIONS)"
        )

    def enter(self, connection: "HttpConnection", count: int) -> bool:
        """Whether a new connection, one of `count`, may stay. Another one may be closed for it."""
        self._held[connection.address] += 1
        if count <= self._limit or self._evict_oldest(self._heads) or self._evict_oldest(self._idle):
            return True
        if self._held[connection.address] == 1 and count <= self._limit + RESERVED:
            return True
        self._refused.add(limit=self._limit)
        return False

    def begin_head(self, connection: "HttpConnection") -> None:
        """The server waits for the head of a request."""
        self._idle.pop(connection, None)
        of_address = self._heads_of.setdefault(connection.address, {})
        self._heads[connection] = of_address[connection] = None
        # A proxy has the clients of many addresses.
        if len(of_address) > HEADS_PER_ADDRESS and not self._proxies.have(connection.client):
            self._evict_oldest(of_address)
        elif len(self._heads) > MAX_HEADS:
            self._evict_oldest(self._heads)

    def end_head(self, connection: "HttpConnection") -> None:
        """The head is complete: the server works for the request, or sends its response."""
        self._idle.pop(connection, None)
        if connection in self._heads:
            del self._heads[connection]
            of_address = self._heads_of[connection.address]
            del of_address[connection]
            if not of_address:
                del self._heads_of[connection.address]

    def become_idle(self, connection: "HttpConnection") -> None:
        """The response is complete, and the next request has not begun."""
        self._idle[connection] = None

    def leave(self, connection: "HttpConnection") -> None:
        """The connection has ended."""
        self.end_head(connection)
        self.release(connection.address)

    def release(self, address: bytes) -> None:
        """A connection of an address has ended."""
        self._held[address] -= 1
        if not self._held[address]:
            del self._held[address]

    def _evict_oldest(self, connections: Iterable["HttpConnection"]) -> bool:
        """Close the first of some connections. False if there is none."""
        oldest = next(iter(connections), None)
        if oldest is None:
            return False
        self._evicted.add()
        self.end_head(oldest)
        oldest.close()
        return True


class HttpConnection(Steady, H11Protocol):
    """uvicorn's protocol for HTTP, with a deadline for each head, and among `Connections`."""

    def __init__(self, all_connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._all = all_connections
        self._deadline: asyncio.TimerHandle | None = None  # while a head is incomplete
        self.address = b""  # of the client; one for each network of 64 bits with IPv6

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None:
            self.address = ip_address(self.client[0]).packed[:8]
        if self._all.enter(self, len(self.connections)):
            self._begin_head()
        else:
            self.close(_FULL)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_request:
            self._end_deadline()
            self._all.end_head(self)
        elif self._deadline is None and self in self.connections:  # no longer, after an upgrade
            self._begin_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_request and not self.transport.is_closing():
            self._all.become_idle(self)

    def _should_upgrade(self) -> bool:
        """Whether a request opens a stream. Everywhere else it is one of HTTP, whatever it asks for."""
        if self._get_upgrade() != b"websocket" or self.scope["path"] not in self._all.stream_paths:
            return False
        target = b"%s?%s" % (self.scope["raw_path"], self.scope["query_string"])
        return is_handshake(self.scope["method"].encode(), target, self.headers)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """From now on, a `WebSocketConnection` has the connection, which stays one of its address."""
        self._end_deadline()
        self._all.end_head(self)
        self.ws_protocol_class = cast(
            type[asyncio.Protocol],
            partial(
                WebSocketConnection, self.address, self._all.release, send_timeout_s=self._send_timeout_s
            ),
        )
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_deadline()
        self._all.leave(self)

    def close(self, response: bytes = b"") -> None:
        """Close the connection, on which no response is under way."""
        if not self.transport.is_closing():
            self.transport.write(response)
            self.transport.close()

    @property
    def _in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin_head(self) -> None:
        self._deadline = self.loop.call_later(self._all.header_timeout_s, self._time_out)
        self._all.begin_head(self)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_out(self) -> None:
        has_begun = bool(self.conn.trailing_data[0])
        self.close(_TIMEOUT if has_begun else b"")


def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """asyncio's handler of errors, but without a traceback for each lack of a descriptor."""
    if context.get("message", "").startswith("socket.accept()"):
        _not_accepted.add(error=str(context.get("exception")))
    else:
        loop.default_exception_handler(context)


_not_accepted = RareWarning(log, "connections wait: there is no descriptor for them")


def lengthen_queues(servers: Iterable[asyncio.base_events.Server]) -> None:
    """Let the kernel accept more connections than the server does in one step, as asyncio has it."""
    for server in servers:
        for listener in server.sockets:
            with socket.socket(fileno=os.dup(listener.fileno())) as same:
                same.listen(QUEUE)


def _error(status: str, kind: str, code: str, message: str, *headers: str) -> bytes:
    """A response that ends its connection."""
    detail = {"message": message, "type": kind, "param": None, "code": code}
    body = json.dumps({"error": detail})
    head = [
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join([*head, "", body]).encode()


_TIMEOUT = _error(
    "408 Request Timeout",
    "invalid_request_error",
    "header_timeout",
    "The headers of the request were not complete in time (WHISPER_HEADER_TIMEOUT_S). Send it again.",
)
_FULL = _error(
    "503 Service Unavailable",
    "server_error",
    "too_many_connections",
    "All connections of the service are in use (WHISPER_MAX_CONNECTIONS). Try again later.",
    "Retry-After: 5",
)
