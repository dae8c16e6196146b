"""Which tasks make a batch."""

from hypothesis import given
from hypothesis import strategies as st

from app.pool.batching import BatchCost, SlotEstimate, choose_similar, plan_last_batches

COST = BatchCost()
IDLE = SlotEstimate(free_in=0, ratio=1, limit=8)


def test_a_full_batch_has_the_first_task_and_those_of_similar_size() -> None:
    assert sorted(choose_similar([50, 90, 52, 91, 20, 21], 2, COST)) == [0, 2]
    assert sorted(choose_similar([20, 90, 52, 91, 50, 21], 2, COST)) == [0, 5]


def test_the_last_tasks_are_spread_evenly() -> None:
    """Full batches would leave two of four slots with nothing to do."""
    sizes = [len(plan_last_batches([50] * 16, [IDLE] * 4, mine, COST)) for mine in range(4)]
    assert sizes == [4] * 4


def test_a_slot_that_is_still_busy_gets_fewer_of_the_last_tasks() -> None:
    busy = SlotEstimate(free_in=0.3, ratio=1, limit=8)
    assert len(plan_last_batches([50] * 8, [IDLE, busy], 0, COST)) == 7


def test_a_slow_slot_gets_fewer_of_the_last_tasks_and_at_least_one() -> None:
    slow = SlotEstimate(free_in=0, ratio=3, limit=8)
    counts = [len(plan_last_batches([50] * 8, [IDLE, slow], mine, COST)) for mine in (0, 1)]
    assert counts[0] >= 6
    assert counts[1] >= 1
    assert len(plan_last_batches([50], [IDLE, slow], 1, COST)) == 1


def test_a_busy_slot_leaves_the_last_tasks_to_those_that_end_them_earlier() -> None:
    busy = SlotEstimate(free_in=1.0, ratio=1, limit=8)
    assert plan_last_batches([50, 40], [busy, IDLE, IDLE], 0, COST) == []
    assert len(plan_last_batches([50] * 40, [busy, IDLE, IDLE], 0, COST)) > 0
    assert len(plan_last_batches([50, 40], [busy, busy, busy], 0, COST)) == 1


def test_urgent_tasks_do_not_choose_those_that_share_their_batch() -> None:
    sizes = [5, 6, 90, 20, 91, 21, 92, 93, 22, 23]
    assert choose_similar(sizes, 6, COST, urgent=[0, 1])[:2] == [0, 1]
    assert sorted(choose_similar(sizes, 6, COST, urgent=[0, 1])[2:]) == [2, 4, 6, 7]


def test_more_urgent_tasks_than_a_batch_takes_are_grouped_by_size() -> None:
    sizes = [5, 40, 6, 41, 7, 90, 90]
    assert sorted(choose_similar(sizes, 3, COST, urgent=[0, 1, 2, 3, 4])) == [0, 2]
    assert sorted(choose_similar(sizes, 2, COST, urgent=[1, 2])) == [1, 2]


def test_a_batch_of_large_tasks_has_fewer_of_them() -> None:
    sizes = [95] * 3 + [10] * 5
    assert set(plan_last_batches(sizes, [IDLE] * 2, 0, COST)) == {0, 1, 2}


def test_no_slot_gets_more_than_its_limit() -> None:
    narrow = SlotEstimate(free_in=0, ratio=1, limit=2)
    wide, few = (plan_last_batches([50] * 8, [IDLE, narrow], mine, COST) for mine in (0, 1))
    assert (len(wide), len(few)) == (5, 2)  # and a second batch of one for the narrow one
    # The plan has nothing for a slow slot. It takes a batch nevertheless, within its limit.
    slow = SlotEstimate(free_in=0, ratio=20, limit=1)
    assert len(plan_last_batches([50] * 8, [IDLE, slow], 1, COST)) == 1


def test_a_batch_has_one_task_if_larger_ones_save_no_time() -> None:
    no_saving = BatchCost(fixed_ms=5, task_ms=450, size_ms=0.1)
    assert choose_similar([50, 20, 80, 10], 4, no_saving) == [0]
    assert plan_last_batches([50, 20, 80, 10], [IDLE] * 2, 0, no_saving) == [2]  # the largest
    assert len(plan_last_batches([50] * 4, [IDLE], 0, BatchCost(fixed_ms=100, task_ms=450))) == 4


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=60),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0.2, 5), st.integers(1, 9)), max_size=6),
    st.integers(1, 9),
    st.floats(0.2, 5),
)
def test_a_batch_has_1_to_limit_different_places(
    sizes: list[float], others: list[tuple[float, float, int]], limit: int, ratio: float
) -> None:
    slots = [SlotEstimate(0, ratio, limit), *(SlotEstimate(*other) for other in others)]
    urgent = range(min(len(sizes), len(others)))
    for places in (
        plan_last_batches(sizes, slots, 0, COST),
        choose_similar(sizes, limit, COST),
        choose_similar(sizes, limit, COST, urgent),
    ):
        assert 1 <= len(places) <= limit
        assert len(set(places)) == len(places)
        assert set(places) <= set(range(len(sizes)))
    assert 0 in choose_similar(sizes, limit, COST)
    if urgent:
        assert 0 in choose_similar(sizes, limit, COST, urgent)
