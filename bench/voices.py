"""What it costs to embed the voices in a recording: CPU time on one core, and the memory of a media worker.

    whisperfleet bench voices [--talk five.flac] [--repetitions 5] [--json FILE]

The functions are those of the media worker: the recording is decoded and searched for speech, then the
windows of each 30 s are embedded in one call, as those of a clip. WHISPER_SPEAKER_MODEL names another model.
Memory is the resident set of a process that has found speech before.
"""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

import psutil

from app.engines.speaker_model import find_speaker_model
from app.recording.speech import SpeechDetector, VadParameters
from app.transcript.speakers.voices import voice_windows
from bench.command import Options
from bench.measuring import Figures, Table, median
from bench.speech_samples import decode, speech_in
from workers.media.voices import embed
from workers.messages import MAX_CLIP_SAMPLES, SAMPLE_RATE, Span, SpeakerModel

MIB = 1 << 20


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure in a process of its own, as media workers are."""
    model = find_speaker_model(os.environ.get("WHISPER_SPEAKER_MODEL", ""))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        figures = pool.submit(_measure, options.talk, folder / "pcm", model, options.repetitions).result()
    return figures, [Table(f"Voices in {options.talk.name}", ["", model.name], list(figures.items()))]


def _measure(recording: Path, pcm_path: Path, model: SpeakerModel, repetitions: int) -> Figures:
    samples = decode(recording, pcm_path)
    detector = SpeechDetector(VadParameters())
    speech = [*detector.feed(speech_in(pcm_path, samples)), *detector.finish(samples)]
    windows = voice_windows(speech)
    clips = [list(clip) for _, clip in groupby(windows, lambda window: window[0] // MAX_CLIP_SAMPLES)]
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    embed.embed(str(pcm_path), windows[:1], model)
    load_s = time.perf_counter() - began
    loaded = psutil.Process().memory_info().rss
    runs_s = [_embed(pcm_path, clips, model) for _ in range(repetitions)]
    embedding_s = median(runs_s)
    return {
        "recording, s": round(samples / SAMPLE_RATE, 1),
        "windows": len(windows),
        "loading the model, s": round(load_s, 2),
        "embedding, CPU s": embedding_s,
        "times real time": round(samples / SAMPLE_RATE / embedding_s, 1),
        "memory of a worker before, MiB": before // MIB,
        "with the model, MiB": loaded // MIB,
        "after all windows, MiB": psutil.Process().memory_info().rss // MIB,
    }


def _embed(pcm_path: Path, clips: list[list[Span]], model: SpeakerModel) -> float:
    """Returns CPU seconds."""
    began = time.process_time()
    for windows in clips:
        embed.embed(str(pcm_path), windows, model)
    return time.process_time() - began
