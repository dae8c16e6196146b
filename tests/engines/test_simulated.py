"""The simulated engine, on a virtual clock."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from app.common.errors import Interrupted, InvalidSetting
from app.engines.model_files import ModelFiles
from app.engines.plan import make_plan
from app.engines.simulated import Simulation, parse_simulation, simulated_result
from app.pool.batching import BatchCost
from app.settings import Settings, load_settings
from bench import virtual_clock
from bench.scheduling import make_fleet
from tests.engines.fake_slot import in_memory
from workers.messages import SAMPLE_RATE, DecodingOptions, Window

pytestmark = pytest.mark.timeout(60)

WINDOW = Window(
    bytes(2 * 10 * SAMPLE_RATE), ((0, 10 * SAMPLE_RATE),), DecodingOptions("simulated", language="de")
)
TOKENS = 33
RESULT = simulated_result(WINDOW, Simulation())


def transcribe(
    windows: int, slots: int, simulation: Simulation
) -> tuple[list[object], float, list[dict[str, object]]]:
    """Submit so many equal windows at once; returns results or errors, the time (s) and the slots' rows."""

    async def submit_all() -> tuple[list[object], float, list[dict[str, object]]]:
        fleet = make_fleet(slots, simulation)
        fleet.start()
        answers = await asyncio.gather(
            *(fleet.submit("job", in_memory(WINDOW), size=TOKENS) for _ in range(windows)),
            return_exceptions=True,
        )
        elapsed = asyncio.get_running_loop().time()
        rows = [slot.row() for slot in fleet.slots]  # type: ignore[attr-defined]
        await fleet.stop()
        return [a if isinstance(a, BaseException) else a.result for a in answers], elapsed, rows

    return virtual_clock.run(submit_all())


@pytest.mark.parametrize(("windows", "seconds"), [(1, 0.126), (8, 0.476), (16, 0.952)])
def test_a_batch_takes_as_long_as_the_cost_model_says(windows: int, seconds: float) -> None:
    results, elapsed, _ = transcribe(windows, 1, Simulation())
    assert elapsed == pytest.approx(seconds)
    assert results == [RESULT] * windows


def test_two_runs_are_the_same_to_the_last_bit() -> None:
    simulation = Simulation(crash=0.2, seed=5, slow={1: 2.0})
    assert transcribe(200, 4, simulation) == transcribe(200, 4, simulation)


def test_a_slow_slot_does_less() -> None:
    _, elapsed, rows = transcribe(400, 2, Simulation(slow={1: 3.0}))
    assert 2.5 < rows[0]["clips"] / rows[1]["clips"] < 3.5
    fast = transcribe(400, 1, Simulation())[1]
    assert elapsed < fast * 3 / 4 * 1.05


def test_crashed_workers_are_replaced_and_all_windows_decoded() -> None:
    results, _, rows = transcribe(300, 4, Simulation(crash=0.05, seed=1))
    assert results == [RESULT] * 300
    assert sum(row["restarts"] for row in rows) > 0


def test_a_window_is_set_aside_if_all_workers_crash() -> None:
    """Without a control: no process decodes anything, so the window is not to blame."""
    results, _, _ = transcribe(1, 2, Simulation(crash=1))
    assert isinstance(results[0], Interrupted)


def test_a_worker_crashes_at_the_configured_times() -> None:
    results, _, rows = transcribe(64, 2, Simulation(crash_at=((1, 0.1), (1, 0.9))))
    assert results == [RESULT] * 64
    assert [row["restarts"] for row in rows] == [0, 2]


def test_results_depend_only_on_the_speech() -> None:
    window = replace(
        WINDOW, speech=((0, 100), (300, 420)), decoding=DecodingOptions("simulated", word_timestamps=True)
    )
    result = simulated_result(window, Simulation(seed=7))
    assert result == simulated_result(replace(window, pcm=bytes(2)), Simulation())
    assert [(segment.start, segment.end) for segment in result.segments] == list(window.speech)
    assert (result.language, result.language_probs, result.tail) == ("en", (("en", 1.0),), None)
    first = result.segments[0]
    assert "".join(word.text for word in first.words) == first.text
    assert (first.words[0].start, first.words[-1].end) == (0, 100)
    assert (RESULT.language, RESULT.language_probs) == ("de", ())
    assert RESULT.segments[0].words == ()


def test_the_setting_is_parsed() -> None:
    text = (
        "fixed_ms=1, clip_ms=2,token_ms=3,batch=4,crash=0.5,seed=6,slow=1:3+2:1.5,crash_at=0:7,speed=8,"
        "host_ms=5,second_window=0.2,languages=600:fr+0:German"
    )
    assert parse_simulation(text) == Simulation(
        cost=BatchCost(1, 2, 3),
        batch=4,
        crash=0.5,
        seed=6,
        slow={1: 3, 2: 1.5},
        crash_at=((0, 7),),
        speed=8,
        host_ms=5,
        second_window=0.2,
        languages=((0, "de"), (600, "fr")),
    )
    assert parse_simulation("") == Simulation()


@pytest.mark.parametrize(
    "text",
    [
        *("clip_ms", "clip_ms=x", "nonsense=1", "slow=1", "crash=2", "clip_ms=0", "batch=0", "speed=0"),
        *("host_ms=-1", "second_window=1", "second_window=-0.1", "host_ms=x"),
        *("languages=en", "languages=0:xx", "languages=x:en"),
    ],
)
def test_an_invalid_setting_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match=f"WHISPER_SIMULATED={text}"):
        parse_simulation(text)


def simulated(**given: object) -> Settings:
    return load_settings(engine="simulated", **given)


def test_any_number_of_slots_needs_no_device_and_no_model() -> None:
    plan = make_plan(simulated(gpus=("a", "b", "c"), model="large-v3", compute_type="float16"))
    assert (plan.models, plan.devices.device, plan.devices.visible) == (
        ("simulated",),
        "simulated",
        ("a", "b", "c"),
    )
    assert len(make_plan(simulated(cpu_workers=64)).devices.visible) == 64
    assert plan.limits.batch_size == 8
    assert make_plan(simulated(simulated="batch=5")).limits.batch_size == 5


def test_common_settings_apply_to_simulated_workers(tmp_path: Path) -> None:
    plan = make_plan(simulated(gpus=("a", "b", "c"), simulated="batch=5", safe_mode=True))
    assert (plan.limits.batch_size, plan.limits.one_model, plan.worker_count) == (1, True, 3)
    [options] = {plan.load_options(ModelFiles("simulated", folder)) for folder in (Path(), tmp_path)}
    assert (options.path, options.safe) == ("", True)


def test_a_poisoned_slot_drains_no_queue() -> None:
    simulation = Simulation(batch=1, poisoned_at=((0, 1.0),))
    answers, _, rows = transcribe(200, 2, simulation)
    assert answers == [RESULT] * 200
    assert (rows[0]["restarts"], rows[1]["restarts"]) != (0, 0)
    assert rows[1]["restarts"] == 0


def test_the_others_do_the_work_of_a_slot_that_is_poisoned_for_good() -> None:
    """Its first batch fails at once, and it gets no other."""
    _, alone, _ = transcribe(199, 1, Simulation(batch=1))
    answers, elapsed, rows = transcribe(200, 2, Simulation(batch=1, poisoned_for_good=(0,)))
    assert answers == [RESULT] * 200
    assert rows[0]["clips"] == 0
    assert elapsed == pytest.approx(alone * 200 / 199)
