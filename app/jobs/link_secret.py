"""The secret that signs links to audio and results."""

import secrets
import time

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import tables
from app.database.connection import Database, Then

_NAME = "links"
_BYTES = 32


class LinkSecret:
    """It is in the database, so links outlive a restart, and in memory, so checks cost no query."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.value = secrets.token_bytes(_BYTES)  # before `load`, no link is valid

    async def load(self) -> None:
        """Read the secret, or make it if there is none. Raises what `Database` raises."""
        query = sa.select(tables.secrets.c.value).where(tables.secrets.c.name == _NAME)
        stored: bytes | None = await self._database.scalar(query)
        if stored is None:
            await self.rotate()
        else:
            self.value = stored

    async def rotate(self) -> None:
        """Replace the secret: no earlier link is valid any more. Raises what `Database` raises."""
        row = {"name": _NAME, "value": secrets.token_bytes(_BYTES), "created_at": time.time()}

        async def replace(connection: AsyncConnection, then: Then) -> None:
            await connection.execute(sa.delete(tables.secrets).where(tables.secrets.c.name == _NAME))
            await connection.execute(sa.insert(tables.secrets).values(row))
            then(setattr, self, "value", row["value"])

        await self._database.transact(replace)
