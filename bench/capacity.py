"""How many GPUs one front end can keep busy, computed from measured costs.

    python -m bench.capacity      prints the tables of docs/scale.md, which `python -m tests.tables` writes

bench/costs.json has the costs, which `bench.scale` and `bench.cluster` measure. Each part of the front end
has a cost for an hour of audio and a limit. It is full at the number of GPUs whose audio costs as much as its
limit, if they always have work.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measuring import markdown
from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE

COSTS = Path(__file__).with_name("costs.json")
GPUS = (8, 64, 1000)
SPEEDS = (100, 200, 400)  # times real time, of one GPU
MOST_GPUS = 100_000  # that are tried

CORES = 16  # of the front end; server and bridge have one each
NETWORK_BITS = 10e9  # a second, in each direction
UPLOAD_BITS = 128e3  # for each second of audio


@dataclass(frozen=True)
class Costs:
    """Measured costs. CPU times in s for an hour of audio, or in ms for each window of at most 30 s."""

    windows_per_hour: float
    jobs_s: float  # of the server's process for jobs, from the upload to the transcript, 8 slots
    dispatcher_ms: Mapping[int, float]  # part of that which depends on the number of slots
    decoding_s: float
    speech_s: float
    sqlite_clips_per_s: float
    postgresql_clips_per_s: float
    server_send_ms: float  # of a window's audio to another machine; workers of this one read it themselves
    bridge_ms: float
    raylet_ms: float  # on the front end's machine
    node_ms: float  # of raylet and actor on the worker's machine

    @classmethod
    def recorded(cls) -> "Costs":
        """The costs of bench/costs.json."""
        found = _recorded()
        by_slots = {int(slots): ms for slots, ms in found["dispatcher_ms"].items()}
        names = cls.__dataclass_fields__.keys() - {"dispatcher_ms"}
        return cls(dispatcher_ms=by_slots, **{name: found[name] for name in names})

    def dispatcher_on(self, slots: float) -> float:
        """The dispatcher's cost of a window (ms): between two measured numbers of slots on a line."""
        known = sorted(self.dispatcher_ms)
        place = min(max(1, bisect_left(known, slots)), len(known) - 1)
        low, high = known[place - 1], known[place]
        slope = (self.dispatcher_ms[high] - self.dispatcher_ms[low]) / (high - low)
        return max(0.0, self.dispatcher_ms[low] + slope * (slots - low))


@dataclass(frozen=True)
class Part:
    """A part of the front end. `cost`: for an hour of audio with so many slots, in s of `unit`."""

    name: str
    cost: Callable[[Costs, float], float]
    limit: Callable[[Costs], float]  # in `unit`
    unit: str
    remedy: str

    def used(self, costs: Costs, gpus: float, speed: float) -> float:
        """How much of its limit the part needs for so many GPUs of so many times real time: 1 is all."""
        hours_per_s = gpus * speed / 3600
        return hours_per_s * self.cost(costs, gpus) / self.limit(costs)

    def full_at(self, costs: Costs, speed: float) -> int:
        """The most GPUs that the part keeps busy. Its use grows with their number."""
        return bisect_left(range(MOST_GPUS), True, key=lambda gpus: self.used(costs, gpus + 1, speed) > 1)


def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(COSTS.read_text(encoding="utf-8"))
    return found


def _server_s(costs: Costs, slots: float) -> float:
    few = min(costs.dispatcher_ms)
    more_ms = costs.dispatcher_on(slots) - costs.dispatcher_ms[few] + costs.server_send_ms
    return costs.jobs_s + costs.windows_per_hour * more_ms / 1000


def _pcm_gbit(costs: Costs, slots: float) -> float:
    return 3600 * SAMPLE_RATE * BYTES_PER_SAMPLE * 8 / 1e9


PARTS = (
    Part(
        "server's process",
        _server_s,
        lambda costs: 1,
        "core",
        "several services, each with its own GPUs and jobs",
    ),
    Part(
        "bridge to Ray",
        lambda costs, slots: costs.windows_per_hour * costs.bridge_ms / 1000,
        lambda costs: 1,
        "core",
        "several services, as above",
    ),
    Part(
        "database, SQLite",
        lambda costs, slots: costs.windows_per_hour,
        lambda costs: costs.sqlite_clips_per_s,
        "clips a second",
        "a database for each front end",
    ),
    Part(
        "database, PostgreSQL",
        lambda costs, slots: costs.windows_per_hour,
        lambda costs: costs.postgresql_clips_per_s,
        "clips a second",
        "PostgreSQL on a machine of its own",
    ),
    Part(
        "media workers",
        lambda costs, slots: costs.decoding_s + costs.speech_s,
        lambda costs: CORES - 2,
        "cores",
        "`WHISPER_RAY_MEDIA_WORKERS`",
    ),
    Part("network, sending PCM", _pcm_gbit, lambda costs: NETWORK_BITS / 1e9, "Gbit/s", "25 Gbit/s"),
    Part(
        "network, receiving uploads",
        lambda costs, slots: 3600 * UPLOAD_BITS / 1e9,
        lambda costs: NETWORK_BITS / 1e9,
        "Gbit/s",
        "25 Gbit/s",
    ),
)


def capacity_table(costs: Costs | None = None, speed: float = SPEEDS[0]) -> Iterator[str]:
    """The lines of the table: a row for each part, the first one to be full first."""
    costs = costs or Costs.recorded()
    titles = [
        "part",
        "limit",
        *(f"{gpus:,} GPUs" for gpus in GPUS),
        f"full at, GPUs of {' · '.join(f'{each} ×' for each in SPEEDS)}",
        "then",
    ]
    rows = [
        (
            part.name,
            f"{_rounded(part.limit(costs))} {part.unit}",
            *(_share(part.used(costs, gpus, speed)) for gpus in GPUS),
            " · ".join(f"{part.full_at(costs, each):,}" for each in SPEEDS),
            part.remedy,
        )
        for part in sorted(PARTS, key=lambda part: part.full_at(costs, speed))
    ]
    yield from markdown(titles, rows)


def _several(values: Iterable[str]) -> str:
    return " · ".join(f"{int(value):,}" for value in values)


def _ms(by_slots: Mapping[str, float]) -> str:
    return " · ".join(f"{ms:.2f}" for ms in by_slots.values())


def _pair(found: Mapping[str, float], one: str, other: str, unit: str) -> str:
    return f"{found[one]:.2f} · {found[other]:.2f} {unit}"


def _share(used: float) -> str:
    """A part of the limit; more than all of it in bold."""
    return f"{used:.0%}".replace("%", " %") if used <= 1 else f"**{_rounded(used)} ×**"


def _rounded(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 and value != int(value) else f"{value:,.0f}"


def costs_table() -> Iterator[str]:
    """The lines of the table of what was measured, with the bench that measures it."""
    found = _recorded()
    slots_ms = found["dispatcher_ms"]
    hour, window = "for an hour of audio", "for a window"
    rows = [
        (
            "server: a clip in the database, SQLite · PostgreSQL",
            f"{found['sqlite_cpu_ms']:.2f} · {found['postgresql_cpu_ms']:.2f} ms",
        ),
        ("server: a GB of an upload, received, hashed and written", f"{found['upload_s_per_gb']:.1f} s"),
        (f"server: dispatcher {window}, {_several(slots_ms)} slots", f"{_ms(slots_ms)} ms"),
        ("the same, while it plans the last batches", f"{_ms(found['planning_ms'])} ms"),
        (
            "clips that the database stores in a second, SQLite · PostgreSQL",
            f"{found['sqlite_clips_per_s']:,} · {found['postgresql_clips_per_s']:,}",
        ),
        (f"media worker: decoding · finding speech {hour}", _pair(found, "decoding_s", "speech_s", "s")),
        (f"server: sending the audio {window}", f"{found['server_send_ms']:.2f} ms"),
        ("bridge: the same · Ray on the front end's machine", _pair(found, "bridge_ms", "raylet_ms", "ms")),
        ("Ray, actor and worker on the node: receiving it", f"{found['node_ms']:.2f} ms"),
        ("audio that Ray carried in a second", f"{found['ray_mb_per_s']} MB"),
    ]
    benches = ["scale"] * 6 + ["cluster"] * 4
    yield from markdown(
        ["", "measured", "by `python -m bench.`…"],
        [(*row, name) for row, name in zip(rows, benches, strict=True)],
    )


def speedups_table() -> Iterator[str]:
    """The lines of the table of how many times as fast as one slot many slots are."""
    found = _recorded()
    for_ray = found["ray_times_one"]
    rows = [
        (
            f"{int(slots):,}",
            f"{times:,.1f}",
            f"{most:,.1f}",
            f"{for_ray[slots]:.1f}" if slots in for_ray else "",
        )
        for slots, (times, most) in found["times_one"].items()
    ]
    titles = ["slots", "ten hours, simulated", "the most that is possible", "batches of 5.2 s, real Ray"]
    yield from markdown(titles, rows)


if __name__ == "__main__":
    print(*costs_table(), "", *speedups_table(), "", *capacity_table(), sep="\n")
