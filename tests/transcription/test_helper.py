"""The child process for long transcripts."""

import os
from collections.abc import AsyncIterator

import psutil
import pytest

from app.transcription.helper import LONG_S, Helper
from tests.event_loop import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
async def helper() -> AsyncIterator[Helper]:
    helper = Helper()
    yield helper
    await helper.stop()


async def test_only_long_work_leaves_this_process(helper: Helper) -> None:
    assert await helper.run(LONG_S - 1, os.getpid) == os.getpid()
    first = await helper.run(LONG_S, os.getpid)
    assert first != os.getpid()
    assert await helper.run(LONG_S, os.getpid) == first


async def test_errors_are_those_of_the_function(helper: Helper) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await helper.run(LONG_S, int, "x")


async def test_work_is_done_although_its_process_crashes(helper: Helper) -> None:
    parent = os.getpid()
    first = await helper.run(LONG_S, os.getpid)
    assert await helper.run(LONG_S, _crash_except_in, parent) == parent
    assert not psutil.pid_exists(first)
    assert await helper.run(LONG_S, os.getpid) not in (parent, first)


async def test_stopping_ends_the_process() -> None:
    helper = Helper()
    pid = await helper.run(LONG_S, os.getpid)
    await helper.stop()
    assert not psutil.pid_exists(pid)
    await helper.stop()


def _crash_except_in(pid: int) -> int:
    if os.getpid() != pid:
        os._exit(1)
    return pid


async def test_the_process_ends_when_it_has_nothing_to_do(
    helper: Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.transcription.helper.IDLE_S", 0.05)
    first = await helper.run(LONG_S, os.getpid)
    await until(lambda: not psutil.pid_exists(first))
    assert await helper.run(LONG_S, os.getpid) not in (os.getpid(), first)
