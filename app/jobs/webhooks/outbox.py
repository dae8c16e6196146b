"""The outbox of webhooks in the database. It outlives the process."""

import json
import re
import uuid
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.connection import Database, Then
from app.database.tables import deliveries
from app.jobs.document import public, timestamp
from app.jobs.job import Job

MOST_OF_OWNER = 5000  # unsent deliveries; one has 2 to 300 KB
_BATCH_SIZE = 20
_CLAIM_S = 300.0  # so long, no other front end tries to send a delivery: much longer than a try takes


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook to send."""

    id: str  # the webhook-id, the same at each attempt
    url: str
    body: str  # JSON
    attempts: int  # failed so far
    owner: str = ""  # of the job; "" also in rows of older versions
    host: str = ""  # of the URL; "" in rows of older versions


class Outbox:
    """Keeps deliveries until they have succeeded. Raises what `Database` raises.

    If other front ends may send them, too, a delivery is claimed before each try: it is due later then.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(
        self,
        now: float,
        in_flight: Collection[str] = (),
        owners: Collection[str] = (),
        hosts: Collection[tuple[str, str]] = (),
    ) -> list[Delivery]:
        """Deliveries that are due at the time of service `now` (s), earliest first; at most a batch of them.

        Without those that are `in_flight` (ids), those of some `owners`, and those of an owner to some host
        (`hosts`): they would hide all later ones.
        """
        table = deliveries.c
        columns = (table.id, table.url, table.body, table.attempts, table.owner, table.host)
        query = sa.select(*columns).where(
            table.next_at <= now,
            table.id.not_in(in_flight),
            table.owner.not_in(owners),
            *(sa.or_(table.owner != owner, table.host != host) for owner, host in hosts),
        )
        rows = await self._database.rows(query.order_by(table.next_at).limit(_BATCH_SIZE))
        return [Delivery(*row) for row in rows]

    async def claim(self, id: str, now: float) -> bool:
        """Claim a delivery for a try at the time of service `now` (s). Returns whether no other one has."""
        if not self._database.is_shared:
            return True
        claim = sa.update(deliveries).where(deliveries.c.id == id, deliveries.c.next_at <= now)

        async def change(connection: AsyncConnection, then: Then) -> bool:
            return bool((await connection.execute(claim.values(next_at=now + _CLAIM_S))).rowcount)

        return await self._database.transact(change)

    async def release(self, id: str, now: float) -> None:
        """Give a claim up: the delivery is due at the time of service `now` (s) again."""
        if self._database.is_shared:
            await self._database.execute(
                sa.update(deliveries).where(deliveries.c.id == id).values(next_at=now)
            )

    async def next_due(self) -> float | None:
        """The time of service (s) at which the next delivery is due."""
        moment: float | None = await self._database.scalar(sa.select(sa.func.min(deliveries.c.next_at)))
        return moment

    async def remove(self, id: str) -> None:
        """Remove a delivery that the receiver accepted, or that failed for good."""
        await self._database.execute(sa.delete(deliveries).where(deliveries.c.id == id))

    async def postpone(self, id: str, attempts: int, next_at: float) -> None:
        """Make a delivery due at the time of service `next_at` (s), after so many failed attempts."""
        change = sa.update(deliveries).where(deliveries.c.id == id)
        await self._database.execute(change.values(attempts=attempts, next_at=next_at))


def host_of(url: str) -> str:
    """The host and port in a URL, as it names them. Does not parse it: a broken one must not stop others."""
    return re.split("[/?#]", url.partition("//")[2], maxsplit=1)[0].lower()


async def add_webhook(connection: AsyncConnection, job: Job, kind: str, at: float, due_at: float) -> int:
    """Store a webhook that announces a change of a job, made at the Unix time `at` (s).

    `kind`: its type. It replaces an unsent one of this type: the job in it is newer. `due_at`: the time of
    service (s) at which it is sent. Returns how many others are given up: of more than `MOST_OF_OWNER` of an
    owner, those with the most failed attempts.
    """
    table, owner = deliveries.c, job.submission.owner
    await connection.execute(sa.delete(deliveries).where(table.job_id == job.id, table.type == kind))
    of_owner = sa.select(table.id).where(table.owner == owner).order_by(table.attempts, table.next_at.desc())
    excess = sa.delete(deliveries).where(table.id.in_(of_owner.offset(MOST_OF_OWNER - 1)))
    given_up = (await connection.execute(excess)).rowcount
    body = {"type": kind, "timestamp": timestamp(at), "data": public(job, at)}
    values = {
        "id": f"msg_{uuid.uuid4().hex}",
        "url": job.submission.webhook_url,
        "owner": owner,
        "job_id": job.id,
        "type": kind,
        "host": host_of(job.submission.webhook_url or ""),
        "body": json.dumps(body, ensure_ascii=False, allow_nan=False),
        "attempts": 0,
        "next_at": due_at,
    }
    await connection.execute(sa.insert(deliveries).values(values))
    return given_up
