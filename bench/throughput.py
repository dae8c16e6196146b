"""The service over HTTP, upload to SRT, against faster-whisper in process, with the same file and threads.

    whisperfleet bench throughput [--minutes 5 30] [--threads 1] [--repetitions 5] [--json FILE]

One worker with `--threads` threads, the demo model, int8, beam 5, word times, the same batch size. In each
round, every way transcribes the file once. `engine alone` is the worker's code on the service's clips,
without the service, decoding and speech detection: a lower bound for the service.
"""

import time
from pathlib import Path

import httpx
import jiwer

from bench.command import Options
from bench.measuring import Figures, Table, interleaved, median, ratio
from bench.peers import Peers, Run
from bench.quality import normalise
from bench.recordings import Recording, talk_for
from bench.service import running_service

BATCH_SIZE = 4
SERVICE, BATCHED, SEQUENTIAL, ENGINE = "whisperfleet", "batched", "sequential", "engine alone"


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure wall times, their ratios, word error rates, and the engine's stages, for each length."""
    figures: Figures = {"threads": options.threads, "batch_size": BATCH_SIZE, "lengths": {}}
    tables = []
    with (
        running_service(**one_worker(options.threads)) as client,
        Peers(options.threads, BATCH_SIZE) as peers,
    ):
        for minutes in options.lengths(5, 30):
            recording = talk_for(folder, 60 * minutes, talk=options.talk)
            found = _compare(client, peers, recording, options.repetitions)
            figures["lengths"][f"{minutes:g} min"] = found
            tables.append(_table(minutes, found))
    return figures, tables


def one_worker(threads: int) -> dict[str, str]:
    return {
        "WHISPER_CPU_WORKERS": "1",
        "WHISPER_CPU_THREADS": str(threads),
        "WHISPER_BATCH_SIZE": str(BATCH_SIZE),
    }


def request_srt(client: httpx.Client, path: Path) -> str:
    """The subtitles of a recording, over HTTP."""
    with path.open("rb") as file:
        answer = client.post(
            "/v1/audio/transcriptions",
            files={"file": (path.name, file)},
            data={"model": "whisper-1", "response_format": "srt"},
        )
    return answer.raise_for_status().text


def words_of(srt: str) -> str:
    """The text of a subtitle file."""
    return " ".join(" ".join(block.split("\n")[2:]) for block in srt.strip().split("\n\n"))


def _compare(client: httpx.Client, peers: Peers, recording: Recording, repetitions: int) -> Figures:
    texts: dict[str, str] = {}
    stages: list[dict[str, float]] = []

    def service() -> float:
        began = time.perf_counter()
        srt = request_srt(client, recording.path)
        seconds = time.perf_counter() - began
        texts[SERVICE] = words_of(srt)
        return seconds

    def record(name: str, run: Run) -> float:
        texts[name] = run.text
        if run.stages:
            stages.append(run.stages)
        return run.seconds

    runs_s = interleaved(
        {
            SERVICE: service,
            BATCHED: lambda: record(BATCHED, peers.batched(recording.path)),
            SEQUENTIAL: lambda: record(SEQUENTIAL, peers.sequential(recording.path)),
            ENGINE: lambda: record(ENGINE, peers.engine(recording.path)),
        },
        repetitions,
    )
    return {
        "seconds_of_audio": recording.seconds,
        "runs_s": runs_s,
        "median_s": {name: median(times) for name, times in runs_s.items()},
        "ratio_of_the_service": {
            name: round(ratio(runs_s[SERVICE], times), 3) for name, times in runs_s.items() if name != SERVICE
        },
        "word_error_rate": {
            name: round(jiwer.wer(normalise(recording.truth), normalise(text)), 4)
            for name, text in texts.items()
        },
        "engine_stages_s": {
            stage: median([run.get(stage, 0.0) for run in stages[1:] or stages]) for stage in stages[-1]
        },
    }


def _table(minutes: float, found: Figures) -> Table:
    rows = [
        [
            name,
            f"{seconds:.2f}",
            f"{found['seconds_of_audio'] / seconds:.0f}",
            f"{found['ratio_of_the_service'].get(name, 1.0):.2f}",
            f"{found['word_error_rate'][name]:.3f}",
        ]
        for name, seconds in found["median_s"].items()
    ]
    stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in found["engine_stages_s"].items())
    rows.append(["of the engine (s)", stages, "", "", ""])
    columns = ["", "wall, s", "x real time", "time of whisperfleet relative to this", "word error rate"]
    return Table(f"{minutes:g} minutes of talk, upload to SRT", columns, rows)
