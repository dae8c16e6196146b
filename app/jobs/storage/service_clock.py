"""The time of service, by which everything expires: the wall clock may jump, and deletions are final."""

import time
from collections.abc import Callable
from math import inf

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.connection import Database, Then
from app.database.tables import service_clock

Clock = Callable[[], float]  # returns s

_MAX_STEP_S = 86400.0  # that one reading of the clocks can add: an absence, or a machine that was paused
_DATE_ERROR_S = 1.0  # smaller changes of `lag_s` are those of clocks that are being adjusted


class ServiceClock:
    """Seconds that pass while the service runs, and for a day at most while it does not.

    The database has the number, so a backup brings its own. It begins as a Unix time, and falls behind:
    `lag_s` is how far (s). Before the first `advance`, it is the wall clock's time.
    """

    def __init__(
        self, database: Database, wall: Clock = time.time, monotonic: Clock = time.monotonic
    ) -> None:
        self._database = database
        self._wall, self._monotonic = wall, monotonic
        self._time = 0.0
        self._advanced_at: float | None = None  # monotonic
        self.lag_s = 0.0

    def __call__(self) -> float:
        """The time of service (s), for stamps and what is compared with them."""
        if self._advanced_at is None:
            return self._wall()
        # By the monotonic clock: a stamp that the wall clock had put too early would expire too early.
        return self._time + min(max(0.0, self._monotonic() - self._advanced_at), _MAX_STEP_S)

    def date(self, moment: float) -> float:
        """An estimate of the Unix time (s) at a time of service (s)."""
        return moment + self.lag_s

    async def advance(self) -> None:
        """Add the time since the last call, of this or another process, to the number in the database.

        Raises what `Database` raises.
        """
        await self._database.transact(self._advance)

    async def follow(self) -> None:
        """Take over the number in the database, which another front end advances: their clocks may differ."""
        for row in await self._database.rows(sa.select(service_clock)):  # none: all of them have just begun
            self._set(max(row.time, self()), self._wall(), self._monotonic())

    async def _advance(self, connection: AsyncConnection, then: Then) -> None:
        row = (await connection.execute(sa.select(service_clock).with_for_update())).one_or_none()
        wall, monotonic = self._wall(), self._monotonic()
        now = wall
        if row is not None:
            elapsed_s = inf if self._advanced_at is None else monotonic - self._advanced_at
            now = row.time + max(0.0, min(wall - row.wall_time, elapsed_s, _MAX_STEP_S))
        if self._advanced_at is None:  # although the disk may be full: nothing expires by the wall clock
            self._set(now, wall, monotonic)
        values = {"id": 1, "time": now, "wall_time": wall}
        change = sa.insert(service_clock) if row is None else sa.update(service_clock)
        await connection.execute(change.values(values))
        then(self._set, now, wall, monotonic)

    def _set(self, now: float, wall: float, monotonic: float) -> None:
        self._time, self._advanced_at = now, monotonic
        if abs(wall - now - self.lag_s) > _DATE_ERROR_S:
            self.lag_s = wall - now
