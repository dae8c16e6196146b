"""From a recording to its speech and its clips: decode, find speech, plan clips. All at once."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.common.concurrency import end_tasks
from app.intake.uploads import Upload
from app.media.peaks import PeakCollector
from app.media.pool import MediaPool
from app.recording.clip_planner import MAX_SILENCE_SAMPLES, ClipPlanner, PlannedClip
from app.recording.speech import SpeechDetector, VadParameters
from workers.messages import (
    CHUNK_FRAMES,
    EVERYTHING,
    FRAME_SAMPLES,
    SAMPLE_RATE,
    Decoded,
    Selection,
    Span,
    Warnings,
)

Probabilities = npt.NDArray[np.float32]

_REQUESTS_PER_WORKER = 2  # in flight at the media workers: one runs, one waits
# Chunks in one request: as many as were requested before, up to this. A request costs the server half a
# millisecond.
_MOST_CHUNKS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingWork:
    """One recording that is decoded and searched for speech."""

    job: Hashable  # whose it is, in the queues
    upload: Upload
    media_pool: MediaPool
    pcm_path: Path  # for the decoded audio, which the caller removes
    max_duration_s: float = math.inf
    selection: Selection = EVERYTHING  # what of it is wanted
    decoded: Decoded | None = None  # at `pcm_path` from an earlier run, if that decoded all of it
    beside: Sequence[Path] = ()  # the decoded audio of the other channels, if they are separate

    def decode(
        self, peaks: PeakCollector | None = None, *, separate: bool = False
    ) -> AsyncGenerator[Decoded]:
        """Decode it step by step: see `MediaPool.decode`."""
        return self.media_pool.decode(
            self.job, self.upload, self.pcm_path, self.max_duration_s, peaks, self.selection, separate
        )


@dataclass(slots=True)
class ClipSearch:
    """Finds the clips of one recording, once."""

    work: RecordingWork
    parameters: VadParameters
    max_silence: int = MAX_SILENCE_SAMPLES  # inside a clip
    peaks: PeakCollector | None = None  # gets the peaks, unless an earlier run decoded the recording
    on_step: Callable[[Decoded], None] = lambda decoded: None  # gets each state of `decoded`
    wants_clips: Callable[[], bool] = lambda: True  # after changes to True, set `advanced`
    decoded: Decoded = field(default_factory=lambda: Decoded(0, finished=False))  # how far the recording is
    speech: list[Span] = field(default_factory=list)  # found so far
    advanced: asyncio.Event = field(default_factory=asyncio.Event)  # something has

    async def clips(self) -> AsyncGenerator[PlannedClip]:
        """The clips of the recording, each as soon as it is certain. Raises as `MediaPool.decode` does."""
        detector = SpeechDetector(self.parameters, self.work.selection.start)
        planner = ClipPlanner(self.max_silence, self.work.selection.start)
        async with aclosing(self.probabilities()) as parts:
            async for probabilities in parts:
                spans = detector.feed(probabilities)
                self.speech += spans
                for clip in planner.extend(spans, detector.ongoing, detector.settled_until, probabilities):
                    yield clip
        spans = detector.finish(self.decoded.samples)
        self.speech += spans
        for clip in planner.finish(spans, self.decoded.samples):
            yield clip

    async def probabilities(self) -> AsyncGenerator[Probabilities]:
        """The frames' speech probabilities, in order and in whole chunks, while decoding goes on."""
        work, chunks = self.work, deque[asyncio.Task[Probabilities]]()
        first = requested = work.selection.start // FRAME_SAMPLES  # frames, those before the part too
        decoding = asyncio.create_task(self._decode())
        decoding.add_done_callback(lambda _: self.advanced.set())
        try:
            while True:
                self.advanced.clear()
                while chunks and chunks[0].done():
                    yield chunks.popleft().result()
                finished = decoding.done()
                if finished:
                    decoding.result()
                samples = self.decoded.samples
                frames = -(-samples // FRAME_SAMPLES) if finished else samples // FRAME_SAMPLES
                while count := self._frames_to_request(
                    len(chunks), requested - first, frames - requested, finished
                ):
                    chunk = work.media_pool.speech_probabilities(
                        work.job, work.pcm_path, requested, count, *work.beside
                    )
                    chunks.append(asyncio.create_task(chunk))
                    chunks[-1].add_done_callback(lambda _: self.advanced.set())
                    requested += count
                if finished and requested == frames and not chunks:
                    return
                await self.advanced.wait()
        finally:
            await end_tasks(decoding, *chunks)

    def _frames_to_request(self, in_flight: int, requested: int, frames: int, finished: bool) -> int:
        """How many frames to request now, of those that are decoded and not requested.

        Whole chunks: only the last one of a recording may be short.
        """
        workers = self.work.media_pool.worker_count
        if in_flight >= _REQUESTS_PER_WORKER * workers or not self.wants_clips():
            return 0
        chunks = min(requested // CHUNK_FRAMES, _MOST_CHUNKS)
        many = chunks * CHUNK_FRAMES
        # At the beginning, workers without work get a chunk each.
        if 0 < many <= frames and (in_flight >= workers or chunks == _MOST_CHUNKS):
            return many
        return min(frames, CHUNK_FRAMES) if finished or frames >= CHUNK_FRAMES else 0

    async def _decode(self) -> None:
        """Decode the recording, unless an earlier run did, and record how far decoding is."""
        work = self.work
        if work.decoded is not None:
            self.decoded = work.decoded
            self.on_step(self.decoded)
            return
        async with aclosing(work.decode(self.peaks)) as steps:
            async for decoded in steps:
                # A media worker that takes over from a crashed one starts again at 0.
                samples = decoded.samples if decoded.finished else max(self.decoded.samples, decoded.samples)
                self.decoded = replace(decoded, samples=samples)
                self.on_step(self.decoded)
                self.advanced.set()


@dataclass(frozen=True, slots=True)
class FoundSpeech:
    """The speech of a recording."""

    spans: tuple[Span, ...]  # in samples, in order
    probabilities: Probabilities  # of each frame, shape (frames,)
    samples: int  # of the recording
    warnings: Warnings = ()

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE


async def find_speech(work: RecordingWork, parameters: VadParameters) -> FoundSpeech:
    """The speech of a recording. The caller removes the decoded audio.

    Cancelling the caller removes the work from the queue. Raises as `MediaPool.decode` does.
    """
    search = ClipSearch(work, parameters)
    detector = SpeechDetector(parameters)
    spans: list[Span] = []
    probabilities = [np.zeros(0, np.float32)]
    try:
        async with aclosing(search.probabilities()) as parts:
            async for part in parts:
                probabilities.append(part)
                spans += detector.feed(part)
    finally:
        work.media_pool.cancel(work.job)
    decoded = search.decoded
    spans += detector.finish(decoded.samples)
    return FoundSpeech(tuple(spans), np.concatenate(probabilities), decoded.samples, decoded.warnings)
