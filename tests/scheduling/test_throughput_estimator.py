"""How fast slots are."""

import pytest

from app.scheduling.backlog import ThroughputEstimator


def test_a_pace_is_learned_and_a_new_slot_takes_the_others() -> None:
    paces = ThroughputEstimator(3)
    assert paces.pace(0) == 1
    paces.begin(0, expected=2, now=10)
    paces.end(0, now=16)
    assert [paces.pace(slot) for slot in range(3)] == [3, 3, 3]
    paces.begin(1, expected=2, now=10)
    paces.end(1, now=12)
    assert [paces.pace(slot) for slot in range(3)] == [3, 1, 2]


def test_one_odd_batch_does_not_make_a_slot_slow() -> None:
    paces = ThroughputEstimator(1)
    for seconds in (1, 1, 5):
        paces.begin(0, expected=1, now=0)
        paces.end(0, now=seconds)
    assert paces.pace(0) == pytest.approx(2.2)


def test_a_batch_that_came_to_nothing_teaches_nothing() -> None:
    paces = ThroughputEstimator(1)
    paces.begin(0, expected=1, now=0)
    paces.give_up(0)
    paces.give_up(0)
    assert (paces.pace(0), paces.free_in(0, now=0)) == (1, 0)


def test_what_is_overdue_may_take_longer_still() -> None:
    paces = ThroughputEstimator(1)
    paces.begin(0, expected=2, now=0)
    assert [paces.free_in(0, now=now) for now in (0, 1.5, 2, 10)] == [2, 0.5, 0, 8]
