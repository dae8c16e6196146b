"""How well the dispatcher keeps many slots busy, with simulated workers on a virtual clock.

    whisperfleet bench scheduling [--quick] [--json FILE]

The clip planner, the dispatcher, its queue and the messages are real. The workers and the clock are
simulated: a batch takes 10 ms + 50 ms x windows + 2 ms x tokens of the longest window. *busy* adds clips of
several windows, and the host's work on each of them. All figures except the dispatcher's own cost
are the same on any machine.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from app.engines.simulated import Simulation
from app.engines.window_request import expected_tokens
from app.pool.batching import BatchCost
from app.recording.clip_planner import PlannedClip
from bench import virtual_clock
from bench.command import Options
from bench.lower_bound import lower_bound
from bench.measuring import Figures, Table
from bench.simulated_fleet import make_fleet, run_job, tokens_of, transcribe
from bench.speech_samples import KINDS, TALKS, drawn_clips, probabilities_of, tiled_clips
from workers.messages import SAMPLE_RATE

SLOTS = (1, 2, 4, 8, 16, 64)
MINUTES = (5, 15, 30, 60, 600)
SHORT_S = 4
BUSY_SLOTS = (1, 4, 8, 64)
PLAIN = Simulation(cost=BatchCost(fixed_ms=10, task_ms=40, size_ms=2), batch=8)
CASES = {
    "neither": PLAIN,
    "host_ms=5": replace(PLAIN, host_ms=5.0),
    "second_window=0.2": replace(PLAIN, second_window=0.2),
    "both": replace(PLAIN, host_ms=5.0, second_window=0.2),
}


@dataclass(frozen=True)
class Row:
    """One recording on `slots` slots. Times in s."""

    speech: str
    minutes: float
    clips: int
    slots: int
    makespan: float
    lower_bound: float
    times_one: float  # speed-up over one slot
    best_times_one: float  # the highest possible speed-up, from the lower bound
    own_ms: float  # CPU time for each window, including the simulated workers

    @property
    def ratio(self) -> float:
        """The makespan as a multiple of the lower bound."""
        return round(self.makespan / self.lower_bound, 6)


@dataclass(frozen=True)
class Crowd:
    """Many short requests on `slots` slots."""

    slots: int
    clients: int
    per_second: float
    p50_ms: float
    p99_ms: float
    times_one: float  # clips per second, relative to one request at a time


def schedule(speech: str, minutes: float, clips: Sequence[PlannedClip], simulation: Simulation) -> list[Row]:
    """Simulate one recording on each number of slots."""
    windows = [tokens_of(clip, simulation) for clip in clips]
    rows: list[Row] = []
    for slots in SLOTS:
        run = run_job(clips, slots, simulation)
        bound = lower_bound(windows, slots, simulation.cost, simulation.batch, simulation.host_ms)
        one = rows[0].makespan if rows else run.makespan
        rows.append(
            Row(
                speech,
                minutes,
                len(clips),
                slots,
                run.makespan,
                bound,
                one / run.makespan,
                one / bound,
                run.own_ms,
            )
        )
    return rows


def short_clip() -> PlannedClip:
    """Four seconds of speech."""
    samples = SHORT_S * SAMPLE_RATE
    return PlannedClip(0, 0, samples, ((0, samples),))


def crowd(clients: int, slots: int, simulation: Simulation) -> Crowd:
    """Simulate clients with a clip of four seconds each: all at once, then one at a time."""
    clip = short_clip()

    async def work() -> tuple[list[float], float, float]:
        fleet = make_fleet(slots, simulation)
        fleet.start()
        await asyncio.sleep(1)
        now = asyncio.get_running_loop().time
        start = now()

        async def client(number: int) -> float:
            await transcribe(fleet, f"client {number}", clip)
            return now() - start

        latencies = sorted(await asyncio.gather(*(client(number) for number in range(clients))))
        together, start = now() - start, now()
        for number in range(clients):
            await client(number)
        alone = now() - start
        await fleet.stop()
        return latencies, together, alone

    latencies, together, alone = virtual_clock.run(work())
    return Crowd(
        slots,
        clients,
        clients / together,
        _percentile(latencies, 50) * 1000,
        _percentile(latencies, 99) * 1000,
        alone / together,
    )


def short_beside_long(slots: int, simulation: Simulation, long: Sequence[PlannedClip]) -> tuple[float, float]:
    """The longest time of a short clip during a long job, and the time of that job's full batch (s)."""
    longest = max(expected_tokens(clip.speech) for clip in long)

    async def work() -> float:
        fleet = make_fleet(slots, simulation)
        fleet.start()
        film = [asyncio.create_task(transcribe(fleet, "film", clip)) for clip in long]
        now = asyncio.get_running_loop().time
        worst = 0.0
        # An odd interval, so that the clips do not coincide with the ends of the film's batches.
        for number in range(20):
            await asyncio.sleep(0.377)
            start = now()
            await transcribe(fleet, f"short {number}", short_clip())
            worst = max(worst, now() - start)
        assert not all(task.done() for task in film), "the long job ended too early"
        fleet.cancel("film")
        await asyncio.gather(*film, return_exceptions=True)
        await fleet.stop()
        return worst

    return virtual_clock.run(work()), simulation.cost.seconds([longest] * simulation.batch)


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


@dataclass(frozen=True)
class BusyRow:
    """One recording on `slots` slots. Times in s; parts 0 to 1."""

    case: str  # of `CASES`
    slots: int
    makespan: float
    lower_bound: float
    busy: float  # part of the time in which devices decode
    useful: float  # part of that time that full batches of like windows would need
    rows_in_use: float  # part of the rows of all batches
    windows_per_clip: float
    own_ms: float  # CPU time for each window, including the simulated workers

    @property
    def ratio(self) -> float:
        """The makespan as a multiple of the lower bound."""
        return self.makespan / self.lower_bound


def least_device_s(tokens: Sequence[float], cost: BatchCost, limit: int) -> float:
    """The least time (s) in which one device decodes windows: full batches, by size."""
    ranked = sorted(tokens, reverse=True)
    return sum(cost.seconds(ranked[first : first + limit]) for first in range(0, len(ranked), limit))


def busy_rows(clips: Sequence[PlannedClip], slots: Sequence[int] = BUSY_SLOTS) -> list[BusyRow]:
    """Simulate a recording in all cases on each number of slots."""
    return [_busy_row(case, clips, count) for case in CASES for count in slots]


def _busy_row(case: str, clips: Sequence[PlannedClip], slots: int) -> BusyRow:
    simulation = CASES[case]
    windows = [tokens_of(clip, simulation) for clip in clips]
    run = run_job(clips, slots, simulation)
    least_s = least_device_s([tokens for clip in windows for tokens in clip], simulation.cost, run.batch)
    return BusyRow(
        case,
        slots,
        run.makespan,
        lower_bound(windows, slots, simulation.cost, run.batch, simulation.host_ms),
        run.busy,
        least_s / run.device_s,
        run.rows_in_use,
        run.windows / len(clips),
        run.own_ms,
    )


def busy_table(rows: Sequence[BusyRow]) -> Table:
    """A row for each case and number of slots."""
    columns = [
        "simulated",
        "slots",
        "makespan / lower bound",
        "devices busy",
        "useful",
        "rows in use",
        "windows/clip",
        "own cost of a window",
    ]
    lines = [
        [
            row.case,
            row.slots,
            f"{row.makespan:.2f} / {row.lower_bound:.2f} s = {row.ratio:.3f}",
            f"{row.busy:.1%}",
            f"{row.useful:.1%}",
            f"{row.rows_in_use:.1%}",
            f"{row.windows_per_clip:.2f}",
            f"{row.own_ms:.2f} ms",
        ]
        for row in rows
    ]
    return Table("How busy the devices are", columns, lines)


def scheduling_rows(minutes: Sequence[int]) -> list[Row]:
    """Simulate all recordings on all numbers of slots."""
    simulation = Simulation()
    recorded = probabilities_of(TALKS)
    rows: list[Row] = []
    for length in minutes:
        rows += schedule("talks", length, tiled_clips(recorded, length), simulation)
        for kind in KINDS:
            rows += schedule(kind, length, drawn_clips(kind, length), simulation)
    return rows


def scheduling_table(rows: Sequence[Row]) -> Table:
    """Makespan / lower bound (ratio), and the speed-up over one slot (and the highest possible one)."""
    lines = []
    for first in rows:
        if first.slots != SLOTS[0]:
            continue
        same = [row for row in rows if (row.speech, row.minutes) == (first.speech, first.minutes)]
        cells = [
            f"{row.makespan:.2f} / {row.lower_bound:.2f} s = **{row.ratio:.3f}** "
            f"· {row.times_one:.2f} × ({row.best_times_one:.2f})"
            for row in same
        ]
        lines.append([f"{first.speech}, {first.minutes} min", first.clips, *cells])
    return Table("Simulated slots", ["speech", "clips", *(f"{slots} slots" for slots in SLOTS)], lines)


def crowd_table(rows: Sequence[Crowd]) -> Table:
    """A row for each number of slots."""
    lines = [
        [
            row.slots,
            row.clients,
            f"{row.per_second:.1f}",
            f"{row.p50_ms:.0f} ms",
            f"{row.p99_ms:.0f} ms",
            f"{row.times_one:.2f} ×",
        ]
        for row in rows
    ]
    columns = ["slots", "clients", "clips/s", "p50", "p99", "against one at a time"]
    return Table("Many clients at once, simulated", columns, lines)


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Run all simulations; with `options.quick`, only the shortest recordings."""
    minutes = MINUTES[:1] if options.quick else MINUTES
    rows = scheduling_rows(minutes)
    crowds = [crowd(64, slots, Simulation()) for slots in (1, 2, 4, 8)]
    long = drawn_clips("lecture", MINUTES[-1])
    worst, batch = short_beside_long(2, Simulation(), long)
    overlapping, _ = short_beside_long(2, Simulation(host_ms=5), long)
    busy = busy_rows(tiled_clips(probabilities_of(TALKS), minutes[-1]))
    summary = Table(
        "Summary",
        [
            "worst makespan / lower bound",
            "own cost of a window, at most",
            "short clip beside long job",
            "the same, host_ms=5",
            "batch",
        ],
        [
            [
                f"{max(row.ratio for row in rows):.3f}",
                f"{max(row.own_ms for row in rows):.2f} ms",
                f"{worst:.3f} s",
                f"{overlapping:.3f} s",
                f"{batch:.3f} s",
            ]
        ],
    )
    figures = {
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
        "crowds": [asdict(row) for row in crowds],
        "short_beside_long": {"worst_s": worst, "overlapping_worst_s": overlapping, "batch_s": batch},
        "busy": [asdict(row) | {"ratio": row.ratio} for row in busy],
    }
    return figures, [scheduling_table(rows), busy_table(busy), crowd_table(crowds), summary]
