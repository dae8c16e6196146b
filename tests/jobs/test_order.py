"""Which job starts next, and which one gives way."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import pytest

from app.jobs.running.order import (
    LARGE_BYTES,
    LONG_S,
    MAX_PASSED,
    GiveWay,
    JobOrder,
    QueuedJob,
    Start,
    StartedJob,
    _by_owner,
)

HOURS = 36_000.0
PLACES = 8


def queued(number: int, owner: str = "", size: int = 1000, remaining_s: float | None = None) -> QueuedJob:
    return QueuedJob(str(number), number, owner, size, remaining_s)


def running(id: str, owner: str = "", remaining_s: float | None = HOURS, began: float = 0) -> StartedJob:
    return StartedJob(id, owner, began, remaining_s)


def longs(number: int, owner: str = "", first: int = 0) -> list[StartedJob]:
    """Long jobs that began one after the other."""
    return [running(f"{owner}{index}", owner, began=index) for index in range(first, first + number)]


class Simulator:
    """Jobs whose lengths show as soon as they run. Short ones end when the test says so."""

    def __init__(self, max_per_owner: int | None = None, places: int = PLACES) -> None:
        self.job_order = JobOrder(max_per_owner)
        self.places = places
        self.queue: dict[str, QueuedJob] = {}
        self.running: dict[str, StartedJob] = {}
        self.order: list[str] = []  # of the starts
        self._numbers = count()
        self._clock = count()
        self._lengths: dict[str, float] = {}

    def submit(self, length_s: float, owner: str = "", size: int = 1000) -> str:
        job = queued(next(self._numbers), owner, size)
        self._lengths[job.id] = length_s
        self.queue[job.id] = job
        return job.id

    def run(self, show_lengths: bool = True) -> None:
        """Take all steps that are possible."""
        for _ in range(1000):
            step = self.job_order.next(list(self.queue.values()), list(self.running.values()), self.places)
            if step is None:
                return
            if isinstance(step, Start):
                job = self.queue.pop(step.job_id)
                self.order.append(job.id)
                remaining_s = self._lengths[job.id] if show_lengths else None
                self.running[job.id] = running(job.id, job.owner, remaining_s, next(self._clock))
            else:
                place = self.running.pop(step.job_id)
                job = queued(int(place.id), place.owner, remaining_s=place.remaining_s)
                self.queue[place.id] = job
        raise AssertionError("the order never settles")

    def show_lengths(self) -> None:
        for id, place in self.running.items():
            self.running[id] = replace(place, remaining_s=self._lengths[id])

    def end(self, jobs: Iterable[str]) -> None:
        for job in list(jobs):
            del self.running[job]


@pytest.mark.parametrize("size", [1000, 10 * LARGE_BYTES])
def test_a_short_job_starts_although_long_ones_have_all_places(size: int) -> None:
    """Whatever the files' sizes say about the lengths."""
    site = Simulator()
    long = [site.submit(HOURS, size=size) for _ in range(12)]
    site.run()
    assert set(site.running) <= set(long)
    assert len(site.running) == PLACES
    short = site.submit(60)
    site.run()
    assert short in site.running
    site.end([short])
    site.run()
    assert len(site.running) == 7, "no long job starts only to give way again"
    again = site.submit(60)
    site.run()
    assert again in site.running
    assert len(site.running) == PLACES


def test_a_short_job_waits_until_the_lengths_of_those_before_it_are_known() -> None:
    site = Simulator()
    for _ in range(12):
        site.submit(HOURS)
    short = site.submit(60)
    site.run(show_lengths=False)
    assert short not in site.running
    for _ in range(3):  # two at a time
        site.show_lengths()
        site.run(show_lengths=False)
    assert short in site.running


def test_a_short_file_passes_large_ones_whose_lengths_are_not_known() -> None:
    site = Simulator()
    for _ in range(12):
        site.submit(HOURS, size=2 * LARGE_BYTES)
    short = site.submit(60)
    site.run(show_lengths=False)
    assert site.order[0] == short


def test_long_jobs_use_all_places_while_nobody_else_waits() -> None:
    site = Simulator()
    jobs = [site.submit(HOURS) for _ in range(PLACES)]
    site.run()
    assert site.order == jobs
    assert sorted(site.running) == jobs


def test_the_job_that_began_last_gives_way() -> None:
    step = JobOrder(None).next([queued(20, remaining_s=60)], longs(PLACES), PLACES)
    assert step == GiveWay("7")


@pytest.mark.parametrize("remaining_s", [LONG_S, None])
def test_only_long_jobs_give_way(remaining_s: float | None) -> None:
    others = [running(str(index), remaining_s=remaining_s) for index in range(2)]
    assert JobOrder(None).next([queued(20, remaining_s=60)], [*others, *longs(6, first=2)], PLACES) is None


def test_short_jobs_keep_their_order() -> None:
    order = JobOrder(None)
    line = [queued(3, remaining_s=500), queued(1, size=10_000), queued(2, size=1)]
    for expected in ("1", "2", "3"):
        assert order.next(line, [], PLACES) == Start(expected)
        line = [job for job in line if job.id != expected]


@pytest.mark.parametrize("places", [1, 2, 8])
@pytest.mark.parametrize("known", [True, False])
def test_a_long_job_waits_for_a_limited_number_of_short_ones(places: int, known: bool) -> None:
    order = JobOrder(None)
    long = queued(0, remaining_s=HOURS) if known else queued(0, size=2 * LARGE_BYTES)
    for number in range(1, MAX_PASSED + 1):
        assert order.next([long, queued(number)], [], places) == Start(str(number))
    assert order.next([long, queued(99)], [], places) == Start("0")


def test_a_long_job_that_could_not_start_is_not_passed() -> None:
    order = JobOrder(None)
    long = queued(0, remaining_s=HOURS)
    for number in range(1, 2 * MAX_PASSED):
        assert order.next([long, queued(number)], longs(6), PLACES) == Start(str(number))
    assert order.next([long, queued(99)], longs(5), PLACES) == Start("99")


def test_a_long_job_that_had_its_turn_does_not_keep_short_ones_waiting() -> None:
    order = JobOrder(None)
    long = queued(0, remaining_s=HOURS)
    for number in range(1, MAX_PASSED + 1):
        order.next([long, queued(number)], [], PLACES)
    assert order.next([long, queued(99)], longs(6), PLACES) == Start("99")


def test_a_retried_job_is_as_long_as_what_is_left_of_it() -> None:
    left = queued(0, remaining_s=LONG_S)
    assert JobOrder(None).next([left], longs(6), PLACES) == Start("0")
    assert JobOrder(None).next([replace(left, remaining_s=LONG_S + 1)], longs(6), PLACES) is None


# Owners


def test_the_owner_with_the_fewest_running_jobs_is_next() -> None:
    order = JobOrder(None)
    many, one = queued(0, "many"), queued(1, "one")
    assert order.next([many, one], [], PLACES) == Start("0")
    assert order.next([many, one], longs(1, "many"), PLACES) == Start("1")
    assert order.next([many, one], [*longs(1, "many"), *longs(1, "one")], PLACES) == Start("0")
    assert order.next([], [], PLACES) is None


@pytest.mark.parametrize(("limit", "many", "other"), [(None, 4, 2), (2, 4, 2), (5, 5, 1), (8, 8, 0)])
def test_an_owner_with_many_long_jobs_gives_way_to_others(limit: int | None, many: int, other: int) -> None:
    site = Simulator(limit)
    for _ in range(20):
        site.submit(HOURS, "many")
    site.run()
    assert len(site.running) == PLACES, "nobody else waits"
    for number in range(100, 120):
        site.queue[str(number)] = queued(number, "other", remaining_s=HOURS)
        site._lengths[str(number)] = HOURS
    site.run()
    counts = _by_owner(list(site.running.values()))
    assert (counts["many"], counts["other"]) == (many, other)


def test_an_owner_at_the_limit_displaces_nobody() -> None:
    jobs = [*longs(5, "many"), *longs(2, "other"), running("short", "third", 60)]
    assert JobOrder(2).next([queued(50, "other", remaining_s=HOURS)], jobs, PLACES) is None
    assert JobOrder(2).next([queued(50, "third", remaining_s=HOURS)], jobs, PLACES) == GiveWay("many4")
    assert JobOrder(5).next([queued(50, "third", remaining_s=HOURS)], jobs, PLACES) is None
