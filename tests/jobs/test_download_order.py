"""Which download starts next, and which one gives way."""

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
        self.longest: dict[str, float] = {}

    def submit(self, number: int, owner: str = "") -> None:
        self.queue[str(number)] = queued(number, owner)

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
