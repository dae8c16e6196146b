"""What asyncio lacks: tasks that nobody awaits, and a signal for a loop that sleeps until there is work."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


class BackgroundTasks(set[asyncio.Task[None]]):
    """Those that have not ended. The event loop alone would not keep them: it has weak references."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task. It leaves the set when it ends."""
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task


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
