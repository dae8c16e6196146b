import asyncio

import anyio
import pytest

from app.common.concurrency import Wakeup, run_shielded
from tests.event_loop import let_tasks_run

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


async def test_a_signal_wakes_only_once() -> None:
    wakeup = Wakeup()
    wakeup.set()
    await wakeup.wait()
    waiting = asyncio.create_task(wakeup.wait())
    await let_tasks_run()
    assert not waiting.done()
    wakeup.set()
    await waiting


async def test_waiting_ends_at_the_timeout() -> None:
    wakeup = Wakeup()
    await wakeup.wait(timeout_s=0.01)
    wakeup.set()
    await wakeup.wait(timeout_s=0)  # a signal that is set counts even then


async def test_work_completes_although_the_caller_is_cancelled_repeatedly() -> None:
    running, may_end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        running.set()
        await may_end.wait()

    caller = asyncio.create_task(run_shielded(work()))
    await running.wait()
    for _ in range(3):
        caller.cancel()
        await asyncio.sleep(0.01)
    assert not caller.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_work_completes_in_a_cancelled_scope() -> None:
    """Responses of Starlette run in such scopes, which cancel at each turn of the loop."""
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.05)
        done.append("work")

    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_soon(scope.cancel)
        await run_shielded(work())
        done.append("caller")
    assert scope.cancelled_caught
    assert done == ["work"]


async def test_errors_pass_through() -> None:
    async def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await run_shielded(fail())
