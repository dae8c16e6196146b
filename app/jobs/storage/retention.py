"""The retention of jobs that have ended, and of the recordings of those that people corrected."""

import math
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.database.tables import jobs, voices
from app.jobs.job import TRANSITIONS

ENDED = [status.value for status, following in TRANSITIONS.items() if not following]
_LAST_MOMENT = 253402300800.0  # of the year 9999: no date says a later one


@dataclass(frozen=True, slots=True)
class Retention:
    """The time after which the service deletes, in s from the end of a job or its last correction by people.

    `keep_corrected`: of a job that people corrected, only the recording and the voices go then.
    """

    ttl_s: float = math.inf
    keep_corrected: bool = True

    def expiry(self, row: sa.Row[Any], lag_s: float) -> dict[str, float | None]:
        """The Unix times (s) at which a job and its recording are deleted, by the names of fields of `Job`.

        They are estimates. None: never, or the job has not ended, or there is no recording. `row`: of the
        table `jobs`. `lag_s`: of `ServiceClock`.
        """
        since = math.inf if row.retained_since is None else row.retained_since + lag_s
        over = since + self.ttl_s if since + self.ttl_s < _LAST_MOMENT else None
        is_kept = self.keep_corrected and row.corrected_at is not None
        return {
            "expires_at": None if is_kept else over,
            "audio_expires_at": None if row.file is None else over,
        }

    def expired(self, now: float) -> sa.ColumnElement[bool]:
        """The condition of jobs whose time is over at the time of service `now` (s)."""
        is_over = jobs.c.retained_since < now - self.ttl_s
        condition = sa.and_(jobs.c.status.in_(ENDED), is_over, _is_not_in_use())
        return sa.and_(condition, jobs.c.corrected_at.is_(None)) if self.keep_corrected else condition

    def recording_expired(self, now: float) -> sa.ColumnElement[bool]:
        """The condition of jobs that stay, and whose recording or voices are still there after their time."""
        if not self.keep_corrected:
            return sa.false()
        has_voices = sa.exists().where(voices.c.job_number == jobs.c.number)
        is_over = sa.and_(jobs.c.corrected_at.is_not(None), jobs.c.retained_since < now - self.ttl_s)
        return sa.and_(is_over, sa.or_(jobs.c.file.is_not(None), has_voices), _is_not_in_use())


def _is_not_in_use() -> sa.ColumnElement[bool]:
    """Whether no other job needs the recording: one that transcribes it again."""
    other = jobs.alias()
    return ~sa.exists().where(other.c.parent == jobs.c.id, other.c.status.not_in(ENDED))
