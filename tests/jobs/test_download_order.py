"""Which download starts next, and which one gives way."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.jobs.running.order import (
    FIRST_SLICE_S,
    MAX_DOWNLOADS,
    DownloadOrder,
    GiveWay,
    QueuedJob,
    Start,
    StartedJob,
)


def queued(number: int, owner: str = "") -> QueuedJob:
    return QueuedJob(str(number), number, owner)


def running(number: int, owner: str = "", began: float = 0) -> StartedJob:
    return StartedJob(str(number), owner, began)


class Sites:
    """Downloads that begin when their turn comes, and end only if the test says so."""

    def __init__(self) -> None:
        self.order = DownloadOrder()
        self.queue: dict[str, QueuedJob] = {}
        self.running: dict[str, StartedJob] = {}
        self.given_way: list[str] = []
        self.ended: list[str] = []
        self.longest: dict[str, float] = {}

    def submit(self, number: int, owner: str = "") -> None:
        self.queue[str(number)] = queued(number, owner)

    def end(self, now: float, after_s: float, owner: str) -> None:
        """End the downloads of an owner that have run for so long."""
        ended = [job for job in self.running.values() if job.owner == owner and now - job.began >= after_s]
        for job in ended:
            del self.running[job.id]
            self.ended.append(job.id)

    def run(self, now: float) -> None:
        while step := self.order.next(list(self.queue.values()), list(self.running.values()), now):
            if isinstance(step, Start):
                job = self.queue.pop(step.job_id)
                self.running[job.id] = StartedJob(job.id, job.owner, now)
            else:
                place = self.running.pop(step.job_id)
                self.given_way.append(place.id)
                self.longest[place.id] = max(now - place.began, self.longest.get(place.id, 0))
                self.submit(int(place.id), place.owner)


def test_only_so_many_download_at_once_and_owners_take_turns() -> None:
    sites = Sites()
    for number in range(20):
        sites.submit(number, "many")
    sites.run(0)
    assert list(sites.running) == [str(number) for number in range(MAX_DOWNLOADS)]
    sites.submit(20, "one")
    del sites.running["0"]
    sites.run(1)
    assert "20" in sites.running


def test_a_download_gives_way_once_it_has_used_up_its_time_slice() -> None:
    sites = Sites()
    for number in range(MAX_DOWNLOADS):
        sites.submit(number, "many" if number else "one")
    sites.run(0)
    sites.run(10 * FIRST_SLICE_S)
    assert not sites.given_way, "nobody waited"
    sites.submit(100, "other")
    sites.run(10 * FIRST_SLICE_S)
    assert "100" in sites.running
    assert len(sites.given_way) == 1
    assert sites.given_way != ["0"], "it is not the owner with most downloads"


def test_none_gives_way_before_its_turn_is_over() -> None:
    line = [running(number) for number in range(MAX_DOWNLOADS)]
    assert DownloadOrder().next([queued(50)], line, FIRST_SLICE_S - 1) is None
    assert isinstance(DownloadOrder().next([queued(50)], line, FIRST_SLICE_S), GiveWay)


def test_slow_downloads_rotate_with_longer_and_longer_turns() -> None:
    sites = Sites()
    for number in range(MAX_DOWNLOADS + 1):
        sites.submit(number)
    for now in range(0, 4 * 3600, 10):
        sites.run(now)
    assert len(sites.given_way) < 40, "little is downloaded in vain"
    assert {*sites.given_way} >= {str(number) for number in range(MAX_DOWNLOADS)}
    assert max(sites.longest.values()) > 1000


@given(st.integers(MAX_DOWNLOADS, 40), st.integers(0, 1500), st.integers(1, 12))
def test_an_owner_with_many_slow_downloads_keeps_no_other_waiting(many: int, ticks: int, few: int) -> None:
    """However long their slices are by now; and both have an equal share then, which stays."""
    sites = Sites()
    for number in range(many):
        sites.submit(number, "many")
    for now in range(0, 10 * ticks, 10):
        sites.run(now)
    for number in range(few):
        sites.submit(100 + number, "few")
    came = 10 * ticks
    for now in range(came, came + 601, 10):
        sites.run(now)
        counts = Counter(job.owner for job in sites.running.values())
        assert now < came + FIRST_SLICE_S or counts["few"] == min(few, MAX_DOWNLOADS // 2)
        assert counts.total() == MAX_DOWNLOADS or not sites.queue


def test_downloads_end_although_others_come_all_the_time() -> None:
    """Those that have lost the least give way."""
    sites = Sites()
    for number in range(MAX_DOWNLOADS):
        sites.submit(number, "many")
    for tick in range(720):
        now = 10.0 * tick
        sites.end(now, 1200, "many")
        if tick % 6 == 0:
            sites.submit(100 + tick, f"owner {tick}")
        for earlier in range(tick):
            sites.end(now, 10, f"owner {earlier}")
        sites.run(now)
    ended = [id for id in sites.ended if int(id) < MAX_DOWNLOADS]
    assert len(ended) == MAX_DOWNLOADS
