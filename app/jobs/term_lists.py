"""The names and terms of all owners: each request and job of theirs is transcribed with them."""

from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import InvalidSetting
from app.database.connection import Database, Then
from app.database.tables import terms
from app.jobs.access import note_access
from app.settings import Settings
from app.transcript.term_list import packed_terms, parse_terms, read_terms
from app.transcript.terms import Term, joined_terms

_joined = lru_cache(maxsize=256)(joined_terms)


def common_terms(settings: Settings) -> tuple[Term, ...]:
    """The terms of the service. Raises InvalidSetting if their file cannot be used."""
    if settings.terms is None:
        return ()
    try:
        return read_terms(settings.terms)
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"WHISPER_TERMS={settings.terms}: {error}") from None


class TermLists:
    """They are in the database, and in memory, so a request of an owner without terms costs no query.

    Raises what `Database` raises.
    """

    def __init__(self, database: Database, common: tuple[Term, ...]) -> None:
        """`common`: the terms of the service, which each owner has besides."""
        self._database = database
        self._common = common
        self._by_owner: dict[str, tuple[Term, ...]] = {}

    async def load(self) -> None:
        rows = await self._database.rows(sa.select(terms.c.owner, terms.c.content))
        self._by_owner = {row.owner: parse_terms(row.content) for row in rows}

    def own(self, owner: str) -> tuple[Term, ...]:
        """The list of an owner."""
        return self._by_owner.get(owner, ())

    def all_of(self, owner: str) -> tuple[Term, ...]:
        """What counts for an owner: its list, and of those of the service what does not disagree with it."""
        own = self.own(owner)
        return _joined(own, self._common) if own and self._common else own or self._common

    async def replace(self, owner: str, new: tuple[Term, ...]) -> None:
        """Store another list for an owner. What is transcribed already stays as it is."""

        async def write(connection: AsyncConnection, then: Then) -> None:
            await self._database.serialize(connection, "terms")
            await connection.execute(sa.delete(terms).where(terms.c.owner == owner))
            if new:
                row = {"owner": owner, "content": packed_terms(new)}
                await connection.execute(sa.insert(terms).values(row))
            await note_access(self._database, connection)
            then(self._by_owner.__setitem__, owner, new)

        await self._database.transact(write)
