"""Counts of requests, by endpoints that are known: clients choose paths and methods, and may invent them."""

from collections import Counter
from collections.abc import Iterable

from starlette.routing import BaseRoute, Route

from app.api.errors import CLIENT_CLOSED_REQUEST, METHODS
from app.telemetry.histogram import Histogram

UNMATCHED = "unmatched"  # no endpoint has this path and method
OTHER = "other"  # a method of no endpoint


class RequestCounts:
    """How many requests were answered, and how long the answers took to begin."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str]] = Counter()  # by method, route and status
        self.seconds = Histogram(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
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
        label = method if method in METHODS else OTHER
        self.requests[label, next(known, UNMATCHED), str(status)] += 1
        if status != CLIENT_CLOSED_REQUEST:  # its time says nothing of the service
            self.seconds.add(seconds)
