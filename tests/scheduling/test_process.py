"""One spawned process, as it is started, watched and ended."""

import asyncio
import os
import time

import psutil
import pytest

from app.errors import ProcessCrashed
from app.scheduling.process import ChildProcess
from workers import runtime

pytestmark = pytest.mark.timeout(60)


def test_a_child_answers_and_its_death_is_noticed() -> None:
    async def check() -> None:
        died = asyncio.Event()
        child = ChildProcess(runtime.initialise, "")
        child.on_crash = died.set
        await child.start()
        assert await child.call(os.getpid) == child.pid
        assert child.pid is not None
        psutil.Process(child.pid).kill()
        await died.wait()
        with pytest.raises(ProcessCrashed, match="crashed"):
            await child.call(os.getpid)
        await child.close()

    asyncio.run(check())


def test_a_child_that_hangs_while_it_starts_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.scheduling.process._SPAWN_DEADLINE_S", 1.0)

    async def check() -> None:
        child = ChildProcess(time.sleep, 3600)
        with pytest.raises(ProcessCrashed, match="did not answer within 1 s"):
            await child.start()
        pid = child.pid  # it has been killed, and may be gone by now
        assert pid is not None
        await child.close()
        assert not psutil.pid_exists(pid)

    asyncio.run(check())


def test_a_child_can_be_closed_while_it_hangs_at_its_start() -> None:
    async def check() -> None:
        child = ChildProcess(time.sleep, 3600)
        start = asyncio.create_task(child.start())
        await asyncio.sleep(0)
        assert child.pid is not None
        process = psutil.Process(child.pid)
        start.cancel()
        await child.close()
        assert not process.is_running()

    asyncio.run(check())


def test_a_child_that_hangs_at_work_is_killed() -> None:
    async def check() -> None:
        child = ChildProcess(runtime.initialise, "")
        await child.start()
        with pytest.raises(ProcessCrashed, match="did not answer within 1 s"):
            await child.call(time.sleep, 3600, deadline_s=1.0)
        await child.close()

    asyncio.run(check())


def test_a_childs_matrix_products_take_one_thread() -> None:
    """Even on a machine of many cores: those that wait for the next product would keep them busy."""

    async def check() -> None:
        child = ChildProcess(runtime.initialise, "")
        await child.start()
        assert await child.call(threads_of_a_matrix_product) == 0
        await child.close()

    asyncio.run(check())


def test_a_child_may_stand_back_behind_its_parent() -> None:
    async def check() -> None:
        child = ChildProcess(runtime.initialise, "", 7)
        await child.start()
        assert child.pid is not None
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == min(ours + 7, 19)
        await child.close()

    asyncio.run(check())


def threads_of_a_matrix_product() -> int:
    """How many more threads there are after it."""
    before = psutil.Process().num_threads()
    import numpy as np

    square = np.ones((512, 512), np.float32)
    square @ square
    return psutil.Process().num_threads() - before
