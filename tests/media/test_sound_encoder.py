"""Encoding in media workers: spans, limits, the disk, crashes, cancellation. With one real media worker."""

import asyncio
import math
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import soundfile

from app.common.errors import AudioNotKept, DiskFull, InvalidInput, TooLarge
from app.intake.disk import DiskSpace
from app.media.pool import MediaPool
from app.media.sound_encoder import SoundEncoder
from tests.event_loop import until
from tests.intake.disks import SmallDisk
from tests.media_files import GOOD, RATE, Pcm, flac_of_silence, read_pcm, wav_header

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

LENGTH_S = 300  # of the recording: many steps of a minute
LENGTH_BYTES = LENGTH_S * RATE * 2


@pytest.fixture(scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MediaPool]:
    pool = MediaPool(1, DiskSpace(tmp_path_factory.getbasetemp()))
    pool.start()
    yield pool
    await pool.stop()


@pytest.fixture
def encoder(pool: MediaPool, tmp_path: Path) -> SoundEncoder:
    return SoundEncoder(pool, DiskSpace(tmp_path), 7200)


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Minutes of speech."""
    path = tmp_path_factory.mktemp("talk") / "recording"
    speech = np.resize(read_pcm(Path(__file__).parents[1] / "data" / "short01.flac"), LENGTH_S * RATE)
    path.write_bytes(wav_header(speech.nbytes) + speech.tobytes())
    return path


def samples(path: Path) -> Pcm:
    return soundfile.read(str(path), dtype="int16")[0]


def worker(pool: MediaPool) -> psutil.Process:
    [pid] = [slot._process.pid for slot in pool.dispatcher.slots]  # type: ignore[attr-defined]
    return psutil.Process(pid)


async def test_a_recording_is_encoded_step_by_step(encoder, talk, tmp_path):
    await encoder.encode(talk, tmp_path / "copy", "flac")
    assert np.array_equal(samples(tmp_path / "copy"), np.frombuffer(talk.read_bytes()[44:], "<i2"))
    assert oct((tmp_path / "copy").stat().st_mode)[-3:] == "600"


async def test_a_span_ends_the_decoding(encoder, talk, tmp_path):
    await encoder.encode(talk, tmp_path / "span", "flac", start_s=100.7, end_s=130.2)
    whole = np.frombuffer(talk.read_bytes()[44:], "<i2")
    assert np.array_equal(samples(tmp_path / "span"), whole[round(100.7 * RATE) : round(130.2 * RATE)])


@pytest.mark.parametrize(
    ("start_s", "end_s", "param"),
    [
        (0, LENGTH_S + 0.1, "end"),
        (LENGTH_S + 1, math.inf, "start"),
        (1.0, 1.00001, "end"),
        (LENGTH_S - 0.00001, math.inf, "end"),
    ],
)
async def test_a_span_must_be_one_of_the_recording(encoder, talk, tmp_path, start_s, end_s, param):
    with pytest.raises(InvalidInput, match=r"`(start|end)`") as error:
        await encoder.encode(talk, tmp_path / "span", "flac", start_s=start_s, end_s=end_s)
    assert error.value.param == param


async def test_a_rounded_end_is_the_end(encoder, talk, tmp_path):
    await encoder.encode(talk, tmp_path / "span", "flac", start_s=LENGTH_S - 1, end_s=LENGTH_S + 0.004)
    assert len(samples(tmp_path / "span")) == RATE


async def test_no_copy_is_longer_than_the_limit(pool, talk, tmp_path):
    with pytest.raises(TooLarge):
        await SoundEncoder(pool, DiskSpace(tmp_path), LENGTH_S - 1).encode(talk, tmp_path / "copy", "flac")
    silence = tmp_path / "silence"
    silence.write_bytes(flac_of_silence(0.5, declared=False))
    with pytest.raises(TooLarge):
        await SoundEncoder(pool, DiskSpace(tmp_path), 1700).encode(silence, tmp_path / "other", "flac")


@pytest.mark.parametrize("free", [1 << 20, LENGTH_BYTES // 2])
async def test_a_copy_that_may_not_fit_is_refused_early(pool, talk, tmp_path, monkeypatch, free):
    SmallDisk(monkeypatch, tmp_path, free=(256 << 20) + free)
    with pytest.raises(DiskFull, match="disk is full"):
        await SoundEncoder(pool, DiskSpace(tmp_path)).encode(talk, tmp_path / "copy", "flac")
    assert (tmp_path / "copy").stat().st_size < 3 << 20, "after one step at most"


async def test_the_space_of_a_copy_is_reserved_while_it_is_made(pool, talk, tmp_path):
    disk = DiskSpace(tmp_path)
    making = asyncio.create_task(SoundEncoder(pool, disk).encode(talk, tmp_path / "copy", "flac"))
    await until(lambda: sum(one.outstanding for one in disk.reservations))
    [reserved] = disk.reservations
    assert reserved.outstanding + reserved.written == LENGTH_BYTES
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert not disk.reservations


async def test_files_that_cannot_be_encoded(encoder, tmp_path):
    (tmp_path / "text").write_bytes(b"Dear Sir or Madam" * 100)
    with pytest.raises(InvalidInput) as error:
        await encoder.encode(tmp_path / "text", tmp_path / "copy", "flac")
    assert error.value.code == "not_audio"
    with pytest.raises(AudioNotKept):
        await encoder.encode(tmp_path / "missing", tmp_path / "other", "flac")


async def test_a_crash_of_the_worker_costs_only_time(pool, encoder, talk, tmp_path):
    making = asyncio.create_task(encoder.encode(talk, tmp_path / "copy", "flac"))
    await size_reaches(tmp_path / "copy", 1 << 20)
    os.kill(worker(pool).pid, signal.SIGKILL)
    await making
    assert np.array_equal(samples(tmp_path / "copy"), np.frombuffer(talk.read_bytes()[44:], "<i2"))


async def test_a_cancelled_encoding_ends_in_the_worker(pool, encoder, talk, tmp_path):
    making = asyncio.create_task(encoder.encode(talk, tmp_path / "copy", "ogg"))
    await size_reaches(tmp_path / "copy", 1 << 10)
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    (tmp_path / "copy").unlink()
    await until(lambda: not any("talk" in file.path for file in worker(pool).open_files()))
    assert not (tmp_path / "copy").exists()


async def test_as_many_encodings_run_as_there_are_workers(pool, tmp_path):
    path = tmp_path / "recording"
    path.write_bytes(GOOD["wav 16 bit"].encode(np.zeros(130 * RATE, np.int16)))
    encoder = SoundEncoder(pool, DiskSpace(tmp_path))
    made = [encoder.encode(path, tmp_path / str(number), "flac") for number in range(4)]
    sizes: list[int] = []
    work = asyncio.gather(*made)
    while not work.done():
        sizes.append(len(list(tmp_path.iterdir())))
        await asyncio.sleep(0.001)
    await work
    assert sizes[0] <= 2, "only one has begun"
    assert len(list(tmp_path.iterdir())) == 5


async def size_reaches(path: Path, size: int) -> None:
    """Wait until a file has so many bytes."""
    await until(lambda: path.exists() and path.stat().st_size >= size)
