"""Work that is not to be broken off midway."""

import asyncio

import pytest

from app.shielding import run_shielded

pytestmark = pytest.mark.timeout(60)


def test_work_comes_to_its_end_and_the_cancellation_is_told_after_that() -> None:
    async def check() -> None:
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

    asyncio.run(check())


def test_errors_pass_through() -> None:
    async def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(run_shielded(fail()))
