"""Whether other front ends have changed what all keep in memory: links, their secrets, and terms."""

import secrets
import time

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import tables
from app.database.connection import Database

_NAME = "access"  # of a random value, which is replaced with each change
ACCESS = sa.select(tables.secrets.c.value).where(tables.secrets.c.name == _NAME).scalar_subquery()


async def note_access(database: Database, connection: AsyncConnection) -> None:
    """Let other front ends, if there can be some, read all of it again after this transaction."""
    if database.is_shared:
        row = {"name": _NAME, "value": secrets.token_bytes(16), "created_at": time.time()}
        insert = postgresql.insert(tables.secrets).values(row)  # SQLite has PostgreSQL's syntax
        changed = {"value": insert.excluded.value, "created_at": insert.excluded.created_at}
        await connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=changed))
