"""Speech detection in real media workers."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app.common.concurrency import end_tasks
from app.intake.disk import DiskSpace
from app.intake.uploads import Upload
from app.media.pool import MediaPool
from app.recording.clip_search import ClipSearch, RecordingWork
from app.recording.speech import VadParameters
from app.telemetry.work import Work, working_for
from tests.event_loop import until
from tests.media_files import RATE, costly_silence, encode, read_pcm, talk
from workers.messages import FRAME_SAMPLES, Decoded

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

LENGTH_S = 250  # four chunks of a minute, and a short one
TALK = Path(__file__).parents[1] / "data" / "talk.flac"


@asynccontextmanager
async def media_pool(workers: int, folder: Path) -> AsyncIterator[MediaPool]:
    """A pool whose workers all run."""
    pool = MediaPool(workers, DiskSpace(folder))
    pool.dispatcher.start()
    try:
        await until(lambda: not any(slot.status.state != "idle" for slot in pool.dispatcher.slots))
        yield pool
    finally:
        await pool.stop()


async def probabilities(
    pool: MediaPool, upload: Upload, pcm_path: Path, decoded_samples: int | None = None
) -> npt.NDArray[np.float32]:
    """The speech probabilities of a recording, which is decoded to `pcm_path`."""
    decoded = None if decoded_samples is None else Decoded(decoded_samples)
    work = RecordingWork(
        job=pcm_path.name, upload=upload, media_pool=pool, pcm_path=pcm_path, decoded=decoded
    )
    search = ClipSearch(work, VadParameters())
    return np.concatenate([part async for part in search.probabilities()])


@pytest.mark.server
async def test_the_result_is_the_same_with_one_worker_and_with_three(tmp_path: Path) -> None:
    path = tmp_path / "talk.flac"
    path.write_bytes(encode(talk(LENGTH_S, read_pcm(TALK)), "flac", "flac"))
    upload = Upload(path, path.name, 0, "")
    async with media_pool(1, tmp_path) as pool:
        expected = await probabilities(pool, upload, tmp_path / "one")
    async with media_pool(3, tmp_path) as pool:
        found = await probabilities(pool, upload, tmp_path / "three")
        workers = [slot.status for slot in pool.dispatcher.slots]
        before = [worker.batches for worker in workers]
        # All chunks are there at once, so each worker gets one.
        again = await probabilities(pool, upload, tmp_path / "three", LENGTH_S * RATE)
        assert all(worker.batches > batches for worker, batches in zip(workers, before, strict=True))
    assert len(expected) == -(-LENGTH_S * RATE // FRAME_SAMPLES)
    assert expected.max() > 0.9
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(again, expected)
    assert (tmp_path / "three").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.server
async def test_costly_files_of_one_owner_do_not_delay_another_owner(tmp_path: Path) -> None:
    uploads = {}
    for name, content in {
        "speech": encode(talk(LENGTH_S, read_pcm(TALK)), "flac", "flac"),
        "silence": costly_silence(120),
    }.items():
        (tmp_path / name).write_bytes(content)
        uploads[name] = Upload(tmp_path / name, name, 0, "")

    async def took_s(pool: MediaPool, pcm: str) -> float:
        with working_for(Work(owner="short")):
            began = time.perf_counter()
            await probabilities(pool, uploads["speech"], tmp_path / pcm)
            return time.perf_counter() - began

    async with media_pool(1, tmp_path) as pool:
        alone_s = min([await took_s(pool, f"alone{number}") for number in range(3)])
        with working_for(Work(owner="costly")):
            costly = [
                asyncio.create_task(probabilities(pool, uploads["silence"], tmp_path / f"costly{number}"))
                for number in range(5)
            ]
        try:
            await asyncio.sleep(1)
            beside_s = min([await took_s(pool, f"beside{number}") for number in range(2)])
            assert not any(task.done() for task in costly)
        finally:
            await end_tasks(*costly)
    print(f"alone {alone_s:.2f} s, beside costly files {beside_s:.2f} s")
    assert beside_s <= 3 * alone_s
