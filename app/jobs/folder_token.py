"""A token in the database and in the data folder: while they agree, no recording is of another database.

A database that is new, restored from a dump or named by mistake has another token than the folder, and
recordings without a job in it may have one elsewhere. The token is renewed at each start, and when jobs were
added, so a dump of the same database soon has an old one.
"""

import asyncio
import secrets
import time
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.files import write_whole
from app.database import tables
from app.database.connection import Database, Then

_NAME = "data_folder"
_BYTES = 16


class FolderToken:
    """Raises what `Database` raises."""

    def __init__(self, database: Database, note: Path, older_note: str) -> None:
        """`note`: the file with the token. `older_note`: what a version without tokens wrote there."""
        self._database = database
        self._note = note
        self._older_note = older_note
        self._noted: str | None = None
        self._newest: int | None = None  # the newest job when the token was renewed
        self._is_valid = False

    async def check(self) -> bool:
        """Whether the folder is that of this database, or new."""
        self._noted = await asyncio.to_thread(_read, self._note)
        query = sa.select(tables.secrets.c.value).where(tables.secrets.c.name == _NAME)
        stored: bytes | None = await self._database.scalar(query)
        known = [self._older_note] if stored is None else stored.decode().split()
        self._is_valid = self._noted is None or self._noted in known
        return self._is_valid

    async def renew(self) -> None:
        """Replace the token if jobs were added since the last call, unless `check` found another one.

        Raises OSError.
        """
        highest = sa.func.coalesce(sa.func.max(tables.jobs.c.number), 0)
        newest = await self._database.scalar(sa.select(highest))
        if newest == self._newest or not self._is_valid:
            return
        token = secrets.token_hex(_BYTES)
        # The database also accepts the token before: a kill may come before the file is written.
        value = f"{token} {self._noted or ''}".encode()
        row = {"name": _NAME, "value": value, "created_at": time.time()}

        async def replace(connection: AsyncConnection, then: Then) -> None:
            await connection.execute(sa.delete(tables.secrets).where(tables.secrets.c.name == _NAME))
            await connection.execute(sa.insert(tables.secrets).values(row))

        await self._database.transact(replace)
        part = self._note.with_suffix(".part")
        await asyncio.to_thread(write_whole, self._note, token.encode(), part, None)
        self._noted, self._newest = token, newest


def _read(note: Path) -> str | None:
    try:
        return note.read_text()
    except FileNotFoundError:
        return None
