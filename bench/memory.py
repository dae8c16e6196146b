"""Memory of the service's processes: at their peak, by the length of the recording, and when idle.

    whisperfleet bench memory [--minutes 10 60 120 240] [--threads 1] [--json FILE]
    whisperfleet bench idle [--minutes 30] [--threads 1] [--json FILE]

*memory*: each length has a service of its own, which first transcribes a talk of one minute. The figures are
the increase of the peak memory after that. FLAC, one request, subtitles. *idle*: two Whisper workers with
their model, asleep, and asleep after their first recordings. PSS counts each page that several processes
share once in all.
"""

import time
from pathlib import Path

import httpx
import psutil

from bench.command import Options
from bench.measuring import Figures, Table
from bench.recordings import TALK, write
from bench.service import processes, running_service, server_process, wait_for, workers
from bench.throughput import one_worker, request_srt

MIB = 1 << 20
PROCESSES = ("server", "media workers", "worker")
STATES = ("with the model", "asleep", "after work", "asleep after work")
SLEEP_AFTER_S = 10


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure the peaks (MiB) by length, and their growth for each hour beyond the first."""
    grown: dict[float, dict[str, float]] = {}
    before: dict[str, float] = {}
    for minutes in options.lengths(10, 60, 120, 240):
        path = folder / f"memory-{minutes:g}.flac"
        write(path, 60 * minutes, options.talk)
        with running_service(**one_worker(options.threads)) as client:
            request_srt(client, TALK)
            before = peaks_mib(client)
            request_srt(client, path)
            after = peaks_mib(client)
        grown[minutes] = {process: round(after[process] - before[process], 1) for process in PROCESSES}
        path.unlink()
    slopes = {
        process: _slope({minutes: row[process] for minutes, row in grown.items()}) for process in PROCESSES
    }
    figures = {
        "after_a_minute_mib": before,
        "grown_mib": {f"{minutes:g} min": row for minutes, row in grown.items()},
        "mib_per_hour_beyond_the_first": slopes,
    }
    rows = [[f"{minutes:g} min", *(row[process] for process in PROCESSES)] for minutes, row in grown.items()]
    rows.append(["an hour more, beyond the first", *(slopes[process] for process in PROCESSES)])
    return figures, [Table("Peak memory that a recording adds, MiB", ["recording", *PROCESSES], rows)]


def measure_idle(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure the resident memory (MiB) of each process in each state, and the first answers (s)."""
    [minutes] = options.lengths(30)
    path = folder / "talk.flac"
    write(path, 60 * minutes, options.talk)
    settings = {
        "WHISPER_CPU_WORKERS": "2",
        "WHISPER_CPU_THREADS": str(options.threads),
        "WHISPER_KEEP_DEFAULT_MODEL": "false",
        "WHISPER_MODEL_IDLE_S": str(SLEEP_AFTER_S),
    }
    with running_service(**settings) as client:
        server = server_process(client)
        memory = [resident_mib(client, server)]
        until_asleep(client)
        memory.append(resident_mib(client, server))
        answers_s = [_answer_s(client, TALK) for _ in range(3)]
        _answer_s(client, path)
        memory.append(resident_mib(client, server))
        until_asleep(client)
        memory.append(resident_mib(client, server))
    names = list(dict.fromkeys(name for found in memory for name in found))
    rows: list[list[object]] = [
        [name, *(" · ".join(f"{mib:.0f}" for mib in found.get(name, ())) for found in memory)]
        for name in names
    ]
    rows.append(["all", *(" · ".join(f"{mib:.0f}" for mib in _sum(found)) for found in memory)])
    figures: Figures = {"answers_s": answers_s}
    figures |= {f"{state.replace(' ', '_')}_mib": found for state, found in zip(STATES, memory, strict=True)}
    waking = [["woken", answers_s[0]], *[["awake", seconds] for seconds in answers_s[1:]]]
    return figures, [
        Table("Memory when idle: RSS · PSS, MiB", ["process", *STATES], rows),
        Table("Answers to a talk of a minute", ["workers", "s"], waking),
    ]


def peaks_mib(client: httpx.Client) -> dict[str, float]:
    """The peak resident memory of each process so far; for media workers, that of the largest one."""
    worker, *media = processes(client)
    return {
        "server": _peak_mib(server_process(client)),
        "media workers": max(map(_peak_mib, media)),
        "worker": _peak_mib(worker),
    }


def _peak_mib(process: psutil.Process) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return round(int(line.split()[1]) * 1024 / MIB, 1)


def _slope(grown: dict[float, float]) -> float | None:
    """MiB per hour between the shortest recording of at least an hour and the longest; None for only one."""
    long = sorted(minutes for minutes in grown if minutes >= 60)
    if len(long) < 2:
        return None
    return round((grown[long[-1]] - grown[long[0]]) / (long[-1] - long[0]) * 60, 2)


def until_asleep(client: httpx.Client) -> None:
    """Wait until all workers are asleep, and their processes have ended."""
    wait_for(lambda: all(row["state"] == "asleep" for row in workers(client)), 10 * SLEEP_AFTER_S)
    time.sleep(1)


def resident_mib(client: httpx.Client, server: psutil.Process) -> dict[str, tuple[float, float]]:
    """RSS and PSS of each process of the service."""
    slots = {row["pid"]: row["slot"] for row in workers(client)}
    named = {"server": server}
    media = 0
    for child in sorted(server.children(), key=lambda child: child.pid):
        if child.pid in slots:
            named[f"Whisper worker {slots[child.pid]}"] = child
        elif "spawn_main" in " ".join(child.cmdline()):
            named[f"media worker {media}"] = child
            media += 1
        else:
            named["multiprocessing's resource tracker"] = child
    return {name: _mib(process) for name, process in named.items()}


def _answer_s(client: httpx.Client, recording: Path) -> float:
    began = time.perf_counter()
    request_srt(client, recording)
    return round(time.perf_counter() - began, 2)


def _mib(process: psutil.Process) -> tuple[float, float]:
    memory = process.memory_full_info()
    return round(memory.rss / MIB, 1), round(memory.pss / MIB, 1)


def _sum(found: dict[str, tuple[float, float]]) -> list[float]:
    return [round(sum(mib[column] for mib in found.values()), 1) for column in (0, 1)]
