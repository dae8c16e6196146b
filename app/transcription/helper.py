"""A child process for work that takes long on a long transcript: rendering it, packing it.

In a thread of the server, that work holds the GIL. The event loop then waits for the GIL after each of its
system calls, and all clients wait for seconds.
"""

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog

from app.errors import ProcessCrashed
from app.scheduling.process import ChildProcess
from workers import runtime

R = TypeVar("R")

# The transcript of a longer recording goes to the process. Subtitles for ten minutes take about 40 ms of a
# core.
LONG_S = 600.0
_LONG_BYTES = 24 << 10  # of such a transcript, packed
IDLE_S = 60.0  # after which the process ends, with the memory that the last transcript took
NICENESS = 5  # after the server, before the workers
_COLLECTED_AT = 1_000_000  # objects more than at the last search for unreachable circles

log = structlog.get_logger(__name__)


def work_s(recording_s: float | None, *packed: bytes) -> float:
    """The length of a recording (s) whose transcript takes as much work as these `packed` ones.

    A correction can give a short recording the text of a long one.
    """
    return LONG_S if any(len(content) > _LONG_BYTES for content in packed) else recording_s or 0.0


class Helper:
    """Calls functions: short ones in a thread, long ones in a child process that runs while it is needed."""

    def __init__(self) -> None:
        self._child: ChildProcess | None = None
        self._changing = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._calls = 0  # of the process, under way
        self._idle_timer: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    async def run(self, recording_s: float, function: Callable[..., R], *args: object) -> R:
        """Call a function that works on the transcript of a recording of `recording_s` seconds.

        The function, its arguments and its result must be picklable. Raises the exception of the function.
        """
        if recording_s >= LONG_S:
            child = None
            self._begin_call()
            try:
                child = await self._started()
                return await child.call(function, *args)
            except ProcessCrashed as error:
                log.warning("the helper process ended; its work goes on in the server", error=error.message)
                await self._end(child)
            finally:
                self._end_call()
        return await asyncio.to_thread(function, *args)

    @asynccontextmanager
    async def turn(self, recording_s: float | None) -> AsyncGenerator[None]:
        """For work that reads the transcript of a recording of `recording_s` seconds.

        Long ones are read one after the other: else many would be in memory while they wait for the process.
        """
        if (recording_s or 0.0) < LONG_S:
            yield
            return
        async with self._turn:
            yield

    async def stop(self) -> None:
        """End the process."""
        self._stop_idle_timer()
        await self._end(self._child)

    def _begin_call(self) -> None:
        self._calls += 1
        self._stop_idle_timer()

    def _end_call(self) -> None:
        self._calls -= 1
        if not self._calls:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(IDLE_S, self._end_idle)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def _end_idle(self) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._end(self._child))

    async def _started(self) -> ChildProcess:
        async with self._changing:
            if self._child is None:
                child = ChildProcess(_initialise)
                try:
                    await child.start()
                except BaseException:
                    await child.close()
                    raise
                self._child = child
            return self._child

    async def _end(self, child: ChildProcess | None) -> None:
        """End a process, unless another call has done so."""
        async with self._changing:
            if child is not None and child is self._child:
                self._child = None
                await child.close()


def _initialise() -> None:
    runtime.initialise("", NICENESS)
    # The words of a transcript are many objects without circles. By default, a fifth of the time would go
    # into searching them.
    gc.set_threshold(_COLLECTED_AT)
