"""A figure that may take long to read, such as that of a driver or of a network disk."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from app.common.concurrency import in_daemon_thread
from app.common.known_errors import explain

_INTERVAL_S = 2.0  # between two samples, at least
_PATIENCE_S = 1.0  # a caller waits so long for a sample
_STALE_S = 10.0  # figures that are older are not shown

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Sampler(Generic[T]):
    """Reads a figure when it is asked to, in a thread. Never raises, and never blocks the loop."""

    def __init__(self, what: str, source: str, read: Callable[[], T]) -> None:
        """`what` is sampled by asking `source`, as logs name them. `read` may block for ever, and raise."""
        self._what = what
        self._source = source
        self._read = read
        self._value: T | None = None
        self._read_at = -math.inf
        self._sampling: asyncio.Task[None] | None = None
        self._began = -math.inf  # the last sample
        self._is_reported = False  # the current failure

    @property
    def latest(self) -> T | None:
        """The latest figure; None if there is none, or only an old one."""
        return None if time.monotonic() - self._read_at > _STALE_S else self._value

    def refresh(self) -> None:
        """Start a sample unless the last one is recent, or the source still has not answered."""
        now = time.monotonic()
        if now - self._began < _INTERVAL_S:
            return
        if self._sampling is not None:
            if now - self._began > _STALE_S:
                self._report(f"{self._source} does not answer")
            return
        self._began = now
        self._sampling = asyncio.create_task(self._sample())

    async def sample(self) -> None:
        """Refresh the figure, and wait for it a little unless the source hangs already."""
        self.refresh()
        if self._sampling is not None and time.monotonic() - self._began < _PATIENCE_S:
            await asyncio.wait([self._sampling], timeout=_PATIENCE_S)

    async def _sample(self) -> None:
        try:
            # A daemon: the source may hang for ever, and the interpreter waits for the threads of pools.
            self._value = await in_daemon_thread(self._source, self._read)
            self._is_reported = False
        except Exception as error:  # a library that does not fit may raise anything
            self._value = None
            self._report(explain(f"{self._source}: {error}"))
        self._read_at = time.monotonic()
        self._sampling = None

    def _report(self, reason: str) -> None:
        if not self._is_reported:
            log.warning(f"no figures of {self._what}", reason=reason)
            self._is_reported = True
