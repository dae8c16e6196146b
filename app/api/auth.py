"""API keys, checked before a byte of the body is read."""

import hashlib
import hmac
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.errors import answer
from app.errors import Unauthorized

OPEN_PATHS = frozenset({"/health", "/ready"})  # probes have no keys


class ApiKeys:
    """ASGI middleware: only requests with one of `keys` as bearer token pass; without keys, all do.

    Where there are keys, a request's `state.owner` is a digest of its own.
    """

    def __init__(self, app: ASGIApp, keys: Collection[str]) -> None:
        self.app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._keys and scope["path"] not in OPEN_PATHS:
            try:
                key = self._checked(Headers(scope=scope).get("authorization", ""))
            except Unauthorized as error:
                await answer(error)(scope, receive, send)
                return
            scope.setdefault("state", {})["owner"] = hashlib.sha256(key).hexdigest()
        await self.app(scope, receive, send)

    def _checked(self, authorization: str) -> bytes:
        """The key in a header. Raises Unauthorized where there is none, or a wrong one."""
        scheme, _, token = authorization.partition(" ")
        key = token.strip().encode("latin-1")
        if scheme.lower() != "bearer" or not key:
            raise Unauthorized(
                "You didn't provide an API key. Send it in an Authorization header: "
                "`Authorization: Bearer YOUR_KEY`."
            )
        if not self._known(key):
            raise Unauthorized("Incorrect API key provided.")
        return key

    def _known(self, token: bytes) -> bool:
        # Every key is compared, and each in constant time, so that the time taken tells nothing.
        return sum([hmac.compare_digest(token, key) for key in self._keys]) > 0
