"""Turns of owners and of their jobs, item by item."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from app.pool.fair_queue import FairQueue


def take_all(queue: FairQueue[str]) -> list[str]:
    taken = []
    while (item := queue.take(lambda item: True)) is not None:
        taken.append(item)
    return taken


def test_a_job_of_two_owners_is_one_job() -> None:
    queue = FairQueue[str]()
    queue.put("shared", "a", "a")
    queue.put("shared", "b", "b")
    assert not queue.only_line(9)
    assert queue.remove("shared") == ["a", "b"]
    assert not list(queue)


def test_an_item_that_is_put_first_is_taken_first() -> None:
    queue = FairQueue[str]()
    for item in ("a1", "a2", "b1"):
        queue.put(item[0], item)
    first = queue.take(lambda item: True)
    assert first == "a1"
    queue.put_first("a", first)
    assert take_all(queue) == ["a1", "b1", "a2"]


def test_an_item_that_does_not_fit_blocks_only_its_own_job() -> None:
    queue = FairQueue[str]()
    for item in ("a1", "a2", "b1"):
        queue.put(item[0], item)
    assert queue.take(lambda item: item != "a1") == "b1"
    assert queue.take(lambda item: item != "a1") is None
    assert len(queue) == 2


def test_all_items_of_a_job_can_be_removed() -> None:
    queue = FairQueue[str]()
    for item in ("a1", "b1", "a2"):
        queue.put(item[0], item)
    assert queue.remove("a") == ["a1", "a2"]
    assert queue.remove("unknown") == []
    assert len(queue) == 1
    assert queue.clear() == ["b1"]
    assert len(queue) == 0


def test_items_can_be_taken_from_anywhere_in_the_only_line() -> None:
    queue = FairQueue[str]()
    for number in range(6):
        queue.put("a", f"a{number}")
    assert queue.only_line(3) == ["a0", "a1", "a2"]
    assert queue.take_at({4, 1, 2}) == ["a1", "a2", "a4"]
    assert list(queue) == queue.only_line(9) == ["a0", "a3", "a5"]
    queue.put("b", "b0")
    assert list(queue.only_line(9)) == []
    assert queue.take_at([0]) == ["a0"]
    assert take_all(queue) == ["b0", "a3", "a5"]
    assert (len(queue), list(queue.only_line(9))) == (0, [])


def test_a_job_has_had_its_turn_whichever_of_its_items_is_chosen() -> None:
    queue = FairQueue[str]()
    for item in ("a1", "a2", "a3", "b1", "b2"):
        queue.put(item[0], item)
    seen: list[list[str]] = []

    def last(line: Sequence[str]) -> int:
        seen.append(list(line))
        return len(line) - 1

    assert [queue.take(lambda item: True, last, most=2) for _ in range(3)] == ["a2", "b2", "a3"]
    assert seen == [["a1", "a2"], ["b1", "b2"], ["a1", "a3"]]
    assert take_all(queue) == ["b1", "a1"]


def test_owners_whose_items_cost_more_get_fewer_turns() -> None:
    queue = FairQueue[str]()
    costs = {"a": 6.0, "b": 1.0, "c": 2.0}
    for number in range(12):
        for owner in costs:
            queue.put("film", f"{owner}{number}", owner)
    taken = []
    for _ in range(20):
        item = queue.take(lambda item: True)
        assert item is not None
        queue.charge(item[0], costs[item[0]])
        taken.append(item[0])
    assert "".join(taken[:3]) == "abc"
    assert {owner: taken.count(owner) for owner in costs} == {"a": 2, "b": 12, "c": 6}


def test_an_owner_pays_for_what_it_had_alone_only_until_others_had_as_much() -> None:
    queue = FairQueue[str]()

    def take() -> str | None:
        return queue.take(lambda item: True)

    def serve(owner: str, cost: float) -> None:
        """Its queue is empty while its item is in flight, as while a recording is decoded."""
        queue.put("film", owner, owner)
        assert take() == owner
        queue.charge(owner, cost)

    for _ in range(50):
        serve("a", 9)
    for number in range(9):
        queue.put("film", "a", "a")
        queue.put("film", "b", "b")
        assert take() == "b", number
        queue.charge("b", 1)
        queue.remove("film")
    queue.put("film", "a", "a")
    queue.put("film", "b", "b")
    assert take() == "a"


@given(st.lists(st.tuples(st.sampled_from("XYZ"), st.sampled_from("abcd"))))
def test_owners_and_jobs_take_fair_turns_and_keep_their_order(lines: list[tuple[str, str]]) -> None:
    queue = FairQueue[str]()
    items = [f"{owner}{job}{number:03}" for number, (owner, job) in enumerate(lines)]
    for item in items:
        queue.put(item[:2], item, item[0])
    taken = take_all(queue)
    assert sorted(taken) == sorted(items)
    for job in {item[:2] for item in items}:
        line = [item for item in taken if item[:2] == job]
        assert line == sorted(line)
    check_turns([item[0] for item in taken])
    for owner in "XYZ":
        check_turns([item[1] for item in taken if item[0] == owner])


def check_turns(taken: Sequence[str]) -> None:
    """At any time, those with items left have had the same number of turns, or one more."""
    for number in range(len(taken)):
        served = [taken[:number].count(name) for name in set(taken[number:])]
        assert max(served) - min(served) <= 1


def test_a_first_item_that_does_not_fit_may_be_passed() -> None:
    queue = FairQueue[int]()
    for item in (1, 3, 4, 5):
        queue.put("odd", item)
    queue.put("other", 7)

    def is_even(item: int) -> bool:
        return item % 2 == 0

    assert queue.take(is_even) is None
    assert queue.take(is_even, passing=1) is None
    assert queue.take(is_even, passing=2) == 4
    assert sorted(queue) == [1, 3, 5, 7]
    assert queue.take(lambda item: True, passing=2) == 7  # the other job's turn
