"""Measuring and reporting: medians of interleaved runs, JSON, Markdown tables."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

REPETITIONS = 5
_LIBRARIES = ("faster-whisper", "ctranslate2", "silero-vad", "onnxruntime", "numpy", "av")

Figures = dict[str, Any]  # of one benchmark, as written to JSON


@dataclass(frozen=True)
class Table:
    """A table in Markdown with a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __str__(self) -> str:
        return "\n".join([f"**{self.title}**", "", *markdown(self.columns, self.rows)])


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table."""
    for cells in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(map(str, cells))} |"


def interleaved(ways: Mapping[str, Callable[[], float]], repetitions: int) -> dict[str, list[float]]:
    """The results of each way, repeated. The ways take turns, so other load on the machine affects all alike.

    The order is reversed each time. One unmeasured run of each comes first.
    """
    runs_s: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for repetition in range(repetitions):
        for name in list(ways)[:: -1 if repetition % 2 else 1]:
            runs_s[name].append(ways[name]())
    return runs_s


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of consecutive runs."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def median(values: Sequence[float], digits: int = 3) -> float:
    return round(statistics.median(values), digits)


def timed(work: Callable[[], object]) -> float:
    """The wall time of `work` (s)."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def machine() -> Figures:
    """Hardware, system, library versions, and the load average over the last minute."""
    from app.engines.devices import usable_cores  # `bench/gpu_session.py` does without

    return {
        "cpu": _cpu(),
        "cores": usable_cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _LIBRARIES},
        "load_average": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:  # not Linux
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def write_json(path: Path, figures: Figures) -> None:
    path.write_text(json.dumps(figures, indent=1) + "\n")
