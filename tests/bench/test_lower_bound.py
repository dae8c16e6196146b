"""The lower bound is at most the makespan of every schedule, and some schedules reach it."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.scheduling.batching import BatchCost
from bench.lower_bound import lower_bound

COST = BatchCost()


def best_of_all(tokens: list[float], slots: int, limit: int) -> float:
    """The best makespan, found by trying every assignment of clips to slots."""

    def time(mine: list[float]) -> float:
        ranked = sorted(mine, reverse=True)
        return sum(COST.seconds(ranked[i : i + limit]) for i in range(0, len(ranked), limit))

    return min(
        max(
            time([t for t, slot in zip(tokens, assignment, strict=True) if slot == own])
            for own in range(slots)
        )
        for assignment in product(range(slots), repeat=len(tokens))
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=7), st.integers(1, 3), st.integers(1, 4))
def test_no_schedule_is_below_the_bound(tokens: list[int], slots: int, limit: int) -> None:
    bound = lower_bound([float(t) for t in tokens], slots, COST, limit)
    assert bound <= best_of_all([float(t) for t in tokens], slots, limit) + 1e-9


@pytest.mark.parametrize(
    ("clips", "slots", "batches_of_the_busiest"),
    [(8, 1, [8]), (12, 4, [3]), (16, 2, [8]), (20, 2, [8, 2]), (64, 8, [8])],
)
def test_equal_clips_reach_the_bound(clips: int, slots: int, batches_of_the_busiest: list[int]) -> None:
    expected = sum(COST.seconds([50.0] * size) for size in batches_of_the_busiest)
    assert lower_bound([50.0] * clips, slots, COST, 8) == pytest.approx(expected)
