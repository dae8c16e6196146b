"""One worker against two, with one thread each: wall time, and how busy each worker is.

    python -m bench.scaling [--minutes 5 30] [--threads 1] [--repetitions 5] [--json FILE]

A worker is busy while it has a batch in flight. The fraction of busy time is that between the first dispatch
and the last result. The times come from the service's log.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from bench.command import Options, run_alone
from bench.measuring import Figures, Table, interleaved, median, ratio, timed
from bench.recordings import talk_for
from bench.service import running_service
from bench.throughput import one_worker, request_srt

ONE, TWO = "one worker", "two workers"


@dataclass(frozen=True)
class Batch:
    """A batch of a slot, with its start and end (s since the epoch)."""

    slot: int
    windows: int
    start: float
    end: float


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure wall times, their ratio, and each worker's fraction of busy time, for each length."""
    logs = {ONE: folder / "one.log", TWO: folder / "two.log"}
    single = one_worker(options.threads)
    figures: Figures = {"threads_of_each": options.threads}
    rows = []
    with (
        running_service(log=logs[ONE], **single) as one,
        running_service(log=logs[TWO], **two_workers(options.threads)) as two,
    ):
        clients = {ONE: one, TWO: two}
        for minutes in options.lengths(5, 30):
            path = talk_for(folder, 60 * minutes, talk=options.talk).path
            fractions: dict[str, list[list[float]]] = {ONE: [], TWO: []}
            sizes: dict[str, list[float]] = {ONE: [], TWO: []}

            def run(
                name: str,
                path: Path = path,
                fractions: dict[str, list[list[float]]] = fractions,
                sizes: dict[str, list[float]] = sizes,
            ) -> float:
                begun = logs[name].stat().st_size
                seconds = timed(partial(request_srt, clients[name], path))
                batches = batches_of(logs[name], begun)
                fractions[name].append(busy_fractions(batches))
                sizes[name].append(sum(batch.windows for batch in batches) / len(batches))
                return seconds

            ways: dict[str, Callable[[], float]] = {name: partial(run, name) for name in clients}
            runs_s = interleaved(ways, options.repetitions)
            busy = {name: _least(found[1:]) for name, found in fractions.items()}
            found = {
                "runs_s": runs_s,
                "median_s": {name: median(times) for name, times in runs_s.items()},
                "ratio": round(ratio(runs_s[ONE], runs_s[TWO]), 3),
                "least_busy_share": busy,
                "windows_in_a_batch": {name: median(counts[1:], 2) for name, counts in sizes.items()},
            }
            figures[f"{minutes:g} min"] = found
            rows.append(
                [
                    f"{minutes:g} min",
                    f"{median(runs_s[ONE]):.2f}",
                    f"{median(runs_s[TWO]):.2f}",
                    f"{found['ratio']:.2f}",
                    f"{100 * busy[ONE]:.0f} %",
                    f"{100 * busy[TWO]:.0f} %",
                ]
            )
    columns = ["talk", "one worker, s", "two, s", "ratio", "the one is busy", "the less busy of two"]
    return figures, [Table("One worker against two", columns, rows)]


def two_workers(threads: int) -> dict[str, str]:
    return one_worker(threads) | {"WHISPER_CPU_WORKERS": "2"}


def _least(fractions: list[list[float]]) -> float:
    """The median over the runs of the least busy slot's fraction."""
    return median([min(run) for run in fractions])


def batches_of(log: Path, begun: int) -> list[Batch]:
    """The batches in a service's log, from byte `begun` on."""
    found = []
    with log.open("rb") as lines:
        lines.seek(begun)
        for line in lines:
            entry = json.loads(line)
            if entry.get("event") == "batch decoded":
                end = datetime.fromisoformat(entry["timestamp"]).timestamp()
                found.append(Batch(entry["slot"], entry["windows"], end - entry["took_s"], end))
    return found


def busy_fractions(batches: list[Batch]) -> list[float]:
    """For each slot with a batch, its fraction of the time from the first dispatch to the last result."""
    total_s = max(batch.end for batch in batches) - min(batch.start for batch in batches)
    return [
        sum(batch.end - batch.start for batch in batches if batch.slot == slot) / total_s
        for slot in sorted({batch.slot for batch in batches})
    ]


if __name__ == "__main__":
    run_alone("scaling", measure, __doc__)
