"""The outbox of webhooks in the database. It outlives the process."""

import json
import uuid
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.connection import Database
from app.database.tables import deliveries
from app.jobs.document import public, timestamp
from app.jobs.job import Job

_BATCH_SIZE = 20


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook to send."""

    id: str  # the webhook-id, the same at each attempt
    url: str
    body: str  # JSON
    attempts: int  # failed so far


class Outbox:
    """Keeps deliveries until they have succeeded. Raises what `Database` raises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, now: float) -> list[Delivery]:
        """Deliveries that are due at the Unix time `now` (s), earliest first; at most a batch of them."""
        columns = (deliveries.c.id, deliveries.c.url, deliveries.c.body, deliveries.c.attempts)
        query = sa.select(*columns).where(deliveries.c.next_at <= now).order_by(deliveries.c.next_at)
        return [Delivery(*row) for row in await self._database.rows(query.limit(_BATCH_SIZE))]

    async def next_due(self) -> float | None:
        """The Unix time (s) at which the next delivery is due."""
        moment: float | None = await self._database.scalar(sa.select(sa.func.min(deliveries.c.next_at)))
        return moment

    async def remove(self, id: str) -> None:
        """Remove a delivery that the receiver accepted, or that failed for good."""
        await self._database.execute(sa.delete(deliveries).where(deliveries.c.id == id))

    async def postpone(self, id: str, attempts: int, next_at: float) -> None:
        """Make a delivery due at the Unix time `next_at` (s), after so many failed attempts."""
        change = sa.update(deliveries).where(deliveries.c.id == id)
        await self._database.execute(change.values(attempts=attempts, next_at=next_at))


async def add_webhook(connection: AsyncConnection, job: Job, kind: str, at: float) -> None:
    """Store a webhook that announces a change of a job, made at the Unix time `at` (s). It is due at once.

    `kind`: its type.
    """
    body = {"type": kind, "timestamp": timestamp(at), "data": public(job, at)}
    values = {
        "id": f"msg_{uuid.uuid4().hex}",
        "url": job.submission.webhook_url,
        "body": json.dumps(body, ensure_ascii=False, allow_nan=False),
        "attempts": 0,
        "next_at": at,
    }
    await connection.execute(sa.insert(deliveries).values(values))
