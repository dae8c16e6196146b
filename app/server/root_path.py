"""The path below which a proxy in front publishes the service."""

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send


def route_path(scope: Scope) -> str:
    """The path of a request below the root path: what routes and signatures name."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


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
