"""The lower bound is at most the makespan of every schedule, and some schedules reach it."""

import math
from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.scheduling.batching import BatchCost
from bench.lower_bound import lower_bound

COST = BatchCost()


def best_of_all(tokens: list[float], slots: int, limit: int) -> float:
    """The best makespan of clips of one window, found by trying every assignment to slots."""

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


def best_in_order(clips: Sequence[Sequence[float]], slots: int, limit: int, host_s: float) -> float:
    """The best makespan of clips whose windows follow one another, found by trying every order of batches.

    A slot computes the features of a batch while it decodes the one before.
    """
    best = math.inf

    def extend(
        left: tuple[tuple[float, ...], ...],
        known_at: tuple[float, ...],
        free: tuple[tuple[float, float], ...],
        end: float,
    ) -> None:
        """Add a batch. `left`: windows; `known_at`: when the first is; `free`: when host and device are."""
        nonlocal best
        wanting = [clip for clip, windows in enumerate(left) if windows]
        if end >= best or not wanting:
            best = min(best, end)
            return
        for size in range(1, min(limit, len(wanting)) + 1):
            for batch, slot in product(combinations(wanting, size), range(slots)):
                host_free, device_free = free[slot]
                computed = max(host_free, *(known_at[clip] for clip in batch)) + host_s * size
                start = max(device_free, computed)
                done = start + COST.seconds([left[clip][0] for clip in batch])
                extend(
                    tuple(windows[clip in batch :] for clip, windows in enumerate(left)),
                    tuple(done if clip in batch else at for clip, at in enumerate(known_at)),
                    (*free[:slot], (start, done), *free[slot + 1 :]),
                    max(end, done),
                )

    extend(tuple(map(tuple, clips)), (0.0,) * len(clips), ((0.0, 0.0),) * slots, 0.0)
    return best


@settings(max_examples=60)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=7), st.integers(1, 3), st.integers(1, 4))
def test_no_schedule_is_below_the_bound(tokens: list[int], slots: int, limit: int) -> None:
    bound = lower_bound([[float(t)] for t in tokens], slots, COST, limit)
    assert bound <= best_of_all([float(t) for t in tokens], slots, limit) + 1e-9


@settings(max_examples=150)
@given(
    st.lists(st.lists(st.integers(1, 100), min_size=1, max_size=3), min_size=1, max_size=4).filter(
        lambda clips: sum(map(len, clips)) <= 5
    ),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from([0.0, 5.0, 30.0, 200.0]),
)
def test_no_schedule_of_clips_with_several_windows_is_below_the_bound(
    clips: list[list[int]], slots: int, limit: int, host_ms: float
) -> None:
    best = best_in_order(clips, slots, limit, host_ms / 1000)
    assert lower_bound(clips, slots, COST, limit, host_ms) <= best + 1e-9


@pytest.mark.parametrize(
    ("clips", "slots", "batches_of_the_busiest"),
    [(8, 1, [8]), (12, 4, [3]), (16, 2, [8]), (20, 2, [8, 2]), (64, 8, [8])],
)
def test_equal_clips_reach_the_bound(clips: int, slots: int, batches_of_the_busiest: list[int]) -> None:
    expected = sum(COST.seconds([50.0] * size) for size in batches_of_the_busiest)
    assert lower_bound([[50.0]] * clips, slots, COST, 8) == pytest.approx(expected)


def test_the_windows_of_a_clip_follow_one_another() -> None:
    clips = [[50.0, 20.0, 5.0], [50.0], [50.0]]
    alone = sum(COST.seconds([tokens]) for tokens in clips[0])
    assert lower_bound(clips, 4, COST, 8) == pytest.approx(alone)
    assert lower_bound(clips, 4, COST, 8, host_ms=5) == pytest.approx(alone + 3 * 0.005)


@pytest.mark.parametrize(("clips", "slots"), [(8, 1), (64, 8), (16, 1)])
def test_the_device_waits_for_the_features_of_the_first_batch_only(clips: int, slots: int) -> None:
    without = lower_bound([[50.0]] * clips, slots, COST, 8)
    assert lower_bound([[50.0]] * clips, slots, COST, 8, host_ms=5) == pytest.approx(without + 8 * 0.005)
