"""The service's peers in benchmarks, each in a process of its own: faster-whisper, and the bare engine.

`Peers` calls the other functions here in those processes.
"""

import multiprocessing
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from app.engines.model_files import DEMO_PATH
from app.media.clip_planner import DEMO_MAX_SILENCE_SAMPLES, ClipPlanner, PlannedClip
from app.media.speech import CHUNK_FRAMES, SpeechDetector, VadParameters
from app.transcription.clip_decoding import ClipRequest
from bench.decoding import transcribe_clips
from workers import runtime
from workers.media import tasks as media
from workers.messages import BYTES_PER_SAMPLE, FRAME_SAMPLES, Decoding, LoadOptions
from workers.whisper.model import LoadedModel

BEAM_SIZE = 5
COMPUTE_TYPE = "int8"
ENGINE_STAGES = ("features", "encode", "detect_language", "generate", "align")


@dataclass(frozen=True)
class Run:
    """Time (s), text, and the time of each stage (s) if it is known."""

    seconds: float
    text: str
    stages: dict[str, float]


class Peers:
    """Processes that transcribe files without the service."""

    def __init__(self, threads: int, batch_size: int) -> None:
        self.threads = threads
        self.batch_size = batch_size
        spawn = multiprocessing.get_context("spawn")
        self._faster_whisper = ProcessPoolExecutor(1, spawn, runtime.initialise, ("",))
        # Separate from faster-whisper, which must not get the worker's memory settings.
        self._engine = ProcessPoolExecutor(1, spawn, runtime.initialise, ("",))

    def sequential(self, path: Path) -> Run:
        """faster-whisper's `WhisperModel.transcribe`, without previous text."""
        return self._faster_whisper.submit(_sequential, path, self.threads).result()

    def batched(self, path: Path) -> Run:
        """faster-whisper's `BatchedInferencePipeline`, with timestamps."""
        return self._faster_whisper.submit(_batched, path, self.threads, self.batch_size).result()

    def engine(self, path: Path) -> Run:
        """The worker's code on clips that were read and planned beforehand, batch by batch."""
        return self._engine.submit(_engine, path, self.threads, self.batch_size).result()

    def close(self) -> None:
        self._faster_whisper.shutdown()
        self._engine.shutdown()


@contextmanager
def running_peers(threads: int, batch_size: int) -> Iterator[Peers]:
    """Start peers, and close them at the end."""
    peers = Peers(threads, batch_size)
    try:
        yield peers
    finally:
        peers.close()


@cache
def _model(threads: int) -> Any:
    from faster_whisper import WhisperModel

    return WhisperModel(str(DEMO_PATH), device="cpu", compute_type=COMPUTE_TYPE, cpu_threads=threads)


def _sequential(path: Path, threads: int) -> Run:
    model = _model(threads)
    return _timed(
        lambda: model.transcribe(
            str(path),
            vad_filter=True,
            condition_on_previous_text=False,
            word_timestamps=True,
            beam_size=BEAM_SIZE,
        )
    )


def _batched(path: Path, threads: int, batch_size: int) -> Run:
    from faster_whisper import BatchedInferencePipeline

    pipeline = BatchedInferencePipeline(_model(threads))
    return _timed(
        lambda: pipeline.transcribe(
            str(path),
            batch_size=batch_size,
            without_timestamps=False,
            word_timestamps=True,
            beam_size=BEAM_SIZE,
        )
    )


def _timed(work: Callable[[], Any]) -> Run:
    began = time.perf_counter()
    text = " ".join(segment.text for segment in work()[0])
    return Run(time.perf_counter() - began, text, {})


def _engine(path: Path, threads: int, batch_size: int) -> Run:
    model = loaded_model(threads)
    stages_s: dict[str, float] = defaultdict(float)

    def note(stage: str, start: float, end: float) -> None:
        stages_s[stage] += end - start

    with tempfile.TemporaryDirectory() as folder:
        clips = planned_clips(path, Path(folder) / "pcm")
        began = time.perf_counter()
        with clocked(
            model, lambda stage, start, end: stages_s.update({stage: stages_s[stage] + end - start})
        ):
            results = [
                result
                for start in range(0, len(clips), batch_size)
                for result in transcribe_clips(
                    lambda windows: model.decode(windows, model.features(windows)),
                    clips[start : start + batch_size],
                )
            ]
        seconds = time.perf_counter() - began
    stages = dict(stages_s) | {"rest of the worker": seconds - sum(stages_s.values())}
    return Run(seconds, " ".join(s.text for result in results for s in result.segments), stages)


@cache
def loaded_model(threads: int) -> LoadedModel:
    return LoadedModel(LoadOptions("demo", str(DEMO_PATH), "cpu", COMPUTE_TYPE, threads), COMPUTE_TYPE)


@contextmanager
def clocked(loaded: LoadedModel, note: Callable[[str, float, float], None]) -> Iterator[None]:
    """Call `note(stage, start, end)` after each of the model's `ENGINE_STAGES`."""

    def clock(stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                note(stage, began, time.perf_counter())

        return run

    class Model:
        """The CTranslate2 model with clocks on its stages."""

        def __getattr__(self, name: str) -> Any:
            found = getattr(model, name)
            return clock(name, found) if name in ENGINE_STAGES else found

    patched: Any = loaded
    model, features = patched._whisper.model, patched.features
    patched._whisper.model, patched.features = Model(), clock("features", features)
    try:
        yield
    finally:
        patched._whisper.model = model
        del patched.features


def planned_clips(path: Path, pcm_path: Path) -> list[ClipRequest]:
    """The clips of a recording as the service plans them, with a given language. Decodes it to `pcm_path`."""
    pcm_path.touch()
    while not media.decode("bench", str(path), str(pcm_path), 10**9).finished:
        pass
    planned = plan(pcm_path, pcm_path.stat().st_size // BYTES_PER_SAMPLE)
    decoding = Decoding("demo", language="en", beam_size=BEAM_SIZE, word_timestamps=True)
    return [ClipRequest(pcm_path, clip.start, clip.end, clip.speech, decoding) for clip in planned]


def plan(pcm_path: Path, samples: int) -> list[PlannedClip]:
    """The clip plan of decoded audio, for the demo model."""
    detector, planner = SpeechDetector(VadParameters()), ClipPlanner(DEMO_MAX_SILENCE_SAMPLES)
    frames = -(-samples // FRAME_SAMPLES)
    clips: list[PlannedClip] = []
    for start in range(0, frames, CHUNK_FRAMES):
        found = media.speech_probabilities(str(pcm_path), start, min(CHUNK_FRAMES, frames - start))
        probabilities = np.frombuffer(found, "<f4")
        spans = detector.feed(probabilities)
        clips += planner.extend(spans, detector.ongoing, detector.settled_until, probabilities)
    return clips + planner.finish(detector.finish(samples), samples)
