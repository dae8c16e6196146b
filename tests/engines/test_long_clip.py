"""A clip of many windows beside clips of one, on the real dispatcher and a virtual clock."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.engines.catalogue import ModelCatalogue
from app.engines.simulated import SIMULATED, SimulatedWorker, Simulation
from app.engines.slot import SlotLimits
from app.engines.window_request import WindowRequest
from app.pool.dispatcher import Dispatcher
from app.recording.clip_planner import PlannedClip
from bench import virtual_clock
from bench.simulated_fleet import SimulatedSlot, transcribe
from workers.messages import SAMPLE_RATE, LoadOptions, Segment, Window, WindowResult

pytestmark = pytest.mark.timeout(60)

STEP_S = 4  # that each window of the long clip transcribes
WINDOWS = 6
LONG_S, SHORT_S = STEP_S * WINDOWS, STEP_S * WINDOWS - 1


class ScriptedWorker(SimulatedWorker):
    """Transcribes a window of a short clip as a whole, and four seconds of each window of the long one."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(0, "0", simulation)
        self.lengths_s: list[list[int]] = []  # of the windows of each batch
        self.ended: list[float] = []  # when each batch was decoded

    async def decode(self, windows: Sequence[Window]) -> list[WindowResult]:
        results = await super().decode(windows)
        self.lengths_s.append([length_s(window) for window in windows])
        self.ended.append(asyncio.get_running_loop().time())
        return [script(window, result) for window, result in zip(windows, results, strict=True)]


class ScriptedSlot(SimulatedSlot):
    worker: ScriptedWorker

    def __init__(self, simulation: Simulation) -> None:
        options = LoadOptions(SIMULATED, "", SIMULATED, SIMULATED, 1)
        catalogue = ModelCatalogue(SIMULATED, idle_s=600, options={SIMULATED: options})
        limits = SlotLimits(simulation.batch, batches_at_once=2 if simulation.host_ms > 0 else 1)
        super().__init__(0, catalogue, limits, ScriptedWorker(simulation))


def length_s(window: Window) -> int:
    [(_, end)] = window.speech
    return end // SAMPLE_RATE


def script(window: Window, result: WindowResult) -> WindowResult:
    seconds = length_s(window)
    if seconds == SHORT_S or seconds <= STEP_S:
        return result
    [whole] = result.segments
    return replace(
        result,
        segments=(replace(whole, end=STEP_S * SAMPLE_RATE),),
        tail=replace(whole, start=STEP_S * SAMPLE_RATE),
    )


def clip(number: int, seconds: int) -> PlannedClip:
    start = number * 30 * SAMPLE_RATE
    end = start + seconds * SAMPLE_RATE
    return PlannedClip(number, start, end, ((start, end),))


def answers(slot: ScriptedSlot, behind: int) -> tuple[list[float], list[Segment]]:
    """When each of seven short clips, the long one and those behind them is answered; the long one's text."""

    async def work() -> tuple[list[float], list[Segment]]:
        fleet = Dispatcher[WindowRequest, WindowResult]("worker", [slot], Simulation().cost)
        fleet.start()
        await asyncio.sleep(1)

        async def answer(number: int) -> tuple[float, Sequence[Segment]]:
            result = await transcribe(fleet, "job", clip(number, LONG_S if number == 7 else SHORT_S))
            return asyncio.get_running_loop().time(), result.segments

        done = await asyncio.gather(*(answer(number) for number in range(8 + behind)))
        await fleet.stop()
        return [at for at, _ in done], list(done[7][1])

    return virtual_clock.run(work())


@pytest.mark.parametrize("host_ms", [0.0, 5.0])
def test_seven_clips_of_one_window_do_not_wait_for_one_of_six(host_ms: float) -> None:
    slot = ScriptedSlot(Simulation(host_ms=host_ms))
    answered, segments = answers(slot, behind=0)
    assert slot.worker.lengths_s == [[*[SHORT_S] * 7, LONG_S], *([left] for left in range(20, 0, -STEP_S))]
    assert answered[:7] == [slot.worker.ended[0]] * 7
    assert answered[7] == slot.worker.ended[-1]
    assert [segment.end // SAMPLE_RATE for segment in segments] == [4, 8, 12, 16, 20, 24]


@pytest.mark.parametrize(("host_ms", "batches_between"), [(0.0, 1), (5.0, 2)])
def test_the_rows_beside_a_long_clip_are_filled_with_the_clips_behind(
    host_ms: float, batches_between: int
) -> None:
    """If a batch is prepared ahead, every other one has a window of the long clip."""
    slot = ScriptedSlot(Simulation(host_ms=host_ms))
    answered, _ = answers(slot, behind=107)
    first = next(place for place, lengths in enumerate(slot.worker.lengths_s) if LONG_S in lengths)
    of_long_clip = [
        place
        for place, lengths in enumerate(slot.worker.lengths_s)
        if any(seconds != SHORT_S for seconds in lengths)
    ]
    assert of_long_clip == [first + batches_between * number for number in range(WINDOWS)]
    assert answered[7] == slot.worker.ended[of_long_clip[-1]]
    rows = sum(map(len, slot.worker.lengths_s))
    assert rows == 7 + WINDOWS + 107
    assert rows / (8 * len(slot.worker.lengths_s)) >= 0.9
