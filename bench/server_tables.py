"""The tables of docs/scale.md and docs/operate.md about the server's process, from bench/costs.json."""

import json
import math
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


# For each GPU: a Whisper worker, which keeps a core, and media workers.
MEDIA_WORKERS, LEAST_MEDIA_WORKERS = 2, 4
MEDIA_WORKER_GB, VOICES_GB = 0.1, 0.25
MODEL_GB = 1.62  # large-v3-turbo, in main memory while a worker loads it
RECORDING_GB = 0.0576  # of an hour at 128 kbit/s
DATABASE_GB = 436e-7  # of an hour of talk: bench/RESULTS.md has that of 10,000
SPARE = 1.5  # a machine is planned for so much more than the sum
WEEK_H = 7 * 24


def hardware_table() -> Iterator[str]:
    """The lines of the table of what 1, 4 and 8 GPUs of 100 times real time need beside themselves."""
    found = _recorded()
    loads = [one for one in found["load"] if one["speed"] == SPEEDS[0]]
    columns = [_hardware(one, found["decoding_s"] + found["speech_s"]) for one in loads]
    titles = ["", *(f"{one['slots']} GPU{'s' if one['slots'] > 1 else ''}" for one in loads)]
    yield from markdown(titles, ((row, *(column[row] for column in columns)) for row in columns[0]))


def _hardware(load: Figures, media_s: float) -> dict[str, str]:
    """A cell for each row. `media_s`: CPU time of media workers for an hour of audio."""
    gpus, hours = load["slots"], load["times_real_time"]
    server, media = load["server_cores"], hours * media_s / 3600
    media_workers = max(LEAST_MEDIA_WORKERS, MEDIA_WORKERS * gpus)
    memory = load["server_mib"] * 2**20 / 10**9 + media_workers * MEDIA_WORKER_GB + gpus * MODEL_GB
    with_voices = memory + media_workers * VOICES_GB
    cores = max(4, math.ceil(SPARE * (server + media + gpus)))
    usual_size = 2 ** math.ceil(math.log2(SPARE * with_voices))
    week = hours * WEEK_H
    return {
        "hours of audio in an hour": f"{hours:,}",
        "cores: server · media workers · Whisper workers": f"{server:.1f} · {media:.1f} · {gpus}",
        "GB of memory · with `diarize`": f"{memory:.1f} · {with_voices:.1f}",
        "GB on the disk for what waits and runs": f"{load['disk_mb'] / 1000:.1f}",
        "for a week's recordings · its database": f"{week * RECORDING_GB:,.0f} · {week * DATABASE_GB:.1f}",
        "**plan**: cores · GB of memory": f"**{cores} · {usual_size}**",
    }


def _recorded() -> Figures:
    found: Figures = json.loads(COSTS.read_text(encoding="utf-8"))
    return found
