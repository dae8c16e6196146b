"""How well the dispatcher keeps many slots busy, with simulated workers on a virtual clock.

    python -m bench.scheduling [--quick] [--json FILE]

The clip planner, the dispatcher, its queue and the messages are real. The workers and the clock are
simulated: a batch takes 10 ms + 50 ms x clips + 2 ms x tokens of the longest clip. All figures except the
dispatcher's own cost are the same on any machine.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from app.engines.catalogue import ModelCatalogue
from app.engines.simulated import SIMULATED, SimulatedSlot, Simulation
from app.engines.slot import Limits
from app.engines.window_request import WindowRequest, WindowSource, expected_tokens
from app.media.clip_planner import PlannedClip
from app.scheduling.dispatcher import Dispatcher
from app.transcript.timeline import ClipResult
from app.transcription.clip_decoding import decode_clip
from app.transcription.clip_request import ClipRequest
from app.transcription.pipeline import Fleet
from bench import virtual_clock
from bench.command import Options, run_alone
from bench.lower_bound import lower_bound
from bench.measuring import Figures, Table
from bench.speech_samples import KINDS, TALKS, drawn_clips, probabilities_of, tiled_clips
from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE, Decoding, LoadOptions, Window, WindowResult

SLOTS = (1, 2, 4, 8, 16, 64)
MINUTES = (5, 15, 30, 60, 600)
DECODING = Decoding(SIMULATED, language="en")
SHORT_S = 4


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
    own_ms: float  # CPU time for each clip, including the simulated workers

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


def make_fleet(slots: int, simulation: Simulation) -> Fleet:
    """A dispatcher with simulated workers, not started. Call this in the event loop that runs it."""
    options = LoadOptions(SIMULATED, "", SIMULATED, SIMULATED, 1)
    catalogue = ModelCatalogue(SIMULATED, idle_s=600, options={SIMULATED: options})
    limits = Limits(simulation.batch, overlap=simulation.host_ms > 0)
    return Dispatcher[WindowSource, WindowResult](
        "worker",
        [SimulatedSlot(index, catalogue, limits, str(index), simulation) for index in range(slots)],
        simulation.cost,
    )


@dataclass(frozen=True)
class SilentWindow:
    """A window with silence for audio, which takes memory only once it is read."""

    request: WindowRequest

    @property
    def continues(self) -> bool:
        return self.request.continues

    def read(self) -> Window:
        request = self.request
        speech = tuple((start - request.start, end - request.start) for start, end in request.speech)
        number = request.start.to_bytes(2 * BYTES_PER_SAMPLE, "little")
        return Window(number * ((request.end - request.start) // 2), speech, request.decoding)


async def transcribe(fleet: Fleet, job: str, clip: PlannedClip) -> ClipResult:
    """Transcribe a clip as the pipeline does, with silence for audio."""
    windows = decode_clip(ClipRequest(Path(), clip.start, clip.end, clip.speech, DECODING))
    window = next(windows)
    while True:
        done = await fleet.submit(
            job,
            SilentWindow(window),
            key=window.batch_key,
            size=expected_tokens(window.speech),
            continues=window.continues,
        )
        try:
            window = windows.send(done.result)
        except StopIteration as ended:
            return ended.value


def makespan(clips: Sequence[PlannedClip], slots: int, simulation: Simulation) -> tuple[float, float]:
    """Simulated time from the submission of all clips of a job to the last result, and CPU time (s)."""

    async def work() -> tuple[float, float]:
        fleet = make_fleet(slots, simulation)
        fleet.start()
        await asyncio.sleep(1)
        start, began = asyncio.get_running_loop().time(), time.process_time()
        await asyncio.gather(*(transcribe(fleet, "job", clip) for clip in clips))
        elapsed, spent = asyncio.get_running_loop().time() - start, time.process_time() - began
        await fleet.stop()
        return elapsed, spent

    return virtual_clock.run(work())


def schedule(speech: str, minutes: float, clips: Sequence[PlannedClip], simulation: Simulation) -> list[Row]:
    """Simulate one recording on each number of slots."""
    tokens = [expected_tokens(clip.speech) for clip in clips]
    rows: list[Row] = []
    for slots in SLOTS:
        seconds, spent = makespan(clips, slots, simulation)
        bound = lower_bound(tokens, slots, simulation.cost, simulation.batch)
        one = rows[0].makespan if rows else seconds
        rows.append(
            Row(
                speech,
                minutes,
                len(clips),
                slots,
                seconds,
                bound,
                one / seconds,
                one / bound,
                spent * 1000 / len(clips),
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


def scheduling_rows(simulation: Simulation | None = None, minutes: Sequence[int] = MINUTES) -> list[Row]:
    """Simulate all recordings on all numbers of slots."""
    simulation = simulation or Simulation()
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
    rows = scheduling_rows(minutes=minutes)
    crowds = [crowd(64, slots, Simulation()) for slots in (1, 2, 4, 8)]
    worst, batch = short_beside_long(2, Simulation(), drawn_clips("lecture", MINUTES[-1]))
    summary = Table(
        "Summary",
        [
            "worst makespan / lower bound",
            "own cost of a clip, at most",
            "short clip beside long job",
            "batch",
        ],
        [
            [
                f"{max(row.ratio for row in rows):.3f}",
                f"{max(row.own_ms for row in rows):.2f} ms",
                f"{worst:.3f} s",
                f"{batch:.3f} s",
            ]
        ],
    )
    figures = {
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
        "crowds": [asdict(row) for row in crowds],
        "short_beside_long": {"worst_s": worst, "batch_s": batch},
    }
    return figures, [scheduling_table(rows), crowd_table(crowds), summary]


if __name__ == "__main__":
    run_alone("scheduling", measure, __doc__)
