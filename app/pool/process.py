"""One long-lived spawned process that runs one call at a time, and can be watched and killed."""

import asyncio
import multiprocessing
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache, partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

import structlog

from app.common.errors import Fault, ProcessCrashed, ProcessHung, ProcessStuck
from app.pool.child_environment import hide_secrets
from app.telemetry import logs
from app.telemetry.work import bound_ids
from workers import calls, log_lines

R = TypeVar("R")

_SPAWN_DEADLINE_S = 120.0  # for a bare interpreter, on a machine that may be very busy
_KILL_DEADLINE_S = 10.0  # to end once it is killed; one that is stuck in a driver never does
_STATUS_S = 2.0  # in which the exit status of a process that has ended is known
_POLL_S = 0.01
_SAMPLE_S = 0.5  # between two looks at the memory of a process that runs calls
_OUTGROWN = 1.5  # times the most memory that others of its kind took: then what it ran is at fault
# With these, a process ends by its own fault. Anybody can send others.
_CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}

_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

log = structlog.get_logger(__name__)

_ending: set[BaseProcess] = set()  # killed, and perhaps not gone yet
# The most memory (bytes) that processes took which have answered, by their initializers.
_usual_bytes: Counter[Callable[..., None]] = Counter()


class ChildProcess:
    """A `ProcessPoolExecutor` with one spawned process, which runs calls in order.

    Spawned, because a forked child inherits CUDA state that it cannot use. It inherits no secrets. Call
    `start`, then `call` as often as needed, then `close`; after that it can be started again.
    """

    def __init__(self, initializer: Callable[..., None], *initargs: object) -> None:
        self._initializer = initializer
        self._initargs = initargs
        self._calls = 0  # that are not answered yet
        self._sampling = False  # a timer looks at its memory, until there are none
        self._peak_bytes = 0  # of its memory, as far as somebody has looked
        self._kills_before: int | None = None  # those for memory, when the last call began
        self._executor: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None  # also one that was killed, and may not be gone yet
        self._watching: asyncio.Task[None] | None = None
        self.pid: int | None = None
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None

    @property
    def is_started(self) -> bool:
        """Whether it is started and not closed. It may have ended by itself."""
        return self._executor is not None

    async def start(self) -> None:
        """Spawn the process. It is closed again after an error.

        Raises ProcessCrashed if it does not start within `_SPAWN_DEADLINE_S`, and ProcessStuck while the
        process before it does not end.
        """
        if self._process is not None and self._process.is_alive():
            raise ProcessStuck(f"process {self.pid} cannot be killed")
        try:
            await self._spawn()
        except BaseException:
            await self.close()
            raise

    async def _spawn(self) -> None:
        hide_secrets()  # first: the executor may start a process of multiprocessing's own
        self._executor = ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=partial(log_lines.initialise, logs.child_format, self._initializer, *self._initargs),
        )
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            # The process is spawned here and inherits the mask. Without it, Ctrl-C would make the process
            # print a traceback until it ignores the signal by itself.
            started = self._executor.submit(os.getpid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # The process alone writes answers, so its end is theirs, too. A thread would wait for ever for the
        # rest of one in whose middle the process was killed.
        self._executor._result_queue._writer.close()  # type: ignore[attr-defined]
        # From the executor's own table: a process that hangs while it starts cannot report its pid.
        [self._process] = self._executor._processes.values()
        self.pid = self._process.pid
        self._peak_bytes = 0
        self._watching = asyncio.create_task(self._watch(self._process))
        await self._result(started, self._process, _SPAWN_DEADLINE_S)

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        """Run `function(*args)` in the process, which is killed if the answer takes longer than `deadline_s`.

        Raises ProcessCrashed if the process ends before it answers, ProcessHung if it takes longer, and the
        exception of the function. A call that has begun runs on if the caller is cancelled, and so does the
        next one. What the process logs meanwhile has the ids of the caller's log lines, and what it measures
        is added to the caller's call.
        """
        executor, process = self._executor, self._process
        if executor is None or process is None:
            raise ProcessCrashed("the process has not been started")
        try:
            future = executor.submit(calls.answer_parent, bound_ids(), function, *args)
        except BrokenProcessPool:
            raise await self._crash_of(process) from None
        answer: calls.Answer[R] = await self._result(future, process, deadline_s)
        calls.current().parts.extend(answer.parts)
        return answer.result

    async def _result(self, future: Future[R], process: BaseProcess, deadline_s: float | None) -> R:
        answer, self._kills_before = asyncio.wrap_future(future), oom_kills()
        self._calls += 1
        if not self._sampling:
            self._sample_later()
        try:
            await asyncio.wait([answer], timeout=deadline_s)
            if not answer.done():
                fault = Fault.OUTSIDE if self.is_stopped() else Fault.OWN
                process.kill()
                raise ProcessHung(
                    f"process {process.pid} did not answer within {deadline_s:.0f} s", fault=fault
                )
            result = answer.result()
        except BrokenProcessPool:
            raise await self._crash_of(process) from None
        finally:
            answer.cancel()
            self._calls -= 1
        if self._peak_bytes > _usual_bytes[self._initializer]:
            _usual_bytes[self._initializer] = self._peak_bytes
        return result

    def _sample_later(self) -> None:
        self._sampling = True
        asyncio.get_running_loop().call_later(_SAMPLE_S, self._sample)

    def _sample(self) -> None:
        """Look at the memory of the process, and again later while it runs calls: once for all of them."""
        self._sampling = False
        if self._calls and self.pid is not None:
            self._peak_bytes = _peak_bytes_of(self.pid) or self._peak_bytes
            self._sample_later()

    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped the process: then it does not hang."""
        with suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
        return False

    async def close(self) -> None:
        """Kill the process, whatever it is doing, and wait until it has ended.

        Gives up after `_KILL_DEADLINE_S`: a process may be stuck in a driver for ever.
        """
        executor, self._executor = self._executor, None
        if executor is not None:
            if self._watching is not None:
                self._watching.cancel()
            if self._process is not None:
                self._process.kill()
                _ending.add(self._process)
            # Not with `wait=True`, in a thread: the event loop waits for its threads when it closes.
            executor.shutdown(wait=False, cancel_futures=True)
        process = self._process
        if process is None:
            return
        give_up_at = time.monotonic() + _KILL_DEADLINE_S
        while process.is_alive():
            if time.monotonic() > give_up_at:
                log.error("a process cannot be killed; going on without it", pid=self.pid)
                return
            await asyncio.sleep(_POLL_S)
        _ending.discard(process)
        self._process = self.pid = None

    async def _watch(self, process: BaseProcess) -> None:
        """Call `on_exit` when the process ends, even between two calls."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(process.sentinel)
        self.on_exit(await self._crash_of(process))

    async def _crash_of(self, process: BaseProcess) -> ProcessCrashed:
        """The error of a process that has ended, with its exit status."""
        give_up_at = time.monotonic() + _STATUS_S
        # Asked again: a process that the executor's thread has just waited for has no status for a moment.
        while (status := process.exitcode) is None:
            if time.monotonic() > give_up_at:
                process.kill()  # it may have sent what cannot be read
                break
            await asyncio.sleep(_POLL_S)
        fault, why = Fault.OUTSIDE, ""
        if status is not None and (status > 0 or -status in _CRASHES):
            fault = Fault.OWN
        elif status == -signal.SIGKILL and (oom_kills() or 0) > (self._kills_before or 0):
            outgrew = self._peak_bytes > _OUTGROWN * _usual_bytes[self._initializer] > 0
            fault, why = (Fault.OWN if outgrew else Fault.MEMORY), ": there was too little memory"
        message = f"process {process.pid} {_ended_by(status)}{why}"
        return ProcessCrashed(message, exit_status=status, fault=fault)


def _ended_by(status: int | None) -> str:
    if status is None:
        return "crashed"
    if status >= 0:
        return f"exited with status {status}"
    name = f" ({signal.Signals(-status).name})" if -status in set(signal.Signals) else ""
    return f"was killed by signal {-status}{name}"


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


def oom_kills() -> int | None:
    """How many processes of this control group the kernel has killed for memory; None if it does not say."""
    for path in _counters():
        with suppress(OSError):
            if found := re.search(rb"^oom_kill (\d+)", path.read_bytes(), re.MULTILINE):
                return int(found[1])
    return None


@cache
def _counters() -> tuple[Path, ...]:
    """Files that may have the counter, in both versions. A container sees its own as root."""
    found = []
    with suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or "memory" in controllers.split(","):
                folder = _GROUPS / controllers
                name = "memory.oom_control" if controllers else "memory.events"
                found += [folder / group.strip("/") / name, folder / name]
    return tuple(found)


def _peak_bytes_of(pid: int) -> int | None:
    """The most memory that a process has taken so far (bytes); None if it is gone."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_bytes()
        if found := re.search(rb"^VmHWM:\s+(\d+) kB", status, re.MULTILINE):
            return int(found[1]) << 10
    return None
