"""Which clips go together."""

from hypothesis import given
from hypothesis import strategies as st

from app.scheduling.batching import (
    BatchCost,
    SlotEstimate,
    choose_similar,
    plan_last_batches,
)

COST = BatchCost()
IDLE = SlotEstimate(free_in=0, pace=1, limit=8)


def test_a_full_batch_holds_the_first_in_line_and_its_like() -> None:
    assert sorted(choose_similar([50, 90, 52, 91, 20, 21], 2, COST)) == [0, 2]
    assert sorted(choose_similar([20, 90, 52, 91, 50, 21], 2, COST)) == [0, 5]


def test_what_is_left_is_dealt_out_evenly() -> None:
    """Full batches would leave two of four slots with nothing to do."""
    sizes = [len(plan_last_batches([50] * 16, [IDLE] * 4, mine, COST)) for mine in range(4)]
    assert sizes == [4] * 4


def test_a_slot_that_is_busy_for_long_gets_less_of_it() -> None:
    busy = SlotEstimate(free_in=0.3, pace=1, limit=8)
    assert len(plan_last_batches([50] * 8, [IDLE, busy], 0, COST)) == 7


def test_a_slow_slot_gets_less_of_it_and_never_nothing() -> None:
    slow = SlotEstimate(free_in=0, pace=3, limit=8)
    shares = [len(plan_last_batches([50] * 8, [IDLE, slow], mine, COST)) for mine in (0, 1)]
    assert shares[0] >= 6
    assert shares[1] >= 1
    assert len(plan_last_batches([50], [IDLE, slow], 1, COST)) == 1


def test_a_batch_of_long_clips_has_fewer_of_them() -> None:
    lengths = [95] * 3 + [10] * 5
    long = plan_last_batches(lengths, [IDLE] * 2, 0, COST)
    assert set(long) == {0, 1, 2}


def test_runners_keep_to_their_limits() -> None:
    narrow = SlotEstimate(free_in=0, pace=1, limit=2)
    wide, few = (plan_last_batches([50] * 8, [IDLE, narrow], mine, COST) for mine in (0, 1))
    assert (len(wide), len(few)) == (5, 2)  # and a second batch of one for the narrow one
    # Nothing is planned for a slow one, and what it does all the same is no more than it can.
    slow = SlotEstimate(free_in=0, pace=20, limit=1)
    assert len(plan_last_batches([50] * 8, [IDLE, slow], 1, COST)) == 1


def test_where_batches_save_nothing_clips_are_heard_one_by_one() -> None:
    by_clip = BatchCost(fixed_ms=5, task_ms=450, size_ms=0.1)
    assert choose_similar([50, 20, 80, 10], 4, by_clip) == [0]
    assert plan_last_batches([50, 20, 80, 10], [IDLE] * 2, 0, by_clip) == [2]  # the longest
    assert len(plan_last_batches([50] * 4, [IDLE], 0, BatchCost(fixed_ms=100, task_ms=450))) == 4


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=60),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0.2, 5), st.integers(1, 9)), max_size=6),
    st.integers(1, 9),
    st.floats(0.2, 5),
)
def test_a_batch_has_different_places_none_too_many_and_not_none(
    lengths: list[float], others: list[tuple[float, float, int]], limit: int, pace: float
) -> None:
    slots = [SlotEstimate(0, pace, limit), *(SlotEstimate(*other) for other in others)]
    for places in (plan_last_batches(lengths, slots, 0, COST), choose_similar(lengths, limit, COST)):
        assert 1 <= len(places) <= limit
        assert len(set(places)) == len(places)
        assert set(places) <= set(range(len(lengths)))
    assert 0 in choose_similar(lengths, limit, COST)
