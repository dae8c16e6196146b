"""Helpers for tests of tasks on one event loop."""

import asyncio
from collections.abc import Callable


async def let_tasks_run() -> None:
    """Let all other tasks run until they wait for something that takes time."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], timeout_s: float = 60) -> None:
    """Wait until a condition is true that no event reports."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
