"""What an hour of audio costs the server's process, with real worker processes that have no model.

See `server` in bench/scale.py. Decoded audio and speech probabilities are replayed, and the workers answer as
fast as GPUs might (bench/stub_service.py), so two cores drive as many slots as a machine with GPUs has.
"""

import asyncio
import hashlib
import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
import httpx
import numpy as np
from sqlalchemy import make_url

from bench.measuring import Figures, Table, machine
from bench.recordings import RATE, TALK, read
from bench.service import ROOT, finished_job, started_service, submit_job, wait_for, workers
from bench.speech_samples import probabilities_of
from workers.messages import FRAME_SAMPLES

Fields = dict[str, str | list[str]]
Runs = dict[str, dict[str, list[Figures]]]  # by checkout and kind

HERE, THERE = "here", "there"
HOUR_S = 3600
UPLOAD_BYTES_PER_S = 16_000  # 128 kbit/s
SPEED = 100  # times real time, of each slot
SLOTS = 8
LOOP = 1_500_000  # turns
LOOP_PAUSE_S = 0.3  # between two tenths of it
KINDS: dict[str, Fields] = {
    "jobs": {},
    "verbose_json": {
        "response_format": "verbose_json",
        "timestamp_granularities[]": ["word", "segment"],
    },
    "srt": {"response_format": "srt"},
}


@dataclass(frozen=True)
class Replay:
    """A folder with what the decoder and the speech detector are to find, and the file that is uploaded."""

    folder: Path
    seconds: int

    @property
    def upload(self) -> Path:
        return self.folder / "recording.mp3"


def make_replay(folder: Path, seconds: int = HOUR_S) -> Replay:
    """The talk of the tests, repeated, as one recording. What is uploaded for it is noise."""
    folder.mkdir(parents=True, exist_ok=True)
    probabilities, frames = probabilities_of([TALK]), seconds * RATE // FRAME_SAMPLES
    talk = np.resize(read(TALK), len(probabilities) * FRAME_SAMPLES)
    np.resize(talk, frames * FRAME_SAMPLES).astype("<i2").tofile(folder / "pcm.raw")
    np.resize(probabilities, frames).astype("<f4").tofile(folder / "probabilities.raw")
    replay = Replay(folder, seconds)
    replay.upload.write_bytes(np.random.default_rng(0).bytes(seconds * UPLOAD_BYTES_PER_S))
    return replay


@dataclass(frozen=True)
class StubService:
    """A running service whose workers have no model."""

    client: httpx.Client
    process: subprocess.Popen[bytes]
    data: Path
    report: Path

    def read_report(self) -> Figures:
        """The CPU time of the server's process since the last report, by part."""
        self.report.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGRTMIN)
        wait_for(self.report.exists, 60)
        found: Figures = json.loads(self.report.read_text())
        return found

    def peak_mib(self) -> float:
        """The most memory that the server's process had so far."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        [line] = [line for line in lines if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024


@contextmanager
def stub_service(
    checkout: Path,
    replay: Replay,
    slots: int = SLOTS,
    speed: float = SPEED,
    *,
    polite: bool = False,
    **environment: str,
) -> Iterator[StubService]:
    """The service of a checkout. Each slot transcribes so many times as fast as real time.

    `polite`: media workers have a low priority, as usual.
    """
    with TemporaryDirectory() as folder:
        data, report = Path(folder) / "data", Path(folder) / "report.json"
        stub = {
            "slots": slots,
            "speed": speed,
            "replay": str(replay.folder),
            "polite": polite,
            "report": str(report),
        }
        settings = {
            "BENCH_STUB": json.dumps(stub),
            "WHISPER_DEVICE": "cuda",
            "WHISPER_MEDIA_WORKERS": "2",
            "WHISPER_DATA_DIR": str(data),
        }
        command = [sys.executable, str(ROOT / "bench" / "stub_service.py")]
        with started_service(command, checkout, **settings | environment) as (client, process):
            yield StubService(client, process, data, report)


def transcribe(client: httpx.Client, path: Path, fields: Fields) -> str:
    """The answer to a request, whose upload nobody else sends: equal ones share their results."""
    answer = client.post(
        "/v1/audio/transcriptions",
        files={"file": (path.name, uuid.uuid4().bytes + path.read_bytes())},
        data={"model": "whisper-1", **fields},
    )
    return answer.raise_for_status().text


def run_jobs(service: StubService, upload: Path, count: int) -> dict[str, Any]:
    """Run jobs, all at once. Returns the row of one."""
    jobs = [submit_job(service.client, upload) for _ in range(count)]
    return [finished_job(service.client, job, pause_s=2.0) for job in jobs][-1]


def run_requests(service: StubService, upload: Path, count: int, fields: Fields) -> str:
    """Send requests, all at once. Returns one of the answers."""
    with ThreadPoolExecutor(count) as threads:
        return [*threads.map(lambda _: transcribe(service.client, upload, fields), range(count))][-1]


def hours_of(service: StubService, upload: Path, kind: str, hours: int) -> Figures:
    """What hours of audio of a kind cost the server's process, for each hour, and what it answered."""
    windows = decoded_windows(service)
    service.read_report()
    with fixed_loop() as loop_s:
        if kind == "jobs":
            job = run_jobs(service, upload, hours)
        else:
            text = run_requests(service, upload, hours, KINDS[kind])
        report = service.read_report()
    if kind == "jobs":
        answer = service.client.get(f"/v1/jobs/{job['id']}/result", params={"format": "srt"})
        text = answer.raise_for_status().text
    return {
        "server_s": report["process_s"] / hours,
        "loop_s": loop_s(),
        "parts_s": {part: took_s / hours for part, took_s in report["parts_s"].items()},
        "functions_s": {name: took_s / hours for name, took_s in report["functions_s"].items()},
        "peak_mib": service.peak_mib(),
        "windows": (decoded_windows(service) - windows) / hours,
        "words": len(json.loads(text)["words"]) if kind == "verbose_json" else None,
        "digest": hashlib.sha256(text.encode()).hexdigest(),
    }


def decoded_windows(service: StubService) -> int:
    """How many windows the workers have decoded."""
    return sum(row["clips"] for row in workers(service.client))


def compare(
    checkouts: Mapping[str, Path], folder: Path, rounds: int, hours: int, url: str | None = None
) -> Runs:
    """What `hours_of` finds for each checkout, by kind, in each round.

    All services run, and take turns, in reverse order each time. `url`: a PostgreSQL server, on which each
    service gets a database of its own, instead of SQLite.
    """
    replay = make_replay(folder)
    runs: Runs = {name: {kind: [] for kind in KINDS} for name in checkouts}
    with ExitStack() as stack:
        services = {}
        for name, checkout in checkouts.items():
            settings = stack.enter_context(new_database(url))
            services[name] = stack.enter_context(stub_service(checkout, replay, **settings))
            run_jobs(services[name], replay.upload, 1)  # each part is used once before
        for number in range(rounds):
            for kind in KINDS:
                for name in list(checkouts)[:: -1 if number % 2 else 1]:
                    found = hours_of(services[name], replay.upload, kind, hours)
                    runs[name][kind].append(found)
                    print(f"{kind}, {name}: {_line(found)}", flush=True)
    return runs


@contextmanager
def new_database(url: str | None) -> Iterator[dict[str, str]]:
    """The settings of a service with a new database on this PostgreSQL server; none without a URL."""
    if url is None:
        yield {}
        return
    name = f"bench_{uuid.uuid4().hex}"
    asyncio.run(_execute(url, f"CREATE DATABASE {name}"))
    try:
        yield {"WHISPER_DATABASE_URL": make_url(url).set(database=name).render_as_string(hide_password=False)}
    finally:
        asyncio.run(_execute(url, f"DROP DATABASE {name}"))


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def tables(runs: Runs) -> Iterator[Table]:
    """The CPU time of an hour of audio, and its parts: medians over the rounds."""
    names = list(runs)
    compared = len(names) > 1
    rows = []
    for kind in KINDS:
        seconds = {name: _median(runs[name][kind], "server_s") for name in names}
        loops = {name: _loops(runs[name][kind]) for name in names}
        rows.append(
            [
                kind,
                *(f"{took_s:.2f}" for took_s in seconds.values()),
                *(f"{number:.2f}" for number in loops.values()),
                *([f"{each[HERE] / each[THERE]:.2f}" for each in (seconds, loops)] if compared else []),
                *(f"{_median(runs[name][kind], 'peak_mib'):.0f}" for name in names),
            ]
        )
    loop_s = median(found["loop_s"] for name in names for kind in KINDS for found in runs[name][kind])
    columns = [
        "an hour of audio",
        *(f"{name}, s" for name in names),
        *(f"{name}, fixed loops" for name in names),
        *(["ratio of s", "ratio of loops"] if compared else []),
        *(f"{name}, peak MiB" for name in names),
    ]
    yield Table(f"CPU time of the server; the fixed loop takes {loop_s:.3f} s", columns, rows)
    rows = [
        [part, *(f"{_part(runs[name][kind], part):.3f}" for kind in KINDS for name in names)]
        for part in _parts(runs[names[-1]])
    ]
    yield Table("By part", ["s", *(f"{kind}, {name}" for kind in KINDS for name in names)], rows)


def figures(runs: Mapping[str, list[Figures]]) -> Figures:
    """Medians over the rounds of one checkout."""
    loop_s = median(one["loop_s"] for found in runs.values() for one in found)
    summary: Figures = {
        "loop_s": round(loop_s, 3),
        "windows_per_hour": runs["jobs"][0]["windows"],
        "words_per_hour": runs["verbose_json"][0]["words"],
    }
    for kind, found in runs.items():
        summary[f"{kind}_s"] = round(_median(found, "server_s"), 3)
        summary[f"{kind}_loops"] = round(_loops(found), 2)
        summary[f"{kind}_parts_s"] = {part: round(_part(found, part), 3) for part in _parts(runs)}
    return summary


def same_text(runs: Runs) -> bool:
    """Whether all checkouts gave the same answers in all rounds."""
    return all(
        len({one["digest"] for by_kind in runs.values() for one in by_kind[kind]}) == 1 for kind in KINDS
    )


def _parts(runs: Mapping[str, list[Figures]]) -> list[str]:
    """All parts, the largest one of jobs first."""
    names = {part for found in runs.values() for one in found for part in one["parts_s"]}
    return sorted(names, key=lambda part: -_part(runs["jobs"], part))


def _median(found: Sequence[Figures], key: str) -> float:
    return median(one[key] for one in found)


def _line(found: Figures) -> str:
    load = machine()["load_average"]
    loops, windows = found["server_s"] / found["loop_s"], found["windows"]
    return f"{found['server_s']:.3f} s, {loops:.2f} loops, {windows:.0f} windows, load average {load}"


def _loops(found: Sequence[Figures]) -> float:
    return median(one["server_s"] / one["loop_s"] for one in found)


def _part(found: Sequence[Figures], part: str) -> float:
    return median(one["parts_s"].get(part, 0.0) for one in found)


@contextmanager
def fixed_loop() -> Iterator[Callable[[], float]]:
    """Run a tenth of a fixed loop in Python now and then, while the block runs.

    Yields a function for the CPU time of the whole loop (s), the median: how fast the cores are meanwhile.
    """
    tenths: list[float] = []
    over = threading.Event()

    def measure() -> None:
        while not tenths or not over.wait(LOOP_PAUSE_S):
            began = time.thread_time()
            found: dict[str, int] = {}
            for number in range(LOOP // 10):
                key = f"word {number % 1000}"
                found[key] = found.get(key, 0) + len(key)
            tenths.append(time.thread_time() - began)

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        yield lambda: 10 * median(tenths)
    finally:
        over.set()
        thread.join()
