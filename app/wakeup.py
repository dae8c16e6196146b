"""A signal for a loop that sleeps until there is work."""

import asyncio
from contextlib import suppress


class Wakeup:
    """Wakes one waiting loop. A signal that comes while the loop works is not lost."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake the loop, now or as soon as it waits."""
        self._event.set()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return once the signal is set, or after `timeout_s`. The signal is cleared then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        self._event.clear()
