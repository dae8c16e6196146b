"""One spawned process: how it starts, works and ends."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from types import SimpleNamespace

import psutil
import pytest

from app.errors import ProcessCrashed, ProcessHung, ProcessStuck
from app.scheduling.process import ChildProcess, have_all_ended
from workers import runtime

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
async def child() -> AsyncIterator[ChildProcess]:
    """A started process."""
    child = ChildProcess(runtime.initialise, "")
    await child.start()
    yield child
    await child.close()


async def test_a_process_answers_and_its_crash_is_noticed(child: ChildProcess) -> None:
    ended = asyncio.Event()
    child.on_exit = ended.set
    assert await child.call(os.getpid) == child.pid
    assert child.pid is not None
    psutil.Process(child.pid).kill()
    await ended.wait()
    with pytest.raises(ProcessCrashed, match="crashed"):
        await child.call(os.getpid)


async def test_a_process_that_hangs_while_it_starts_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.scheduling.process._SPAWN_DEADLINE_S", 1.0)
    child = ChildProcess(time.sleep, 3600)
    with pytest.raises(ProcessCrashed, match="did not answer within 1 s"):
        await child.start()
    pid = child.pid  # it has been killed, and may have ended by now
    assert pid is not None
    await child.close()
    assert not psutil.pid_exists(pid)


async def test_a_process_can_be_closed_while_it_hangs_at_its_start() -> None:
    child = ChildProcess(time.sleep, 3600)
    start = asyncio.create_task(child.start())
    await asyncio.sleep(0)
    assert child.pid is not None
    process = psutil.Process(child.pid)
    start.cancel()
    await child.close()
    assert not process.is_running()


async def test_a_process_that_hangs_in_a_call_is_killed(child: ChildProcess) -> None:
    with pytest.raises(ProcessCrashed, match="did not answer within 1 s"):
        await child.call(time.sleep, 3600, deadline_s=1.0)


async def test_a_process_killed_in_the_middle_of_its_answer_has_crashed(child: ChildProcess) -> None:
    with pytest.raises(ProcessCrashed, match="crashed"):
        await child.call(die_while_answering, deadline_s=10)


def die_while_answering() -> bytes:
    """Write a part of the answer alone."""

    def write_half(self: Connection, content: bytes) -> None:
        os.write(self.fileno(), content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    Connection._send = write_half  # type: ignore[attr-defined]
    return bytes(100_000)


async def test_matrix_products_take_one_thread(child: ChildProcess) -> None:
    """Even on a machine of many cores: threads that wait for the next product would keep them busy."""
    assert await child.call(threads_of_a_matrix_product) == 0


async def test_a_process_may_have_a_lower_priority_than_its_parent() -> None:
    child = ChildProcess(runtime.initialise, "", 7)
    await child.start()
    assert child.pid is not None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, child.pid) == min(own + 7, 19)
    await child.close()


def threads_of_a_matrix_product() -> int:
    """How many threads a matrix product adds."""
    before = psutil.Process().num_threads()
    import numpy as np

    square = np.ones((512, 512), np.float32)
    square @ square
    return psutil.Process().num_threads() - before


async def test_a_process_that_cannot_be_killed_is_left_behind(
    child: ChildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.scheduling.process._KILL_DEADLINE_S", 0.2)
    pid = child.pid
    assert pid is not None
    with monkeypatch.context() as broken:
        broken.setattr(os, "kill", lambda pid, number: None)
        with pytest.raises(ProcessHung, match="did not answer within 1 s"):
            await child.call(time.sleep, 3600, deadline_s=1.0)
        for _ in range(2):
            await child.close()
        with pytest.raises(ProcessStuck, match=f"process {pid} cannot be killed"):
            await child.start()
        assert not have_all_ended(0.1)
    psutil.Process(pid).kill()
    assert have_all_ended(10)
    await child.close()
    await child.start()
    assert await child.call(os.getpid) == child.pid != pid


def test_a_process_that_another_thread_has_waited_for_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """To this one it looks alive until the other says that it is not."""
    answers = iter([True, True, False])
    process = SimpleNamespace(is_alive=lambda: next(answers))
    monkeypatch.setattr("app.scheduling.process._ending", [process])
    assert have_all_ended(10)
    assert not list(answers)
