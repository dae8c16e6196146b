"""The process that listens to all streams."""

import asyncio
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import soundfile

from app.live import hearing
from app.live.hearing import Hearing
from tests.event_loop import until
from workers.media.silero import SileroModel
from workers.messages import FRAME_SAMPLES, Ear, Heard, NewAudio

TALK = Path(__file__).parents[1] / "data/short01.flac"
PIECE_BYTES = 9600  # 0.3 s


class Recording:
    """A stream whose audio is that of a file."""

    def __init__(self, path: Path, pcm: bytes) -> None:
        self.path = path
        self.left = pcm
        self.ear = Ear()
        self.found: list[float] = []
        self.has_failed = False

    def next_audio(self) -> NewAudio | None:
        piece, self.left = self.left[:PIECE_BYTES], self.left[PIECE_BYTES:]
        return NewAudio(str(self.path), piece, self.ear) if piece else None

    def heard(self, heard: Heard | OSError) -> None:
        assert isinstance(heard, Heard)
        self.ear = heard.ear
        self.found += np.frombuffer(heard.probabilities, np.float32).tolist()

    def failed(self) -> None:
        self.has_failed = True


class Broken(Recording):
    """A stream with a fault."""

    def heard(self, heard: Heard | OSError) -> None:
        raise KeyError("a fault")


@pytest.mark.timeout(120)
def test_a_crash_of_the_process_costs_no_audio_of_any_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "_RETRY_S", 0.01)
    samples = soundfile.read(TALK, dtype="int16")[0]
    streams = [Recording(tmp_path / str(number), samples.tobytes()) for number in range(3)]
    broken = Broken(tmp_path / "broken", samples.tobytes())

    async def listen() -> None:
        listening = Hearing()
        for stream in (*streams, broken):
            listening.wake(stream)
        await until(lambda: all(stream.ear.position > 4 * PIECE_BYTES for stream in streams))
        assert listening._child is not None
        assert listening._child.pid is not None
        os.kill(listening._child.pid, signal.SIGKILL)
        total = len(samples)
        await until(lambda: all(stream.ear.position == total for stream in streams))
        await listening.stop()
        assert listening._child is None

    asyncio.run(listen())
    whole = len(samples) // FRAME_SAMPLES * FRAME_SAMPLES
    expected = SileroModel().probabilities(samples[:whole].astype(np.float32) / 32768)
    for stream in streams:
        assert np.allclose(stream.found, expected, atol=1e-5)
        assert np.array_equal(np.fromfile(stream.path, "<i2"), samples)
    assert broken.has_failed
