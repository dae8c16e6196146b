"""Finds where somebody speaks in one recording: decodes it and searches it at the same time."""

import asyncio
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.media.pcm_budget import audio_too_long
from app.media.pool import MediaPool
from app.media.speech import CHUNK_FRAMES, SpeechDetector, VadParameters
from app.media.uploads import Upload
from workers.messages import FRAME_SAMPLES, SAMPLE_RATE, Span

Probabilities = npt.NDArray[np.float32]

_CHUNKS_PER_WORKER = 2  # in flight at the media workers: one runs, one waits


@dataclass(frozen=True, slots=True)
class FoundSpeech:
    """The speech of a recording."""

    spans: tuple[Span, ...]  # in samples, in order
    probabilities: Probabilities  # of each frame, shape (frames,)
    samples: int  # of the recording

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE


async def find_speech(
    media: MediaPool,
    job: str,
    upload: Upload,
    pcm_path: Path,
    parameters: VadParameters,
    max_duration_s: float,
) -> FoundSpeech:
    """The speech of a recording, which is decoded at `pcm_path`. The caller removes that file.

    `job` names the work in the queue; cancelling the caller removes it from there. Raises InvalidInput if the
    file cannot be decoded, TooLarge if the recording is too long, and DiskFull or OutgrowsDisk.
    """
    search = _Search(media, job, pcm_path, parameters)
    samples = 0
    try:
        async with aclosing(media.decode(job, upload, pcm_path, max_duration_s)) as steps:
            async for decoded in steps:
                samples = decoded.samples
                if samples > max_duration_s * SAMPLE_RATE:
                    raise audio_too_long(max_duration_s)
                search.request(samples, finished=decoded.finished)
                await search.take(leave=_CHUNKS_PER_WORKER * media.worker_count)
        await search.take(leave=0)
    finally:
        media.cancel(job)
        await search.stop()
    return search.finish(samples)


class _Search:
    """The search of one recording for speech, chunk by chunk."""

    def __init__(self, media: MediaPool, job: str, pcm_path: Path, parameters: VadParameters) -> None:
        self._media = media
        self._job = job
        self._pcm_path = pcm_path
        self._detector = SpeechDetector(parameters)
        self._requested = 0  # frames
        self._chunks: deque[asyncio.Task[Probabilities]] = deque()
        self._spans: list[Span] = []
        self._probabilities = [np.zeros(0, np.float32)]

    def request(self, samples: int, *, finished: bool) -> None:
        """Request the chunks of the first `samples`. Only the last chunk of a recording is short."""
        frames = -(-samples // FRAME_SAMPLES) if finished else samples // FRAME_SAMPLES
        while (ready := frames - self._requested) >= (1 if finished else CHUNK_FRAMES):
            count = min(CHUNK_FRAMES, ready)
            chunk = self._media.speech_probabilities(self._job, self._pcm_path, self._requested, count)
            self._chunks.append(asyncio.create_task(chunk))
            self._requested += count

    async def take(self, *, leave: int) -> None:
        """Wait for the first chunks until only `leave` are in flight."""
        while len(self._chunks) > leave:
            probabilities = await self._chunks[0]
            self._chunks.popleft()
            self._probabilities.append(probabilities)
            self._spans += self._detector.feed(probabilities)

    def finish(self, samples: int) -> FoundSpeech:
        """The speech of the recording, after all chunks were taken."""
        spans = (*self._spans, *self._detector.finish(samples))
        return FoundSpeech(spans, np.concatenate(self._probabilities), samples)

    async def stop(self) -> None:
        """Cancel the chunks that were not taken."""
        for chunk in self._chunks:
            chunk.cancel()
        await asyncio.gather(*self._chunks, return_exceptions=True)
