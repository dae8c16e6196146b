"""The tables of docs/scale.md about the server's process, from the figures in bench/costs.json."""

import json
from collections.abc import Iterator, Sequence

from bench.capacity import COSTS, SPEEDS
from bench.measuring import Figures, markdown

KINDS = {"jobs": "jobs", "verbose_json": "`verbose_json` with words", "srt": "`srt`"}


def server_table() -> Iterator[str]:
    """The lines of the table of what an hour of audio costs, and how many GPUs that feeds."""
    found = _recorded()
    titles = [
        "an hour of audio as",
        "CPU time of the server",
        "the same in fixed loops",
        f"full at, GPUs of {' · '.join(f'{speed} ×' for speed in SPEEDS)}",
    ]
    rows = [
        (
            title,
            f"{found[f'{kind}_s']:.2f} s",
            f"{found[f'{kind}_loops']:.1f}",
            " · ".join(f"{full_at(found[f'{kind}_s'], speed):,}" for speed in SPEEDS),
        )
        for kind, title in KINDS.items()
    ]
    yield from markdown(titles, rows)


def full_at(server_s: float, speed: float) -> int:
    """How many GPUs of so many times real time one core of the server feeds."""
    return int(3600 / (speed * server_s))


def parts_table() -> Iterator[str]:
    """The lines of the table of the parts of that CPU time."""
    found = _recorded()
    parts = [found[f"{kind}_parts_s"] for kind in KINDS]
    names = sorted(
        {name for of_kind in parts for name in of_kind}, key=lambda name: (-parts[0].get(name, 0), name)
    )
    rows = [(name, *(f"{of_kind.get(name, 0):.3f} s" for of_kind in parts)) for name in names]
    yield from markdown(["part", *KINDS.values()], rows)


def load_table(found: Sequence[Figures] | None = None) -> Iterator[str]:
    """The lines of the table of what the server takes with so many slots, and how fast it answers."""
    titles = [
        "GPUs, of each × real time",
        "busy",
        "hours of audio in an hour",
        "server, cores",
        "server, MiB",
        "disk, MB",
        "`/health`, p50 · p99",
    ]
    rows = [
        (
            f"{one['slots']} of {one['speed']}",
            one["busy_slots"],
            one["times_real_time"],
            f"{one['server_cores']:.2f}",
            one["server_mib"],
            one["disk_mb"],
            f"{one['health_p50_ms']} · {one['health_p99_ms']} ms",
        )
        for one in found or _recorded()["load"]
    ]
    yield from markdown(titles, rows)


def _recorded() -> Figures:
    found: Figures = json.loads(COSTS.read_text(encoding="utf-8"))
    return found
