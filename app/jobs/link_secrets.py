"""The secrets that sign links to audio and results: an owner's links end with its secret."""

import asyncio
import secrets
from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.connection import Database, Then
from app.database.tables import link_secrets
from app.jobs.access import note_access

_BYTES = 32
_ALL = sa.select(link_secrets.c.owner, link_secrets.c.value)
_ADD = postgresql.insert(link_secrets).on_conflict_do_nothing()  # SQLite has PostgreSQL's syntax


class LinkSecrets:
    """They are in the database, so links outlive a restart, and in memory, so checks cost no query.

    Raises what `Database` raises.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._making = asyncio.Lock()  # two requests of a new owner need one secret
        self.by_owner: dict[str, bytes] = {}

    async def load(self) -> None:
        self._replace(await self._database.rows(_ALL))

    async def of(self, owner: str) -> bytes:
        """The secret of an owner, which is made if there is none."""
        async with self._making:
            if owner not in self.by_owner:
                await self._store([], [owner])
            return self.by_owner[owner]

    async def renew(self, ended: Collection[str], new: Collection[str]) -> None:
        """Forget the secrets of some owners, whose links end with them, and make those of `new` ones."""
        await self._store([*ended, *new], new)

    async def _store(self, dropped: Collection[str], new: Collection[str]) -> None:
        """Drop the secrets of some owners, and make those of `new` ones that have none."""
        made = [{"owner": owner, "value": secrets.token_bytes(_BYTES)} for owner in new]

        async def write(connection: AsyncConnection, then: Then) -> None:
            await connection.execute(sa.delete(link_secrets).where(link_secrets.c.owner.in_(dropped)))
            if made:
                await connection.execute(_ADD, made)
            if dropped or made:
                await note_access(self._database, connection)
            then(self._replace, (await connection.execute(_ALL)).all())

        await self._database.transact(write)

    def _replace(self, rows: Sequence[sa.Row[tuple[str, bytes]]]) -> None:
        self.by_owner = {row.owner: bytes(row.value) for row in rows}
