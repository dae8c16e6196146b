"""The event loop with a virtual clock."""

import asyncio
import time

import pytest

from bench import virtual_clock

pytestmark = pytest.mark.timeout(20)


def test_timers_fire_in_order_and_without_waiting() -> None:
    seen: list[tuple[float, str]] = []

    async def wait(seconds: float, name: str) -> None:
        await asyncio.sleep(seconds)
        seen.append((asyncio.get_running_loop().time(), name))

    async def main() -> None:
        await asyncio.gather(wait(36_000, "ten hours"), wait(0.5, "half a second"), wait(0.5, "the next"))

    began = time.monotonic()
    virtual_clock.run(main())
    assert seen == [(0.5, "half a second"), (0.5, "the next"), (36_000, "ten hours")]
    assert time.monotonic() - began < 10


def test_ready_tasks_run_before_any_timer() -> None:
    async def main() -> float:
        event = asyncio.Event()
        timer = asyncio.create_task(asyncio.sleep(5))
        asyncio.get_running_loop().call_soon(event.set)
        await event.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        now = asyncio.get_running_loop().time()
        await timer
        return now

    assert virtual_clock.run(main()) == 0


def test_timeouts_expire() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.sleep(91)
        return asyncio.get_running_loop().time()

    assert virtual_clock.run(main()) == pytest.approx(90)


def test_a_deadlock_is_an_error() -> None:
    async def main() -> None:
        await asyncio.sleep(3)
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="no timer and no other task"):
        virtual_clock.run(main())


def test_threads_are_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(time.sleep, 0)

    with pytest.raises(RuntimeError, match="no threads"):
        virtual_clock.run(main())
