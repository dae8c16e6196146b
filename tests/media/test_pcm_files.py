"""Limits of decoding, on a small disk, with the functions of a media worker in this process."""

import asyncio
import io
import shutil
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
import soundfile

from app.common.errors import DiskFull, OutgrowsDisk, TooLarge
from app.intake.disk import MARGIN_BYTES, DiskSpace
from app.intake.uploads import Upload, remove_leftovers
from app.media.pcm_files import channel_paths, remove_channels
from app.media.pool import FIRST_STEP_SAMPLES, MediaPool
from app.media.worker_slot import MediaCall
from app.pool.dispatcher import Dispatcher
from tests.intake.disks import SmallDisk
from tests.media_files import RATE, encode, flac_of_silence
from tests.pool.fake_slots import StubSlot
from workers.media import sessions
from workers.messages import BYTES_PER_SAMPLE, Decoded

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

STEP_BYTES = FIRST_STEP_SAMPLES * BYTES_PER_SAMPLE
MINUTE_BYTES = 60 * RATE * BYTES_PER_SAMPLE
DAY_S = 86400.0


class InlineSlot(StubSlot):
    """A `Slot[MediaCall, Any]` that runs each call in this process."""

    async def run(self, payloads: Sequence[MediaCall], expected_s: float | None) -> list[Any]:
        [call] = payloads
        return [call.function(*call.args)]


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[MediaPool]:
    pool = MediaPool(1, DiskSpace(tmp_path))
    pool.dispatcher = Dispatcher("media process", [InlineSlot()])
    pool.start()
    yield pool
    await pool.stop()
    assert not sessions._open, "a decoder is still open"


@pytest.fixture
def pcm(tmp_path: Path) -> Path:
    """Where a recording is decoded to."""
    (tmp_path / "pcm").mkdir()
    return tmp_path / "pcm" / "recording"


def upload(folder: Path, content: bytes, *, raw_pcm: bool = False) -> Upload:
    path = folder / "upload"
    path.write_bytes(content)
    return Upload(path, "talk.flac", len(content), "", raw_pcm)


async def decode(
    pool: MediaPool, recording: Upload, pcm: Path, max_duration_s: float = DAY_S, job: str = "job"
) -> int:
    """The number of samples of a recording."""
    async with aclosing(pool.decode(job, recording, pcm, max_duration_s)) as steps:
        return max([decoded.samples async for decoded in steps])


def size(path: Path) -> int:
    return path.stat().st_size


async def refused(pool: MediaPool, recording: Upload, pcm: Path, **limits: float) -> tuple[Exception, int]:
    """The error for a recording, and the size of its decoded audio in bytes."""
    with pytest.raises((TooLarge, DiskFull)) as error:
        await decode(pool, recording, pcm, **limits)
    await asyncio.gather(*pool._background)  # its decoder is being closed
    return error.value, size(pcm)


async def test_a_day_of_silence_in_some_megabytes_is_refused_before_it_is_decoded(
    pool: MediaPool, tmp_path: Path, pcm: Path
) -> None:
    error, decoded = await refused(pool, upload(tmp_path, flac_of_silence(25)), pcm)
    assert isinstance(error, TooLarge)
    assert (error.code, decoded) == ("audio_too_long", 0)


async def test_a_recording_that_declares_no_length_is_refused_once_it_is_too_long(
    pool: MediaPool, tmp_path: Path, pcm: Path
) -> None:
    content = encode(np.zeros(130 * RATE, np.int16), "mp3", "mp3")
    for separate in (False, True):
        with pytest.raises(TooLarge, match="longer than 100 s"):
            async for _ in pool.decode("job", upload(tmp_path, content), pcm, 100, separate=separate):
                pass
        await asyncio.gather(*pool._background)
        assert size(pcm) >= 100 * RATE * BYTES_PER_SAMPLE


async def test_raw_pcm_has_its_length_from_its_size(pool: MediaPool, tmp_path: Path, pcm: Path) -> None:
    recording = upload(tmp_path, bytes(2 * MINUTE_BYTES), raw_pcm=True)
    error, decoded = await refused(pool, recording, pcm, max_duration_s=119)
    assert (type(error), decoded) == (TooLarge, 0)
    assert await decode(pool, recording, pcm, max_duration_s=120) == 120 * RATE


async def test_a_recording_as_long_as_the_limit_is_decoded(
    pool: MediaPool, tmp_path: Path, pcm: Path
) -> None:
    assert await decode(pool, upload(tmp_path, flac_of_silence(0.1)), pcm, 360) == 360 * RATE


async def test_a_declared_length_without_space_is_refused_before_it_is_decoded(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = upload(tmp_path, flac_of_silence(0.5))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 29 * MINUTE_BYTES)
    error, decoded = await refused(pool, recording, pcm)
    assert isinstance(error, OutgrowsDisk)
    assert (error.code, decoded) == ("audio_outgrows_disk", 0)
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 31 * MINUTE_BYTES)
    assert await decode(pool, recording, pcm) == 1800 * RATE


async def test_an_undeclared_length_is_stopped_when_only_the_margin_is_left(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = upload(tmp_path, flac_of_silence(0.5, declared=False))
    disk = SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 10 * MINUTE_BYTES)
    error, decoded = await refused(pool, recording, pcm)
    assert isinstance(error, OutgrowsDisk)
    assert 8 * MINUTE_BYTES < decoded < 12 * MINUTE_BYTES
    assert disk.usage.free > MARGIN_BYTES - 2 * MINUTE_BYTES


async def test_no_step_begins_on_a_full_disk(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording is not the reason, so its job may be retried."""
    recording = upload(tmp_path, flac_of_silence(0.1))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + STEP_BYTES - 1)
    error, decoded = await refused(pool, recording, pcm)
    assert (type(error), decoded) == (DiskFull, 0)


@pytest.mark.parametrize("declared", [True, False])
async def test_the_decoded_audio_of_others_is_their_fault(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch, declared: bool
) -> None:
    """Once another recording is done, there is space for this one."""
    recording = upload(tmp_path, flac_of_silence(0.5, declared=declared))
    (pcm.parent / "other").write_bytes(bytes(25 * MINUTE_BYTES))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 10 * MINUTE_BYTES)
    error, _ = await refused(pool, recording, pcm)
    assert type(error) is DiskFull
    (pcm.parent / "other").unlink()
    assert await decode(pool, recording, pcm) == 1800 * RATE


async def test_a_running_recording_keeps_the_space_that_it_still_needs(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = upload(tmp_path, flac_of_silence(0.25))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 20 * MINUTE_BYTES)
    async with aclosing(pool.decode("first", recording, pcm, DAY_S)) as steps:
        await anext(steps)
        other = pcm.parent / "other"
        error, decoded = await refused(pool, recording, other)
        assert (type(error), decoded) == (DiskFull, 0)
        assert max([decoded.samples async for decoded in steps]) == 900 * RATE
    await asyncio.to_thread(pcm.unlink)
    assert await decode(pool, recording, other) == 900 * RATE


async def test_two_recordings_that_start_together_do_not_reserve_the_same_space(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = upload(tmp_path, flac_of_silence(0.25))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 20 * MINUTE_BYTES)
    other = pcm.parent / "other"
    outcomes = await asyncio.gather(
        decode(pool, recording, pcm, job="first"),
        decode(pool, recording, other, job="second"),
        return_exceptions=True,
    )
    await asyncio.gather(*pool._background)
    assert 900 * RATE in outcomes
    assert sorted(type(outcome) for outcome in outcomes if outcome != 900 * RATE) == [DiskFull]
    assert min(size(pcm), size(other)) < 3 * MINUTE_BYTES


async def test_decoded_audio_of_an_earlier_run_needs_no_space_again(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = upload(tmp_path, flac_of_silence(0.25))
    await asyncio.to_thread(pcm.write_bytes, bytes(14 * MINUTE_BYTES))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 3 * MINUTE_BYTES)
    assert await decode(pool, recording, pcm) == 900 * RATE


async def test_the_margin_is_in_use_by_another_program(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fills the disk while a recording is decoded."""
    recording = upload(tmp_path, flac_of_silence(0.25))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 20 * MINUTE_BYTES)
    async with aclosing(pool.decode("job", recording, pcm, DAY_S)) as steps:
        await anext(steps)
        SmallDisk(monkeypatch, tmp_path, free=0)
        with pytest.raises(DiskFull) as error:
            [step async for step in steps]
    await asyncio.gather(*pool._background)
    assert type(error.value) is DiskFull


async def test_each_channel_needs_space_for_its_file(
    pool: MediaPool, tmp_path: Path, pcm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    channels = np.resize(np.array([[1, 2, 1], [2, 1, 2]], "<i2"), (600 * RATE, 3))
    soundfile.write(file, channels, RATE, format="FLAC")
    recording = upload(tmp_path, file.getvalue())

    async def separate() -> Decoded:
        async with aclosing(pool.decode("job", recording, pcm, DAY_S, separate=True)) as steps:
            return [step async for step in steps][-1]

    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 29 * MINUTE_BYTES)
    with pytest.raises(OutgrowsDisk):
        await separate()
    await asyncio.gather(*pool._background)
    assert {size(path) for path in channel_paths(pcm)} == {0}
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 31 * MINUTE_BYTES)
    assert await separate() == Decoded(600 * RATE, True, ANY, (0, 1), 600 * RATE, files=3)
    decoded = {path: size(path) for path in pcm.parent.iterdir()}
    assert decoded == dict.fromkeys(channel_paths(pcm)[:2], 10 * MINUTE_BYTES), "the third one is the same"
    remove_channels(pcm)
    assert not list(pcm.parent.iterdir())


def test_leftover_files_of_channels_are_removed_unless_their_job_needs_them(tmp_path: Path) -> None:
    kept, left = uuid.uuid4().hex, uuid.uuid4().hex
    for name in (kept, left):
        for path in channel_paths(tmp_path / name):
            path.touch()
    (tmp_path / f"{left}.txt").touch()
    remove_leftovers(tmp_path, {kept})
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*(path.name for path in channel_paths(tmp_path / kept)), f"{left}.txt"}


def test_the_machine_has_a_disk(tmp_path: Path) -> None:
    """The figures of a small disk have the names of the real ones."""
    assert DiskSpace(tmp_path).free() <= shutil.disk_usage(tmp_path).free
