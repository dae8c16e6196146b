"""Helpers for tests of tasks on one event loop, and of time."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


async def let_tasks_run() -> None:
    """Let all other tasks run until they wait for something that takes time."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], timeout_s: float = 60) -> None:
    """Wait until a condition is true that no event reports."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@contextmanager
def no_error_left() -> Iterator[None]:
    """Check that asyncio has nothing to log at the end: each error of a task was retrieved."""
    logged: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: logged.append(context))
    try:
        yield
        gc.collect()  # a task says so when it is deleted
    finally:
        loop.set_exception_handler(None)
    assert logged == []


@dataclass
class Clock:
    """A clock that tests set (s)."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
