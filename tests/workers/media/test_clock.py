from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workers.media.clock import AHEAD_S, MAX_GAP_S, MAX_SILENCE_S, TOLERANCE_S, Clock, confirmed, length_s
from workers.media.findings import Findings
from workers.messages import SAMPLE_RATE

FRAME_S = 0.04
SEVERAL_S = 4.0  # times that go on for so long are right


@dataclass
class Recording:
    """Frames with times, as a file has them, and where each belongs."""

    times: list[float | None] = field(default_factory=list)
    places: list[float] = field(default_factory=list)
    clock: float = 1.4
    position: float = 0.0

    def play(self, seconds: float, wrong: str = "", wrong_by: float = 0.0) -> None:
        """Add sound. Its times are right, `wrong_by` seconds wrong, "missing", or "standing" still."""
        standing = self.times[-1] if self.times else None
        for _ in range(round(seconds / FRAME_S)):
            time = {"missing": None, "standing": standing}.get(wrong, self.clock + wrong_by)
            self.times.append(time)
            self.places.append(self.position)
            self.clock += FRAME_S
            self.position += FRAME_S

    def placed(self, duration: float | None = None) -> list[float]:
        """Where a clock places each frame. Fails if it drops any sound."""
        clock, placed = Clock(1.4, duration), []
        for frame, start in confirmed(iter(frames(self.times)), clock, Findings()):
            before = clock.position
            jump = clock.place(start, length_s(frame))
            assert jump >= 0
            placed.append(before + jump / SAMPLE_RATE)
        return placed


def frames(times: list[float | None]) -> list[tuple[SimpleNamespace, float | None]]:
    frame = SimpleNamespace(
        samples=round(FRAME_S * SAMPLE_RATE), sample_rate=SAMPLE_RATE, layout=SimpleNamespace(nb_channels=1)
    )
    standing = (time == before for before, time in pairwise([None, *times]))
    return [(frame, None if stands else time) for time, stands in zip(times, standing, strict=True)]


PIECES = st.floats(SEVERAL_S, 15.0)
RESETS = st.tuples(st.just("reset"), st.floats(-30.0, -0.3) | st.floats(-90_000.0, -30.0), PIECES)
GAPS = st.tuples(st.just("gap"), st.floats(0.3, 30.0) | st.floats(30.0, MAX_GAP_S - 1), PIECES)
STRAY = st.tuples(
    st.just("stray"), st.floats(-9000.0, -0.3) | st.floats(0.3, 9000.0), st.sampled_from([0.04, 0.4, 2.0])
)
WITHOUT = st.tuples(st.sampled_from(["missing", "standing"]), st.just(0.0), st.floats(0.04, 12.0))


@given(st.lists(RESETS | GAPS | STRAY | WITHOUT, max_size=6))
def test_no_sound_is_lost_and_all_of_it_has_its_place(events: list[tuple[str, float, float]]) -> None:
    recording = Recording()
    recording.play(5.0)
    moved, since = (
        [0.0],
        0.0,
    )  # how far times have moved in the last seconds: if they come back, they were wrong
    for event, by, seconds in events:
        since += seconds + SEVERAL_S
        if event in ("reset", "gap"):
            assume(all(abs(sum(moved[index:]) + by) > 3 * TOLERANCE_S for index in range(len(moved))))
            moved, since = (moved if since < AHEAD_S + SEVERAL_S else []) + [by], seconds
            recording.clock += by
            recording.position += max(0.0, by)
            recording.play(seconds)
        else:
            recording.play(seconds, event, by)
            recording.play(SEVERAL_S)
    assert recording.placed() == pytest.approx(recording.places, abs=TOLERANCE_S)


@given(
    st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(-90_000.0, 90_000.0)), max_size=12),
    st.floats(0.0, 300.0),
)
def test_whatever_the_times_are_the_sound_is_complete_and_in_order(
    pieces: list[tuple[float, float]], duration: float
) -> None:
    recording = Recording()
    for seconds, by in pieces:
        if -0.5 < by < -TOLERANCE_S:
            by -= 0.5  # shorter ones may be drift
        recording.clock += by
        recording.play(seconds)
    placed = recording.placed(duration)
    assert len(placed) == len(recording.times)
    steps = [second - first for first, second in pairwise(placed)]
    assert all(step > FRAME_S - 1e-4 for step in steps)


def test_frames_are_placed_at_their_timestamps() -> None:
    clock = Clock(origin=1.4, duration=None)
    assert clock.place(1.4, 1.0) == 0
    assert clock.place(4.4, 1.0) == 2 * SAMPLE_RATE
    assert clock.place(None, 1.0) == 0
    assert clock.place(3.4, 1.0) == 0, "the clock was reset"
    assert clock.place(4.4, 1.0) == 0


def test_the_total_length_of_gaps_is_limited() -> None:
    """A small file must not fill a disk with silence."""
    clock = Clock(origin=0.0, duration=None)
    silence = sum(clock.place(number * (MAX_GAP_S - 1), 1.0) for number in range(300))
    assert MAX_SILENCE_S - MAX_GAP_S < silence / SAMPLE_RATE <= MAX_SILENCE_S


@pytest.mark.parametrize(("duration", "gap"), [(7211.0, 7200), (None, 0), (9.0, 0)])
def test_a_gap_of_hours_is_one_that_the_length_of_the_file_confirms(
    duration: float | None, gap: float
) -> None:
    recording = Recording()
    recording.play(5.0)
    recording.clock += 7200.0
    recording.play(5.0)
    assert recording.placed(duration)[-1] == pytest.approx(10 - FRAME_S + gap)


def test_a_wrong_time_at_the_end_adds_no_silence() -> None:
    recording = Recording()
    recording.play(5.0)
    recording.play(0.2, wrong_by=25.0)
    assert recording.placed() == pytest.approx(recording.places)


def test_a_gap_just_before_another_file_begins() -> None:
    recording = Recording()
    recording.play(5.0)
    recording.clock += 1.0
    recording.position += 1.0
    recording.play(1.2)
    recording.clock = 0.0
    recording.play(8.0)
    assert recording.placed() == pytest.approx(recording.places)


def test_short_overlaps_that_recur_are_dropped_from_the_second_one_on() -> None:
    clock = Clock(origin=0.0, duration=None)
    seconds, dropped = 0.0, []
    for number in range(100):
        dropped.append(-clock.place(number * 0.99, 1.0) / SAMPLE_RATE)
        seconds += 1.0
    assert max(dropped) < 0.25
    assert clock.drift_s == pytest.approx(sum(dropped), abs=0.01)
    assert clock.position == pytest.approx(99.0, abs=TOLERANCE_S + 0.01)


def test_times_that_are_too_slow_for_the_sound_are_no_drift() -> None:
    clock = Clock(origin=0.0, duration=None)
    assert not any(clock.place(number * 0.05, 0.1) for number in range(100))
    assert clock.position == pytest.approx(10.0)


def test_memory_for_frames_ahead_is_bounded() -> None:
    """Frames of 64 channels fill as much memory as those of one."""
    taken = 0

    def many() -> object:
        nonlocal taken
        for number in range(10_000):
            taken += 1
            frame = SimpleNamespace(samples=1920, sample_rate=48_000, layout=SimpleNamespace(nb_channels=64))
            yield frame, 0.04 * number + (0 if number < 10 else 5)

    ahead = confirmed(many(), clock := Clock(0.0, None), Findings())  # type: ignore[arg-type]
    for _ in range(11):
        frame, start = next(ahead)
        clock.place(start, length_s(frame))
    assert 11 < taken < 100
