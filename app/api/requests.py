"""What surrounds each request: its id, its line in the log, and a gentle end where its body was not read."""

import asyncio
import re
import time
import uuid
from collections.abc import Callable

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import CLIENT_CLOSED_REQUEST

LINGER_S = 10
LINGER_BYTES = 256 << 20
FIRST_ERROR = 400

_SANE_ID = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")

log = structlog.get_logger("whisperfleet.access")


class RequestLog:
    """ASGI middleware: gives each request an id, says so in the answer, and logs one line at the end.

    The id is in structlog's context, so that whatever is logged on the way carries it. `demo` says whether
    the demo model answers; each answer then has a header that says so.
    """

    def __init__(self, app: ASGIApp, demo: Callable[[], bool]) -> None:
        self.app = app
        self._demo = demo

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        status = CLIENT_CLOSED_REQUEST
        began = time.perf_counter()

        async def label(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if self._demo():
                    headers["x-whisperfleet-model"] = "demo"
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, label)
            finally:
                # Probes and clients ask every few seconds how things are.
                quiet = scope["method"] == "GET" and status < FIRST_ERROR
                write = log.debug if quiet else log.info
                write(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    ms=round((time.perf_counter() - began) * 1000, 1),
                    request_id=request_id,
                )


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if _SANE_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"


class Linger:
    """ASGI middleware: an answer given before the body was read ends only when the client has sent it.

    Closing a connection on which data still arrives resets it, and the reset can destroy the answer before
    the client reads it: a 401 or 413 would look like a network failure. So the rest of the body is read and
    dropped, up to `LINGER_BYTES` and `LINGER_S`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self.app(scope, receive, send)
            return
        body = _Body(receive, waits="expect" in Headers(scope=scope))

        async def hold(message: Message) -> None:
            if not body.is_read and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["connection"] = "close"
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if not (last and body.is_coming):
                await send(message)
                return
            await send({**message, "more_body": True})
            await body.drop()
            await send({"type": "http.response.body", "body": b""})

        await self.app(scope, body.receive, hold)


class _Body:
    """A request's body, and whether more of it is to come."""

    def __init__(self, receive: Receive, *, waits: bool) -> None:
        self.is_read = False
        self._receive = receive
        self._waits = waits  # the client sends nothing before it is asked to (Expect: 100-continue)

    @property
    def is_coming(self) -> bool:
        return not self.is_read and not self._waits

    async def receive(self) -> Message:
        self._waits = False
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self.is_read = True
        return message

    async def drop(self) -> None:
        dropped = 0
        try:
            async with asyncio.timeout(LINGER_S):
                while self.is_coming and dropped < LINGER_BYTES:
                    message = await self.receive()
                    dropped += len(message.get("body", b""))
        except TimeoutError:
            pass


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
