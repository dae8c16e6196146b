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
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import asyncpg
import httpx
import numpy as np
from sqlalchemy import make_url

from bench.measuring import Figures, Table, machine
from bench.recordings import RATE, TALK, read
from bench.service import ROOT, finished_job, job_row, started_service, submit_job, wait_for
from bench.speech_samples import probabilities_of
from workers.messages import FRAME_SAMPLES

Fields = dict[str, str | list[str]]

HERE, THERE = "here", "there"
HOUR_S = 3600
UPLOAD_BYTES_PER_S = 16_000  # 128 kbit/s
SPEED = 100  # times real time, of each slot
SLOTS = 8
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
        self.process.send_signal(signal.SIGUSR1)
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
    checkout: Path, replay: Replay, slots: int = SLOTS, speed: float = SPEED, **environment: str
) -> Iterator[StubService]:
    """The service of a checkout. Each slot transcribes so many times as fast as real time."""
    with TemporaryDirectory() as folder:
        data, report = Path(folder) / "data", Path(folder) / "report.json"
        stub = {"slots": slots, "speed": speed, "replay": str(replay.folder), "report": str(report)}
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
    """The answer to a request."""
    with path.open("rb") as content:
        answer = client.post(
            "/v1/audio/transcriptions",
            files={"file": (path.name, content)},
            data={"model": "whisper-1", **fields},
        )
    return answer.raise_for_status().text


def run_jobs(service: StubService, upload: Path, count: int) -> str:
    """Run jobs, all at once. Returns the id of one."""
    jobs = [submit_job(service.client, upload) for _ in range(count)]
    for job in jobs:
        finished_job(service.client, job, pause_s=2.0)
    return jobs[-1]


def run_requests(service: StubService, upload: Path, count: int, fields: Fields) -> str:
    """Send requests, all at once. Returns one of the answers."""
    with ThreadPoolExecutor(count) as threads:
        return [*threads.map(lambda _: transcribe(service.client, upload, fields), range(count))][-1]


def hours_of(service: StubService, upload: Path, hours: int) -> dict[str, Figures]:
    """The CPU time of the server's process for an hour of audio, by kind of work, and what was answered."""
    first = run_jobs(service, upload, 1)
    result = service.client.get(f"/v1/jobs/{first}/result", params={"format": "srt"})
    texts = {"jobs": result.raise_for_status().text}
    clips = job_row(service.client, first)["progress"]["clips_done"]
    found = {}
    for kind, fields in KINDS.items():
        service.read_report()
        before_s = loop_s()
        if kind == "jobs":
            run_jobs(service, upload, hours)
        else:
            texts[kind] = run_requests(service, upload, hours, fields)
        report = service.read_report()
        found[kind] = {
            "server_s": report["process_s"] / hours,
            "loop_s": (before_s + loop_s()) / 2,
            "parts_s": {part: took_s / hours for part, took_s in report["parts_s"].items()},
            "functions_s": {name: took_s / hours for name, took_s in report["functions_s"].items()},
            "peak_mib": service.peak_mib(),
            "clips": clips,
            "words": _words(texts[kind]),
            "digest": hashlib.sha256(texts[kind].encode()).hexdigest(),
        }
    return found


def compare(
    checkouts: Mapping[str, Path], folder: Path, rounds: int, hours: int, url: str | None = None
) -> dict[str, list[dict[str, Figures]]]:
    """What `hours_of` finds for each checkout in each round. They take turns, in reverse order each time.

    `url`: a PostgreSQL server, on which each service gets a database of its own, instead of SQLite.
    """
    replay = make_replay(folder)
    runs: dict[str, list[dict[str, Figures]]] = {name: [] for name in checkouts}
    for number in range(rounds):
        for name in list(checkouts)[:: -1 if number % 2 else 1]:
            with new_database(url) as settings, stub_service(checkouts[name], replay, **settings) as service:
                runs[name].append(hours_of(service, replay.upload, hours))
            found = {kind: round(one["server_s"], 3) for kind, one in runs[name][-1].items()}
            print(name, json.dumps(found), f"load average {machine()['load_average']}", flush=True)
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


def tables(runs: Mapping[str, list[dict[str, Figures]]]) -> Iterator[Table]:
    """The CPU time of an hour of audio, and its parts: medians over the rounds."""
    names = list(runs)
    compared = len(names) > 1
    rows: list[list[object]] = []
    for kind in KINDS:
        values = {name: [run[kind] for run in runs[name]] for name in names}
        middle = {name: _median(found, "server_s") for name, found in values.items()}
        rows.append(
            [
                kind,
                *(f"{took_s:.2f}" for took_s in middle.values()),
                *([f"{middle[HERE] / middle[THERE]:.2f}"] if compared else []),
                *(
                    f"{median(one['server_s'] / one['loop_s'] for one in found):.2f}"
                    for found in values.values()
                ),
                *(f"{_median(found, 'peak_mib'):.0f}" for found in values.values()),
                f"{values[names[0]][0]['words']} · {values[names[0]][0]['clips']}",
            ]
        )
    loops = [_median([run[kind] for run in runs[name] for kind in KINDS], "loop_s") for name in names]
    columns = [
        "an hour of audio",
        *(f"{name}, s" for name in names),
        *(["ratio of medians"] if compared else []),
        *(f"{name}, fixed loops" for name in names),
        *(f"{name}, peak MiB" for name in names),
        "words · clips",
    ]
    yield Table(f"CPU time of the server; the fixed loop takes {median(loops):.3f} s", columns, rows)
    rows = [
        [part, *(f"{_part(runs[name], kind, part):.3f}" for kind in KINDS for name in names)]
        for part in _parts(runs[names[-1]])
    ]
    columns = ["s", *(f"{kind}, {name}" for kind in KINDS for name in names)]
    yield Table("By part", columns, rows)


def figures(runs: Sequence[dict[str, Figures]]) -> Figures:
    """Medians over the rounds of one checkout."""
    loop = _median([run[kind] for run in runs for kind in KINDS], "loop_s")
    found: Figures = {"loop_s": round(loop, 3), "windows_per_hour": runs[0]["jobs"]["clips"]}
    for kind in KINDS:
        of_kind = [run[kind] for run in runs]
        found[f"{kind}_s"] = round(_median(of_kind, "server_s"), 3)
        found[f"{kind}_loops"] = round(median(one["server_s"] / one["loop_s"] for one in of_kind), 2)
        found[f"{kind}_parts_s"] = {part: round(_part(runs, kind, part), 3) for part in _parts(runs)}
    return found


def _parts(runs: Sequence[dict[str, Figures]]) -> list[str]:
    """All parts, the largest one of jobs first."""
    names = {part for run in runs for found in run.values() for part in found["parts_s"]}
    return sorted(names, key=lambda part: -_part(runs, "jobs", part))


def same_text(runs: Mapping[str, list[dict[str, Figures]]]) -> bool:
    """Whether all checkouts gave the same answers in all rounds."""
    return all(len({run[kind]["digest"] for found in runs.values() for run in found}) == 1 for kind in KINDS)


def _words(answer: str) -> int:
    return len(json.loads(answer)["words"]) if answer.startswith("{") else len(answer.split())


def _median(found: Sequence[Figures], key: str) -> float:
    return median(one[key] for one in found)


def _part(runs: Sequence[dict[str, Figures]], kind: str, part: str) -> float:
    return median(run[kind]["parts_s"].get(part, 0.0) for run in runs)


def loop_s() -> float:
    """The CPU time of a fixed loop in Python, which tells how fast this core is now."""
    began = time.thread_time()
    found: dict[str, int] = {}
    for number in range(1_500_000):
        key = f"word {number % 1000}"
        found[key] = found.get(key, 0) + len(key)
    return time.thread_time() - began
