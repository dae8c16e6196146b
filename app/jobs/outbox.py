"""The outbox of webhooks in the database."""

import sqlalchemy as sa

from app.jobs.database import Database
from app.jobs.tables import deliveries
from app.jobs.webhooks import Delivery

_BATCH_SIZE = 20


class DatabaseOutbox:
    """See `app.jobs.webhooks.Outbox`. Raises what `Database` raises."""

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

    async def delivered(self, id: str) -> None:
        """Remove a delivery that the receiver accepted."""
        await self._database.execute(sa.delete(deliveries).where(deliveries.c.id == id))

    async def postpone(self, id: str, attempts: int, next_at: float) -> None:
        """Make a delivery due at the Unix time `next_at` (s), after so many failed attempts."""
        change = sa.update(deliveries).where(deliveries.c.id == id)
        await self._database.execute(change.values(attempts=attempts, next_at=next_at))

    async def give_up(self, id: str) -> None:
        """Remove a delivery that failed for good."""
        await self.delivered(id)
