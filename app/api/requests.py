"""Requests: their ids, log lines and paths, and reading the rest of their bodies."""

import asyncio
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import CLIENT_CLOSED_REQUEST, METHODS
from app.api.request_counts import RequestCounts
from app.telemetry import traces
from app.telemetry.work import Work, working_for

DRAIN_S = 10
DRAIN_BYTES = 256 << 20
FIRST_ERROR = 400
MAX_ADDRESS_CHARS = 64

_VALID_ID = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")

log = structlog.get_logger("whisperfleet.access")


def route_path(scope: Scope) -> str:
    """The path of a request below the root path: what routes and signatures name."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def public_path(request: Request, path: str) -> str:
    """A path of the service as clients see it: below the root path."""
    return f"{request.scope.get('root_path', '')}{path}"


class RequestLog:
    """ASGI middleware: gives each request an id, which the response has as a header, and logs one line.

    The id is in structlog's context, so all log lines of the request have it. `is_demo` says whether the demo
    model is in use; every response has a header then. `counts` has each request when its response begins.
    """

    def __init__(self, app: ASGIApp, is_demo: Callable[[], bool], counts: RequestCounts) -> None:
        self.app = app
        self._is_demo = is_demo
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        if not _VALID_ID.fullmatch(request_id):
            request_id = f"req_{uuid.uuid4().hex}"
        scope.setdefault("state", {})["request_id"] = request_id
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"  # in traces
        status = CLIENT_CLOSED_REQUEST
        has_begun = False  # the response
        start = time.perf_counter()

        def count() -> None:
            nonlocal has_begun
            has_begun = True
            self._counts.add(scope["method"], route_path(scope), status, time.perf_counter() - start)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                count()
                answer_headers = MutableHeaders(scope=message)
                answer_headers["x-request-id"] = request_id
                if self._is_demo():
                    answer_headers["x-whisperfleet-model"] = "demo"
            await send(message)

        with (
            working_for(Work(request_id)),
            traces.request(method, headers) as span,
        ):
            try:
                await self.app(scope, receive, send_with_headers)
            finally:
                if not has_begun:
                    count()
                if span.is_recording():
                    route = getattr(scope.get("route"), "path", None)
                    traces.describe_answer(span, method, route, status)
                # Probes and clients poll every few seconds.
                quiet = scope["method"] == "GET" and status < FIRST_ERROR
                write = log.debug if quiet else log.info
                write(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    client=_client(scope),
                    ms=round((time.perf_counter() - start) * 1000, 1),
                    request_id=request_id,
                )


def _client(scope: Scope) -> str | None:
    """The client's address, without its port. A trusted proxy has named it, so it may be any text."""
    address = scope.get("client")
    return address[0][:MAX_ADDRESS_CHARS] if address else None


class DrainBody:
    """ASGI middleware: reads the rest of the body before an early response ends.

    The server closes the connection after an early response. If the client still sends, that resets the
    connection, and the client may lose the response: a 401 or 413 would look like a network failure. So this
    reads and drops the rest of the body, up to `DRAIN_BYTES` and `DRAIN_S`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if "transfer-encoding" not in headers and headers.get("content-length", "0") == "0":
            await self.app(scope, receive, send)
            return
        body = _Body(receive, client_waits="expect" in headers)

        async def drain_and_send(message: Message) -> None:
            if not body.is_read and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["connection"] = "close"
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if not (last and body.is_coming):
                await send(message)
                return
            await send({**message, "more_body": True})
            await body.drain()
            await send({"type": "http.response.body", "body": b""})

        await self.app(scope, body.receive, drain_and_send)


@dataclass(slots=True)
class _Body:
    """The body of a request."""

    next_message: Receive
    client_waits: bool  # the client sends no body before it gets status 100 (Expect: 100-continue)
    is_read: bool = False

    @property
    def is_coming(self) -> bool:
        """Whether the client may still send."""
        return not self.is_read and not self.client_waits

    async def receive(self) -> Message:
        """The next ASGI message."""
        self.client_waits = False
        message = await self.next_message()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self.is_read = True
        return message

    async def drain(self) -> None:
        """Read and drop the rest."""
        dropped = 0
        try:
            async with asyncio.timeout(DRAIN_S):
                while self.is_coming and dropped < DRAIN_BYTES:
                    message = await self.receive()
                    dropped += len(message.get("body", b""))
        except TimeoutError:
            pass
