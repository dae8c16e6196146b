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
from unittest.mock import patch

from app.engines.model_files import DEMO_PATH
from app.recording.clip_decoding import ClipRequest
from bench.decoding import transcribe_clips
from bench.speech_samples import decode, planned_clips, speech_in
from workers import calls, runtime
from workers.messages import DecodingOptions, LoadOptions
from workers.whisper.model import LoadedModel
from workers.whisper.worker import open_model

BEAM_SIZE = 5
COMPUTE_TYPE = "int8"
ENGINE_STAGES = ("features", "encode", "detect language", "generate text", "align words")


@dataclass(frozen=True)
class Run:
    """Time (s), text, and the time of each stage (s) if it is known."""

    seconds: float
    text: str
    stages: dict[str, float]


class Peers:
    """Processes that transcribe files without the service."""

    def __init__(self, threads: int, batch_size: int) -> None:
        self._sizes = threads, batch_size
        spawn = multiprocessing.get_context("spawn")
        self._faster_whisper = ProcessPoolExecutor(1, spawn, runtime.initialise, ("",))
        # Separate from faster-whisper, which must not get the worker's memory settings.
        self._engine = ProcessPoolExecutor(1, spawn, runtime.initialise, ("",))

    def __enter__(self) -> "Peers":
        return self

    def __exit__(self, *_: object) -> None:
        self._faster_whisper.shutdown()
        self._engine.shutdown()

    def sequential(self, path: Path) -> Run:
        """faster-whisper's `WhisperModel.transcribe`, without previous text."""
        return self._faster_whisper.submit(_sequential, path, *self._sizes).result()

    def batched(self, path: Path) -> Run:
        """faster-whisper's `BatchedInferencePipeline`, with timestamps."""
        return self._faster_whisper.submit(_batched, path, *self._sizes).result()

    def engine(self, path: Path) -> Run:
        """The worker's code on clips that were read and planned beforehand, batch by batch."""
        return self._engine.submit(_engine, path, *self._sizes).result()


@cache
def _model(threads: int) -> Any:
    from faster_whisper import WhisperModel

    return WhisperModel(str(DEMO_PATH), device="cpu", compute_type=COMPUTE_TYPE, cpu_threads=threads)


def _sequential(path: Path, threads: int, _batch_size: int) -> Run:
    return _run(_model(threads), path, vad_filter=True, condition_on_previous_text=False)


def _batched(path: Path, threads: int, batch_size: int) -> Run:
    from faster_whisper import BatchedInferencePipeline

    pipeline = BatchedInferencePipeline(_model(threads))
    return _run(pipeline, path, batch_size=batch_size, without_timestamps=False)


def _run(model: Any, path: Path, **options: Any) -> Run:
    began = time.perf_counter()
    segments, _ = model.transcribe(str(path), word_timestamps=True, beam_size=BEAM_SIZE, **options)
    text = " ".join(segment.text for segment in segments)
    return Run(time.perf_counter() - began, text, {})


def _engine(path: Path, threads: int, batch_size: int) -> Run:
    model = _loaded_model(threads)
    stages_s: dict[str, float] = defaultdict(float)

    def note(stage: str, start: float, end: float) -> None:
        stages_s[stage] += end - start

    with tempfile.TemporaryDirectory() as folder:
        pcm_path = Path(folder) / "pcm"
        samples = decode(path, pcm_path)
        planned = planned_clips(speech_in(pcm_path, samples), samples)
        decoding = DecodingOptions("demo", language="en", beam_size=BEAM_SIZE, word_timestamps=True)
        clips = [ClipRequest(pcm_path, clip.start, clip.end, clip.speech, decoding) for clip in planned]
        began = time.perf_counter()
        with clocked(note):
            results = [
                result
                for start in range(0, len(clips), batch_size)
                for result in transcribe_clips(model.decode, clips[start : start + batch_size])
            ]
        seconds = time.perf_counter() - began
    stages = dict(stages_s) | {"rest of the worker": seconds - sum(stages_s.values())}
    return Run(seconds, " ".join(s.text for result in results for s in result.segments), stages)


@cache
def _loaded_model(threads: int) -> LoadedModel:
    return open_model(LoadOptions("demo", str(DEMO_PATH), "cpu", COMPUTE_TYPE, threads))


@contextmanager
def clocked(note: Callable[[str, float, float], None]) -> Iterator[None]:
    """Call `note(stage, start, end)` after each of the `ENGINE_STAGES` of workers in this process."""

    @contextmanager
    def measured(stage: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            if stage in ENGINE_STAGES:
                note(stage, began, time.perf_counter())

    with patch.object(calls, "measured", measured):
        yield
