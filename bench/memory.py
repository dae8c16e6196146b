"""Peak memory of the server, its media children and its worker, against the length of the recording.

    python -m bench.memory [--minutes 10 60 120 240] [--threads 1] [--json FILE]

A service of its own for each length, which has transcribed a talk of a minute before: what that took is left
out, and what is shown is what the recording added at the most. FLAC, one request, subtitles.
"""

from pathlib import Path

import httpx
import psutil

from bench.command import Options, run_alone
from bench.measuring import Figures, Table
from bench.recordings import TALK, write
from bench.service import processes, running_service, server_process
from bench.throughput import ask_for_srt, one_worker

MIB = 1 << 20
ROOMS = ("server", "media children", "worker")


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """The peaks (MiB) by length, and by how much they grow from hour to hour beyond the first."""
    grown: dict[float, dict[str, float]] = {}
    before: dict[str, float] = {}
    for minutes in options.lengths(10, 60, 120, 240):
        path = folder / f"memory-{minutes:g}.flac"
        write(path, 60 * minutes, options.talk)
        with running_service(**one_worker(options.threads)) as client:
            ask_for_srt(client, TALK)
            before = peaks_mib(client)
            ask_for_srt(client, path)
            after = peaks_mib(client)
        grown[minutes] = {room: round(after[room] - before[room], 1) for room in ROOMS}
        path.unlink()
    slopes = {room: _slope({minutes: row[room] for minutes, row in grown.items()}) for room in ROOMS}
    figures = {
        "after_a_minute_mib": before,
        "grown_mib": {f"{minutes:g} min": row for minutes, row in grown.items()},
        "mib_per_hour_beyond_the_first": slopes,
    }
    rows = [[f"{minutes:g} min", *(row[room] for room in ROOMS)] for minutes, row in grown.items()]
    rows.append(["an hour more, beyond the first", *(slopes[room] for room in ROOMS)])
    return figures, [Table("Peak memory that a recording adds, MiB", ["recording", *ROOMS], rows)]


def peaks_mib(client: httpx.Client) -> dict[str, float]:
    """The most that each has had resident so far; of the media children, the one that had most."""
    worker, *media = processes(client)
    return {
        "server": _peak_mib(server_process(client)),
        "media children": max(map(_peak_mib, media)),
        "worker": _peak_mib(worker),
    }


def _peak_mib(process: psutil.Process) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return round(int(line.split()[1]) * 1024 / MIB, 1)


def _slope(grown: dict[float, float]) -> float | None:
    """MiB per hour, from the shortest recording of an hour or more to the longest; None for less than two."""
    long = sorted(minutes for minutes in grown if minutes >= 60)
    if len(long) < 2:
        return None
    return round((grown[long[-1]] - grown[long[0]]) / (long[-1] - long[0]) * 60, 2)


if __name__ == "__main__":
    run_alone("memory", measure, __doc__)
