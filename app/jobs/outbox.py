"""The outbox of webhooks in the database."""

import sqlalchemy as sa

from app.jobs.database import Database
from app.jobs.tables import deliveries
from app.jobs.webhooks import Delivery
from app.shielding import shielded

_BATCH_SIZE = 20


class DatabaseOutbox:
    """See `app.jobs.webhooks.Outbox`. Raises what `Database` raises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def due(self, now: float) -> list[Delivery]:
        """Deliveries that are due at the Unix time `now` (s), earliest first; at most a batch of them."""
        columns = (deliveries.c.id, deliveries.c.url, deliveries.c.body, deliveries.c.attempts)
        query = sa.select(*columns).where(deliveries.c.next_at <= now).order_by(deliveries.c.next_at)
        async with self._database.read() as connection:
            rows = (await connection.execute(query.limit(_BATCH_SIZE))).all()
        return [Delivery(row.id, row.url, row.body, row.attempts) for row in rows]

    @shielded
    async def next_due(self) -> float | None:
        """The Unix time (s) at which the next delivery is due."""
        async with self._database.read() as connection:
            moment: float | None = await connection.scalar(sa.select(sa.func.min(deliveries.c.next_at)))
        return moment

    @shielded
    async def delivered(self, id: str) -> None:
        """Remove a delivery that the receiver accepted."""
        async with self._database.write() as connection:
            await connection.execute(sa.delete(deliveries).where(deliveries.c.id == id))

    @shielded
    async def postpone(self, id: str, attempts: int, next_at: float) -> None:
        """Make a delivery due at the Unix time `next_at` (s), after so many failed attempts."""
        change = sa.update(deliveries).where(deliveries.c.id == id)
        async with self._database.write() as connection:
            await connection.execute(change.values(attempts=attempts, next_at=next_at))

    async def give_up(self, id: str) -> None:
        """Remove a delivery that failed for good."""
        await self.delivered(id)
