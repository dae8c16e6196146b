"""A child process for work that takes long on a long transcript: rendering it, packing it.

In a thread of the server, that work holds the GIL. The event loop then waits for the GIL after each of its
system calls, and all clients wait for seconds. And a call that takes too much memory, or crashes a library,
would take the server with it.
"""

import asyncio
import gc
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import TypeVar

import structlog

from app.common.concurrency import BackgroundTasks, run_shielded
from app.common.errors import HelperFailed, ProcessCrashed, ProcessHung
from app.pool.process import ChildProcess
from workers import runtime

R = TypeVar("R")

# The transcript of a longer recording goes to the process. Subtitles for ten minutes take about 40 ms of a
# core.
LONG_S = 600.0
_LONG_BYTES = 192 << 10  # of such a transcript, unpacked
IDLE_S = 60.0  # after which the process ends, with the memory that the last transcript took
NICENESS = 5  # after the server, before the workers
_COLLECTED_AT = 1_000_000  # objects more than at the last search for unreachable circles
_HEADROOM_BYTES = 3 << 30  # address space that the process may use beyond a bare interpreter's
# For a call, and for each second of its recording: a hundred times what a slow core needs.
_DEADLINE_S, _DEADLINE_RATE = 60.0, 0.02

log = structlog.get_logger(__name__)


def work_s(recording_s: float | None, *packed: bytes) -> float:
    """The length of a recording (s) whose transcript takes as much work as these `packed` ones.

    A correction can give a short recording the text of a long one.
    """
    return LONG_S if any(map(_is_long, packed)) else recording_s or 0.0


def _is_long(packed: bytes) -> bool:
    """Whether the bytes are many once they are unpacked: the same word a thousand times packs well."""
    return len(zlib.decompressobj().decompress(packed, _LONG_BYTES)) == _LONG_BYTES


class Helper:
    """Calls functions: short ones in a thread, long ones in a child process that runs while it is needed.

    The process runs one call at a time: others wait here, so none of them is lost in a crash of another one.
    """

    def __init__(self) -> None:
        self._child = ChildProcess(_initialise)
        self._turn = asyncio.Lock()  # of the call that runs
        self._reading = asyncio.Lock()  # of long transcripts
        self._calls = 0  # of the process, under way
        self._idle_timer: asyncio.TimerHandle | None = None
        self._ending = BackgroundTasks()  # of processes

    async def run(self, recording_s: float, function: Callable[..., R], *args: object) -> R:
        """Call a function that works on the transcript of a recording of `recording_s` seconds.

        The function, its arguments and its result must be picklable. Raises the exception of the function,
        and HelperFailed if the process crashes twice, runs out of memory twice, or does not answer in time. A
        call that has begun runs to its end although the caller is cancelled.
        """
        if recording_s < LONG_S:
            return await asyncio.to_thread(function, *args)
        self._calls += 1
        self._stop_idle_timer()
        try:
            async with self._turn:
                deadline_s = _DEADLINE_S + _DEADLINE_RATE * recording_s
                return await run_shielded(self._run_alone(deadline_s, function, *args))
        finally:
            self._calls -= 1
            if not self._calls:
                end = lambda: self._ending.spawn(self._end(self._child))  # noqa: E731
                self._idle_timer = asyncio.get_running_loop().call_later(IDLE_S, end)

    async def _run_alone(self, deadline_s: float, function: Callable[..., R], *args: object) -> R:
        """Call a function in the process, and once more in a new one: something else may have killed it."""
        for attempt in (1, 2):
            child = self._child
            try:
                if not child.is_started:
                    await child.start()
                return await child.call(function, *args, deadline_s=deadline_s)
            except (ProcessCrashed, MemoryError) as error:
                is_last = attempt == 2 or isinstance(error, ProcessHung) or child is not self._child
                await self._end(child)
                fault = error.message if isinstance(error, ProcessCrashed) else "its memory is used up"
                log.warning("the helper process failed", error=fault, call=function.__name__, last=is_last)
                if is_last:
                    raise HelperFailed(
                        "This transcript takes more memory or time than it may, or crashes the process that "
                        "works on it. Try again later; if it fails again, try with less text."
                    ) from None
        raise AssertionError

    @asynccontextmanager
    async def turn(self, recording_s: float | None) -> AsyncGenerator[None]:
        """For work that reads the transcript of a recording of `recording_s` seconds.

        Long ones are read one after the other: else many would be in memory while they wait for the process.
        """
        async with self._reading if (recording_s or 0.0) >= LONG_S else nullcontext():
            yield

    async def stop(self) -> None:
        """End the process."""
        self._stop_idle_timer()
        await self._end(self._child)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    async def _end(self, child: ChildProcess) -> None:
        """End a process. The next call starts another one, also while this one cannot be killed."""
        if child is self._child:
            self._child = ChildProcess(_initialise)
        await child.close()


def _initialise() -> None:
    runtime.initialise("", NICENESS)
    runtime.limit_memory(_HEADROOM_BYTES)
    # The words of a transcript are many objects without circles. By default, a fifth of the time would go
    # into searching them.
    gc.set_threshold(_COLLECTED_AT)
