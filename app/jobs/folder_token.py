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
_STORED = sa.select(tables.secrets.c.value).where(tables.secrets.c.name == _NAME)


class FolderToken:
    """Raises what `Database` raises."""

    def __init__(self, database: Database, note: Path, older_note: str) -> None:
        """`note`: the file with the token. `older_note`: what a version without tokens wrote there."""
        self._database = database
        self._note = note
        self._older_note = older_note
        self.is_noted = False  # whether the folder has a token, at the last `check`
        self._noted: str | None = None
        self._stored: bytes | None = None
        self._newest: int | None = None  # the newest job when the token was renewed

    async def check(self) -> bool:
        """Whether the folder is that of this database, or new."""
        self._noted = await asyncio.to_thread(_read, self._note)
        self.is_noted = self._noted is not None
        self._stored = stored = await self._database.scalar(_STORED)
        known = [self._older_note] if stored is None else stored.decode().split()
        return not self.is_noted or self._noted in known

    async def renew(self) -> None:
        """Replace the token if jobs were added since the last call, unless the folder is another database's.

        Raises OSError.
        """
        highest = sa.func.coalesce(sa.func.max(tables.jobs.c.number), 0)
        newest = await self._database.scalar(sa.select(highest))
        if newest == self._newest or not await self.check():
            return
        token = secrets.token_hex(_BYTES)
        # The database also accepts the token before: a kill may come before the file is written.
        value = f"{token} {self._noted or ''}".encode()
        row = {"name": _NAME, "value": value, "created_at": time.time()}

        async def replace(connection: AsyncConnection, then: Then) -> bool:
            if await connection.scalar(_STORED) != self._stored:
                return False  # another front end is at it
            await connection.execute(sa.delete(tables.secrets).where(tables.secrets.c.name == _NAME))
            await connection.execute(sa.insert(tables.secrets).values(row))
            return True

        if not await self._database.transact(replace):
            return
        part = self._note.with_suffix(".part")
        await asyncio.to_thread(write_whole, self._note, token.encode(), part, None)
        self._noted, self._newest = token, newest


def _read(note: Path) -> str | None:
    try:
        return note.read_text()
    except FileNotFoundError:
        return None
