"""Simulated workers with several windows for a clip, and with work of the host, on a virtual clock."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.engines.simulated import Simulation, simulated_result
from app.engines.window_request import WindowRequest
from app.recording.clip_planner import PlannedClip
from app.transcript.timeline import ClipResult
from bench import virtual_clock
from bench.simulated_fleet import DECODING, make_fleet, numbered, tokens_of, transcribe
from workers.messages import SAMPLE_RATE, Window

pytestmark = pytest.mark.timeout(60)

CLIP_S = 10
TOKENS = 33.0  # in such a clip
HOST = Simulation(host_ms=5)
DEVICE_S = HOST.cost.seconds([TOKENS] * 8)  # for a full batch
HOST_S = 8 * 0.005


def clip(number: int) -> PlannedClip:
    start = number * 2 * CLIP_S * SAMPLE_RATE
    end = start + CLIP_S * SAMPLE_RATE
    return PlannedClip(number, start, end, ((start, end),))


def window(number: int) -> Window:
    own = clip(number)
    return numbered(WindowRequest(Path(), own.start, own.end, own.speech, DECODING)).for_worker()


@dataclass(frozen=True)
class Done:
    results: list[ClipResult]
    seconds: float
    rows: list[dict[str, object]]


def transcribe_all(clips: int, slots: int, simulation: Simulation) -> Done:
    """Submit so many clips at once."""

    async def submit_all() -> Done:
        fleet = make_fleet(slots, simulation)
        fleet.start()
        results = await asyncio.gather(*(transcribe(fleet, "job", clip(number)) for number in range(clips)))
        elapsed = asyncio.get_running_loop().time()
        rows = [slot.row() for slot in fleet.slots]  # type: ignore[attr-defined]
        await fleet.stop()
        return Done(results, elapsed, rows)

    return virtual_clock.run(submit_all())


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_the_device_waits_for_the_host_only_before_the_first_batch(batches: int) -> None:
    assert transcribe_all(8 * batches, 1, HOST).seconds == pytest.approx(HOST_S + batches * DEVICE_S)


def test_a_device_that_is_faster_than_its_host_waits_for_each_batch() -> None:
    slow = replace(HOST, host_ms=100)
    seconds = transcribe_all(24, 1, slow).seconds
    # The host begins with a batch when the device begins with the one before.
    assert seconds == pytest.approx(3 * 0.8 + DEVICE_S)


def test_windows_leave_text_with_the_configured_probability() -> None:
    counts = {}
    for probability in (0.0, 0.2, 0.7):
        simulation = Simulation(second_window=probability)
        tails = [simulated_result(window(number), simulation).tail for number in range(2000)]
        counts[probability] = sum(tail is not None for tail in tails)
    assert counts[0.0] == 0
    assert 330 < counts[0.2] < 470
    assert 1310 < counts[0.7] < 1490


def test_the_same_seed_gives_the_same_windows() -> None:
    def tokens(seed: int) -> list[list[float]]:
        return [tokens_of(clip(number), Simulation(second_window=0.3, seed=seed)) for number in range(200)]

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)


def test_results_do_not_depend_on_slots_and_batches() -> None:
    simulation = Simulation(second_window=0.5, seed=3)
    alone = transcribe_all(60, 1, replace(simulation, batch=1)).results
    assert transcribe_all(60, 4, simulation).results == alone
    assert transcribe_all(60, 3, replace(simulation, host_ms=5, crash=0.05)).results == alone
    assert len({len(tokens_of(clip(number), simulation)) for number in range(60)}) > 2


def test_the_windows_of_a_clip_cover_its_speech_without_overlap() -> None:
    for result in transcribe_all(100, 1, Simulation(second_window=0.5)).results:
        starts = [segment.start for segment in result.segments]
        ends = [segment.end for segment in result.segments]
        assert starts == [0, *ends[:-1]]
        assert ends[-1] >= (CLIP_S - 0.1) * SAMPLE_RATE  # no further window is decoded for less
