"""Protection from web pages of other sites, in the browser of someone who can reach the service.

A page can do so in two ways. It can send forms here, which needs no permission. And the page's own host name
can change its address to that of the service (DNS rebinding): then the browser takes the service for the
page's own site, and the page may also read.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.keys import OPEN_PATHS
from app.api.jobs.signatures import has_signature
from app.common.errors import HostNotAllowed, OriginNotAllowed
from app.server.errors import error_response
from app.server.handshakes import is_handshake
from app.server.requests import route_path
from app.telemetry.rare_warnings import RareWarning
from workers.addresses import parsed_address

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})  # change nothing
MAX_SHOWN_CHARS = 100

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+(%[^\]\s]*)?\]|[^\s:/?#@\[\],]+)(:(?P<port>\d*))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}

log = structlog.get_logger("whisperfleet.api")


class Host(NamedTuple):
    """A host as in a `Host` header."""

    name: str  # lower case, an IPv6 address without brackets
    port: str  # "" if it is not given


class AllowedHosts:
    """The host names under which the service answers.

    Only names in the public DNS allow rebinding, and these have dots. So IP addresses, names without a dot
    and names of the loopback interface are always allowed.
    """

    def __init__(self, names: Collection[str]) -> None:
        """`*` allows all names, `*.example.org` all subdomains, `.example.org` also example.org itself."""
        self._all = "*" in names
        self._names = {name.removeprefix(".").lower() for name in names}
        self._suffixes = (
            ".localhost",
            *(name.removeprefix("*") for name in names if name.startswith(("*.", "."))),
        )

    def allows(self, header: str) -> bool:
        """Whether the service answers under the host of a `Host` header. An empty one is no browser's."""
        if self._all or not header:
            return True
        host = parse_host(header)
        if host is None:
            return False
        return (
            host.name in self._names
            or host.name.endswith(self._suffixes)
            or "." not in host.name
            or parsed_address(host.name) is not None
        )


class BrowserGuard:
    """ASGI middleware: refuses requests under other `hosts` (421), and changes by pages elsewhere (403).

    With `hosts`, reaching the service opens it, or a login that browsers remember does. Then pages of other
    sites may not read from the API either: they see no answer, but how long it takes. If `has_links`, signed
    links are for all pages.

    A WebSocket counts as a change: no browser asks the service whether a page elsewhere may read from it.
    `hosts` None allows all. `origins` are those of other pages that may change something; `*` allows all.
    """

    def __init__(
        self, app: ASGIApp, hosts: AllowedHosts | None, origins: Collection[str], *, has_links: bool = False
    ) -> None:
        self.app = app
        self._has_links = has_links
        self._hosts = hosts
        self._origins = origins
        self._refused = RareWarning(log, "requests refused")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and route_path(scope) not in OPEN_PATHS:
            try:
                headers = Headers(scope=scope)
                changes = scope["method"] not in SAFE_METHODS or is_handshake(scope)
                self._check(headers, changes=changes or self._is_timed(scope, headers))
            except (HostNotAllowed, OriginNotAllowed) as error:
                self._refused.add(reason=error.message)
                await error_response(error)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _check(self, headers: Headers, *, changes: bool) -> None:
        """Raise HostNotAllowed or OriginNotAllowed."""
        hosts = headers.getlist("host")
        for header in hosts:
            if self._hosts is not None and not self._hosts.allows(header):
                raise _host_not_allowed(header)
        if not changes or "*" in self._origins:
            return
        origins = headers.getlist("origin")
        for origin in origins:
            if origin not in self._origins and not is_own(origin, hosts):
                raise _origin_not_allowed(f"A page of {origin[:MAX_SHOWN_CHARS]}")
        if not origins and headers.get("sec-fetch-site") == "cross-site":
            raise _origin_not_allowed("A page of another site")

    def _is_timed(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request may be one by which a page of another site measures the API."""
        return (
            self._hosts is not None
            and headers.get("sec-fetch-site") == "cross-site"
            and headers.get("sec-fetch-dest") != "document"  # somebody follows a link
            and route_path(scope).startswith("/v1/")
            and not (self._has_links and has_signature(scope["query_string"]))
        )


def parse_host(header: str) -> Host | None:
    """The host in a `Host` header; None if it is none."""
    found = _HOST.fullmatch(header.strip().lower())
    if found is None:
        return None
    name = found["name"].strip("[]").removesuffix(".")
    return Host(name, found["port"] or "") if name else None


def is_own(origin: str, hosts: Sequence[str]) -> bool:
    """Whether an `Origin` is the service itself, as addressed by the `Host` headers of the same request.

    The schemes may differ, because a proxy may end TLS. If `Host` has no port, or the default one, the ports
    may differ as well: proxies often pass on the name alone.
    """
    scheme, _, rest = origin.lower().partition("://")
    page = parse_host(rest)
    if page is None or not hosts:
        return False
    port = page.port or _DEFAULT_PORTS.get(scheme, "")
    own = [parse_host(header) for header in hosts]
    return all(
        host is not None and host.name == page.name and host.port in ("", *_DEFAULT_PORTS.values(), port)
        for host in own
    )


def _host_not_allowed(header: str) -> HostNotAllowed:
    host = parse_host(header)
    name = (host.name if host else header)[:MAX_SHOWN_CHARS]
    return HostNotAllowed(
        f"This service does not answer under the host name {name}. Its operator can allow the name with "
        f"WHISPER_ALLOWED_HOSTS={name}."
    )


def _origin_not_allowed(page: str) -> OriginNotAllowed:
    return OriginNotAllowed(
        f"{page} may not send this request. The service's operator can allow the page's origin with "
        "WHISPER_CORS_ORIGINS. If it is the service's own page behind a proxy, the proxy must pass on `Host`."
    )
