"""API keys, checked before a byte of the body is read."""

import hmac
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.errors import answer
from app.errors import Unauthorized

OPEN_PATHS = frozenset({"/health", "/ready"})  # probes have no keys


class ApiKeys:
    """ASGI middleware: only requests with one of `keys` as bearer token pass; without keys, all do."""

    def __init__(self, app: ASGIApp, keys: Collection[str]) -> None:
        self.app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._keys and scope["path"] not in OPEN_PATHS:
            error = self._refusal(Headers(scope=scope).get("authorization", ""))
            if error is not None:
                await answer(error)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _refusal(self, authorization: str) -> Unauthorized | None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Unauthorized(
                "You didn't provide an API key. Send it in an Authorization header: "
                "`Authorization: Bearer YOUR_KEY`."
            )
        if not self._known(token.strip().encode("latin-1")):
            return Unauthorized("Incorrect API key provided.")
        return None

    def _known(self, token: bytes) -> bool:
        # Every key is compared, and each in constant time, so that the time taken tells nothing.
        return sum([hmac.compare_digest(token, key) for key in self._keys]) > 0
