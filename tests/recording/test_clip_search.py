"""The search of one recording for speech, without processes."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.common.errors import DiskFull
from app.intake.uploads import Upload
from app.recording.clip_search import FoundSpeech, RecordingWork, find_speech
from app.recording.speech import VadParameters
from workers.messages import CHUNK_FRAMES, FRAME_SAMPLES, SAMPLE_RATE, Decoded

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

STEP = CHUNK_FRAMES * FRAME_SAMPLES  # decoded at a time
VAD = VadParameters(min_silence_ms=1000, speech_pad_ms=0)


@dataclass
class FakeMedia:
    """A `MediaPool` with a recording in which somebody speaks in the first five of every ten seconds."""

    steps: list[int]  # samples that are decoded after each
    worker_count: int = 1
    requested: list[tuple[int, int]] = field(default_factory=list)  # first frame and number, of each chunk
    in_flight: int = 0
    most_in_flight: int = 0
    cancelled: list[str] = field(default_factory=list)
    closed: bool = False
    error: Exception | None = None
    blocked: bool = False
    started: asyncio.Event = field(default_factory=asyncio.Event)  # a chunk was

    async def decode(
        self, job: str, upload: Upload, pcm_path: Path, max_duration_s: float, *options: object
    ) -> AsyncGenerator[Decoded]:
        try:
            for number, samples in enumerate(self.steps, start=1):
                await asyncio.sleep(0)
                yield Decoded(samples, number == len(self.steps), ())
        finally:
            self.closed = True

    async def speech_probabilities(self, job: str, pcm_path: Path, start: int, frames: int) -> Any:
        self.requested.append((start, frames))
        self.in_flight += 1
        self.started.set()
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(1000 if self.blocked else 0.001)
            if self.error is not None:
                raise self.error
        finally:
            self.in_flight -= 1
        seconds = (start + np.arange(frames)) * FRAME_SAMPLES / SAMPLE_RATE
        return np.where(seconds % 10 < 5, 1.0, 0.0).astype(np.float32)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)


async def find(media: FakeMedia) -> FoundSpeech:
    upload = Upload(Path("x"), "x", 1, "")
    work = RecordingWork(job="job", upload=upload, media_pool=media, pcm_path=Path("pcm"))  # type: ignore[arg-type]
    return await find_speech(work, VAD)


async def test_the_speech_of_a_long_recording() -> None:
    media = FakeMedia([STEP, 2 * STEP, 2 * STEP + 100_000])
    found = await find(media)
    frames = -(-(2 * STEP + 100_000) // FRAME_SAMPLES)
    assert media.requested == [
        (0, CHUNK_FRAMES),
        (CHUNK_FRAMES, CHUNK_FRAMES),
        (2 * CHUNK_FRAMES, frames - 2 * CHUNK_FRAMES),
    ]
    assert (found.samples, len(found.probabilities)) == (2 * STEP + 100_000, frames)
    starts = [start / SAMPLE_RATE for start, _ in found.spans]
    ends = [end / SAMPLE_RATE for _, end in found.spans]
    assert starts == pytest.approx([10 * number for number in range(13)], abs=0.032)
    assert ends == pytest.approx([10 * number + 5 for number in range(13)], abs=0.032)
    assert (media.closed, media.cancelled) == (True, ["job"])


async def test_a_worker_that_starts_anew_searches_nothing_twice() -> None:
    media = FakeMedia([STEP, 2 * STEP, STEP, 2 * STEP, 2 * STEP + 1])
    found = await find(media)
    assert media.requested == [(0, CHUNK_FRAMES), (CHUNK_FRAMES, CHUNK_FRAMES), (2 * CHUNK_FRAMES, 1)]
    assert found.samples == 2 * STEP + 1


async def test_two_requests_for_each_worker_are_in_flight() -> None:
    media = FakeMedia([STEP * (1 + number) for number in range(20)], worker_count=3)
    assert (await find(media)).samples == 20 * STEP
    assert 6 <= media.most_in_flight <= 7


async def test_a_recording_without_speech() -> None:
    media = FakeMedia([FRAME_SAMPLES // 2])
    assert (await find(media)).samples == FRAME_SAMPLES // 2
    media = FakeMedia([1])
    assert (await find(media)).spans == ()


async def test_an_error_ends_all_work() -> None:
    media = FakeMedia([STEP * (1 + number) for number in range(20)], error=DiskFull("full"))
    with pytest.raises(DiskFull):
        await find(media)
    assert (media.closed, media.cancelled, media.in_flight) == (True, ["job"], 0)


async def test_a_cancellation_ends_all_work() -> None:
    media = FakeMedia([STEP * (1 + number) for number in range(20)], blocked=True)
    search = asyncio.create_task(find(media))
    await media.started.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert (media.closed, media.cancelled, media.in_flight) == (True, ["job"], 0)
