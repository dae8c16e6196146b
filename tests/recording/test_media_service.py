"""Peaks of recordings from real media workers: while a recording is transcribed, and on demand."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest

from app.common.errors import DiskFull, InvalidInput, TooLarge
from app.engines.plan import make_plan
from app.intake.disk import DiskSpace
from app.intake.uploads import Upload
from app.media.peaks import PeakCollector
from app.media.pool import FIRST_STEP_SAMPLES, MediaPool
from app.recording.service import TranscriptionService
from app.settings import load_settings
from tests.event_loop import until
from tests.media_files import RATE, encode, read_pcm, talk, wav_header
from tests.sample_peaks import collected

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

TALK = Path(__file__).parents[1] / "data" / "talk.flac"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TranscriptionService]:
    """A service with one media worker, and without any other."""
    settings = load_settings(
        data_dir=tmp_path_factory.mktemp("data"),
        model="demo",
        device="cpu",
        media_workers=1,
        max_duration_s=300,
        _env_file=None,
    )
    service = TranscriptionService(settings, make_plan(settings))
    service.media.folder.lock()
    service.media.pool.start()
    yield service
    await service.stop()


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    return talk(250, read_pcm(TALK))  # two steps


def wav(folder: Path, pcm: np.ndarray) -> Upload:
    path = folder / "talk.wav"
    path.write_bytes(wav_header(pcm.nbytes) + pcm.astype("<i2").tobytes())
    return Upload(path, path.name, 0, "")


def left(service: TranscriptionService) -> list[Path]:
    return list(service.media.folder.pcm.iterdir())


async def test_peaks_are_those_of_the_recording(service, tmp_path, speech):
    assert await service.media.peaks(wav(tmp_path, speech)) == collected(speech).pack()
    assert not left(service)


async def test_recordings_that_have_none(service, tmp_path, monkeypatch):
    (tmp_path / "letter").write_bytes(b"Dear Sir or Madam" * 100)
    with pytest.raises(InvalidInput) as refused:
        await service.media.peaks(Upload(tmp_path / "letter", "letter", 0, ""))
    assert refused.value.code == "not_audio"
    with pytest.raises(FileNotFoundError):
        await service.media.peaks(Upload(tmp_path / "gone", "gone", 0, ""))
    with pytest.raises(TooLarge):
        await service.media.peaks(wav(tmp_path, np.zeros(301 * RATE, np.int16)))
    undeclared = Upload(tmp_path / "long.mp3", "long.mp3", 0, "")
    undeclared.path.write_bytes(encode(np.zeros(301 * RATE, np.int16), "mp3", "mp3"))
    with pytest.raises(TooLarge):
        await service.media.peaks(undeclared)
    monkeypatch.setattr(service.media.folder.disk, "free", lambda: 0)
    with pytest.raises(DiskFull):
        await service.media.peaks(wav(tmp_path, np.zeros(RATE, np.int16)))
    assert not left(service)


async def test_a_cancelled_decoding_leaves_no_file(service, tmp_path, speech):
    making = asyncio.create_task(service.media.peaks(wav(tmp_path, speech)))
    await until(lambda: left(service))
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert not left(service)
    assert await service.media.peaks(wav(tmp_path, speech)) == collected(speech).pack()


async def test_a_crash_of_the_worker_changes_nothing(tmp_path, speech, monkeypatch):
    monkeypatch.setattr("app.media.pool.STEP_SAMPLES", FIRST_STEP_SAMPLES)  # five steps
    pool = MediaPool(1, DiskSpace(tmp_path))
    pool.start()
    peaks = PeakCollector()
    decoding = pool.decode("job", wav(tmp_path, speech), tmp_path / "pcm", peaks=peaks)
    seen = []
    async with aclosing(decoding) as steps:
        async for decoded in steps:
            seen.append(decoded.samples)
            if len(seen) == 2:
                [slot] = pool.dispatcher.slots
                os.kill(slot._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    await pool.stop()
    assert seen != sorted(set(seen)), "it began again"
    assert peaks.pack() == collected(speech).pack()
