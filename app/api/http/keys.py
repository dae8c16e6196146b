"""Whose a request is: API keys, users of a login proxy, and links. Checked before the body is read."""

import asyncio
import hmac
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.jobs.signatures import check_link, has_signature, shared_link_id
from app.common.errors import LinkRefused, NotAllowed, Unauthorized
from app.common.ids import ID
from app.common.owners import LINK_OWNER, Client, KeyRing, is_user
from app.jobs.shared_links import TOKEN_PREFIX, SharedLink
from app.server.errors import error_response
from app.server.handshakes import CLOSING, POLICY_VIOLATION, is_handshake
from app.server.requests import HAS_BEGUN, Proxies, client_of, route_path
from app.settings import Settings
from app.telemetry.work import current_work, working_for

if TYPE_CHECKING:
    from app.jobs.service import JobService

OPEN_PATHS = frozenset({"/health", "/ready"})  # probes send no keys
PAGE, PAGE_FILES = "/", "/web/"  # the page asks for the key
DOCS_PATHS = frozenset({"/docs", "/openapi.json"})
DOCS_ASSETS = "/docs/assets/"
METRICS_PATH = "/metrics"
IDENTITY_PATH = "/v1/me"

_NO_KEY = Unauthorized(
    "You didn't provide an API key. Send it in an Authorization header: `Authorization: Bearer YOUR_KEY`."
)
_WITHDRAWN = Unauthorized("The key or the link of this request was withdrawn meanwhile.")
# What a shared link opens: below the path of its job, with these methods.
_SHARED_PATH = re.compile(
    rf"/v1/jobs/(?P<job>{ID.pattern})(/(?P<part>segments|cues|revisions|result|links|audio|peaks|speakers))?"
)


class UserHeader:
    """ASGI middleware: takes the name of the user from a header of a login proxy.

    `state.user` is the name in bytes, if one of `proxies` has the connection. Nothing else sees the header.
    Outermost: what is further in knows the address of the client instead of the proxy's.
    """

    def __init__(self, app: ASGIApp, header: str, proxies: Collection[str]) -> None:
        self.app = app
        self._header = header.lower().encode()
        self._proxies = Proxies(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "headers" in scope:
            names = [value for name, value in scope["headers"] if name == self._header]
            others = [(name, value) for name, value in scope["headers"] if name != self._header]
            scope = {**scope, "headers": others, "state": {**scope.get("state", {})}}
            if len(names) == 1 and names[0] and self._proxies.have(scope.get("client")):
                scope["state"]["user"] = names[0]
        await self.app(scope, receive, send)


class Authentication:
    """Refuses requests that do not say whose they are, and ends those that have lost what let them in.

    `state.client` of a request is whose it is. A request without an Authorization header may be a signed link
    to audio or a result. A bearer token may be that of a shared link: `state.shared` is the link then.
    """

    def __init__(self, settings: Settings, keys: KeyRing, jobs: "JobService") -> None:
        # The requests under way, by their tasks.
        self._open: dict[asyncio.Task[Any], tuple[asyncio.Timeout, Scope]] = {}
        self._keys = keys
        self._shared = jobs.shared_links
        self._link_secrets = jobs.link_secrets
        self._clock = jobs.clock
        self._public_docs = settings.public_docs
        self._metrics_key = None if settings.metrics_key is None else settings.metrics_key.encode()
        self._operators = frozenset(settings.operators)

    def middleware(self, app: ASGIApp) -> ASGIApp:
        """An application that checks requests before `app` gets them."""
        return partial(self._answer, app)

    def end(self, owner: str | None = None) -> list[asyncio.Task[Any]]:
        """Cancel all requests of an owner, and those that would not be let in now, but for the caller's own.

        Returns their tasks.
        """
        ended = []
        for task, (work, scope) in self._open.items():
            is_ended = scope["state"]["client"].owner == owner or not self._is_let_in(scope)
            if is_ended and task is not asyncio.current_task():
                ended.append(task)
                scope["state"][CLOSING] = (POLICY_VIOLATION, _WITHDRAWN.message)
                if not work.expired():
                    work.reschedule(0)
        return ended

    def _is_let_in(self, scope: Scope) -> bool:
        client: Client = scope["state"]["client"]
        with suppress(LinkRefused, NotAllowed, Unauthorized):
            return self._client(scope) == client
        return False

    async def _answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_open(route_path(scope)):
            await app(scope, receive, send)
            return
        try:
            client = self._client(scope)
        except (LinkRefused, NotAllowed, Unauthorized) as error:
            await error_response(error)(scope, receive, send)
            return
        scope["state"]["client"] = client
        task, work = asyncio.current_task(), asyncio.timeout(None)
        assert task is not None
        self._open[task] = (work, scope)
        try:
            with working_for(replace(current_work(), owner=client.owner)):
                async with work:
                    await app(scope, receive, send)
        except TimeoutError:
            if not work.expired():
                raise
        finally:
            del self._open[task]
        if work.expired() and HAS_BEGUN not in scope["state"]:  # else the server cuts the response
            await error_response(_WITHDRAWN)(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        if self._public_docs and (path in DOCS_PATHS or path.startswith(DOCS_ASSETS)):
            return True
        return path in OPEN_PATHS or path == PAGE or path.startswith(PAGE_FILES)

    def _client(self, scope: Scope) -> Client:
        """Whose a request is. Raises Unauthorized, LinkRefused and NotAllowed."""
        path, state, headers = route_path(scope), scope.setdefault("state", {}), Headers(scope=scope)
        authorization = headers.get("authorization")
        if authorization is None and has_signature(scope["query_string"]):
            link, state["shared"] = self._check_link(scope, path)
            return Client(LINK_OWNER, is_operator=False, link=link)
        token = _token(authorization)
        if token.startswith(TOKEN_PREFIX):
            state["shared"] = shared = self._check_shared(token, scope["method"], path)
            return Client(LINK_OWNER, is_operator=False, link=shared.id)
        if (name := state.get("user")) is not None:  # a login proxy may send a token of its own beside it
            try:
                user = name.decode()
            except UnicodeDecodeError:  # with replacements, it could be somebody else's
                raise Unauthorized(
                    "The name of the user is not UTF-8. Let the login proxy send it so, or use another one."
                ) from None
            if not is_user(user):
                raise NotAllowed(
                    "The name of the user is too long or has control characters: use another account."
                )
            return Client(user, user in self._operators)
        if not token:
            raise _NO_KEY
        if path == METRICS_PATH and self._metrics_key and hmac.compare_digest(token, self._metrics_key):
            return Client("metrics", is_operator=True)
        client = self._keys.find(token)
        if client is None:
            hint = " In a subprotocol, it is percent-encoded." if is_handshake(scope) else ""
            raise Unauthorized(f"Incorrect API key provided.{hint}")
        return client

    def _check_link(self, scope: Scope, path: str) -> tuple[str, SharedLink | None]:
        """The signature of a signed link, and the shared link that has made it, with which it ends."""
        query = scope["query_string"]
        secrets = self._link_secrets.by_owner.values()
        signature = check_link(secrets, scope["method"], path, query, self._clock())
        made_by = shared_link_id(query)
        link = None if made_by is None else self._shared.get(made_by)
        if made_by is not None and (link is None or not link.may("GET", path.rpartition("/")[2])):
            raise LinkRefused("The shared link that made this link was revoked, or has expired.")
        return signature, link

    def _check_shared(self, token: bytes, method: str, path: str) -> SharedLink:
        link = self._shared.find(token)
        if link is None:
            raise Unauthorized(
                "This shared link was revoked, or it has expired. Ask for a new one.",
                code="shared_link_ended",
            )
        found = _SHARED_PATH.fullmatch(path)
        if path == IDENTITY_PATH and method == "GET":
            return link
        if found is None or found["job"] != link.job_id or not link.may(method, found["part"] or ""):
            raise NotAllowed("This shared link does not open that. It opens one transcript alone.")
        return link


def _token(authorization: str | None) -> bytes:
    """The token of an Authorization header; empty without one, and with another scheme."""
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip().encode("latin-1") if scheme.lower() == "bearer" else b""


def shared_link_of(request: Request) -> SharedLink | None:
    """The shared link that a request was made by, or by a signed link that it has made."""
    link: SharedLink | None = getattr(request.state, "shared", None)
    return link


async def operators_only(request: Request) -> None:
    """Raise NotAllowed unless the client is an operator. A dependency of routes."""
    client = client_of(request)
    if not client.is_operator:
        raise NotAllowed(f"{client.owner} is no operator of this service, and this is for operators.")
