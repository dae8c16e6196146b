"""The secret that signs links."""

import asyncio

import pytest
import sqlalchemy as sa

from app.database import tables
from app.database.connection import Database
from app.errors import OutcomeUnknown
from app.jobs.link_secret import LinkSecret
from tests.jobs.databases import ON_BOTH, lost_commits

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def stored(database: Database) -> list[tuple[str, bytes]]:
    async with database.read() as connection:
        rows = await connection.execute(sa.select(tables.secrets.c.name, tables.secrets.c.value))
        return [(row.name, row.value) for row in rows]


async def loaded(database: Database) -> LinkSecret:
    secret = LinkSecret(database)
    await secret.load()
    return secret


async def test_rotation_replaces_it_for_good(database: Database) -> None:
    secret = await loaded(database)
    seen = {secret.value}
    for _ in range(3):
        await secret.rotate()
        seen.add(secret.value)
        assert await stored(database) == [("links", secret.value)]
    assert len(seen) == 4
    assert (await loaded(database)).value == secret.value


@ON_BOTH
async def test_rotations_at_the_same_time_leave_what_is_stored(database: Database) -> None:
    secret = await loaded(database)
    await asyncio.gather(*(secret.rotate() for _ in range(5)))
    assert await stored(database) == [("links", secret.value)]


@pytest.mark.parametrize("committed", [True, False])
async def test_a_rotation_that_may_have_failed_can_be_repeated(database: Database, committed: bool) -> None:
    secret = await loaded(database)
    before = secret.value
    with lost_commits(database, committed=committed), pytest.raises(OutcomeUnknown):
        await secret.rotate()
    assert secret.value == before
    await secret.rotate()
    assert await stored(database) == [("links", secret.value)]
    assert secret.value != before


async def test_other_secrets_stay(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(sa.insert(tables.secrets).values(name="other", value=b"x", created_at=0.0))
    secret = await loaded(database)
    await secret.rotate()
    assert sorted(await stored(database)) == [("links", secret.value), ("other", b"x")]


async def test_it_is_random_before_it_is_loaded(database: Database) -> None:
    assert len({LinkSecret(database).value for _ in range(3)} | {bytes(32), b""}) == 5
