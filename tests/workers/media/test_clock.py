from workers.media.clock import MAX_GAP_S, MAX_SILENCE_S, Clock
from workers.messages import SAMPLE_RATE


def test_frames_are_placed_at_their_timestamps() -> None:
    clock = Clock(origin=1.4, duration=None)
    assert clock.place(1.4, 1.0) == 0
    assert clock.place(4.4, 1.0) == 2 * SAMPLE_RATE
    assert clock.place(4.9, 1.0) == -SAMPLE_RATE // 2
    assert clock.place(None, 1.0) == 0


def test_the_total_length_of_gaps_is_limited() -> None:
    """A small file must not fill a disk with silence."""
    clock = Clock(origin=0.0, duration=None)
    silence = sum(clock.place(number * (MAX_GAP_S - 1), 1.0) or 0 for number in range(300))
    assert MAX_SILENCE_S - MAX_GAP_S < silence / SAMPLE_RATE <= MAX_SILENCE_S
