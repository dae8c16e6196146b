"""Requests whose body, work or client ends early."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.common.concurrency import end_tasks
from app.common.errors import STOPPING, NotReady, no_descriptor
from app.server.errors import error_response, json_error
from app.server.sending import send_in_parts

DRAIN_S = 10
DRAIN_BYTES = 256 << 20
DRAINS = 100  # bodies at a time: a client needs no key for it

T = TypeVar("T")

log = structlog.get_logger("whisperfleet.api")


class EnsureResponse:
    """ASGI middleware: a client gets its response, whatever fails and however early it comes.

    An unexpected exception is logged, and becomes status 500; 503 if there is no descriptor left, or if the
    server stops and cancels a request. Starlette's own handler is outside all middleware, so its response
    would have no request id.

    The server closes the connection after an early response. If the client still sends, that resets the
    connection, and the client may lose the response: a 401 or 413 would look like a network failure. So this
    reads and drops the rest of the body, up to `DRAIN_BYTES` and `DRAIN_S`, for `DRAINS` clients at a time.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._drains = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _RequestBody(receive, Headers(scope=scope))
        started = False

        async def drain_and_send(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if not body.is_read:
                    MutableHeaders(scope=message)["connection"] = "close"
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if body.is_read or body.client_waits or not last or self._drains >= DRAINS:
                await send_in_parts(send, message)
                return
            await send_in_parts(send, {**message, "more_body": True})
            self._drains += 1
            try:
                await body.drain()
            finally:
                self._drains -= 1
            await send({"type": "http.response.body", "body": b""})

        try:
            await self.app(scope, body.receive, drain_and_send)
        except asyncio.CancelledError:
            if started:
                raise
            response = error_response(NotReady(STOPPING))
        except Exception as error:
            if started:
                raise
            lack = no_descriptor(error)
            log.error("unexpected error", path=scope["path"], error=repr(error), exc_info=lack is None)
            request_id = scope.get("state", {}).get("request_id", "unknown")
            message = f"The service failed unexpectedly; its log has the details under {request_id}."
            response = error_response(lack) if lack else json_error(500, message, code="internal_error")
        else:
            return
        await response(scope, body.receive, drain_and_send)


class _RequestBody:
    """The body of a request."""

    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self.is_read = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"
        # A client that sends Expect: 100-continue sends no body before it gets status 100.
        self.client_waits = "expect" in headers

    async def receive(self) -> Message:
        """The next ASGI message."""
        self.client_waits = False
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self.is_read = True
        return message

    async def drain(self) -> None:
        """Read and drop the rest."""
        dropped = 0
        try:
            async with asyncio.timeout(DRAIN_S):
                while not self.is_read and dropped < DRAIN_BYTES:
                    message = await self.receive()
                    dropped += len(message.get("body", b""))
        except TimeoutError:
            pass


async def run_unless_disconnected(request: Request, work: Awaitable[T]) -> T:
    """The result of `work`. Cancels it if the client disconnects or the caller is cancelled.

    The request's body must have been read. Raises ClientDisconnect, and as `work` does. `work` has ended when
    this returns or raises.
    """
    task = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_wait_for_disconnect(request.receive))
    try:
        await asyncio.wait((task, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            disconnected.result()  # raises the error of the server, if there was one
            raise ClientDisconnect
        if task.cancelled():
            raise NotReady(STOPPING)
        return task.result()
    finally:
        await end_tasks(task, disconnected)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
