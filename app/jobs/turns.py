"""Which queued job runs next, and which running one gives way to it. Pure.

Only so many jobs run at once. A long job may run for hours, so a quarter of the places is for short ones.
A recording turns out to be long while it is decoded, within seconds. Until then its job may use any
place, and after that it gives its place up as soon as another job needs it.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

LONG_S = 300.0  # a job with more audio left is long
LARGE_BYTES = 32 << 20  # a job of unknown length with a larger file is taken for long in the queue
MAX_PASSED = 20  # a job waits for so many shorter ones that came later


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits."""

    id: str
    number: int  # ascending in the order of submission
    owner: str
    size: int | None = None  # of the file, in bytes
    remaining_s: float | None = None  # audio left to transcribe; None: not known


@dataclass(frozen=True, slots=True)
class OccupiedPlace:
    """A job that runs."""

    id: str
    owner: str
    began: float  # s, on any clock
    remaining_s: float | None = None  # audio left to transcribe, as far as it is decoded


@dataclass(frozen=True, slots=True)
class Start:
    """The job to start."""

    job_id: str


@dataclass(frozen=True, slots=True)
class GiveWay:
    """The running job to requeue, so that another one can start."""

    job_id: str


class _Rank(IntEnum):
    SHORT = 0
    LARGE = 1
    LONG = 2


class Turns:
    """The order of jobs. Owners take turns, and the short jobs of an owner pass the long ones."""

    def __init__(self, max_per_owner: int | None) -> None:
        """`max_per_owner`: running jobs of one owner while others wait; None: half of the places."""
        self._max_per_owner = max_per_owner
        self._passed: Counter[str] = Counter()  # by queued job: later ones that started first

    def next(
        self, queued: Sequence[QueuedJob], running: Sequence[OccupiedPlace], places: int
    ) -> Start | GiveWay | None:
        """The next step, with so many `places`. None: nothing can start."""
        self._passed = Counter({job.id: self._passed[job.id] for job in queued if job.id in self._passed})
        lines: dict[str, list[QueuedJob]] = defaultdict(list)
        for job in queued:
            lines[job.owner].append(job)
        counts = by_owner(running)
        for owner in sorted(
            lines, key=lambda owner: (counts[owner], min(job.number for job in lines[owner]))
        ):
            line = sorted(lines[owner], key=self._place_in_line, reverse=True)
            # Long jobs have fewer places, so the first of them may wait while a later short one can start.
            firsts = {_is_long(job): job for job in line}.values()
            for job in sorted(firsts, key=self._place_in_line):
                step = self._step(job, running, counts, places)
                if isinstance(step, Start):
                    self._count_passed(job, line, long_place_free=_long(running) < _long_places(places))
                if step is not None:
                    return step
        return None

    def _place_in_line(self, job: QueuedJob) -> tuple[int, int]:
        rank = _Rank.SHORT if self._passed[job.id] >= MAX_PASSED else _rank(job)
        return rank, job.number

    def _step(
        self, job: QueuedJob, running: Sequence[OccupiedPlace], counts: Counter[str], places: int
    ) -> Start | GiveWay | None:
        """How a job can start: at once, or after another one has given way."""
        is_long, long = _is_long(job), [place for place in running if _is_long(place)]
        if len(running) < places and not (is_long and len(long) >= _long_places(places)):
            return Start(job.id)
        if not is_long and len(long) > _long_places(places):
            return _last_begun(long, counts)
        limit = self._max_per_owner or max(1, places // 2)
        over_limit = [place for place in long if counts[place.owner] > limit]
        if over_limit and counts[job.owner] < limit:
            return _last_begun(over_limit, counts)
        return None

    def _count_passed(self, started: QueuedJob, line: Sequence[QueuedJob], *, long_place_free: bool) -> None:
        """Count the older jobs of an owner that could have started instead."""
        for job in line:
            if (
                job.number < started.number
                and _rank(job) > _rank(started)
                and (long_place_free or not _is_long(job))
            ):
                self._passed[job.id] += 1


def by_owner(running: Sequence[OccupiedPlace]) -> Counter[str]:
    """How many jobs of each owner run."""
    return Counter(place.owner for place in running)


def _is_long(job: QueuedJob | OccupiedPlace) -> bool:
    return job.remaining_s is not None and job.remaining_s > LONG_S


def _rank(job: QueuedJob) -> _Rank:
    if job.remaining_s is None:
        return _Rank.LARGE if (job.size or 0) > LARGE_BYTES else _Rank.SHORT
    return _Rank.LONG if _is_long(job) else _Rank.SHORT


def _long(running: Sequence[OccupiedPlace]) -> int:
    return sum(_is_long(place) for place in running)


def _long_places(places: int) -> int:
    return places - places // 4


def _last_begun(places: Sequence[OccupiedPlace], counts: Counter[str]) -> GiveWay:
    """The job with the least work to lose, among those of the owner with most jobs."""
    return GiveWay(max(places, key=lambda place: (counts[place.owner], place.began)).id)
