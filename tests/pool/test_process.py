"""One spawned process: how it starts, works and ends."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from app.common.errors import Fault, ProcessCrashed, ProcessHung, ProcessStuck
from app.pool import process
from app.pool.process import ChildProcess, have_all_ended
from workers import runtime

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
async def child() -> AsyncIterator[ChildProcess]:
    """A started process."""
    child = ChildProcess(runtime.initialise, "")
    await child.start()
    yield child
    await child.close()


async def test_a_process_answers_and_its_crash_is_noticed(
    child: ChildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "oom_kills", lambda: 3)  # all of them long ago
    ended = asyncio.Event()
    errors = []

    def on_exit(error: ProcessCrashed) -> None:
        errors.append(error)
        ended.set()

    child.on_exit = on_exit
    assert await child.call(os.getpid) == child.pid
    assert child.pid is not None
    psutil.Process(child.pid).kill()
    await ended.wait()
    with pytest.raises(ProcessCrashed) as raised:
        await child.call(os.getpid)
    for error in (*errors, raised.value):
        assert error.message == f"process {child.pid} was killed by signal 9 (SIGKILL)"
        assert error.exit_status == -signal.SIGKILL
        assert error.fault is Fault.OUTSIDE


@pytest.mark.parametrize(
    ("function", "argument", "status", "how"),
    [
        (signal.raise_signal, signal.SIGKILL, -9, "was killed by signal 9 (SIGKILL)"),
        (signal.raise_signal, signal.SIGSEGV, -11, "was killed by signal 11 (SIGSEGV)"),
        (signal.raise_signal, 40, -40, "was killed by signal 40"),
        (os._exit, 3, 3, "exited with status 3"),
        (os._exit, 0, 0, "exited with status 0"),
    ],
)
async def test_a_crash_says_how_the_process_ended(
    child: ChildProcess, function: Callable[[int], None], argument: int, status: int, how: str
) -> None:
    with pytest.raises(ProcessCrashed) as raised:
        await child.call(function, argument)
    assert raised.value.message == f"process {child.pid} {how}"
    assert raised.value.exit_status == status
    crashes = status > 0 or -status in (signal.SIGSEGV, signal.SIGABRT)
    assert raised.value.fault is (Fault.OWN if crashes else Fault.OUTSIDE)


async def test_a_process_that_was_stopped_does_not_hang_by_its_own_fault(child: ChildProcess) -> None:
    assert child.pid is not None
    for number, fault in ((signal.SIGCONT, Fault.OWN), (signal.SIGSTOP, Fault.OUTSIDE)):
        os.kill(child.pid, number)
        with pytest.raises(ProcessHung) as raised:
            await child.call(time.sleep, 3600, deadline_s=0.5)
        assert raised.value.fault is fault
        await child.close()
        await child.start()


def take_memory(size: int, then: int) -> None:
    """Take some memory for a while, and send a signal to this process."""
    taken = bytearray(os.urandom(1 << 20) * (size >> 20))
    time.sleep(0.8)
    os.kill(os.getpid(), then)
    del taken


@pytest.mark.parametrize(
    ("is_oom", "size", "fault"),
    [
        (False, 300 << 20, Fault.OUTSIDE),
        (True, 300 << 20, Fault.OWN),
        (True, 1 << 20, Fault.MEMORY),
    ],
)
async def test_who_lacked_memory_when_the_kernel_kills_a_process_for_it(
    child: ChildProcess, monkeypatch: pytest.MonkeyPatch, is_oom: bool, size: int, fault: Fault
) -> None:
    await child.call(take_memory, 1 << 20, 0)  # as much as others take
    kills = iter([4] if not is_oom else [4, 5])
    last = [4]
    monkeypatch.setattr(process, "oom_kills", lambda: last.append(next(kills, last[-1])) or last[-1])
    with pytest.raises(ProcessCrashed, match="SIGKILL") as raised:
        await child.call(take_memory, size, signal.SIGKILL)
    assert raised.value.fault is fault
    assert ("there was too little memory" in str(raised.value)) == is_oom


@pytest.mark.parametrize("controllers", ["", "memory", "cpu,memory"])
def test_kills_for_lack_of_memory_are_counted_in_both_versions_of_control_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, controllers: str
) -> None:
    group = tmp_path / "cgroup"
    group.write_text(f"3:pids:/other\n2:{controllers}:/system/fleet\n")
    name = "memory.oom_control" if controllers else "memory.events"
    place = tmp_path / "fs" / controllers / "system/fleet"
    place.mkdir(parents=True)
    (place / name).write_text("oom 7\nunder_oom 0\noom_kill 3\noom_group_kill 1\n")
    monkeypatch.setattr(process, "_GROUPS", tmp_path / "fs")
    monkeypatch.setattr(process, "_OWN_GROUPS", group)
    process._counters.cache_clear()
    assert process.oom_kills() == 3
    (place / name).unlink()
    assert process.oom_kills() is None
    process._counters.cache_clear()


async def test_a_process_that_hangs_while_it_starts_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.pool.process._SPAWN_DEADLINE_S", 1.0)
    child = ChildProcess(time.sleep, 3600)
    start = asyncio.create_task(child.start())
    await asyncio.sleep(0)
    pid = child.pid
    assert pid is not None
    with pytest.raises(ProcessCrashed, match="did not answer within 1 s"):
        await start
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


async def test_calls_run_in_order_in_the_main_thread(child: ChildProcess) -> None:
    order: list[int] = []

    async def call(number: int) -> str:
        name = await child.call(name_of_thread, 0.05 if number < 3 else 0.0)
        order.append(number)
        return name

    assert set(await asyncio.gather(*map(call, range(20)))) == {"MainThread"}
    assert order == list(range(20))


def name_of_thread(pause_s: float = 0.0) -> str:
    """Of the thread that runs the call, after a pause."""
    time.sleep(pause_s)
    return threading.current_thread().name


async def test_a_crash_fails_the_call_that_runs_and_those_behind_it(child: ChildProcess) -> None:
    done = asyncio.create_task(child.call(os.getpid))
    calls = [asyncio.create_task(child.call(os._exit, 3))]
    calls += [asyncio.create_task(child.call(os.getpid)) for _ in range(3)]
    assert await done == child.pid
    for call in calls:
        with pytest.raises(ProcessCrashed, match="exited with status 3"):
            await call


async def test_a_call_that_hangs_takes_those_behind_it_along(child: ChildProcess) -> None:
    hanging = asyncio.create_task(child.call(time.sleep, 3600, deadline_s=1.0))
    await asyncio.sleep(0)
    other = asyncio.create_task(child.call(os.getpid))
    with pytest.raises(ProcessHung, match="did not answer within 1 s"):
        await hanging
    with pytest.raises(ProcessCrashed, match="SIGKILL"):
        await other


async def test_nobody_waits_for_the_answer_to_a_caller_that_has_gone(child: ChildProcess) -> None:
    gone = asyncio.create_task(child.call(time.sleep, 0.2))
    await asyncio.sleep(0.05)
    gone.cancel()
    assert await child.call(os.getpid) == child.pid


class OddError(Exception):
    """It can be pickled, and not be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


class LockedError(Exception):
    """It cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()


class FailsToArrive:
    """It can be pickled, and not be unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return (int, ("no number",))


def fail(kind: str) -> None:
    """Raise one of several errors."""
    if kind == "odd":
        raise OddError("two", "words")
    if kind == "locked":
        raise LockedError
    if kind == "exit":
        sys.exit(3)
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "timeout":
        raise TimeoutError("of the function")
    raise ValueError("no reason")


async def test_what_cannot_be_sent_harms_its_own_call_alone(child: ChildProcess) -> None:
    with pytest.raises((AttributeError, pickle.PicklingError)):
        await child.call(len, lambda: None)
    with pytest.raises(TypeError, match="lock"):
        await child.call(threading.Lock)
    for kind, message in {
        "odd": "OddError: two words",
        "locked": "LockedError: locked",
        "exit": "SystemExit: 3",
        "interrupt": "KeyboardInterrupt: ",
    }.items():
        with pytest.raises(RuntimeError, match=message):
            await child.call(fail, kind)
    with pytest.raises(TimeoutError, match="of the function"):
        await child.call(fail, "timeout", deadline_s=60)
    assert await child.call(os.getpid) == child.pid


async def test_a_process_whose_answer_cannot_be_read_is_killed(child: ChildProcess) -> None:
    with pytest.raises(ProcessCrashed, match="exited with status 0"):
        await child.call(FailsToArrive)


async def test_an_error_says_where_it_was_raised(child: ChildProcess) -> None:
    for kind, line in {
        "plain": 'raise ValueError("no reason")',
        "odd": 'raise OddError("two", "words")',
    }.items():
        with pytest.raises((ValueError, RuntimeError)) as raised:
            await child.call(fail, kind)
        assert line in "".join(traceback.format_exception(raised.value))


async def test_messages_may_be_large(child: ChildProcess) -> None:
    large = os.urandom(20 << 20)
    upper, length = await asyncio.gather(child.call(bytes.upper, large), child.call(len, large))
    assert upper == large.upper()
    assert length == len(large)


async def test_a_process_does_not_notice_ctrl_c(child: ChildProcess) -> None:
    assert signal.SIGINT in await child.call(signal.pthread_sigmask, signal.SIG_BLOCK, [])
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


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
from app.pool.process import ChildProcess
from workers import runtime

async def main():
    child = ChildProcess(runtime.initialise, "")
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
    with pytest.raises(ProcessCrashed, match="SIGKILL"):
        await child.call(die_while_answering, deadline_s=10)


def die_while_answering() -> bytes:
    """Write a part of the answer alone."""

    def write_half(self: Connection, content: bytes) -> None:
        os.write(self.fileno(), content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    Connection._send = write_half  # type: ignore[attr-defined]
    return bytes(100_000)


async def test_a_process_killed_while_its_large_answer_is_on_its_way_has_crashed(child: ChildProcess) -> None:
    """In whatever place that is."""
    assert child.pid is not None
    for pause_s in (0.0, 0.01, 0.03, 0.1):
        answer = asyncio.create_task(child.call(bytes, 200 << 20, deadline_s=30))
        await asyncio.sleep(pause_s)
        psutil.Process(child.pid).kill()
        with pytest.raises(ProcessCrashed, match="SIGKILL"):
            await answer
        await child.close()
        await child.start()


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
    monkeypatch.setattr("app.pool.process._KILL_DEADLINE_S", 0.2)
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
    monkeypatch.setattr("app.pool.process._ending", [process])
    assert have_all_ended(10)
    assert not list(answers)
