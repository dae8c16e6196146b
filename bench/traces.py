"""What traces cost, and what they cost while they are off.

    python -m bench.traces [--before FOLDER] [--requests 300] [--repetitions 5]

Simulated workers answer short requests at once, so that nearly all of the time is the server's. Measured are
the CPU time of the server's process for each request and the time until all are answered: of this checkout
with traces off, of another one (`--before`), and of this one with traces on and a collector on loopback. They
take turns in pairs; a ratio is the median of those of all pairs.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from statistics import median

import httpx
import psutil

from bench.measuring import Figures, Table, machine, write_json
from bench.otlp_collector import Collector, collecting
from bench.recordings import clips_of
from bench.service import ROOT, started_service

OFF, BEFORE, ON = "off", "before", "on"
AT_ONCE = 16
CLIP_S = 4.0
SETTINGS = {
    "WHISPER_ENGINE": "simulated",
    "WHISPER_MODEL": "simulated",
    "WHISPER_SIMULATED": "clip_ms=0.1,batch=8",
    "WHISPER_CPU_WORKERS": "2",
    "WHISPER_LOG_LEVEL": "info",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--requests", type=int, default=300, help="in each measurement")
    parser.add_argument("--repetitions", type=int, default=5, help="pairs")
    parser.add_argument("--quick", action="store_true", help="one short round, only to check that it works")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parsed = parser.parse_args()
    if parsed.quick:
        parsed.requests, parsed.repetitions = 20, 1
    figures: Figures = {"machine": machine()}
    ways = {ON: ROOT} | ({BEFORE: parsed.before.resolve()} if parsed.before else {})
    [clip] = clips_of(CLIP_S, 1)
    for way, checkout in ways.items():
        pairs = []
        for repetition in range(parsed.repetitions):
            turns = ((OFF, ROOT), (way, checkout))[:: 1 if repetition % 2 else -1]
            pairs.append({name: measure(name, root, clip, parsed.requests) for name, root in turns})
        figures[way] = pairs
    print(table(figures, list(ways)))
    if parsed.json:
        write_json(parsed.json, figures)


def measure(way: str, checkout: Path, clip: bytes, requests: int) -> dict[str, float]:
    """Ms of CPU time for each request, requests a second, and spans for each request."""
    with tempfile.TemporaryDirectory() as folder, collecting() if way == ON else nullcontext() as collector:
        settings = SETTINGS | {"WHISPER_DATA_DIR": folder} | _traces(collector)
        # In the root of a checkout, Python imports its modules.
        command = [sys.executable, "-m", "app.cli"]
        with (
            (Path(folder) / "log").open("wb") as log,
            started_service(command, checkout, log, **settings) as (client, process),
        ):
            _send(client, clip, AT_ONCE)  # starts the media workers
            server = psutil.Process(process.pid)
            before_s, began = _cpu_s(server), time.perf_counter()
            _send(client, clip, requests)
            took_s, cpu_s = time.perf_counter() - began, _cpu_s(server) - before_s
        spans = len(collector.spans) / (requests + AT_ONCE) if collector is not None else 0.0
    return {
        "cpu_ms": round(1000 * cpu_s / requests, 3),
        "per_s": round(requests / took_s, 1),
        "spans": round(spans, 1),
    }


def _traces(collector: Collector | None) -> Mapping[str, str]:
    return {} if collector is None else {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}


def _send(client: httpx.Client, clip: bytes, requests: int) -> None:
    def send(number: int) -> None:
        fields = {"model": "whisper-1", "response_format": "srt", "language": "en"}
        # Each its own recording: the results of the same one could be those of another request.
        content = clip + number.to_bytes(4, "little")
        answer = client.post("/v1/audio/transcriptions", data=fields, files={"file": ("clip.wav", content)})
        answer.raise_for_status()

    with ThreadPoolExecutor(AT_ONCE) as senders:
        list(senders.map(send, range(requests)))


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def table(figures: Figures, ways: list[str]) -> Table:
    """The medians, and the median ratios to traces off."""
    keys = ("cpu_ms", "per_s", "spans")
    rows: list[list[object]] = []
    for way in ways:
        for name in (OFF, way):
            pairs = [(pair[name], pair[OFF]) for pair in figures[way]]
            values = [f"{median(found[key] for found, _ in pairs):.2f}" for key in keys]
            ratios = [f"{median(found[key] / off[key] for found, off in pairs):.3f}" for key in keys[:2]]
            rows.append([name, *values, *ratios])
    columns = ["traces", "CPU, ms a request", "requests a second", "spans", "CPU / off", "rate / off"]
    return Table("Short requests, simulated workers", columns, rows)


if __name__ == "__main__":
    main()
