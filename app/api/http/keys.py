"""API keys, and links that need none. They are checked before the body is read."""

import hashlib
import hmac
import time
from collections.abc import Callable, Collection
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.errors import error_response
from app.api.http.requests import LINK_OWNER
from app.api.http.root_path import route_path
from app.api.jobs.signatures import check_link, has_signature
from app.errors import LinkRefused, Unauthorized
from app.telemetry.work import current_work, working_for

OPEN_PATHS = frozenset({"/health", "/ready"})  # probes send no keys
PAGE, PAGE_FILES = "/", "/web/"  # the page asks for the key
DOCS_PATHS = frozenset({"/docs", "/openapi.json"})
DOCS_ASSETS = "/docs/assets/"


class ApiKeys:
    """ASGI middleware: refuses requests without one of `keys` as bearer token.

    `state.owner` of a request is the digest of its key. `public_docs`: documentation needs no key.
    A request without an Authorization header may be a link, signed with `link_secret`: `state.link` is its
    signature.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: Collection[str],
        link_secret: Callable[[], bytes],
        *,
        public_docs: bool = False,
    ) -> None:
        self.app = app
        self._link_secret = link_secret
        self._public_docs = public_docs
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_open(path := route_path(scope)):
            await self.app(scope, receive, send)
            return
        headers, query = Headers(scope=scope), scope["query_string"]
        state = scope.setdefault("state", {})
        try:
            if "authorization" not in headers and has_signature(query):
                state["link"] = check_link(self._link_secret(), scope["method"], path, query, time.time())
                owner = LINK_OWNER
            else:
                owner = hashlib.sha256(self._check(headers.get("authorization", ""))).hexdigest()
        except (LinkRefused, Unauthorized) as error:
            await error_response(error)(scope, receive, send)
            return
        state["owner"] = owner
        with working_for(replace(current_work(), owner=owner)):
            await self.app(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        if self._public_docs and (path in DOCS_PATHS or path.startswith(DOCS_ASSETS)):
            return True
        return path in OPEN_PATHS or path == PAGE or path.startswith(PAGE_FILES)

    def _check(self, authorization: str) -> bytes:
        """The key in an Authorization header. Raises Unauthorized if it is missing or wrong."""
        scheme, _, token = authorization.partition(" ")
        key = token.strip().encode("latin-1")
        if scheme.lower() != "bearer" or not key:
            raise Unauthorized(
                "You didn't provide an API key. Send it in an Authorization header: "
                "`Authorization: Bearer YOUR_KEY`."
            )
        if not self._is_known(key):
            raise Unauthorized("Incorrect API key provided.")
        return key

    def _is_known(self, token: bytes) -> bool:
        # Compares with every key, each in constant time: the duration must reveal nothing about the keys.
        return sum([hmac.compare_digest(token, key) for key in self._keys]) > 0
