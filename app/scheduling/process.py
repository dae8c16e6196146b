"""One long-lived spawned process that runs several calls at a time, and can be watched and killed."""

import asyncio
import itertools
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

import structlog

from app.errors import ProcessCrashed, ProcessHung, ProcessLost, ProcessStuck
from app.scheduling.child_environment import hide_secrets
from app.scheduling.connection import Connection
from app.telemetry import logs
from app.telemetry.work import bound_ids
from workers import child_process
from workers.calls import Answer
from workers.messages import Part

R = TypeVar("R")
Outcome = tuple[Exception | None, Answer[Any] | None]  # of a call: an error or an answer

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
    """A spawned process that runs calls in threads: a short one does not wait for a long one.

    The main thread runs those that come one after the other. Spawned, because a forked child inherits CUDA
    state that it cannot use. It inherits no secrets. Call `start`, then `call` as often as needed, then
    `close`; after that it can be started again.
    """

    def __init__(self, initializer: Callable[..., None], *initargs: object) -> None:
        self._initializer = initializer
        self._initargs = initargs
        self._process: BaseProcess | None = None
        self._ending: BaseProcess | None = None  # the one before, if it was killed and may not be gone yet
        self._pidfd: int | None = None
        self._connection: Connection | None = None  # None: not started, or it has crashed
        self._receiving: asyncio.Task[None] | None = None
        self._calls: dict[int, asyncio.Future[Outcome]] = {}  # under way
        self._numbers = itertools.count()
        self.pid: int | None = None
        self.parts: tuple[Part, ...] = ()  # that the process has measured of the call that returned last
        self.on_exit: Callable[[], None] = lambda: None
        self.exit_error: ProcessCrashed | None = None

    async def start(self) -> None:
        """Spawn the process.

        Raises ProcessCrashed if it does not start within `_SPAWN_DEADLINE_S`, and ProcessStuck while the
        process before it does not end.
        """
        if self._ending is not None and self._ending.is_alive():
            raise ProcessStuck(f"process {self.pid} cannot be killed")
        hide_secrets()  # first: multiprocessing may start a process of its own
        ours, its = socket.socketpair()
        # The process alone has its end, so the connection ends with it, even in the middle of an answer.
        with its:
            process = multiprocessing.get_context("spawn").Process(
                target=child_process.serve, args=(its, logs.child_format, self._initializer, *self._initargs)
            )
            try:
                with _sigint_blocked():
                    # The process inherits the mask. Without it, Ctrl-C would make the process print a
                    # traceback until it ignores the signal by itself.
                    process.start()
            except BaseException:
                ours.close()
                raise
        assert process.pid is not None  # it is started
        self._process, self.pid = process, process.pid
        self._connection = Connection(ours)
        self._receiving = asyncio.create_task(self._receive(self._connection))
        self._watch(process.pid)
        await self.call(os.getpid, deadline_s=_SPAWN_DEADLINE_S)

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        """Run `function(*args)` in the process, which is killed if that takes longer than `deadline_s`.

        Raises ProcessCrashed if the process ends before it answers, ProcessHung if it takes longer,
        ProcessLost if there is no memory to send the call, what `pickled` raises, and the exception of the
        function; a note has the traceback of the process. If the caller is cancelled, the call runs on. What
        the process logs meanwhile has the ids of the caller's log lines.
        """
        if self._connection is None:
            raise ProcessCrashed(
                f"process {self.pid} crashed" if self.pid else "the process has not been started"
            )
        number = next(self._numbers)
        outcome = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            try:
                self._connection.send(number, (bound_ids(), function, *args))
            except MemoryError as unsent:  # that of the function would mean the memory of the process
                raise ProcessLost("a call was not sent: the server has no memory left") from unsent
            await asyncio.wait([outcome], timeout=deadline_s)
        finally:
            self._calls.pop(number, None)
        if not outcome.done():
            self._kill()
            raise ProcessHung(f"process {self.pid} did not answer within {deadline_s:.0f} s")
        error, answer = outcome.result()
        if error is not None:
            raise error
        result: R = answer.result
        self.parts = answer.parts
        return result

    async def _receive(self, connection: Connection) -> None:
        """Receive answers until the process ends. One that sends what cannot be read is killed."""
        try:
            while True:
                number = await connection.receive()
                outcome = await connection.receive()
                if number in self._calls:  # the caller still waits
                    self._calls.pop(number).set_result(outcome)
        except EOFError:
            pass
        finally:
            if connection is self._connection:
                self._kill()

    async def close(self) -> None:
        """Kill the process, whatever it is doing, and wait until it has ended.

        Gives up after `_KILL_DEADLINE_S`: a process may be stuck in a driver for ever.
        """
        if self._process is not None:
            self._kill()
            self._unwatch()
            self._ending, self._process = self._process, None
            _ending.add(self._ending)
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
        """Kill the process. Its calls under way have crashed at once: it may be stuck."""
        assert self._process is not None  # it is started
        self._process.kill()
        connection, self._connection = self._connection, None
        if connection is None or self._receiving is None:
            return
        self._receiving.cancel()
        connection.close()
        calls, self._calls = self._calls, {}
        for outcome in calls.values():
            outcome.set_result((ProcessCrashed(f"process {self.pid} crashed"), None))

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
    # Asked again, not joined: a process that another thread has just waited for looks alive for a moment.
    while any(process.is_alive() for process in _ending):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_POLL_S)
    return True
