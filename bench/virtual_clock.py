"""An event loop with a virtual clock that jumps to the next timer: hours pass in seconds, reproducibly.

It is for code that waits only for timers and other tasks. It supports no threads, processes or sockets.
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
    """Instead of blocking until the next timer, sets the clock to that timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError(
                "deadlock: every task waits, but there is no timer and no other task to wake it"
            )
        self.now += max(timeout, 0.0)
        return []


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """The event loop. Its clock starts at 0. A deadlock raises RuntimeError instead of hanging."""

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
        raise RuntimeError("a virtual clock supports no threads: their time does not pass on it")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, on a virtual clock. Raises RuntimeError if `main` would wait for ever."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main)
