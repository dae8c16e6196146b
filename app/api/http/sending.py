"""Sends responses to clients that read slowly, or not at all: with little memory, and not for ever."""

import asyncio
import socket
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import structlog
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

PART_BYTES = 1 << 16  # of a body that are passed on to the server at a time
UNSENT_BYTES = 1 << 17  # that the kernel takes for a connection beyond those under way
LARGE_BYTES = 1 << 18  # a larger body is compressed while it waits
PATIENCE = 15  # timeouts that a player may pause for
PATIENT = "patient"  # in the state of a request whose response costs nothing but its connection

_LEVEL = 1  # bodies are compressed only until they are sent

log = structlog.get_logger("whisperfleet.api")


class SteadyProtocol(H11Protocol):
    """uvicorn's protocol for a connection, which is closed if its client stops reading.

    What the client does not take at once has to be taken within `send_timeout_s`. `send_in_parts` passes a
    body on in parts, and each waits for the one before. So a client has to read a part in that time.
    """

    def __init__(self, *, send_timeout_s: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._send_timeout_s = send_timeout_s
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # `pause_writing` is called if anything waits
        connection = transport.get_extra_info("socket")
        if connection is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            # Else the kernel takes megabytes, and a slow client seems to stall until they are sent.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)

    def pause_writing(self) -> None:
        super().pause_writing()
        patience = PATIENCE if PATIENT in (self.scope or {}).get("state", {}) else 1
        self._stall_timer = self.loop.call_later(patience * self._send_timeout_s, self._end_stalled)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _end_stalled(self) -> None:
        """Close the connection at once. The response ends as if the client had disconnected."""
        scope: Any = self.scope or {}
        log.info(
            "a client stopped reading; its connection is closed",
            path=scope.get("path"),
            client=self.client[0] if self.client else None,
            request_id=scope.get("state", {}).get("request_id"),
        )
        self.transport.abort()


class AdmittedResponse(Response):
    """Holds `admitted` until it is sent. If that raises, the client gets its error."""

    admitted: AbstractContextManager[object] = nullcontext()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.admitted:
            await super().__call__(scope, receive, send)


class CompressedResponse(AdmittedResponse, StreamingResponse):
    """A response whose body is compressed until it is sent, part by part. Clients do not notice."""

    def __init__(self, response: Response) -> None:
        """Uses CPU time: call it in a thread."""
        body = response.body
        parts = [
            zlib.compress(body[start : start + PART_BYTES], _LEVEL)
            for start in range(0, len(body), PART_BYTES)
        ]
        super().__init__(_decompressed(parts), response.status_code)
        self.raw_headers = response.raw_headers  # with the length


async def sendable(response: Response, admitted: AbstractContextManager[object] | None = None) -> Response:
    """A response, in the form in which it may wait for its client.

    One with a large body is compressed, and holds `admitted` until it is sent.
    """
    if len(response.body) <= LARGE_BYTES:
        return response
    compressed = await asyncio.to_thread(CompressedResponse, response)
    compressed.admitted = admitted or nullcontext()
    return compressed


async def send_in_parts(send: Send, message: Message) -> None:
    """Send a message. A large body goes in parts: the server would copy all of it and wait for nobody."""
    body = message.get("body", b"")
    if len(body) <= PART_BYTES:
        await send(message)
        return
    for start in range(0, len(body), PART_BYTES):
        end = start + PART_BYTES
        has_more = end < len(body) or message.get("more_body", False)
        await send({**message, "body": body[start:end], "more_body": has_more})
        await asyncio.sleep(0)  # a client that reads fast does not keep others waiting


async def _decompressed(parts: Sequence[bytes]) -> AsyncGenerator[bytes]:
    for part in parts:
        yield zlib.decompress(part)
        await asyncio.sleep(0)
