"""WHISPER_AUDIO_CONTEXT: words and time with `full` and `auto`, by the worker's code without the service.

    python -m bench.audio_context [--talk FILE] [--threads 1] [--repetitions 5] [--json FILE]

Words: all recordings beside `--talk` that have a transcript. Speed: pieces of `--talk` that begin with a
sentence and end in a pause, one after the other and in batches of 4. The ways take turns.
"""

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jiwer

from app.engines.model_files import DEMO_PATH, min_context_s
from app.transcription.clip_decoding import ClipRequest
from bench.command import Options, run_alone
from bench.decoding import transcribe_clips
from bench.measuring import Figures, Table, interleaved, median, timed
from bench.peers import loaded_model, planned_clips
from bench.quality import normalise
from workers import runtime
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, Window, WindowResult

WAYS = {"full": float(FULL_CONTEXT_S), "auto": min_context_s(DEMO_PATH)}
PIECES_S = (4.0, 10.0, 25.0)
MOST_PIECES = 8  # of each length
BATCH_SIZE = 4


@dataclass(frozen=True)
class Talk:
    """A recording and its truth."""

    path: Path
    language: str
    cues: list[dict[str, Any]]  # start and end (s), text

    @property
    def truth(self) -> str:
        return normalise(" ".join(cue["text"] for cue in self.cues))


@dataclass(frozen=True)
class Decoded:
    """The transcript of a talk, normalised, and what it took."""

    text: str
    windows: int
    cpu_s: float


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure word error rates, windows and CPU time by talk, and the time of pieces by length."""
    found = [read_talk(path) for path in sorted(options.talk.parent.glob("*.flac")) if _truth(path).exists()]
    talks = [talk for talk in found if talk.path == options.talk or not options.quick]
    spawn = multiprocessing.get_context("spawn")
    # numpy reads this when it is imported, here before `initialise`. Features depend on it in the last digit.
    one_thread = patch.dict(os.environ, OPENBLAS_NUM_THREADS="1")
    with one_thread, ProcessPoolExecutor(1, spawn, runtime.initialise, ("",)) as worker:
        words, words_table = _compare_words(worker, talks, options.threads)
        lengths = PIECES_S[:1] if options.quick else PIECES_S
        speed, speed_table = _compare_speed(worker, read_talk(options.talk), lengths, options)
    return {"words": words, "speed": speed}, [words_table, speed_table]


def read_talk(path: Path) -> Talk:
    document = json.loads(_truth(path).read_text())
    return Talk(path, document["language"], document["cues"])


def pieces(cues: Sequence[dict[str, Any]], seconds: float) -> list[tuple[float, float]]:
    """Spans (s) of this length that begin 0.2 s before a cue and end in a pause. They may overlap."""
    spans = [(cue["start"] - 0.2, cue["start"] - 0.2 + seconds) for cue in cues if cue["start"] >= 0.2]
    return [
        (start, end)
        for start, end in spans
        if end <= cues[-1]["end"] + 0.3 and not any(cue["start"] < end < cue["end"] for cue in cues)
    ]


def _truth(path: Path) -> Path:
    return path.with_suffix(".json")


def _compare_words(worker: Executor, talks: Sequence[Talk], threads: int) -> tuple[Figures, Table]:
    decoded = [
        {way: worker.submit(_decode, talk, min_s, threads).result() for way, min_s in WAYS.items()}
        for talk in talks
    ]
    rows = {talk.path.stem: _row([talk], [found]) for talk, found in zip(talks, decoded, strict=True)}
    rows["**all**"] = _row(talks, decoded)
    columns = [
        "",
        *(f"word error rate, `{way}`" for way in WAYS),
        "words that differ",
        *(f"windows decoded, `{way}`" for way in WAYS),
        *(f"CPU, s, `{way}`" for way in WAYS),
    ]
    cells = [
        [
            name,
            *(f"{row[way]['word_error_rate']:.3f}" for way in WAYS),
            row["different_words"],
            *(row[way]["windows"] for way in WAYS),
            *(f"{row[way]['cpu_s']:.2f}" for way in WAYS),
        ]
        for name, row in rows.items()
    ]
    return rows, Table("Words with both contexts", columns, cells)


def _row(talks: Sequence[Talk], decoded: Sequence[dict[str, Decoded]]) -> Figures:
    truths = [talk.truth for talk in talks]
    texts = {way: [by_way[way].text for by_way in decoded] for way in WAYS}
    found = jiwer.process_words(*(texts[way] for way in WAYS))
    figures: Figures = {
        way: {
            "word_error_rate": round(float(jiwer.wer(truths, texts[way])), 4),
            "windows": sum(by_way[way].windows for by_way in decoded),
            "cpu_s": round(sum(by_way[way].cpu_s for by_way in decoded), 3),
        }
        for way in WAYS
    }
    return figures | {"different_words": found.substitutions + found.deletions + found.insertions}


def _decode(talk: Talk, min_s: float, threads: int) -> Decoded:
    model, windows = loaded_model(threads), 0

    def decode(batch: Sequence[Window]) -> list[WindowResult]:
        nonlocal windows
        windows += len(batch)
        return model.decode(batch, model.features(batch))

    with tempfile.TemporaryDirectory() as folder:
        clips = [_in(talk.language, clip, min_s) for clip in planned_clips(talk.path, Path(folder) / "pcm")]
        began = time.process_time()
        results = [result for clip in clips for result in transcribe_clips(decode, [clip])]
        cpu_s = time.process_time() - began
    return Decoded(normalise(" ".join(s.text for r in results for s in r.segments)), windows, cpu_s)


def _in(language: str, clip: ClipRequest, min_s: float) -> ClipRequest:
    return replace(clip, min_context_s=min_s, decoding=replace(clip.decoding, language=language))


def _compare_speed(
    worker: Executor, talk: Talk, lengths: Sequence[float], options: Options
) -> tuple[Figures, Table]:
    figures: Figures = {}
    rows = []
    for seconds in lengths:
        spans = pieces(talk.cues, seconds)[:MOST_PIECES]
        runs_s = worker.submit(_time, talk, spans, options.threads, options.repetitions).result()
        of_a_clip = {way: median(times, 4) for way, times in runs_s.items()}
        figures[f"{seconds:g} s"] = {"clips": len(spans), "runs_s": runs_s, "median_s_of_a_clip": of_a_clip}
        singly, together = ([of_a_clip[f"{way}, {kind}"] for way in WAYS] for kind in ("single", "batch"))
        rows.append(
            [
                f"{seconds:g} s",
                len(spans),
                *(f"{each:.3f}" for each in singly),
                f"{singly[0] / singly[1]:.1f}",
                *(f"{1 / each:.1f}" for each in together),
                f"{together[0] / together[1]:.1f}",
            ]
        )
    columns = [
        "speech",
        "clips",
        *(f"s for the median clip, `{way}`" for way in WAYS),
        "ratio",
        *(f"clips a second in batches of {BATCH_SIZE}, `{way}`" for way in WAYS),
        "ratio",
    ]
    return figures, Table("Time of short recordings", columns, rows)


def _piece(usual: ClipRequest, cues: Sequence[dict[str, Any]], start_s: float, end_s: float) -> ClipRequest:
    """The clip of a span that ends in a pause. Its cues are its speech."""
    start, end = round(start_s * SAMPLE_RATE), round(end_s * SAMPLE_RATE)
    speech = tuple(
        (round(cue["start"] * SAMPLE_RATE), round(cue["end"] * SAMPLE_RATE))
        for cue in cues
        if start_s <= cue["start"] < end_s
    )
    return replace(usual, start=start, end=end, speech=speech)


def _time(
    talk: Talk, spans: Sequence[tuple[float, float]], threads: int, repetitions: int
) -> dict[str, list[float]]:
    """Times (s) by way. "full, single": of the median clip; "full, batch": of all, for each clip."""
    model = loaded_model(threads)

    def decode(batch: Sequence[Window]) -> list[WindowResult]:
        return model.decode(batch, model.features(batch))

    def single(clips: Sequence[ClipRequest]) -> float:
        return median([timed(partial(transcribe_clips, decode, [clip])) for clip in clips], 4)

    def batch(clips: Sequence[ClipRequest]) -> float:
        batches = [clips[first : first + BATCH_SIZE] for first in range(0, len(clips), BATCH_SIZE)]
        return timed(lambda: [transcribe_clips(decode, each) for each in batches]) / len(clips)

    with tempfile.TemporaryDirectory() as folder:
        usual = planned_clips(talk.path, Path(folder) / "pcm")[0]
        clips = [_piece(usual, talk.cues, *span) for span in spans]
        ways = {
            f"{way}, {kind}": partial(run, [_in(talk.language, clip, min_s) for clip in clips])
            for kind, run in (("single", single), ("batch", batch))
            for way, min_s in WAYS.items()
        }
        return interleaved(ways, repetitions)


if __name__ == "__main__":
    run_alone("audio_context", measure, __doc__)
