"""Job events and webhooks, as rows that are written in the transaction of the change that they announce."""

import json
import uuid
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.jobs.job import Job, Status, timestamp
from app.jobs.tables import deliveries, events

_FINAL_TYPES = frozenset(f"job.{status}" for status in Status if status.is_terminal)


class Event(NamedTuple):
    """A change of a job."""

    number: int  # counts from 1 in each job, without a gap
    type: str  # "job." and the new status, or "job.progress"
    data: str  # the job after the change, JSON

    @property
    def is_last(self) -> bool:
        """Whether no further event can follow."""
        return self.type in _FINAL_TYPES


async def add_event(connection: AsyncConnection, job: Job, kind: str, now: float) -> Event:
    """Store the next event of a job. `kind`: its type; `now`: Unix time in s."""
    of_job = events.c.job_number == job.number
    last = await connection.scalar(sa.select(sa.func.max(events.c.number)).where(of_job))
    event = Event((last or 0) + 1, kind, json.dumps(job.public(now), ensure_ascii=False, allow_nan=False))
    await connection.execute(sa.insert(events).values(job_number=job.number, **event._asdict()))
    return event


async def add_webhook(connection: AsyncConnection, job: Job, event: Event, now: float) -> None:
    """Store a webhook that announces an event. It is due at once; `now`: Unix time in s."""
    body = json.dumps(
        {"type": event.type, "timestamp": timestamp(job.finished_at), "data": json.loads(event.data)},
        ensure_ascii=False,
    )
    values = {
        "id": f"msg_{uuid.uuid4().hex}",
        "url": job.submission.webhook_url,
        "body": body,
        "attempts": 0,
        "next_at": now,
    }
    await connection.execute(sa.insert(deliveries).values(values))
