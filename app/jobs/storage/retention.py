"""The retention of jobs that have ended or are in the trash, and of recordings that people corrected."""

import math
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.database.tables import jobs, voices
from app.jobs.job import TRANSITIONS

IN_TRASH = jobs.c.trashed_at.is_not(None)
ENDED = [status.value for status, following in TRANSITIONS.items() if not following]
_LAST_MOMENT = 253402300800.0  # of the year 9999: no date says a later one


@dataclass(frozen=True, slots=True)
class Retention:
    """The time after which the service deletes, in s from the end of a job or its last correction by people.

    `keep_corrected`: of a job that people corrected, only the recording and the voices go then. In the trash,
    all of a job goes after `trash_ttl_s` instead.
    """

    ttl_s: float = math.inf
    keep_corrected: bool = True
    trash_ttl_s: float = math.inf

    def expiry(self, row: sa.Row[Any], lag_s: float) -> dict[str, float | None]:
        """The Unix times (s) at which a job and its recording are deleted, and at which it was put into the
        trash, by the names of fields of `Job`.

        They are estimates. None: never, or the job has not ended, or there is no recording. `row`: of the
        table `jobs`. `lag_s`: of `ServiceClock`.
        """
        trashed_at = None if row.trashed_at is None else row.trashed_at + lag_s
        since = math.inf if row.retained_since is None else row.retained_since + lag_s
        end = since + self.ttl_s if trashed_at is None else trashed_at + self.trash_ttl_s
        over = end if end < _LAST_MOMENT else None
        is_kept = self.keep_corrected and row.corrected_at is not None and trashed_at is None
        return {
            "expires_at": None if is_kept else over,
            "audio_expires_at": None if row.file is None else over,
            "trashed_at": trashed_at,
        }

    def expired(self, now: float) -> sa.ColumnElement[bool]:
        """The condition of jobs whose time is over at the time of service `now` (s)."""
        is_over = sa.and_(~IN_TRASH, jobs.c.retained_since < now - self.ttl_s)
        if self.keep_corrected:
            is_over = sa.and_(is_over, jobs.c.corrected_at.is_(None))
        is_over = sa.or_(is_over, jobs.c.trashed_at < now - self.trash_ttl_s)
        return sa.and_(jobs.c.status.in_(ENDED), is_over, _is_not_in_use())

    def recording_expired(self, now: float) -> sa.ColumnElement[bool]:
        """The condition of jobs that stay, and whose recording or voices are still there after their time."""
        if not self.keep_corrected:
            return sa.false()
        has_voices = sa.exists().where(voices.c.job_number == jobs.c.number)
        is_kept = sa.and_(~IN_TRASH, jobs.c.corrected_at.is_not(None))
        is_over = sa.and_(is_kept, jobs.c.retained_since < now - self.ttl_s)
        return sa.and_(is_over, sa.or_(jobs.c.file.is_not(None), has_voices), _is_not_in_use())


def _is_not_in_use() -> sa.ColumnElement[bool]:
    """Whether no other job needs the recording: one that transcribes it again."""
    other = jobs.alias()
    return ~sa.exists().where(other.c.parent == jobs.c.id, other.c.status.not_in(ENDED))
