"""The clips of synthetic recordings of any length, from the service's own clip planner."""

import asyncio
import random
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from app.media.clip_planner import DEMO_MAX_SILENCE_SAMPLES, ClipPlanner, PlannedClip
from app.media.disk import DiskSpace
from app.media.pool import MediaPool
from app.media.speech import CHUNK_FRAMES, SpeechDetector, VadParameters
from app.media.uploads import Upload
from workers.messages import FRAME_SAMPLES, SAMPLE_RATE, Span

TALKS = [
    Path(__file__).parents[1] / "tests" / "data" / f"{name}.flac" for name in ("talk", "talk_de", "talk_es")
]

# Ranges of the lengths of speech and of pauses (s), for uniform distributions.
KINDS = {"lecture": ((2.0, 15.0), (0.2, 1.5)), "film": ((1.0, 6.0), (0.3, 8.0))}


def drawn_clips(kind: str, minutes: float, seed: int = 0) -> list[PlannedClip]:
    """The clips of a recording with random speech and pauses, distributed as in `KINDS`."""
    speech, pause = KINDS[kind]
    source = random.Random(seed)
    total = round(minutes * 60 * SAMPLE_RATE)
    spans: list[Span] = []
    end = 0
    while True:
        start = end + round(source.uniform(*pause) * SAMPLE_RATE)
        end = start + round(source.uniform(*speech) * SAMPLE_RATE)
        if end > total:
            break
        spans.append((start, end))
    # Many short clips beside long ones are the hardest to schedule.
    planner = ClipPlanner(DEMO_MAX_SILENCE_SAMPLES)
    probabilities = np.ones(-(-total // FRAME_SAMPLES), np.float32)
    return [*planner.extend(spans, None, total, probabilities), *planner.finish([], total)]


def tiled_clips(probabilities: npt.NDArray[np.float32], minutes: float) -> list[PlannedClip]:
    """The clips of a recording that repeats these speech probabilities, shape (n,)."""
    frames = round(minutes * 60 * SAMPLE_RATE / FRAME_SAMPLES)
    total = frames * FRAME_SAMPLES
    detector, planner = SpeechDetector(VadParameters()), ClipPlanner(DEMO_MAX_SILENCE_SAMPLES)
    clips: list[PlannedClip] = []
    tiled = np.resize(probabilities, frames)
    for first in range(0, frames, CHUNK_FRAMES):
        chunk = tiled[first : first + CHUNK_FRAMES]
        spans = detector.feed(chunk)
        clips += planner.extend(spans, detector.ongoing, detector.settled_until, chunk)
    return [*clips, *planner.finish(detector.finish(total), total)]


def probabilities_of(paths: Sequence[Path]) -> npt.NDArray[np.float32]:
    """The speech probabilities of recordings, concatenated, as the media workers compute them."""

    async def compute() -> list[npt.NDArray[np.float32]]:
        with TemporaryDirectory() as folder:
            media = MediaPool(1, DiskSpace(Path(folder)))
            media.start()
            try:
                return list(
                    chain.from_iterable([await _probabilities(media, path, Path(folder)) for path in paths])
                )
            finally:
                await media.stop()

    return np.concatenate(asyncio.run(compute()))


async def _probabilities(media: MediaPool, path: Path, folder: Path) -> list[npt.NDArray[np.float32]]:
    pcm, samples = folder / path.stem, 0
    async for step in media.decode(path.stem, Upload(path, path.name, 0, sha256=""), pcm):
        samples = step.samples
    frames = -(-samples // FRAME_SAMPLES)
    return [
        await media.speech_probabilities(path.stem, pcm, first, min(CHUNK_FRAMES, frames - first))
        for first in range(0, frames, CHUNK_FRAMES)
    ]
