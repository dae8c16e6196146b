"""How fast the service answers polling clients, and what holds its event loop.

    python -m bench.latency [--before FOLDER] [--hours 10] [--seconds 20] [--repetitions 3] [--data FOLDER]
                            [--quick] [--json FILE]

Two CPU workers with the demo model are busy all the time. 50 clients ask `/health` and `GET /v1/jobs/{id}` in
turn, five times a second each. First they are alone (*polling*), then others load results of ten hours, list
jobs, upload, follow events and transcribe (*everything*, see bench/latency_load.py).

`--before`: another checkout, with its `.venv`. Both run in turns, in reverse order each time, and the tables
show both. `--data` keeps the folder with the transcript of ten hours, which takes minutes to make.

The loop's calls are measured in wall time and in the CPU time of the loop's thread, which other programs on
the machine do not change (see bench/loop_watch.py).
"""

import asyncio
import json
import multiprocessing
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench.command import parser_of
from bench.latency_load import Targets, Times, run_load
from bench.measuring import Figures, Table, machine, write_json
from bench.recordings import clips_of, write
from bench.service import ROOT, finished_job, job_row, started_service, submit_job, wait_for

CLIENTS = 50
PERIOD_S = 0.2  # between two requests of a client
SHORT_JOBS = 100
LONGEST = 6  # calls in a table
AFTER, BEFORE = "after", "before"
PATHS = {"/health": "/health", "job": "GET /v1/jobs/{id}"}
WORKERS = {"WHISPER_GPUS": "0,1", "WHISPER_CPU_THREADS": "1", "WHISPER_LOG_LEVEL": "info"}
SIMULATED = {
    "WHISPER_ENGINE": "simulated",
    "WHISPER_SIMULATED": "fixed_ms=1,clip_ms=1,token_ms=0",
    "WHISPER_KEEP_AUDIO": "false",
}


@dataclass(frozen=True)
class Material:
    """What all runs use: a data folder with finished jobs, and recordings."""

    data: Path
    recordings: dict[str, Path]  # hour, minutes, clip
    long_job: str


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--hours", type=float, default=10.0, help="of the long transcript")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--repetitions", type=int, default=3, help="measured rounds")
    parser.add_argument("--data", type=Path, help="folder that keeps the long transcript for the next run")
    parsed = parser.parse_args()
    if parsed.quick:
        parsed.hours, parsed.seconds, parsed.repetitions = 0.1, 3.0, 1
    checkouts = {AFTER: ROOT} | ({BEFORE: parsed.before.resolve()} if parsed.before else {})
    figures: Figures = {"machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        oldest = list(checkouts.values())[-1]  # its data can be read by both
        material = prepare(oldest, parsed.data or Path(folder), parsed.hours)
        runs: dict[str, list[Figures]] = {name: [] for name in checkouts}
        for repetition in range(parsed.repetitions):
            for name in list(checkouts)[:: 1 if repetition % 2 else -1]:
                runs[name].append(measure(checkouts[name], material, Path(folder), parsed.seconds))
    figures |= runs
    print(*tables(runs), sep="\n\n")
    if parsed.json:
        write_json(parsed.json, figures)


def prepare(checkout: Path, folder: Path, hours: float) -> Material:
    """Make the recordings and a data folder with a long transcript and a page of short jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {
        name: folder / f"{name}.flac" if name != "clip" else folder / "clip.wav"
        for name in ("long", "hour", "minutes", "clip")
    }
    for name, seconds in (("long", 3600 * hours), ("hour", 3600.0), ("minutes", 300.0)):
        if not paths[name].exists():
            write(paths[name], seconds)
    paths["clip"].write_bytes(clips_of(4.0, 1)[0])
    note, data = folder / "long_job", folder / "data"
    if not note.exists():
        settings = WORKERS | SIMULATED | {"WHISPER_DATA_DIR": str(data), "WHISPER_LOG_LEVEL": "error"}
        with started_service([_python(checkout), "-m", "app.cli"], checkout, **settings) as (client, _):
            short = [submit_job(client, paths["clip"], word_timestamps="true") for _ in range(SHORT_JOBS)]
            long = submit_job(client, paths["long"], word_timestamps="true")
            for job in (*short, long):
                finished_job(client, job, 3600 * hours)
        note.write_text(long)
    return Material(data, paths, note.read_text())


def measure(checkout: Path, material: Material, scratch: Path, seconds: float) -> Figures:
    """Measure a checkout: the pollers' times and the loop's calls, alone and under all kinds of load."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        data, report = Path(folder) / "data", Path(folder) / "report.json"
        shutil.copytree(material.data, data)
        command = [_python(checkout), str(ROOT / "bench" / "loop_watch.py"), str(report)]
        settings = WORKERS | {"WHISPER_DATA_DIR": str(data)}
        with (
            (Path(folder) / "log").open("wb") as log,
            started_service(command, checkout, log, **settings) as (client, process),
        ):
            running = [
                submit_job(client, material.recordings["hour"], word_timestamps="true") for _ in range(3)
            ]
            wait_for(lambda: all(job_row(client, job)["progress"]["clips_done"] >= 2 for job in running), 120)
            targets = Targets(
                str(client.base_url),
                material.long_job,
                running[0],
                material.recordings["minutes"],
                material.recordings["clip"],
            )
            found = {}
            for scenario in ("polling", "everything"):
                _read_report(process, report)
                with _load(targets, seconds, enabled=scenario == "everything") as load:
                    times = asyncio.run(poll(targets.url, running[-1], seconds))
                found[scenario] = {
                    "times_ms": {name: _spread(values) for name, values in (times | load()).items()},
                    "loop": _read_report(process, report),
                }
                assert job_row(client, running[-1])["status"] == "running", "the jobs were too short"
            return found


@contextmanager
def _load(targets: Targets, seconds: float, *, enabled: bool) -> Iterator[Any]:
    """Load on the service while the block runs. Yields a function for its times, to be called at the end."""
    if not enabled:
        yield dict
        return
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    process = spawn.Process(target=run_load, args=(targets, queue, seconds + 2))
    process.start()
    time.sleep(1)  # it starts
    yield lambda: queue.get(timeout=60)
    process.join()


async def poll(url: str, job: str, seconds: float, period_s: float = PERIOD_S) -> Times:
    """The times of all answers to `CLIENTS` clients, by path (s)."""
    times: Times = defaultdict(list)
    parsed = httpx.URL(url)
    end = time.monotonic() + seconds

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection(parsed.host, parsed.port)
        await asyncio.sleep(number / CLIENTS * period_s)
        turn = number
        while (due := time.monotonic()) < end:
            name, path = (("/health", "/health"), ("job", f"/v1/jobs/{job}"))[turn % 2]
            began = time.perf_counter()
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {parsed.host}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            lines = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if line)
            await reader.readexactly(int(lines[b"content-length"]))
            times[name].append(time.perf_counter() - began)
            assert head.startswith(b"HTTP/1.1 200"), head
            turn += 1
            await asyncio.sleep(max(0.0, due + period_s - time.monotonic()))
        writer.close()

    await asyncio.gather(*(one(number) for number in range(CLIENTS)))
    return times


def tables(runs: dict[str, list[Figures]]) -> list[Table]:
    """The figures as tables: answers, the loop, and its longest calls. Medians over the rounds."""
    found = []
    for scenario in ("polling", "everything"):
        rows = [
            _row(PATHS.get(name, name), runs, [scenario, "times_ms", name])
            for name in runs[AFTER][0][scenario]["times_ms"]
        ]
        rows += [
            _row(label, runs, [scenario, "loop", key])
            for label, key in (("lateness of the loop", "late_ms"), ("turn of the loop", "turn_ms"))
        ]
        columns = ["ms: p50 · p99 · max", *runs, *(["p99 after / before"] if BEFORE in runs else [])]
        found.append(Table(scenario, columns, rows))
        counts = [
            [name, *(_counts(run[scenario]["loop"]) for run in rounds)] for name, rounds in runs.items()
        ]
        rounds = [f"round {number + 1}" for number in range(len(runs[AFTER]))]
        title = f"{scenario}: calls over 10 · 20 ms CPU · over 20 ms held · full collections · longest, ms"
        found.append(Table(title, ["", *rounds], counts))
        for name, rounds_of in runs.items():
            for key in ("cpu", "held"):
                calls = sorted(
                    (call for run in rounds_of for call in run[scenario]["loop"][f"by_{key}"]),
                    key=lambda call: -call[key],
                )[:LONGEST]
                rows = [
                    [call["name"], call["from"], call["wall"], call["cpu"], call["held"]] for call in calls
                ]
                title = f"{scenario}, {name}: the longest calls by {key} time"
                found.append(Table(title, ["call", "goes on in", "wall, ms", "cpu", "held"], rows))
    return found


def _row(label: str, runs: dict[str, list[Figures]], keys: list[str]) -> list[str]:
    medians = {}
    for name, rounds in runs.items():
        values = []
        for run in rounds:
            value: Any = run
            for key in keys:
                value = value.get(key, {})
            if value:
                values.append(value)
        medians[name] = {
            part: statistics.median(value[part] for value in values)
            for part in ("p50", "p99", "max")
            if values
        }
    row = [label, *(" · ".join(f"{part:.1f}" for part in value.values()) for value in medians.values())]
    if BEFORE in medians:
        known = medians[BEFORE] and medians[AFTER]
        row.append(f"{medians[AFTER]['p99'] / medians[BEFORE]['p99']:.2f}" if known else "")
    return row


def _counts(loop: Figures) -> str:
    collections = loop["gc_ms"]
    return (
        f"{loop['over_10_ms_cpu']} · {loop['over_20_ms_cpu']} · {loop['over_20_ms_held']} · "
        f"{collections['count']} · {collections['max']:.0f}"
    )


def _spread(values: list[float]) -> dict[str, float]:
    ms = 1000 * np.array(values)
    spread = {"p50": np.percentile(ms, 50), "p99": np.percentile(ms, 99), "max": ms.max(), "count": len(ms)}
    return {name: round(float(value), 2) for name, value in spread.items()}


def _read_report(process: subprocess.Popen[bytes], report: Path) -> Figures:
    """The loop's report of the time since the last one."""
    report.unlink(missing_ok=True)
    process.send_signal(signal.SIGRTMIN)
    wait_for(report.exists, 60)
    found: Figures = json.loads(report.read_text())
    return found


def _python(checkout: Path) -> str:
    return sys.executable if checkout == ROOT else str(checkout / ".venv" / "bin" / "python")


if __name__ == "__main__":
    main()
