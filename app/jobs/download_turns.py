"""Which queued job downloads next, and which download gives way to it. Pure.

Downloads have places of their own: a slow site takes neither workers nor media workers. A download that has
had its turn gives way if others wait. It starts anew later, with a turn twice as long, so it ends some day.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.jobs.turns import GiveWay, OccupiedPlace, QueuedJob, Start, by_owner

MAX_DOWNLOADS = 8  # at once: each is a process of its own
FIRST_TURN_S = 30.0


@dataclass(frozen=True, slots=True)
class _Past:
    """The turns that a download has had."""

    turns: int = 0
    rests_until: float = 0.0  # no other download gives way to it before


class DownloadTurns:
    """The order of downloads. Owners take turns."""

    def __init__(self) -> None:
        self._past: dict[str, _Past] = {}  # of the downloads that gave way

    def next(
        self, queued: Sequence[QueuedJob], running: Sequence[OccupiedPlace], now: float
    ) -> Start | GiveWay | None:
        """The next step at the time `now`, on the clock of `began`. None: nothing can start."""
        known = {job.id for job in queued} | {place.id for place in running}
        self._past = {id: past for id, past in self._past.items() if id in known}
        counts = by_owner(running)
        if len(running) < MAX_DOWNLOADS:
            order = sorted(queued, key=lambda job: (counts[job.owner], self._turns(job.id), job.number))
            return Start(order[0].id) if order else None
        had_their_turn = [
            place for place in running if now - place.began >= FIRST_TURN_S * 2 ** self._turns(place.id)
        ]
        if not had_their_turn or not any(self._rests_until(job.id) <= now for job in queued):
            return None
        slowest = max(had_their_turn, key=lambda place: (counts[place.owner], now - place.began))
        self._past[slowest.id] = _Past(self._turns(slowest.id) + 1, now + (now - slowest.began))
        return GiveWay(slowest.id)

    def _turns(self, job_id: str) -> int:
        return self._past.get(job_id, _Past()).turns

    def _rests_until(self, job_id: str) -> float:
        return self._past.get(job_id, _Past()).rests_until
