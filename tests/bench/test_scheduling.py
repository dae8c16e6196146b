"""Scheduling on a virtual clock. The figures are the same on any machine."""

import pytest

from app.engines.simulated import Simulation
from bench.scheduling import CASES, SLOTS, busy_rows, crowd, schedule, short_beside_long
from bench.simulated_fleet import run_job, tokens_of
from bench.speech_samples import drawn_clips

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("kind", ["lecture", "film"])
@pytest.mark.parametrize(
    "minutes", [5, 60, *(pytest.param(minutes, marks=pytest.mark.soak) for minutes in (15, 30, 600))]
)
def test_no_schedule_could_be_much_faster(kind: str, minutes: float) -> None:
    rows = schedule(kind, minutes, drawn_clips(kind, minutes), Simulation())
    assert {row.slots: row.ratio for row in rows if not 1 <= row.ratio <= 1.05} == {}
    by_slots = {row.slots: row for row in rows}
    if minutes >= 60:
        assert by_slots[4].times_one >= 3.9
    if minutes == 600:
        assert by_slots[64].times_one >= 58


@pytest.mark.parametrize("kind", ["lecture", "film"])
@pytest.mark.parametrize(
    "minutes", [15, *(pytest.param(minutes, marks=pytest.mark.soak) for minutes in (5, 30, 60))]
)
def test_batches_that_are_prepared_ahead_are_planned_as_well(kind: str, minutes: float) -> None:
    """The host's work is so little that only the order of decisions differs."""
    rows = schedule(kind, minutes, drawn_clips(kind, minutes), Simulation(host_ms=0.001))
    assert {row.slots: row.ratio for row in rows if not 1 <= row.ratio <= 1.05} == {}


def test_the_host_delays_a_job_by_no_more_than_its_first_batches() -> None:
    clips = drawn_clips("lecture", 60)
    for slots in SLOTS:
        without, host = (run_job(clips, slots, Simulation(host_ms=ms)).makespan for ms in (0, 5))
        assert without < host <= 1.01 * without + 8 * 0.005


@pytest.mark.soak
def test_devices_are_busy_beside_host_work_and_with_clips_of_several_windows() -> None:
    rows = busy_rows(drawn_clips("lecture", 600), (1, 4, 8))
    assert [row for row in rows if row.busy < 0.98 or row.rows_in_use < 0.88 or row.useful < 0.92] == []
    assert {row.case for row in rows if row.windows_per_clip > 1.2} == {"second_window=0.2", "both"}


def test_every_window_is_decoded_once() -> None:
    clips, simulation = drawn_clips("lecture", 60), CASES["both"]
    windows = sum(len(tokens_of(clip, simulation)) for clip in clips)
    assert [run_job(clips, slots, simulation).windows for slots in (1, 8)] == [windows] * 2


def test_many_clients_are_transcribed_in_full_batches() -> None:
    """By the cost of a batch, two slots are 3.17 times as fast as one request at a time, four 6.34 times."""
    one, full = 10 + 50 + 2 * 13.2, (10 + 8 * 50 + 2 * 13.2) / 8
    for slots in (1, 2, 4):
        assert crowd(64, slots, Simulation()).times_one == pytest.approx(slots * one / full)


@pytest.mark.parametrize("slots", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_a_short_clip_beside_a_ten_hour_job_is_answered_within_two_batch_times(slots: int) -> None:
    worst, batch = short_beside_long(slots, Simulation(), drawn_clips("lecture", 600))
    assert worst <= 2 * batch


@pytest.mark.parametrize("slots", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_batch_prepared_ahead_delays_a_short_clip_by_one_batch_more(slots: int) -> None:
    worst, batch = short_beside_long(slots, Simulation(host_ms=5), drawn_clips("lecture", 600))
    assert worst <= 3 * batch
