"""The secrets that sign links to audio and results: an owner's links end with its secret."""

import asyncio
import secrets
from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.connection import Database, Then
from app.database.tables import link_secrets

_BYTES = 32


class LinkSecrets:
    """They are in the database, so links outlive a restart, and in memory, so checks cost no query.

    Raises what `Database` raises.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._making = asyncio.Lock()  # two requests of a new owner need one secret
        self.by_owner: dict[str, bytes] = {}

    async def load(self) -> None:
        rows = await self._database.rows(sa.select(link_secrets.c.owner, link_secrets.c.value))
        self.by_owner = {row.owner: bytes(row.value) for row in rows}

    async def of(self, owner: str) -> bytes:
        """The secret of an owner, which is made if there is none."""
        async with self._making:
            if owner not in self.by_owner:
                await self.renew([], [owner])
            return self.by_owner[owner]

    async def renew(self, ended: Collection[str], new: Collection[str]) -> None:
        """Forget the secrets of some owners, whose links end with them, and make those of `new` ones."""
        made = {owner: secrets.token_bytes(_BYTES) for owner in new}

        async def write(connection: AsyncConnection, then: Then) -> None:
            await connection.execute(sa.delete(link_secrets).where(link_secrets.c.owner.in_([*ended, *new])))
            for owner, value in made.items():
                await connection.execute(sa.insert(link_secrets).values(owner=owner, value=value))
            others = {owner: value for owner, value in self.by_owner.items() if owner not in ended}
            then(setattr, self, "by_owner", others | made)

        await self._database.transact(write)
