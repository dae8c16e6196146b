"""Several server processes on one port, and the supervisor that keeps them running.

All inherit one listening socket. So the kernel gives a connection to a process that waits for one, and none
is lost with a process. With a socket each, connections would also go to busy processes, and end with these.
"""

import asyncio
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.context import SpawnProcess

import httpx
import structlog

from app.common.concurrency import end_tasks
from app.server.listening import DRAIN_S
from app.server.siblings import Siblings

STOP_S = 12.0  # in which the processes end, after that they are killed
_READY_S = 900.0  # in which a new process loads its models
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0  # before a process that has ended is replaced
_STEADY_S = 60.0  # after such a life, the pauses begin anew
_PING_S, _HANGS_S = 10.0, 60.0  # one that does not answer a ping for so long is killed
_POLL_S = 0.2
_INVALID_SETTING = 2  # an exit code

log = structlog.get_logger(__name__)

Serve = Callable[[int, Sequence[socket.socket]], None]


class Supervisor:
    """A place for each process. What ends there is replaced, and gets the same name and the same workers."""

    def __init__(self, serve: Serve, sockets: Sequence[socket.socket], siblings: Siblings) -> None:
        """`serve` runs in each process, with its index and the sockets: it must be possible to pickle it.

        `siblings`: the processes, by their names.
        """
        self._serve = serve
        self._sockets = sockets
        self._siblings = siblings
        self._processes: dict[int, SpawnProcess] = {}
        self._retired: SpawnProcess | None = None  # shall end, and be replaced at once
        self._stopping = asyncio.Event()
        self._replacing: asyncio.Task[None] | None = None
        self._exit_code = 0

    async def run(self, forwarded: Sequence[signal.Signals] = ()) -> int:
        """Keep the processes running until a signal stops them. Returns the exit code.

        SIGTERM and SIGINT stop them, a second SIGINT kills them. SIGUSR1 lets their requests end before.
        SIGUSR2 replaces them one after the other. `forwarded`: signals that each of them gets, too.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGUSR2, self._begin_replacing)
        for number in forwarded:
            loop.add_signal_handler(number, self._send_all, number)
        self._siblings.remove_sockets()  # that killed processes have left
        await asyncio.gather(*(self._keep(index) for index in range(len(self._siblings.others))))
        return self._exit_code

    async def _keep(self, index: int) -> None:
        """Run the process of a place, and replace it whenever it ends."""
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            process = self._processes[index] = self._start(index)
            watching = asyncio.create_task(self._kill_if_it_hangs(process))
            await _until_ended(process)
            await end_tasks(watching)
            if self._stopping.is_set() or process is self._retired:
                continue
            if process.exitcode == _INVALID_SETTING and not self._siblings.have_sockets():
                self._exit_code = _INVALID_SETTING
                self._stop(signal.SIGTERM)
                continue
            if time.monotonic() - began > _STEADY_S:
                pause_s = _FIRST_PAUSE_S
            log.error(
                "a server process has ended, and is replaced",
                front_end=process.name,
                exit_status=process.exitcode,
                pause_s=pause_s,
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _kill_if_it_hangs(self, process: SpawnProcess) -> None:
        while True:
            await asyncio.sleep(_PING_S)
            try:
                await self._siblings.ask(process.name, "/ready", wait_s=_HANGS_S)
            except httpx.TimeoutException:
                log.error("a server process hangs, and is killed", front_end=process.name)
                _send(process, signal.SIGKILL)
            except httpx.HTTPError:  # it does not listen yet, or it is not ready
                pass

    def _start(self, index: int) -> SpawnProcess:
        spawn = multiprocessing.get_context("spawn")
        name = self._siblings.others[index]
        process = spawn.Process(target=self._serve, args=(index, self._sockets), name=name)
        # It inherits the mask: Ctrl-C goes to all processes of a terminal, and only the supervisor shall act.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return process

    def _stop(self, number: signal.Signals) -> None:
        if self._stopping.is_set() and number == signal.SIGINT:
            self._send_all(signal.SIGKILL)
            return
        self._stopping.set()
        for listener in self._sockets:
            listener.close()
        drains = number == signal.SIGUSR1
        self._send_all(signal.SIGUSR1 if drains else signal.SIGTERM)
        loop = asyncio.get_running_loop()
        loop.call_later(STOP_S + (DRAIN_S if drains else 0), self._send_all, signal.SIGKILL)

    def _send_all(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            _send(process, number)

    def _begin_replacing(self) -> None:
        if self._replacing is None or self._replacing.done():
            self._replacing = asyncio.create_task(self._replace_all())

    async def _replace_all(self) -> None:
        """Let each process end its requests, and go on to the next one once the new one is ready."""
        for index, name in enumerate(self._siblings.others):
            before = self._retired = self._processes[index]
            log.info("replacing a server process", front_end=name)
            _send(before, signal.SIGUSR1)
            kill = asyncio.get_running_loop().call_later(DRAIN_S + STOP_S, _send, before, signal.SIGKILL)
            while self._processes[index] is before and not self._stopping.is_set():  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
            kill.cancel()
            if not await self._is_ready(index):
                log.error("the new server process is not ready: the others stay as they are", front_end=name)
                return
        log.info("all server processes were replaced")

    async def _is_ready(self, index: int) -> bool:
        """Whether a process gets ready, for which it has `_READY_S`."""
        process, give_up_at = self._processes[index], time.monotonic() + _READY_S
        while process.is_alive() and time.monotonic() < give_up_at and not self._stopping.is_set():
            with suppress(httpx.HTTPError):
                await self._siblings.ask(process.name, "/ready")
                return True
            await asyncio.sleep(_POLL_S)
        return False


def _send(process: SpawnProcess, number: signal.Signals) -> None:
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, number)


async def _until_ended(process: SpawnProcess) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
    process.join()
