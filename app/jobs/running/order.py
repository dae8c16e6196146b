"""The order of jobs and of downloads: which one starts next, and which one gives way to it. Pure.

Only so many jobs run at once. A long job may run for hours, so a quarter of the capacity is for short ones.
A recording turns out to be long while it is decoded, within seconds. Until then its job may use all of the
capacity, and after that it gives way as soon as another job needs that.

Downloads have a capacity of their own: a slow site takes neither workers nor media workers. A download that
has used up its time slice gives way if others wait. It starts anew later, with a slice twice as long, so it
ends some day. Slices of up to an hour must not keep another owner waiting: the downloads of an owner with two
more than that one give way after the first slice.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

LONG_S = 300.0  # a job with more audio left is long
LARGE_BYTES = 32 << 20  # a job of unknown length with a larger file is taken for long in the queue
MAX_PASSED = 20  # a job waits for so many shorter ones that came later
MAX_DOWNLOADS = 8  # at once: each is a process of its own
FIRST_SLICE_S = 30.0  # of a download


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits."""

    id: str
    number: int  # ascending in the order of submission
    owner: str
    size: int | None = None  # of the file, in bytes
    remaining_s: float | None = None  # audio left to transcribe; None: not known


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that runs."""

    id: str
    owner: str
    began: float  # s, on any clock
    remaining_s: float | None = None  # decoded audio that is not transcribed yet


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


class JobOrder:
    """The order of jobs. Owners take turns, and the short jobs of an owner pass the long ones."""

    def __init__(self, max_per_owner: int | None) -> None:
        """`max_per_owner`: running jobs of one owner while others wait; None: half of the capacity."""
        self._max_per_owner = max_per_owner
        self._passed: Counter[str] = Counter()  # by queued job: later ones that started first

    def next(
        self, queued: Sequence[QueuedJob], running: Sequence[StartedJob], capacity: int
    ) -> Start | GiveWay | None:
        """The next step. `capacity`: how many jobs may run. None: nothing can start."""
        self._passed = Counter({job.id: self._passed[job.id] for job in queued if job.id in self._passed})
        lines: dict[str, list[QueuedJob]] = defaultdict(list)
        for job in queued:
            lines[job.owner].append(job)
        counts = _by_owner(running)
        can_be_long = sum(map(_is_long, running)) < _long_capacity(capacity)
        for owner in sorted(
            lines, key=lambda owner: (counts[owner], min(job.number for job in lines[owner]))
        ):
            line = sorted(lines[owner], key=self._rank_in_line, reverse=True)
            # Long jobs have less capacity, so the first of them may wait while a later short one can start.
            firsts = {_is_long(job): job for job in line}.values()
            for job in sorted(firsts, key=self._rank_in_line):
                step = self._step(job, running, counts, capacity)
                if isinstance(step, Start):
                    self._count_passed(job, line, can_be_long=can_be_long)
                if step is not None:
                    return step
        return None

    def _rank_in_line(self, job: QueuedJob) -> tuple[int, int]:
        rank = _Rank.SHORT if self._passed[job.id] >= MAX_PASSED else _rank(job)
        return rank, job.number

    def _step(
        self, job: QueuedJob, running: Sequence[StartedJob], counts: Counter[str], capacity: int
    ) -> Start | GiveWay | None:
        """How a job can start: at once, or after another one has given way."""
        is_long, long = _is_long(job), [other for other in running if _is_long(other)]
        if len(running) < capacity and not (is_long and len(long) >= _long_capacity(capacity)):
            return Start(job.id)
        if not is_long and len(long) > _long_capacity(capacity):
            return _last_begun(long, counts)
        limit = self._max_per_owner or max(1, capacity // 2)
        over_limit = [other for other in long if counts[other.owner] > limit]
        if over_limit and counts[job.owner] < limit:
            return _last_begun(over_limit, counts)
        return None

    def _count_passed(self, started: QueuedJob, line: Sequence[QueuedJob], *, can_be_long: bool) -> None:
        """Count the older jobs of an owner that could have started instead."""
        for job in line:
            if (
                job.number < started.number
                and _rank(job) > _rank(started)
                and (can_be_long or not _is_long(job))
            ):
                self._passed[job.id] += 1


class DownloadOrder:
    """The order of downloads. Owners take turns."""

    def __init__(self) -> None:
        self._past: dict[str, _Past] = defaultdict(_Past)  # of the downloads that gave way

    def next(
        self, queued: Sequence[QueuedJob], running: Sequence[StartedJob], now: float
    ) -> Start | GiveWay | None:
        """The next step at the time `now`, on the clock of `began`. None: nothing can start."""
        known = {job.id for job in queued} | {job.id for job in running}
        for job_id in self._past.keys() - known:
            del self._past[job_id]
        counts = _by_owner(running)
        if len(running) < MAX_DOWNLOADS:
            order = sorted(queued, key=lambda job: (counts[job.owner], self._past[job.id].slices, job.number))
            return Start(order[0].id) if order else None
        rested = (job for job in queued if self._past[job.id].rests_until <= now)
        fewest = min((counts[job.owner] for job in rested), default=None)
        if fewest is None:
            return None
        turns: list[tuple[int, bool, float, StartedJob]] = []
        for job in running:
            ran_s = now - job.began
            is_over = ran_s >= FIRST_SLICE_S * 2 ** self._past[job.id].slices
            if is_over or (counts[job.owner] > fewest + 1 and ran_s >= FIRST_SLICE_S):
                # The slowest, or the one with the least to lose if none has used up its slice.
                turns.append((counts[job.owner], is_over, ran_s if is_over else -ran_s, job))
        if not turns:
            return None
        _, is_over, _, job = max(turns, key=lambda turn: turn[:3])
        self._past[job.id] = _Past(self._past[job.id].slices + is_over, now + (now - job.began))
        return GiveWay(job.id)


@dataclass(frozen=True, slots=True)
class _Past:
    """The time slices that a download has had."""

    slices: int = 0
    rests_until: float = 0.0  # no other download gives way to it before


def _by_owner(running: Sequence[StartedJob]) -> Counter[str]:
    """How many jobs of each owner run."""
    return Counter(job.owner for job in running)


def _is_long(job: QueuedJob | StartedJob) -> bool:
    return job.remaining_s is not None and job.remaining_s > LONG_S


def _rank(job: QueuedJob) -> _Rank:
    if job.remaining_s is None:
        return _Rank.LARGE if (job.size or 0) > LARGE_BYTES else _Rank.SHORT
    return _Rank.LONG if _is_long(job) else _Rank.SHORT


def _long_capacity(capacity: int) -> int:
    return capacity - capacity // 4


def _last_begun(jobs: Sequence[StartedJob], counts: Counter[str]) -> GiveWay:
    """The job with the least work to lose, among those of the owner with most jobs."""
    return GiveWay(max(jobs, key=lambda job: (counts[job.owner], job.began)).id)
