"""One spawned process: how it starts, works and ends."""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace

import psutil
import pytest

from app.errors import ProcessCrashed, ProcessHung, ProcessStuck
from app.scheduling.process import ChildProcess, have_all_ended
from workers import runtime
from workers.frames import MAX_BYTES, FrameTooLarge

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


async def test_a_short_call_does_not_wait_for_long_ones(child: ChildProcess) -> None:
    long = [asyncio.create_task(child.call(time.sleep, 3600)) for _ in range(3)]
    for _ in range(10):
        assert await child.call(os.getpid, deadline_s=30) == child.pid
    assert not any(call.done() for call in long)
    await child.close()
    for call in long:
        with pytest.raises(ProcessCrashed, match="crashed"):
            await call


async def test_calls_one_after_the_other_run_in_the_main_thread(child: ChildProcess) -> None:
    assert {await child.call(name_of_thread) for _ in range(100)} == {"MainThread"}
    names = await asyncio.gather(*(child.call(name_of_thread, 0.05) for _ in range(50)))
    assert len(names) == 50  # more than there are threads
    assert len(set(names)) <= 2
    assert await child.call(threading.active_count) < 12


def name_of_thread(pause_s: float = 0.0) -> str:
    """Of the thread that runs the call, after a pause."""
    time.sleep(pause_s)
    return threading.current_thread().name


async def test_a_crash_fails_all_calls_under_way(child: ChildProcess) -> None:
    sleeping = [asyncio.create_task(child.call(time.sleep, 3600)) for _ in range(12)]
    with pytest.raises(ProcessCrashed, match="crashed"):
        await child.call(os._exit, 1)
    for call in sleeping:
        with pytest.raises(ProcessCrashed, match="crashed"):
            await call


async def test_a_call_that_hangs_crashes_the_others(child: ChildProcess) -> None:
    other = asyncio.create_task(child.call(time.sleep, 3600))
    with pytest.raises(ProcessHung, match="did not answer within 1 s"):
        await child.call(time.sleep, 3600, deadline_s=1.0)
    with pytest.raises(ProcessCrashed, match="crashed"):
        await other


async def test_nobody_waits_for_the_answer_to_a_caller_that_has_gone(child: ChildProcess) -> None:
    gone = asyncio.create_task(child.call(time.sleep, 0.2))
    await asyncio.sleep(0.05)
    gone.cancel()
    await child.call(time.sleep, 0.4)
    assert await child.call(os.getpid) == child.pid


class FailsToArrive:
    """It can be pickled, and not be unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return (int, ("no number",))


class OddError(Exception):
    """It can be pickled, and not be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def fail(kind: str) -> None:
    """Raise one of several errors."""
    if kind == "odd":
        raise OddError("two", "words")
    if kind == "exit":
        sys.exit(3)
    raise ValueError("no reason")


async def test_what_cannot_be_sent_harms_its_own_call_alone(child: ChildProcess) -> None:
    other = asyncio.create_task(child.call(time.sleep, 1))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        await child.call(len, lambda: None)
    with pytest.raises(FrameTooLarge):
        await child.call(len, bytes(MAX_BYTES + 1))
    with pytest.raises(ValueError, match="no number"):
        await child.call(len, FailsToArrive())
    with pytest.raises(TypeError, match="lock"):
        await child.call(threading.Lock)
    with pytest.raises(FrameTooLarge):
        await child.call(bytes, MAX_BYTES + 1)
    with pytest.raises(RuntimeError, match="OddError: two words"):
        await child.call(fail, "odd")
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await child.call(fail, "exit")
    await other


async def test_an_error_says_where_it_was_raised(child: ChildProcess) -> None:
    with pytest.raises(ValueError, match="no reason") as raised:
        await child.call(fail, "plain")
    [note] = raised.value.__notes__
    assert 'raise ValueError("no reason")' in note


async def test_messages_may_be_large(child: ChildProcess) -> None:
    large = os.urandom(20 << 20)
    upper, length = await asyncio.gather(child.call(bytes.upper, large), child.call(len, large))
    assert upper == large.upper()
    assert length == len(large)


async def test_a_process_loads_nothing_of_the_service(child: ChildProcess) -> None:
    names = "[name for name in __import__('sys').modules if name.partition('.')[0] == 'app']"
    assert await child.call(eval, names) == []


def test_a_process_serves_one_event_loop_after_another() -> None:
    child = ChildProcess(runtime.initialise, "")

    async def use() -> None:
        await child.close()  # the loop before has ended with the process
        await child.start()
        assert await child.call(os.getpid) == child.pid

    asyncio.run(use())
    asyncio.run(use())
    asyncio.run(child.close())


LOSES_ITS_CHILD = """
import asyncio, os, time
from app.scheduling.process import ChildProcess

async def main():
    child = ChildProcess(int)
    await child.start()
    asyncio.ensure_future(child.call(time.sleep, 3600))
    await asyncio.sleep(0.1)
    print(child.pid, flush=True)
    os._exit(0)

asyncio.run(main())
"""


def test_a_process_ends_with_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOSES_ITS_CHILD], capture_output=True, text=True, check=True, timeout=60
    )
    give_up_at = time.monotonic() + 10
    while psutil.pid_exists(int(done.stdout)):
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


async def test_a_process_killed_in_the_middle_of_its_answer_has_crashed(child: ChildProcess) -> None:
    with pytest.raises(ProcessCrashed, match="crashed"):
        await child.call(die_while_answering, deadline_s=10)


def die_while_answering() -> bytes:
    """Write a part of the answer alone."""
    sendall = socket.socket.sendall

    def send_half(self: socket.socket, content: bytes) -> None:
        if len(content) >= 100_000:
            sendall(self, content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        sendall(self, content)

    socket.socket.sendall = send_half  # type: ignore[assignment]
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
    psutil.Process(pid).suspend()  # else it would end with its connection
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
