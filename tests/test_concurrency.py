import asyncio

import pytest

from app.concurrency import Wakeup
from tests.event_loop import let_tasks_run

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


async def test_a_signal_wakes_the_loop_that_waits() -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait())
    await let_tasks_run()
    assert not waiting.done()
    wakeup.set()
    await waiting


async def test_a_signal_set_while_nobody_waits_is_not_lost() -> None:
    wakeup = Wakeup()
    wakeup.set()
    wakeup.set()
    await wakeup.wait()


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
