"""How busy simulated devices are, with the host's work on each window and with clips of several windows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.engines.simulated import Simulation
from app.media.clip_planner import PlannedClip
from app.scheduling.batching import BatchCost
from bench.lower_bound import lower_bound
from bench.measuring import Table
from bench.simulated_fleet import run_job, tokens_of

BUSY_SLOTS = (1, 4, 8, 64)
PLAIN = Simulation(cost=BatchCost(fixed_ms=10, task_ms=40, size_ms=2), batch=8)
CASES = {
    "neither": PLAIN,
    "host_ms=5": replace(PLAIN, host_ms=5.0),
    "second_window=0.2": replace(PLAIN, second_window=0.2),
    "both": replace(PLAIN, host_ms=5.0, second_window=0.2),
}


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
