"""The supervisor of several server processes, with processes that only wait."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from app.commands import supervisor
from app.commands.supervisor import Supervisor
from app.server.siblings import Siblings


def wait(folder: Path, index: int, sockets: Sequence[socket.socket]) -> None:
    """Note the process, and serve until SIGTERM or SIGUSR1. SIGINT is not for it."""
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, partial(_end, folder, index))
    signal.signal(signal.SIGHUP, lambda *_: (folder / f"{index}.hup").touch())
    assert sockets[0].getsockname()[1]
    (folder / f"{index}.{os.getpid()}").touch()
    while True:
        signal.pause()


def _end(folder: Path, index: int, number: int, _: object) -> None:
    (folder / f"{index}.ended-{signal.Signals(number).name}").touch()
    raise SystemExit(0)


def hang(folder: Path, index: int, sockets: Sequence[socket.socket]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / f"{index}.{os.getpid()}").touch()
    time.sleep(60)


def refuse(index: int, sockets: Sequence[socket.socket]) -> None:
    raise SystemExit(2)


class Case:
    """A supervisor of two processes, and what they have noted in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.siblings = Siblings(folder, "supervisor", ["a", "b"])

    def supervisor(self, serve: Callable[..., None] = wait) -> Supervisor:
        target = serve if serve is refuse else partial(serve, self.folder)
        return Supervisor(target, [self._listener], self.siblings)

    def pids(self, index: int) -> set[int]:
        names = (path.suffix[1:] for path in self.folder.glob(f"{index}.*"))
        return {int(name) for name in names if name.isdecimal()}

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not is_so():  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(supervisor, "_FIRST_PAUSE_S", 0.01)
    return Case(tmp_path)


@pytest.mark.anyio
async def test_a_process_that_dies_is_replaced_and_a_signal_ends_all(case: Case) -> None:
    running = asyncio.create_task(case.supervisor().run([signal.SIGHUP]))
    await case.until(lambda: case.pids(0) and case.pids(1))
    [pid] = case.pids(1)
    os.kill(pid, signal.SIGKILL)
    await case.until(lambda: len(case.pids(1)) == 2)
    os.kill(os.getpid(), signal.SIGHUP)
    await case.until(lambda: len([*case.folder.glob("*.hup")]) == 2)
    os.kill(os.getpid(), signal.SIGINT)
    assert await running == 0
    assert len([*case.folder.glob("*.ended-SIGTERM")]) == 2
    assert len(case.pids(0)) == 1, "the other one was left alone"


@pytest.mark.anyio
async def test_processes_are_replaced_one_after_the_other(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready: list[str] = []

    async def ask(name: str, path: str) -> None:
        if path not in ready:
            raise supervisor.httpx.ConnectError("nobody")

    monkeypatch.setattr(case.siblings, "ask", ask)
    running = asyncio.create_task(case.supervisor().run())
    await case.until(lambda: case.pids(0) and case.pids(1))
    os.kill(os.getpid(), signal.SIGUSR2)
    await case.until(lambda: len(case.pids(0)) == 2)
    await asyncio.sleep(0.5)
    assert len(case.pids(1)) == 1, "the new process is not ready"
    ready.append("/ready")
    await case.until(lambda: len(case.pids(1)) == 2)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert await running == 0
    assert {path.suffix for path in case.folder.glob("*.ended-*")} == {".ended-SIGUSR1"}


@pytest.mark.anyio
async def test_a_process_that_hangs_is_killed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_S", 0.3)
    running = asyncio.create_task(case.supervisor(hang).run())
    await case.until(lambda: case.pids(0) and case.pids(1))
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


@pytest.mark.anyio
async def test_a_process_that_answers_nobody_is_replaced(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(name: str, path: str, *, wait_s: float) -> None:
        raise (supervisor.httpx.ConnectError if name == "a" else supervisor.httpx.ReadTimeout)("silent")

    monkeypatch.setattr(supervisor, "_PING_S", 2.0)
    monkeypatch.setattr(case.siblings, "ask", ask)
    running = asyncio.create_task(case.supervisor().run())
    await case.until(lambda: len(case.pids(1)) == 2)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert len(case.pids(0)) == 1


@pytest.mark.anyio
async def test_an_invalid_setting_ends_all(case: Case) -> None:
    assert await case.supervisor(refuse).run() == 2
