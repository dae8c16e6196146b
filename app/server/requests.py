"""Requests: their paths and clients, their ids, log lines and counts."""

import re
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from ipaddress import ip_network

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.common.owners import LINK_OWNER, Client
from app.server.handshakes import is_handshake
from app.telemetry import traces
from app.telemetry.histogram import Histogram
from app.telemetry.work import Work, working_for
from workers.addresses import parsed_address

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FIRST_ERROR = 400
CLIENT_CLOSED_REQUEST = 499  # nginx's status; only the log shows it, because the client is gone
MAX_ADDRESS_CHARS = 64
HAS_BEGUN = "has_begun"  # in the state of a request whose response has
WARNING_HEADER = "X-Whisperfleet-Warning"
UNMATCHED = "unmatched"  # no endpoint has this path and method
OTHER = "other"  # a method of no endpoint

_VALID_ID = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")

log = structlog.get_logger("whisperfleet.access")


def route_path(scope: Scope) -> str:
    """The path of a request below the root path: what routes and signatures name."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def public_path(request: Request, path: str) -> str:
    """A path of the service as clients see it: below the root path."""
    return f"{request.scope.get('root_path', '')}{path}"


def client_of(request: Request) -> Client:
    """Whose a request is; an operator's if the service requires no key."""
    client: Client = getattr(request.state, "client", Client())
    return client


def is_by_link(request: Request) -> bool:
    """Whether a request is made by a link, which gives less than a key does."""
    return client_of(request).owner == LINK_OWNER


class Proxies:
    """The proxies in front of the service, which have the clients of many addresses."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ip_network(network) for network in networks]

    def have(self, client: tuple[str, int] | None) -> bool:
        """Whether a connection is that of one of them. A socket in the file system has no address."""
        address = parsed_address(client[0]) if client else None
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks if address is not None)


def warn(request: Request, texts: Iterable[str]) -> None:
    """Add texts, in ASCII, to the header of the answer for what the client should know."""
    request.scope.setdefault("state", {}).setdefault("warnings", []).extend(texts)


class RootPath:
    """ASGI middleware: answers below `root`, such as `/whisper`, whether or not the proxy removes it.

    Paths without `root` work as well: those of probes, and of clients that do not use the proxy.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        if path == self._root:
            # The page's addresses are relative: without the slash, they would lead out of `root`.
            query = scope["query_string"].decode("latin-1")
            target = f"{self._root}/?{query}" if query else f"{self._root}/"
            await RedirectResponse(target)(scope, receive, send)
            return
        if not path.startswith(f"{self._root}/"):
            path = self._root + path
        await self.app({**scope, "path": path, "root_path": self._root}, receive, send)


def _new_seconds() -> Histogram:
    return Histogram(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class RequestCounts:
    """How many requests were answered, and how long the answers took to begin."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str]] = Counter()  # by method, route and status
        self.seconds = defaultdict[tuple[str, str], Histogram](_new_seconds)  # by method and route
        self._routes: dict[str, list[Route]] = {}  # by method, in the order in which they are tried

    def add_routes(self, routes: Iterable[BaseRoute]) -> None:
        """Make endpoints known, after those before. Other routes, such as mounts, are ignored."""
        for route in routes:
            if isinstance(route, Route):
                for method in route.methods or ():
                    self._routes.setdefault(method, []).append(route)

    def add(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request, also one that was refused before it reached an endpoint.

        `path` is below the root path. `seconds`: until the answer began, or the client left (status 499).
        """
        known = (route.path_format for route in self._routes.get(method, ()) if route.path_regex.match(path))
        label, route = method if method in METHODS else OTHER, next(known, UNMATCHED)
        self.requests[label, route, str(status)] += 1
        if status != CLIENT_CLOSED_REQUEST:  # its time says nothing of the service
            self.seconds[label, route].add(seconds)


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
        path = route_path(scope)
        start = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                scope["state"][HAS_BEGUN], status = True, message["status"]
                self._counts.add(scope["method"], path, status, time.perf_counter() - start)
                answer_headers = MutableHeaders(scope=message)
                client = scope["state"].get("client")
                by_link = client is not None and client.link != ""
                policy = "cross-origin" if by_link else "same-origin"  # a page may play what a link opens
                answer_headers.setdefault("cross-origin-resource-policy", policy)
                answer_headers["x-content-type-options"] = "nosniff"  # transcripts are not pages
                if by_link:  # other sites and shared caches get nothing
                    answer_headers.setdefault("referrer-policy", "no-referrer")
                    answer_headers.setdefault("cache-control", "private")
                answer_headers["x-request-id"] = request_id
                if self._is_demo():
                    answer_headers["x-whisperfleet-model"] = "demo"
                if warnings := scope["state"].get("warnings"):
                    answer_headers[WARNING_HEADER] = "; ".join(warnings)
            await send(message)

        with working_for(Work(request_id)), traces.request(method, headers) as span:
            try:
                await self.app(scope, receive, send_with_headers)
            finally:
                if HAS_BEGUN not in scope["state"]:
                    self._counts.add(scope["method"], path, status, time.perf_counter() - start)
                if span.is_recording():
                    route = getattr(scope.get("route"), "path", None)
                    traces.describe_answer(span, method, route, status)
                # Probes and clients poll every few seconds.
                quiet = scope["method"] == "GET" and status < FIRST_ERROR and not is_handshake(scope)
                write = log.debug if quiet else log.info
                address = scope.get("client")
                sender = scope["state"].get("client")  # once its key was checked, if one is required
                write(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    # Without its port. A trusted proxy names it, so it may be any text.
                    client=address[0][:MAX_ADDRESS_CHARS] if address else None,
                    ms=round((time.perf_counter() - start) * 1000, 1),
                    request_id=request_id,
                    **({} if sender is None else {"owner": sender.owner}),
                )
