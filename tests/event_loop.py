"""Helpers for tests of tasks on one event loop."""

import asyncio


async def let_tasks_run() -> None:
    """Let all other tasks run until they wait for something that takes time."""
    for _ in range(20):
        await asyncio.sleep(0)
