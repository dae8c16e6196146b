"""An event loop whose clock jumps to the next timer: hours pass in seconds, and always in the same way.

For what waits for nothing but timers and other tasks: there are no threads, processes or sockets on it.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    """Where a loop would block until its next timer, the clock is set to that timer instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("all tasks wait for something that no timer and no other task will bring")
        self.now += max(timeout, 0.0)
        return []


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0. To run out of timers with work left is an error, not a hang."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        raise RuntimeError("no other thread can reach a virtual clock")

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        raise RuntimeError("a virtual clock knows no threads: their time would not pass on it")


def run(main: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` does, on a virtual clock. Raises RuntimeError where `main` would wait for ever."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main)
