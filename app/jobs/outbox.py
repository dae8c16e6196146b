"""The webhooks that are to be sent, in the database: what `app.jobs.webhooks` sends from."""

import sqlalchemy as sa

from app.jobs.database import Database, whole
from app.jobs.tables import deliveries
from app.jobs.webhooks import Delivery

_AT_ONCE = 20


class DatabaseOutbox:
    """See `app.jobs.webhooks.Outbox`. Raises what `Database` raises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @whole
    async def due(self, now: float) -> list[Delivery]:
        """Deliveries whose time has come, the earliest first; some of them, where there are many."""
        columns = (deliveries.c.id, deliveries.c.url, deliveries.c.body, deliveries.c.attempts)
        query = sa.select(*columns).where(deliveries.c.next_at <= now).order_by(deliveries.c.next_at)
        async with self._database.read() as connection:
            rows = (await connection.execute(query.limit(_AT_ONCE))).all()
        return [Delivery(row.id, row.url, row.body, row.attempts) for row in rows]

    @whole
    async def next_due(self) -> float | None:
        """The Unix time (s) of the earliest delivery."""
        async with self._database.read() as connection:
            moment: float | None = await connection.scalar(sa.select(sa.func.min(deliveries.c.next_at)))
        return moment

    @whole
    async def delivered(self, id: str) -> None:
        """A delivery was received: forget it."""
        async with self._database.write() as connection:
            await connection.execute(sa.delete(deliveries).where(deliveries.c.id == id))

    @whole
    async def put_off(self, id: str, attempts: int, next_at: float) -> None:
        """A delivery failed: it is to be tried again at the Unix time `next_at` (s)."""
        change = sa.update(deliveries).where(deliveries.c.id == id)
        async with self._database.write() as connection:
            await connection.execute(change.values(attempts=attempts, next_at=next_at))

    async def give_up(self, id: str) -> None:
        """A delivery failed for good: forget it."""
        await self.delivered(id)
