"""The child process for long transcripts."""

import asyncio
import multiprocessing
import os
import time
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from app.common.errors import HelperFailed
from app.pool.helper import LONG_S, Helper, work_s
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


async def test_a_new_process_does_the_work_of_one_that_is_killed(helper: Helper, tmp_path: Path) -> None:
    first = await helper.run(LONG_S, os.getpid)
    assert await helper.run(LONG_S, _crash_once, tmp_path / "crashed") not in (os.getpid(), first)
    assert not psutil.pid_exists(first)


def _use_up_memory() -> int:
    return len(bytes(64 << 30))  # never touched


def _sleep() -> None:
    time.sleep(600)


def _crash() -> None:
    assert multiprocessing.parent_process(), "in the server"
    os._exit(1)


@pytest.mark.parametrize("work", [_crash, _use_up_memory, _sleep])
async def test_what_fails_in_the_process_is_not_repeated_in_the_server(
    helper: Helper, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others that wait meanwhile are served."""
    if work is _sleep:
        monkeypatch.setattr("app.pool.helper._DEADLINE_S", 0.2)
        monkeypatch.setattr("app.pool.helper._DEADLINE_RATE", 0.0)
    calls = [helper.run(LONG_S, work), *(helper.run(LONG_S, os.getpid) for _ in range(3))]
    failed, *served = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(failed, HelperFailed), failed
    assert len(set(served)) == 1
    assert os.getpid() not in served


async def test_a_call_that_has_begun_ends_before_the_next_one(helper: Helper, tmp_path: Path) -> None:
    """Although its client is gone."""
    pid = await helper.run(LONG_S, os.getpid)
    begun, done = tmp_path / "begun", tmp_path / "done"
    call = asyncio.create_task(helper.run(LONG_S, _touch_both, begun, done))
    await until(begun.exists)
    call.cancel()
    assert await helper.run(LONG_S, os.getpid) == pid
    assert done.exists()


async def test_stopping_ends_a_call(helper: Helper, tmp_path: Path) -> None:
    call = asyncio.create_task(helper.run(LONG_S, _touch_both, tmp_path / "begun", tmp_path / "done", 600))
    await until((tmp_path / "begun").exists)
    await helper.stop()
    with pytest.raises(HelperFailed):
        await call
    assert not helper._child.is_started


def test_text_that_packs_well_is_long_too() -> None:
    assert work_s(3.5, zlib.compress(b"word " * 1000)) == 3.5
    assert work_s(3.5, zlib.compress(b"word " * 50_000)) == LONG_S
    assert work_s(None) == 0.0


async def test_stopping_ends_the_process() -> None:
    helper = Helper()
    pid = await helper.run(LONG_S, os.getpid)
    await helper.stop()
    assert not psutil.pid_exists(pid)
    await helper.stop()


def _crash_once(marker: Path) -> int:
    if not marker.exists():
        marker.touch()
        os._exit(1)
    return os.getpid()


def _touch_both(first: Path, last: Path, seconds: float = 0.3) -> None:
    first.touch()
    time.sleep(seconds)
    last.touch()


async def test_the_process_ends_when_it_has_nothing_to_do(
    helper: Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pool.helper.IDLE_S", 0.05)
    first = await helper.run(LONG_S, os.getpid)
    await until(lambda: not psutil.pid_exists(first))
    assert await helper.run(LONG_S, os.getpid) not in (os.getpid(), first)
