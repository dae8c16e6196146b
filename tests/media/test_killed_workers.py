"""Media workers that are killed, or crash, in the middle of a file: real processes."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.common.errors import InvalidInput
from app.intake.disk import DiskSpace
from app.media.pool import MediaPool
from app.media.worker_slot import MediaCall

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture(params=[pytest.param(1, marks=pytest.mark.soak), 2])
async def pool(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch) -> AsyncIterator[MediaPool]:
    monkeypatch.setattr("app.pool.failure_policy._MAX_PAUSE_S", 0.01)
    pool = MediaPool(request.param, DiskSpace(tmp_path))
    pool.start()
    yield pool
    await pool.stop()


def work(folder: str, name: str, deaths: int, number: int) -> str:
    """What a worker does with a file: so many workers die of a signal before one is done."""
    place = Path(folder, name)
    place.mkdir(exist_ok=True)
    died = len(list(place.iterdir()))
    time.sleep(0.1)
    if died < deaths:
        (place / str(died)).touch()
        os.kill(os.getpid(), number)
    return name


async def test_a_good_file_survives_five_kills_from_outside(pool: MediaPool, tmp_path: Path) -> None:
    done = await pool.run("job", MediaCall(work, (str(tmp_path), "good", 5, signal.SIGKILL)))
    assert (done.result, done.crash_count) == ("good", 0)


async def test_a_file_that_crashes_decoders_is_refused_beside_a_good_one_that_is_killed(
    pool: MediaPool, tmp_path: Path
) -> None:
    def run(name: str, deaths: int, number: int) -> asyncio.Task[object]:
        call = MediaCall(work, (str(tmp_path), name, deaths, number))
        return asyncio.create_task(pool.run(name, call))

    bad, good = run("bad", 99, signal.SIGSEGV), run("good", 2, signal.SIGKILL)
    with pytest.raises(InvalidInput, match="makes the decoder crash"):
        await bad
    await good
    assert len(list((tmp_path / "bad").iterdir())) <= 5, "two deaths of the other file may excuse it at first"
