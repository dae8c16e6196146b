"""Memory of an idle service, by process: after its start, and after its first recordings.

    python -m bench.idle [--minutes 30] [--threads 1] [--json FILE]

PSS counts each page that several processes share once in all. Two Whisper workers with the demo model.
"""

from pathlib import Path

import httpx
import psutil

from bench.command import Options, run_alone
from bench.measuring import Figures, Table
from bench.recordings import TALK, write
from bench.service import processes, running_service, server_process, until_idle, workers
from bench.throughput import request_srt

MIB = 1 << 20
COLUMNS = ("RSS at the start", "PSS", "RSS after work", "PSS")


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure the resident memory (MiB) of each process before and after transcribing."""
    [minutes] = options.lengths(30)
    path = folder / "talk.flac"
    write(path, 60 * minutes, options.talk)
    with running_service(WHISPER_CPU_WORKERS="2", WHISPER_CPU_THREADS=str(options.threads)) as client:
        until_idle(client)
        started = resident_mib(client)
        for recording in (TALK, path, TALK):
            request_srt(client, recording)
        until_idle(client)
        worked = resident_mib(client)
    rows: list[list[object]] = [[name, *started[name], *worked[name]] for name in worked]
    for name in ("all", "all but the Whisper workers"):
        chosen = [key for key in worked if name == "all" or not key.startswith("Whisper")]
        rows.append([name, *_sum(started, chosen), *_sum(worked, chosen)])
    figures = {"after_start_mib": started, "after_work_mib": worked}
    return figures, [Table("Memory when idle, MiB", ["process", *COLUMNS], rows)]


def resident_mib(client: httpx.Client) -> dict[str, tuple[float, float]]:
    """RSS and PSS of each process of the service."""
    server = server_process(client)
    known = processes(client)
    count = len(workers(client))
    named = {"server": server}
    named |= {f"Whisper worker {number}": process for number, process in enumerate(known[:count])}
    named |= {f"media worker {number}": process for number, process in enumerate(known[count:])}
    [tracker] = [child for child in server.children() if child not in known]
    named["multiprocessing's resource tracker"] = tracker
    return {name: _mib(process) for name, process in named.items()}


def _mib(process: psutil.Process) -> tuple[float, float]:
    memory = process.memory_full_info()
    return round(memory.rss / MIB, 1), round(memory.pss / MIB, 1)


def _sum(figures: dict[str, tuple[float, float]], names: list[str]) -> list[float]:
    return [round(sum(figures[name][column] for name in names), 1) for column in (0, 1)]


if __name__ == "__main__":
    run_alone("idle", measure, __doc__)
