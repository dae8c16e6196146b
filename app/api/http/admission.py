"""Admits requests, uploads and event streams up to their limits. Further ones get a 429."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.requests import Request

from app.limits import Limit, Limits

if TYPE_CHECKING:
    from app.settings import Settings
    from app.transcription.service import TranscriptionService


class Limiter:
    """Counts the requests that hold something, in all and of each API key."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._held: Counter[str] = Counter()  # by owner

    @property
    def held(self) -> int:
        """How many requests hold it."""
        return self._held.total()

    @contextmanager
    def hold(self, request: Request) -> Iterator[None]:
        """Count a request meanwhile. Raises as `check` does."""
        owner = owner_of(request)
        self._check(owner)
        self._held[owner] += 1
        try:
            yield
        finally:
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]

    def check(self, request: Request) -> None:
        """Raise QueueFull if a request exceeds the limit."""
        self._check(owner_of(request))

    def _check(self, owner: str) -> None:
        self._limit.check(self._held.total(), self._held[owner] if owner else 0)


class Admission:
    """The limiters of a service."""

    def __init__(self, settings: "Settings", service: "TranscriptionService") -> None:
        limits = Limits(settings)
        total = limits.requests.total + service.fleet.jobs_at_once
        self.requests = Limiter(replace(limits.requests, total=total))
        self.uploads = Limiter(limits.uploads)
        self.corrections = Limiter(limits.corrections)
        self.streams = Limiter(limits.streams)
        self.sending = Limiter(limits.sending)
        self.recordings = Limiter(limits.recordings)


def owner_of(request: Request) -> str:
    """The digest of a request's API key or link; empty if no keys are set."""
    return str(getattr(request.state, "owner", ""))
