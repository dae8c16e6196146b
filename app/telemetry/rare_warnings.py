"""Warnings about what clients can cause at will: few lines, however often it happens."""

from time import monotonic
from typing import Any

EVERY_S = 60.0


class RareWarning:
    """Logs something once a minute at most, with the number since then."""

    def __init__(self, log: Any, event: str) -> None:
        """`log`: of structlog."""
        self._log = log
        self._event = event
        self._count = 0
        self._next = 0.0

    def add(self, **details: Any) -> None:
        """It has happened."""
        self._count += 1
        if (now := monotonic()) >= self._next:
            self._log.warning(self._event, count=self._count, **details)
            self._count, self._next = 0, now + EVERY_S
