"""Peak memory of the server, its media workers and its worker, by the length of the recording.

    python -m bench.memory [--minutes 10 60 120 240] [--threads 1] [--json FILE]

Each length has a service of its own, which first transcribes a talk of one minute. The figures are the
increase of the peak memory after that. FLAC, one request, subtitles.
"""

from pathlib import Path

import httpx
import psutil

from bench.command import Options, run_alone
from bench.measuring import Figures, Table
from bench.recordings import TALK, write
from bench.service import processes, running_service, server_process
from bench.throughput import one_worker, request_srt

MIB = 1 << 20
PROCESSES = ("server", "media workers", "worker")


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


if __name__ == "__main__":
    run_alone("memory", measure, __doc__)
