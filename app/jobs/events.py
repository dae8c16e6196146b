"""Job events, as rows that are written in the transaction of the change that they announce; subscriptions.

The row of a job's first event has all of the job. The rows of later events have what differs from the first:
most of a job, its options above all, never changes. The row of an event of type `SEGMENTS` has a span: the
database has the text already.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import events, jobs
from app.jobs.document import public
from app.jobs.job import Job, Stage, Status
from workers.messages import Span

SEGMENTS = "job.segments"
_FINAL_TYPES = frozenset(f"job.{status}" for status in Status if status.is_terminal)


class Event(NamedTuple):
    """A change of a job."""

    number: int  # counts from 1 in each job, without a gap
    type: str  # "job." and the new status, "job.progress", or `SEGMENTS`
    data: str  # JSON: the job after the change. Of `SEGMENTS`: what part of the transcript is new, see `span`

    @property
    def is_last(self) -> bool:
        """Whether no further event can follow."""
        return self.type in _FINAL_TYPES

    @property
    def span(self) -> Span:
        """Of an event of type `SEGMENTS`: from where on the transcript changes, and how far it goes now.

        In samples of the recording. All segments that start within are part of the change.
        """
        data = json.loads(self.data)
        return data["from"], data["to"]


@dataclass(slots=True)
class NewEvents:
    """The next events of jobs, which are stored together.

    Make and store them in one transaction: writes take turns, so the numbers stay right.
    """

    _jobs: dict[int, "_StoredEvents"]  # by number
    _rows: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    async def after_stored(cls, connection: AsyncConnection, jobs: Sequence[Job]) -> Self:
        """No events yet, for jobs with events in the database or without."""
        rows = await connection.execute(_STORED, {"numbers": [job.number for job in jobs]})
        return cls({row.job_number: _StoredEvents(row.last or 0, row.first, row.segments) for row in rows})

    def segments_end(self, job: Job) -> int:
        """Up to which sample the transcript of a job goes, by its last event of type `SEGMENTS`."""
        segments = self._jobs[job.number].segments
        return int(json.loads(segments)["to"]) if segments is not None else 0

    def add(self, job: Job, kind: str, now: float) -> Event:
        """Add an event with all of a job. `kind`: its type; `now`: Unix time in s."""
        first, data = self._jobs[job.number].first, _json(public(job, now))
        return self._add(job, kind, data, data if first is None else shorten(json.loads(first), data))

    def add_segments(self, job: Job, span: Span) -> Event:
        """Add an event that announces a part of the transcript; see `Event.span`."""
        data = _json({"from": span[0], "to": span[1]})
        return self._add(job, SEGMENTS, data, data)

    def _add(self, job: Job, kind: str, data: str, stored: str) -> Event:
        of_job = self._jobs[job.number]
        of_job.last += 1
        event = Event(of_job.last, kind, data)
        self._rows.append({"job_number": job.number} | event._replace(data=stored)._asdict())
        return event

    async def store(self, connection: AsyncConnection) -> None:
        """Store the events, in the order in which they were added."""
        if self._rows:
            await connection.execute(sa.insert(events), self._rows)


@dataclass(slots=True)
class _StoredEvents:
    """What a job's next events depend on."""

    last: int  # the number of the last event; 0 if there is none
    first: str | None  # data of the first event
    segments: str | None  # data of the last event of type `SEGMENTS`


_OF_JOB = events.c.job_number == jobs.c.number
_DATA = sa.select(events.c.data).where(_OF_JOB)
_LAST_SEGMENTS = _DATA.where(events.c.type == SEGMENTS).order_by(events.c.number.desc()).limit(1)
LAST_EVENT = sa.select(sa.func.max(events.c.number)).where(_OF_JOB).scalar_subquery().label("last")
_STORED = sa.select(
    jobs.c.number.label("job_number"),
    LAST_EVENT,
    _DATA.where(events.c.number == 1).scalar_subquery().label("first"),
    _LAST_SEGMENTS.scalar_subquery().label("segments"),
).where(jobs.c.number.in_(sa.bindparam("numbers", expanding=True)))


def cancellation(job: Job, number: int, now: float) -> Event:
    """The last event of a job that another front end has cancelled and deleted, so no table has it."""
    progress = replace(job.progress, stage=Stage.DONE)
    cancelled = replace(job, status=Status.CANCELLED, finished_at=now, progress=progress)
    return Event(number, f"job.{cancelled.status}", _json(public(cancelled, now)))


async def last_segments_event(connection: AsyncConnection, job: Job) -> tuple[int, Span]:
    """The number and the span of the last event of type `SEGMENTS`. Zeros if there is none."""
    spans = sa.select(events.c.number, events.c.type, events.c.data).where(
        events.c.job_number == job.number, events.c.type == SEGMENTS
    )
    row = (await connection.execute(spans.order_by(events.c.number.desc()).limit(1))).one_or_none()
    return (row.number, Event(*row).span) if row else (0, (0, 0))


async def read_events(connection: AsyncConnection, job_number: int, after: int, limit: int) -> list[Event]:
    """A job's events with higher numbers than `after`, in order."""
    # Without an end after which the job ran again: clients would take it for the last one.
    later = events.alias()
    has_later = sa.exists().where(later.c.job_number == events.c.job_number, later.c.number > events.c.number)
    is_past = sa.and_(events.c.type.in_(_FINAL_TYPES), has_later)
    query = (
        sa.select(events.c.number, events.c.type, events.c.data)
        .where(events.c.job_number == job_number, events.c.number > after, sa.not_(is_past))
        .order_by(events.c.number)
        .limit(limit)
    )
    rows = (await connection.execute(query)).all()
    if not rows:
        return []
    of_first = sa.select(events.c.data).where(events.c.job_number == job_number, events.c.number == 1)
    first = json.loads(await connection.scalar(of_first) or "{}")
    return [
        Event(row.number, row.type, row.data if row.type == SEGMENTS else restore(first, row.data))
        for row in rows
    ]


async def read_segments_events(connection: AsyncConnection, job: Job, first: int) -> dict[int, Span]:
    """The spans of a job's events of type `SEGMENTS` with numbers from `first` on, by number."""
    query = sa.select(events.c.number, events.c.type, events.c.data).where(
        events.c.job_number == job.number, events.c.type == SEGMENTS, events.c.number >= first
    )
    return {row.number: Event(*row).span for row in await connection.execute(query)}


def shorten(first: dict[str, Any], data: str) -> str:
    """What differs from the job of the first event, as JSON; all of `data` if that cannot be restored."""
    difference = _difference(first, json.loads(data))
    stored = json.dumps(difference, ensure_ascii=False, separators=(",", ":"))
    return stored if restore(first, stored) == data else data


def restore(first: dict[str, Any], stored: str) -> str:
    """The reverse of `shorten`. The row of an event may also have all of the job, as the first one has."""
    change = json.loads(stored)
    # The id is in every job, and in no difference.
    return stored if "id" in change else _json(_merged(first, change))


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    difference = {}
    for key, value in after.items():
        if key in before and before[key] == value:
            continue
        both = isinstance(value, dict) and isinstance(before.get(key), dict)
        difference[key] = _difference(before[key], value) if both else value
    return difference


def _merged(before: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    nested = {
        key: _merged(before[key], value)
        for key, value in change.items()
        if isinstance(value, dict) and isinstance(before.get(key), dict)
    }
    return {**before, **change, **nested}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


class Subscriptions:
    """Queues of the events of jobs, by job."""

    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[Event | None]]] = defaultdict(set)
        self._numbers: dict[str, int] = {}  # of the last event in the queues of a job

    def publish(self, job_id: str, event: Event) -> None:
        """Put an event of a job into the queue of each of its subscribers."""
        for queue in self._queues.get(job_id, ()):
            self._numbers[job_id] = event.number
            queue.put_nowait(event)

    def end(self, job_id: str) -> None:
        """Put None, the end, into the queue of each subscriber of a job that is deleted."""
        for queue in self._queues.get(job_id, ()):
            queue.put_nowait(None)

    @property
    def followed(self) -> dict[str, int]:
        """The jobs that have subscribers, and the number of the last event that these got here; 0: none."""
        return {job_id: self._numbers.get(job_id, 0) for job_id in self._queues}

    def close(self) -> None:
        """Put None, the end, into all queues."""
        for queue in [queue for queues in self._queues.values() for queue in queues]:
            queue.put_nowait(None)

    def has(self, job_id: str) -> bool:
        """Whether somebody subscribes to a job."""
        return job_id in self._queues

    @contextmanager
    def subscribe(self, job_id: str) -> Iterator["asyncio.Queue[Event | None]"]:
        """A queue of the job's events from now on. None marks the end."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._queues[job_id].add(queue)
        try:
            yield queue
        finally:
            self._queues[job_id].discard(queue)
            if not self._queues[job_id]:
                del self._queues[job_id]
                self._numbers.pop(job_id, None)
