"""The WebSockets of the server: little memory for each, and no client that keeps one open for nothing."""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame
from websockets.server import ServerProtocol

from app.server.handshakes import Handshakes
from app.server.steady_protocol import Steady

MAX_MESSAGE_BYTES = 1 << 20
MAX_FRAGMENTS = 1024  # of a message: each costs memory, however short it is
STEP_BYTES = 4096  # parsed at a time: a flood of short frames does not stop all others
REFUSAL_S = 5.0  # a client that broke a rule has so long to read which

_READ_BY_LIBRARY = re.compile(rb"connection|upgrade|sec-websocket-(?!protocol$).*")

# The libraries write whole addresses, and the headers that may contain a key.
_quiet = logging.getLogger("whisperfleet.web_sockets")
_quiet.setLevel(logging.WARNING)


def is_handshake(method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether the library can answer a request with status 101. Names of headers are in lower case."""
    # The library cannot refuse other bytes: it fails, and logs them.
    if not all(value.isascii() for name, value in headers if _READ_BY_LIBRARY.fullmatch(name)):
        return False
    lines = [b"%s %s HTTP/1.1" % (method, target), *(b"%s: %s" % header for header in headers)]
    protocol = ServerProtocol(logger=_quiet)
    protocol.process_subprotocol = _no_subprotocol  # type: ignore[assignment, method-assign]
    protocol.receive_data(b"\r\n".join([*lines, b"", b""]))
    requests = protocol.events_received()
    return bool(requests) and protocol.accept(requests[0]).status_code == 101  # type: ignore[arg-type]


def _no_subprotocol(_: object) -> None:
    """The application chooses it. The library would refuse keys that are no tokens, as in Base64."""


class WebSocketConnection(Steady, WebSocketsSansIOProtocol):
    """uvicorn's protocol for a WebSocket, after `HttpConnection` has read its handshake.

    A message is parsed when the application waits for one, and nothing is read meanwhile: a client that sends
    faster has to wait. Messages are bytes, also those of text: a parser of JSON wants bytes.
    The application gets its handshake as a GET, see `Handshakes`. `on_end` is called with the address of the
    client when the connection has ended.
    """

    def __init__(self, address: bytes, on_end: Callable[[bytes], None], **options: Any) -> None:
        super().__init__(**options)
        self.app = Handshakes(self.app)
        self._address = address
        self._on_end = on_end
        self._unread = bytearray()  # received, and not parsed
        self._is_waiting = True  # the application, for a message; at first the handshake is wanted
        self._next_step: asyncio.Handle | None = None  # of parsing
        self._is_alive = False  # the client has sent something since the last ping
        self.scope = None
        self.logger = self.conn.logger = _quiet
        self.conn.debug = False
        self.conn.process_subprotocol = _no_subprotocol  # type: ignore[assignment, method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_end(self._address)

    def shutdown(self) -> None:
        """The server stops. The application ends its streams, and is cancelled at the deadline."""

    # From the client

    def data_received(self, data: bytes) -> None:
        self._is_alive = True
        if self.conn.parser_exc is None:  # else nothing that follows counts
            self._unread += data
            self._parse()

    def _parse(self) -> None:
        """Parse a step, unless something waits. The next one follows later: others have a turn between."""
        if self._next_step is not None:
            self._next_step.cancel()
            self._next_step = None
        if self._unread and self._is_free:
            step = bytes(self._unread[:STEP_BYTES])
            del self._unread[:STEP_BYTES]
            super().data_received(step)
            if self.conn.parser_exc is not None:
                self._unread.clear()
        if self._unread and self._is_free:
            self._next_step = self.loop.call_soon(self._parse)
        self._read_or_wait()

    @property
    def _is_free(self) -> bool:
        """Whether the application waits for a message, and no answer for the client."""
        return self.close_sent or (self._is_waiting and self.queue.empty() and self.writable.is_set())

    def _read_or_wait(self) -> None:
        self.read_paused = bool(self._unread) or not self._is_free
        if self.read_paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def handle_text(self, event: Frame) -> None:
        self.handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= MAX_FRAGMENTS:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"over {MAX_FRAGMENTS} fragments")
            self.handle_parser_exception()
        elif not self.close_sent:
            super().handle_cont(event)

    def handle_parser_exception(self) -> None:
        """Close with the reason, and drop what still comes: else the client might lose the reason."""
        assert self.conn.close_sent is not None
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.close_timer = self.loop.call_later(REFUSAL_S, self.transport.abort)

    def keepalive_timeout(self) -> None:
        """A client is dead if it sends nothing at all. Its answer to a ping may come behind much audio."""
        if not self._is_alive and not self.read_paused:
            super().keepalive_timeout()
            return
        self.pong_timer = self.pending_ping_payload = None
        self.schedule_ping()

    def send_keepalive_ping(self) -> None:
        self._is_alive = False
        super().send_keepalive_ping()

    # To the client

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_or_wait()  # pongs would fill the memory

    def resume_writing(self) -> None:
        super().resume_writing()
        self._parse()

    # For the application

    async def receive(self) -> Any:
        self._is_waiting = True
        self._parse()
        message = await self.queue.get()
        self._is_waiting = False
        return message

    async def send(self, message: Any) -> None:
        # uvicorn would take these for faults of the application: an end that it has not seen, and a refusal.
        if self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        await super().send(message)
        if self.close_sent:
            self.handshake_complete = True
            self._parse()
