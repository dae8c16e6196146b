"""How many requests, uploads and event streams there may be at the same time. Further ones get a 429."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request

from app.errors import QueueFull

if TYPE_CHECKING:
    from app.settings import Settings
    from app.transcription.service import TranscriptionService

KEY_DIVISOR = 10  # one API key may hold a tenth of the places for uploads, and of those for event streams


class Places:
    """A limited number of places, and of places for the requests of one API key."""

    def __init__(
        self, limit: int, setting: str, what: str, *, limits_keys: bool = False, code: str | None = None
    ) -> None:
        """`what` holds the places, in the plural, and `setting` limits them; `code` is that of the error.

        `limits_keys`: each API key may hold the limit divided by `KEY_DIVISOR`.
        """
        self._limit = limit
        self._setting = setting
        self._what = what
        self._per_key = max(1, limit // KEY_DIVISOR) if limits_keys else None
        self._code = code
        self._held: Counter[str] = Counter()  # by owner

    @property
    def held(self) -> int:
        """How many places are held."""
        return self._held.total()

    @contextmanager
    def hold(self, request: Request) -> Iterator[None]:
        """Hold a place for a request. Raises as `check` does."""
        self.check(request)
        owner = owner_of(request)
        self._held[owner] += 1
        try:
            yield
        finally:
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]

    def check(self, request: Request) -> None:
        """Raise QueueFull if there is no place for a request."""
        owner = owner_of(request)
        if self.held >= self._limit:
            raise QueueFull(
                f"{self._limit} {self._what} are under way, as many as this service takes ({self._setting}); "
                "try again later.",
                code=self._code,
            )
        if owner and self._per_key is not None and self._held[owner] >= self._per_key:
            raise QueueFull(
                f"{self._per_key} of your {self._what} are under way, as many as one API key may have (1/"
                f"{KEY_DIVISOR} of {self._setting}); try again when one has ended.",
                code=self._code,
            )


class Admission:
    """The places of a service."""

    def __init__(self, settings: "Settings", service: "TranscriptionService") -> None:
        # Requests that can run at once do not count as waiting.
        self.requests = Places(
            settings.max_queued_jobs + service.fleet.jobs_at_once, "WHISPER_MAX_QUEUED_JOBS", "requests"
        )
        self.uploads = Places(
            settings.max_uploads,
            "WHISPER_MAX_UPLOADS",
            "uploads",
            limits_keys=True,
            code="too_many_uploads",
        )
        # Their bodies are in memory.
        self.corrections = Places(
            max(1, settings.max_uploads // KEY_DIVISOR),
            f"1/{KEY_DIVISOR} of WHISPER_MAX_UPLOADS",
            "corrections",
            code="too_many_corrections",
        )
        self.streams = Places(
            settings.max_event_streams,
            "WHISPER_MAX_EVENT_STREAMS",
            "event streams",
            limits_keys=True,
            code="too_many_event_streams",
        )


def owner_of(request: Request) -> str:
    """The digest of a request's API key; empty if no keys are set."""
    return str(getattr(request.state, "owner", ""))
