"""Tasks that nobody awaits."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class BackgroundTasks(set[asyncio.Task[None]]):
    """Those that have not ended. The event loop alone would not keep them: it has weak references."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task. It leaves the set when it ends."""
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task
