"""Coroutines that run to completion although their caller is cancelled."""

import asyncio

import anyio
import pytest

from app.shielding import run_shielded

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def test_work_completes_before_the_cancellation_is_raised() -> None:
    done: list[str] = []

    async def work() -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        done.append("work")
        return "result"

    assert await run_shielded(work()) == "result"
    caller = asyncio.create_task(run_shielded(work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert done == ["work"] * 2


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
