"""One long-lived spawned process that runs one call at a time, and can be watched and killed."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Protocol, TypeVar

import structlog

from app.errors import ProcessCrashed, ProcessHung, ProcessStuck
from app.scheduling.child_environment import hide_secrets
from app.telemetry import logs
from app.telemetry.work import bound_ids
from workers import calls, log_lines
from workers.messages import Part

R = TypeVar("R")

_SPAWN_DEADLINE_S = 120.0  # for a bare interpreter, on a machine that may be very busy
_KILL_DEADLINE_S = 10.0  # to end once it is killed; one that is stuck in a driver never does
_POLL_S = 0.01

log = structlog.get_logger(__name__)

_ending: set[BaseProcess] = set()  # killed, and perhaps not gone yet


class WorkerProcess(Protocol):
    """One long-lived process, on this machine or on another: see `ChildProcess`."""

    pid: int | None
    parts: tuple[Part, ...]
    on_exit: Callable[[], None]  # called when the process ends, even between two calls
    exit_error: ProcessCrashed | None  # why, when `on_exit` is called

    async def start(self) -> None: ...

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R: ...

    async def close(self) -> None: ...


class ChildProcess:
    """A `ProcessPoolExecutor` with one spawned process.

    Spawned, because a forked child inherits CUDA state that it cannot use. It inherits no secrets. Call
    `start`, then `call` as often as needed, then `close`; after that it can be started again.
    """

    def __init__(self, initializer: Callable[..., None], *initargs: object) -> None:
        self._initializer = initializer
        self._initargs = initargs
        self._executor: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None
        self._ending: BaseProcess | None = None  # the one before, if it was killed and may not be gone yet
        self._pidfd: int | None = None
        self.pid: int | None = None
        self.parts: tuple[Part, ...] = ()  # that the process has measured of the last call
        self.on_exit: Callable[[], None] = lambda: None
        self.exit_error: ProcessCrashed | None = None

    async def start(self) -> None:
        """Spawn the process.

        Raises ProcessCrashed if it does not start within `_SPAWN_DEADLINE_S`, and ProcessStuck while the
        process before it does not end.
        """
        if self._ending is not None and self._ending.is_alive():
            raise ProcessStuck(f"process {self.pid} cannot be killed")
        hide_secrets()  # first: the executor may start a process of multiprocessing's own
        self._executor = ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=partial(log_lines.initialise, logs.child_format, self._initializer, *self._initargs),
        )
        with _sigint_blocked():
            # The process is spawned here and inherits the mask. Without it, Ctrl-C would make the process
            # print a traceback until it ignores the signal by itself.
            started = self._executor.submit(os.getpid)
        # The process alone writes answers, so its end is theirs, too. A thread would wait for ever for the
        # rest of one in whose middle the process was killed.
        self._executor._result_queue._writer.close()  # type: ignore[attr-defined]
        # From the executor's own table: a process that hangs while it starts cannot report its pid.
        [self._process] = self._executor._processes.values()
        self.pid = self._process.pid
        assert self.pid is not None  # it is started
        self._watch(self.pid)
        await self._result(started, _SPAWN_DEADLINE_S)

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        """Run `function(*args)` in the process, which is killed if that takes longer than `deadline_s`.

        Raises ProcessCrashed if the process ends before it answers, ProcessHung if it takes longer, and the
        exception of the function. What the process logs meanwhile has the ids of the caller's log lines.
        """
        self.parts = ()
        if self._executor is None:
            raise ProcessCrashed("the process has not been started")
        try:
            future = self._executor.submit(calls.answer, bound_ids(), function, *args)
        except BrokenProcessPool:
            raise ProcessCrashed(f"process {self.pid} crashed") from None
        answer: calls.Answer[R] = await self._result(future, deadline_s)
        self.parts = answer.parts
        return answer.result

    async def _result(self, answer: Future[R], deadline_s: float | None) -> R:
        try:
            async with asyncio.timeout(deadline_s):
                return await asyncio.wrap_future(answer)
        except BrokenProcessPool:
            raise ProcessCrashed(f"process {self.pid} crashed") from None
        except TimeoutError:
            self._kill()
            raise ProcessHung(f"process {self.pid} did not answer within {deadline_s:.0f} s") from None

    async def close(self) -> None:
        """Kill the process, whatever it is doing, and wait until it has ended.

        Gives up after `_KILL_DEADLINE_S`: a process may be stuck in a driver for ever.
        """
        executor, self._executor = self._executor, None
        if executor is not None:
            self._kill()
            self._unwatch()
            self._ending = self._process
            if self._ending is not None:
                _ending.add(self._ending)
            # Not with `wait=True`, in a thread: the event loop waits for its threads when it closes.
            executor.shutdown(wait=False, cancel_futures=True)
        ending = self._ending
        if ending is None:
            return
        give_up_at = time.monotonic() + _KILL_DEADLINE_S
        while ending.is_alive():
            if time.monotonic() > give_up_at:
                log.error("a process cannot be killed; going on without it", pid=self.pid)
                return
            await asyncio.sleep(_POLL_S)
        _ending.discard(ending)
        self._ending = self.pid = None

    def _kill(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _watch(self, pid: int) -> None:
        """Call `on_exit` when the process ends, even between two calls."""
        if not hasattr(os, "pidfd_open"):
            return  # not Linux: the next call notices
        with suppress(OSError):
            self._pidfd = os.pidfd_open(pid)
            asyncio.get_running_loop().add_reader(self._pidfd, self._on_pidfd)

    def _on_pidfd(self) -> None:
        self._unwatch()
        self.exit_error = ProcessCrashed(f"process {self.pid} crashed")
        self.on_exit()

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def have_all_ended(timeout_s: float) -> bool:
    """Whether all closed processes have ended, at the latest after `timeout_s`.

    The interpreter's exit waits for them, however long that takes.
    """
    give_up_at = time.monotonic() + timeout_s
    # Asked again, not joined: a process that its executor's thread has just waited for looks alive to other
    # threads for a moment.
    while any(process.is_alive() for process in _ending):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_POLL_S)
    return True
