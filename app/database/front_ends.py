"""Front ends: server processes that share one database and its jobs. Each has a lease, which it renews.

Nobody trusts a clock but the database's, and nobody takes over what it has not watched for as long as a lease
lasts: while the database is gone, no front end can renew its lease, and none must lose its jobs for that.
"""

import asyncio
import re
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from math import inf
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.concurrency import end_tasks
from app.common.errors import InvalidSetting, WhisperfleetError
from app.common.machine import boot_id
from app.database.connection import Database, Then, clock_of, known_versions
from app.database.tables import front_ends

LEASE_S = 30.0
RENEW_S = 10.0
_RETRY_S = 1.0  # after an error of the database
_MAX_GAP_S = 15.0  # between two renewals that the database has answered, if nothing is amiss
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")  # also in names of files

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FrontEndRow:
    """A lease. No two of them ever have the same epoch."""

    name: str
    epoch: int
    host: str
    boot_id: str
    address: str  # where other front ends of this machine reach it
    version: int  # of the tables that it knows
    expires_at: float  # s, by the database's clock


_COLUMNS = [front_ends.c[field.name] for field in fields(FrontEndRow)]


class FrontEnd:
    """The lease of this process: what it writes of the jobs that it runs has its epoch.

    Without a name in `database`, it is alone by the database's lock, and nobody needs to hear of it again.
    """

    def __init__(self, database: Database, address: str = "") -> None:
        """Raises InvalidSetting for a name that cannot be one of a file."""
        self.name = database.front_end or socket.gethostname()
        if database.front_end is not None and not _NAME.fullmatch(self.name):
            raise InvalidSetting(
                f"WHISPER_FRONT_END={self.name}: use at most 64 letters, digits, '.', '_' and '-', and begin "
                "with a letter or a digit"
            )
        self.epoch = 0  # before `start`
        self.others: tuple[FrontEndRow, ...] = ()  # those with a lease, at the last renewal
        self.expired: frozenset[str] = frozenset()  # the names of those whose jobs may be taken over
        # Called when another front end has taken this one's jobs over: it must end their runs.
        self.on_lost: Callable[[], Awaitable[None]] = _nothing
        self._database = database
        self._address = address
        self._now = clock_of(database.url.get_backend_name())
        self._seen: dict[FrontEndRow, float] = {}  # rows as they are, and since when (monotonic)
        self._renewed_at = self._observed_at = -inf  # monotonic
        self._task: asyncio.Task[None] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether no other front end had a lease at the last renewal."""
        return not self.others

    @property
    def holds(self) -> bool:
        """Whether nobody can have taken the jobs over yet: for what no transaction protects."""
        return not self._database.is_shared or time.monotonic() - self._renewed_at < LEASE_S

    @property
    def leads(self) -> bool:
        """Whether this one does what one of them does for all. While they come and go, two may."""
        return all(self.name < other.name for other in self.others)

    async def start(self) -> None:
        """Take the lease, with a new epoch, and renew it from now on.

        Raises InvalidSetting if another machine uses the SQLite database, and what `Database` raises.
        """
        if self._database.is_sqlite:
            await self._await_other_boots()
        await self._take()
        if self._database.is_shared:
            self._task = asyncio.create_task(self._renew_forever(), name="lease")

    async def stop(self) -> None:
        """Give the lease up: what still runs may be taken over."""
        if self._task is None:
            return
        await end_tasks(self._task)
        with suppress(WhisperfleetError):  # it expires
            await self._database.execute(sa.update(front_ends).where(self._is_own).values(expires_at=0.0))

    async def take_over(self, names: Collection[str | None]) -> set[str]:
        """Those of the named front ends whose jobs may go on elsewhere: their leases have expired.

        They find out when they come back.
        """
        return {name for name in self.expired.intersection(names) if await self._take_over(name)}

    async def _take_over(self, name: str) -> bool:
        """Returns whether it has not come back just now."""
        [row] = [row for row in self._seen if row.name == name]

        async def take(connection: AsyncConnection, then: Then) -> bool:
            is_same = sa.and_(
                front_ends.c.name == name,
                front_ends.c.epoch == row.epoch,
                front_ends.c.expires_at == row.expires_at,
            )
            change = sa.update(front_ends).where(is_same)
            rows = await connection.execute(change.values(epoch=await self._next_epoch(connection)))
            return bool(rows.rowcount)

        self.expired -= {name}
        return await self._database.transact(take)

    @property
    def _is_own(self) -> sa.ColumnElement[bool]:
        return sa.and_(front_ends.c.name == self.name, front_ends.c.epoch == self.epoch)

    @property
    def _end(self) -> sa.ColumnElement[float]:
        """Of a lease that begins now. Nobody asks for that of one who is alone."""
        return self._now + (LEASE_S if self._database.is_shared else 0.0)

    async def _await_other_boots(self) -> None:
        """Wait until the leases of before a reboot have expired. One that is renewed is another machine's."""
        is_other = sa.and_(front_ends.c.boot_id != boot_id(), front_ends.c.expires_at > self._now)
        first = found = await self._database.rows(sa.select(*_COLUMNS).where(is_other))
        while found:
            if others := {*found} - {*first}:
                raise InvalidSetting(
                    f"WHISPER_DATABASE_URL={self._database.name}: another machine uses this database "
                    f"({others.pop().host}), and a SQLite file can serve one machine only. Stop the service "
                    "there, or use PostgreSQL"
                )
            await asyncio.sleep(_RETRY_S)
            found = await self._database.rows(sa.select(*_COLUMNS).where(is_other))

    async def _next_epoch(self, connection: AsyncConnection) -> int:
        if not self._database.is_sqlite:  # or else writes take turns
            await connection.execute(sa.text("LOCK TABLE front_ends IN SHARE ROW EXCLUSIVE MODE"))
        highest = await connection.scalar(sa.select(sa.func.max(front_ends.c.epoch)))
        return int(highest or 0) + 1

    async def _take(self) -> None:
        """Take the lease with a new epoch. If this process is alone by its lock, end those of all others."""
        row = {
            "name": self.name,
            "host": socket.gethostname(),
            "boot_id": boot_id(),
            "address": self._address,
            "version": int(known_versions()[-1]),
            "expires_at": self._end,
        }

        async def take(connection: AsyncConnection, then: Then) -> None:
            epoch = await self._next_epoch(connection)
            if not self._database.is_shared:
                await connection.execute(sa.update(front_ends).values(expires_at=0.0))
            await connection.execute(sa.delete(front_ends).where(front_ends.c.name == self.name))
            await connection.execute(sa.insert(front_ends).values(epoch=epoch, **row))
            then(setattr, self, "epoch", epoch)

        await self._database.transact(take)
        await self._renew()

    async def _renew_forever(self) -> None:
        pause_s = RENEW_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = RENEW_S
            try:
                if not await self._renew():
                    log.warning("other front ends have taken over the jobs of this one", front_end=self.name)
                    await self._database.verify_lock()  # or did another process take the name?
                    await self.on_lost()
                    await self._take()
            except InvalidSetting as error:
                log.critical("stopping", error=error.message)
                signal.raise_signal(signal.SIGTERM)
                return
            except WhisperfleetError as error:
                log.error("the lease cannot be renewed; retrying", error=error.message)
                pause_s = _RETRY_S

    async def _renew(self) -> bool:
        """Renew the lease, also after its end, unless another front end has taken the jobs over."""
        began = time.monotonic()
        others = sa.select(front_ends.c.expires_at > self._now, *_COLUMNS).where(
            front_ends.c.name != self.name
        )

        async def renew(connection: AsyncConnection, then: Then) -> tuple[bool, list[sa.Row[Any]]]:
            rows = await connection.execute(
                sa.update(front_ends).where(self._is_own).values(expires_at=self._end)
            )
            return bool(rows.rowcount), [*await connection.execute(others)]

        is_own, rows = await self._database.transact(renew)
        self._observe({FrontEndRow(*values): bool(is_live) for is_live, *values in map(tuple, rows)})
        if is_own:
            self._renewed_at = began
        return is_own

    def _observe(self, others: Mapping[FrontEndRow, bool]) -> None:
        """Note the rows of the others, and whether their leases have not expired."""
        now = time.monotonic()
        if now - self._observed_at > _MAX_GAP_S:  # the database, or this process, stood still for all
            self._seen = {}
        self._observed_at = now
        self._seen = {row: self._seen.get(row, now) for row in others}
        self.others = tuple(row for row, is_live in others.items() if is_live)
        watched_s = LEASE_S if self._database.is_shared else 0.0
        self.expired = frozenset(
            row.name for row, is_live in others.items() if not is_live and now - self._seen[row] >= watched_s
        )


async def _nothing() -> None: ...
