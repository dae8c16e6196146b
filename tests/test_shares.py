"""How owners share places: one alone has all, several have equal parts, and none is starved."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.common.errors import QueueFull
from app.intake.limits import WAITING_S, Admission, Limit
from app.settings import Settings
from tests.event_loop import Clock

OWNERS = "abcd"


def limit(total: int, guaranteed: int = 1, per_key: int | None = None) -> Limit:
    return Limit(total, "A_SETTING", "things are under way", guaranteed, per_key, "A_KEY_SETTING")


class Places:
    """The places of a limit, and who holds them."""

    def __init__(self, limit: Limit) -> None:
        self.clock = limit.clock = Clock(100.0)
        self.limit = limit
        self.held = Counter[str]()

    def take(self, owner: str, count: int = 1) -> int:
        """Ask for places. Returns how many were granted."""
        granted = 0
        for _ in range(count):
            try:
                self.limit.check(owner, self.held)
            except QueueFull:
                continue
            self.held[owner] += 1
            granted += 1
        return granted

    def end(self, owner: str, count: int = 1) -> None:
        self.held[owner] -= count


def test_an_owner_who_is_alone_has_all() -> None:
    assert Places(limit(100)).take("a", 120) == 100


def test_a_share_shrinks_as_requests_end() -> None:
    places = Places(limit(100, guaranteed=10))
    places.take("a", 100)
    assert places.take("b", 60) == 10, "what is guaranteed, on top of the total"
    for _ in range(90):
        places.end("a")
        assert not places.take("a") or places.held["a"] <= 50
        places.take("b")
    assert places.held == {"a": 50, "b": 50}


def test_an_owner_that_was_refused_counts_for_some_seconds() -> None:
    places = Places(limit(10))
    places.take("a", 10)
    assert places.take("b", 2) == 1
    places.end("b")
    places.end("a", 3)
    assert not places.take("a"), "the other will ask again"
    places.clock.now += WAITING_S
    assert places.take("a", 5) == 3


def test_a_limit_of_a_key_is_never_exceeded() -> None:
    places = Places(limit(100, guaranteed=10, per_key=2))
    assert places.take("a", 3) == 2
    with pytest.raises(QueueFull, match=r"2 of your things .* one API key may have 2 \(A_KEY_SETTING"):
        places.limit.check("a", places.held)


def test_a_link_has_what_is_guaranteed() -> None:
    limit(100, guaranteed=10).check_link(9)
    with pytest.raises(QueueFull, match="one link may have 10"):
        limit(100, guaranteed=10).check_link(10)


@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(OWNERS), st.booleans(), st.floats(0, 20)), max_size=80),
)
def test_no_owner_starves_and_none_grows_beyond_its_share(
    total: int, guaranteed: int, steps: list[tuple[str, bool, float]]
) -> None:
    guaranteed = min(guaranteed, total)
    places = Places(limit(total, guaranteed))
    for owner, ends, passed_s in steps:
        places.clock.now += passed_s
        if ends:
            places.end(owner, min(1, places.held[owner]))
            continue
        own = places.held[owner]
        active = sum(count > 0 for other, count in places.held.items() if other != owner) + 1
        granted = places.take(owner)
        least = max(1, min(guaranteed, total // len(OWNERS)))
        assert granted or own >= least or places.held.total() >= 2 * total, (
            "no owner is refused its guarantee"
        )
        assert not granted or own < max(1, total // active), "none grows beyond its share"
        assert places.held.total() <= 2 * total
    for other in OWNERS:
        places.end(other, places.held[other])
    places.clock.now += WAITING_S
    assert places.take(OWNERS[0], total + 1) == total, "one alone has all"


def test_many_owners_at_most_double_a_limit_and_none_waits_for_one_that_has_more() -> None:
    places = Places(limit(100, guaranteed=10))
    crowd = [f"owner {number}" for number in range(60)]
    for owner in crowd:
        places.take(owner, 20)
    assert places.held.total() <= 200
    late = crowd[-1]
    places.end(late, places.held[late])
    others = [owner for owner in crowd if owner != late and places.held[owner]]
    for owner in others[:30]:
        places.end(owner)
        places.take(owner)  # no more than its share: it has several
    assert places.take(late) == 1


def test_a_tenth_is_guaranteed() -> None:
    assert Admission(Settings(max_uploads=300, _env_file=None), 0).uploads._limit.guaranteed == 30
