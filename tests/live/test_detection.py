"""The process that examines all streams."""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from app.live import detection
from app.live.detection import SpeechDetection
from app.pool.process import ChildProcess
from tests.event_loop import until
from workers.media import live_speech
from workers.messages import CarriedAudio, DetectedSpeech, NewAudio

pytestmark = pytest.mark.anyio

TALK = Path(__file__).parents[1] / "data/short01.flac"
PIECE_BYTES = 9600  # 0.3 s


class Recording:
    """A stream whose audio is that of a file."""

    def __init__(self, path: Path, pcm: bytes) -> None:
        self.path = path
        self.left = pcm
        self.carried = CarriedAudio()
        self.found: list[float] = []
        self.has_failed = False

    def next_audio(self) -> NewAudio | None:
        piece, self.left = self.left[:PIECE_BYTES], self.left[PIECE_BYTES:]
        return NewAudio(str(self.path), piece, self.carried) if piece else None

    def detected(self, examined: DetectedSpeech | OSError) -> None:
        assert isinstance(examined, DetectedSpeech)
        self.carried = examined.carried
        self.found += np.frombuffer(examined.probabilities, np.float32).tolist()

    def failed(self) -> None:
        self.has_failed = True


def waking(*streams: Recording) -> SpeechDetection:
    """What examines these streams, which have new audio."""
    detecting = SpeechDetection()
    for stream in streams:
        detecting.wake(stream)
    return detecting


class Broken(Recording):
    """A stream with a fault."""

    def detected(self, examined: DetectedSpeech | OSError) -> None:
        raise KeyError("a fault")


@pytest.mark.timeout(60)
async def test_the_process_stays_while_audio_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "_INTERVAL_S", 0.01)
    detecting = SpeechDetection()
    stream = Recording(tmp_path / "0", b"")
    pids = set()
    for part in range(1, 11):
        stream.left = bytes(PIECE_BYTES)
        detecting.wake(stream)
        # The second signal comes while the loop is busy, and what it announced is taken with the first.
        await until(lambda: not stream.left)
        detecting.wake(stream)
        await until(lambda part=part: stream.carried.position == part * PIECE_BYTES // 2)
        await asyncio.sleep(0.05)
        pids.add(detecting._child.pid)
    await detecting.stop()
    assert len(pids) == 1


@pytest.mark.timeout(120)
async def test_a_crash_of_the_process_costs_no_audio_of_any_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "_RETRY_S", 0.01)
    samples = soundfile.read(TALK, dtype="int16")[0]
    streams = [Recording(tmp_path / str(number), samples.tobytes()) for number in range(3)]
    broken = Broken(tmp_path / "broken", samples.tobytes())
    detecting = waking(*streams, broken)
    await until(lambda: all(stream.carried.position > 4 * PIECE_BYTES for stream in streams))
    assert detecting._child.pid is not None
    os.kill(detecting._child.pid, signal.SIGKILL)
    total = len(samples)
    await until(lambda: all(stream.carried.position == total for stream in streams))
    await detecting.stop()
    assert detecting._child.pid is None
    [undisturbed] = live_speech.detect(
        [NewAudio(str(tmp_path / "undisturbed"), samples.tobytes(), CarriedAudio())]
    )
    assert isinstance(undisturbed, DetectedSpeech)
    expected = np.frombuffer(undisturbed.probabilities, np.float32)
    for stream in streams:
        assert np.allclose(stream.found, expected, atol=1e-5)
        assert np.array_equal(np.fromfile(stream.path, "<i2"), samples)
    assert broken.has_failed


POISON = b"\x01\x02\x03\x04"


def detect_or_die(arrived: Sequence[NewAudio]) -> list[DetectedSpeech | OSError]:
    """What the process is asked. Some audio makes it crash."""
    if any(new.audio.startswith(POISON) for new in arrived):
        os._exit(1)
    return live_speech.detect(arrived)


@pytest.mark.timeout(120)
async def test_audio_that_crashes_the_process_ends_its_own_stream_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "_RETRY_S", 0.01)
    monkeypatch.setattr(detection, "live_speech", SimpleNamespace(detect=detect_or_die))
    good = Recording(tmp_path / "good", bytes(4 * PIECE_BYTES))
    bad = Recording(tmp_path / "bad", POISON + bytes(PIECE_BYTES))
    detecting = waking(good, bad)
    await until(lambda: bad.has_failed and good.carried.position == 2 * PIECE_BYTES)
    assert not good.has_failed
    await detecting.stop()


@pytest.mark.timeout(60)
async def test_streams_end_if_the_process_cannot_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "_RETRY_S", 0.001)
    monkeypatch.setattr(detection, "_START_S", 0.1)

    async def fail(process: ChildProcess) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(ChildProcess, "start", fail)
    streams = [Recording(tmp_path / str(number), bytes(PIECE_BYTES)) for number in range(2)]
    detecting = waking(*streams)
    await until(lambda: all(stream.has_failed for stream in streams))
    await detecting.stop()
