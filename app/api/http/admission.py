"""Admits requests, uploads and event streams up to their limits. Further ones get a 429."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.requests import Request

from app.api.http.keys import client_of
from app.intake.limits import Limit, Limits, Shares

if TYPE_CHECKING:
    from app.recording.service import TranscriptionService
    from app.settings import Settings


class Limiter:
    """Counts the requests that hold something, by owner and by link."""

    def __init__(self, limit: Limit) -> None:
        self._shares = Shares(limit)
        self._held: Counter[str] = Counter()  # by owner
        self._by_link: Counter[str] = Counter()  # of those by link: all links together are one owner

    @property
    def held(self) -> int:
        """How many requests hold it."""
        return self._held.total()

    @contextmanager
    def hold(self, request: Request) -> Iterator[None]:
        """Count a request meanwhile. Raises as `check` does."""
        self.check(request)
        client = client_of(request)
        with self._count(client.owner, client.link):
            yield

    @contextmanager
    def hold_for(self, owner: str) -> Iterator[None]:
        """Count what an owner holds without a request. Raises QueueFull if it exceeds the limit."""
        self._shares.check(owner, self._held)
        with self._count(owner):
            yield

    @contextmanager
    def _count(self, owner: str, link: str = "") -> Iterator[None]:
        counted = [(self._held, owner)]
        if link:
            counted.append((self._by_link, link))
        for counter, name in counted:
            counter[name] += 1
        try:
            yield
        finally:
            for counter, name in counted:
                counter[name] -= 1
                if not counter[name]:
                    del counter[name]

    def check(self, request: Request) -> None:
        """Raise QueueFull if a request exceeds the limit."""
        client = client_of(request)
        if client.link:
            self._shares.limit.check_link(self._by_link[client.link])
        self._shares.check(client.owner, self._held)


class Admission:
    """The limiters of a service."""

    def __init__(self, settings: "Settings", service: "TranscriptionService") -> None:
        limits = Limits(settings)
        total = limits.requests.total + service.fleet.jobs_at_once
        self.requests = Limiter(replace(limits.requests, total=total))
        self.uploads = Limiter(limits.uploads)
        self.corrections = Limiter(limits.corrections)
        self.streams = Limiter(limits.streams)
        self.live_streams = Limiter(limits.live_streams)
        self.sending = Limiter(limits.sending)
        self.recordings = Limiter(limits.recordings)
