"""The clips of synthetic recordings of any length, from the service's own clip planner."""

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from app.media.pool import STEP_SAMPLES
from app.recording.clip_planner import DEMO_MAX_SILENCE_SAMPLES, ClipPlanner, PlannedClip
from app.recording.speech import SpeechDetector, VadParameters
from workers.media import tasks
from workers.messages import CHUNK_FRAMES, FRAME_SAMPLES, SAMPLE_RATE, Span

Probabilities = npt.NDArray[np.float32]

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


def planned_clips(probabilities: Probabilities, samples: int) -> list[PlannedClip]:
    """The clips of a recording with these speech probabilities, shape (n,), as the service plans them."""
    detector, planner = SpeechDetector(VadParameters()), ClipPlanner(DEMO_MAX_SILENCE_SAMPLES)
    clips: list[PlannedClip] = []
    for first in range(0, len(probabilities), CHUNK_FRAMES):
        chunk = probabilities[first : first + CHUNK_FRAMES]
        spans = detector.feed(chunk)
        clips += planner.extend(spans, detector.ongoing, detector.settled_until, chunk)
    return [*clips, *planner.finish(detector.finish(samples), samples)]


def tiled_clips(probabilities: Probabilities, minutes: float) -> list[PlannedClip]:
    """The clips of a recording that repeats these speech probabilities, shape (n,)."""
    frames = round(minutes * 60 * SAMPLE_RATE / FRAME_SAMPLES)
    return planned_clips(np.resize(probabilities, frames), frames * FRAME_SAMPLES)


def probabilities_of(paths: Sequence[Path]) -> Probabilities:
    """The speech probabilities of recordings, concatenated, as the media workers compute them."""
    with TemporaryDirectory() as folder:
        pcm_paths = {Path(folder) / path.stem: path for path in paths}
        found = [speech_in(pcm, decode(path, pcm)) for pcm, path in pcm_paths.items()]
    return np.concatenate(found)


def decode(path: Path, pcm_path: Path) -> int:
    """Decode a recording to `pcm_path`, as a media worker does. Returns the number of samples."""
    pcm_path.touch()
    request = tasks.DecodeRequest(str(path), (str(pcm_path),))
    while not (step := tasks.decode("bench", request, STEP_SAMPLES)).finished:
        pass
    return step.samples


def speech_in(pcm_path: Path, samples: int) -> Probabilities:
    """The speech probabilities of decoded audio, span by span, as a media worker computes them."""
    frames = -(-samples // FRAME_SAMPLES)
    spans = [
        tasks.speech_probabilities(str(pcm_path), first, min(CHUNK_FRAMES, frames - first))
        for first in range(0, frames, CHUNK_FRAMES)
    ]
    return np.frombuffer(b"".join(spans), "<f4")
