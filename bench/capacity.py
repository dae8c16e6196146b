"""How many GPUs one front end can keep busy, computed from measured costs.

    python -m bench.capacity      prints the tables of docs/scale.md

bench/costs.json has the costs, which `bench.scale` and `bench.cluster` measure. Each part of the front end
has a cost for an hour of audio and a limit. It is full at the number of GPUs whose audio costs as much as its
limit, if they always have work.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    server_s: float  # of the server's process for jobs, from the upload to the transcript, few slots
    dispatcher_ms: Mapping[int, float]  # part of that which depends on the number of slots
    decoding_s: float
    speech_s: float
    sqlite_clips_per_s: float
    postgresql_clips_per_s: float
    remote_server_ms: float  # more than for a worker on the same machine
    bridge_ms: float
    raylet_ms: float  # on the front end's machine
    node_ms: float  # of raylet and actor on the worker's machine

    @classmethod
    def recorded(cls) -> "Costs":
        """The costs of bench/costs.json."""
        found: dict[str, Any] = json.loads(COSTS.read_text(encoding="utf-8"))
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


def _server_s(costs: Costs, slots: float) -> float:
    few = min(costs.dispatcher_ms)
    more_ms = costs.dispatcher_on(slots) - costs.dispatcher_ms[few] + costs.remote_server_ms
    return costs.server_s + costs.windows_per_hour * more_ms / 1000


def _pcm_gbit(costs: Costs, slots: float) -> float:
    return 3600 * SAMPLE_RATE * BYTES_PER_SAMPLE * 8 / 1e9


PARTS = (
    Part("server's process", _server_s, lambda costs: 1, "cores", "several front ends, with their own jobs"),
    Part(
        "bridge to Ray",
        lambda costs, slots: costs.windows_per_hour * costs.bridge_ms / 1000,
        lambda costs: 1,
        "cores",
        "the same",
    ),
    Part(
        "database, SQLite",
        lambda costs, slots: costs.windows_per_hour,
        lambda costs: costs.sqlite_clips_per_s,
        "clips a second",
        "PostgreSQL on another machine",
    ),
    Part(
        "database, PostgreSQL",
        lambda costs, slots: costs.windows_per_hour,
        lambda costs: costs.postgresql_clips_per_s,
        "clips a second",
        "a database for each front end",
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
    yield f"| {' | '.join(titles)} |"
    yield f"| {' | '.join(['---'] * len(titles))} |"
    for part in sorted(PARTS, key=lambda part: part.full_at(costs, speed)):
        cells = [
            part.name,
            f"{_rounded(part.limit(costs))} {part.unit}",
            *(_share(part.used(costs, gpus, speed)) for gpus in GPUS),
            " · ".join(f"{part.full_at(costs, each):,}" for each in SPEEDS),
            part.remedy,
        ]
        yield f"| {' | '.join(cells)} |"


def _share(used: float) -> str:
    """A part of the limit; more than all of it in bold."""
    return f"{used:.0%}".replace("%", " %") if used <= 1 else f"**{_rounded(used)} ×**"


def _rounded(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 and value != int(value) else f"{value:,.0f}"


if __name__ == "__main__":
    print("\n".join(capacity_table()))
