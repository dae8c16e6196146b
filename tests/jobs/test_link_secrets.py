"""The secrets that sign links."""

import asyncio

import pytest

from app.common.errors import OutcomeUnknown
from app.database.connection import Database
from app.jobs.link_secrets import LinkSecrets
from tests.jobs.databases import ON_BOTH, lost_commits

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def loaded(database: Database) -> LinkSecrets:
    secrets = LinkSecrets(database)
    await secrets.load()
    return secrets


@ON_BOTH
async def test_each_owner_has_its_own_for_good(database: Database) -> None:
    secrets = await loaded(database)
    assert secrets.by_owner == {}, "no link is valid"
    ann, bob = await asyncio.gather(secrets.of("ann"), secrets.of("bob"))
    assert ann != bob
    assert (await secrets.of("ann"), (await loaded(database)).by_owner) == (ann, {"ann": ann, "bob": bob})
    await secrets.renew([], ["ann"])
    assert (await secrets.of("bob"), await secrets.of("ann") == ann) == (bob, False)
    await secrets.renew(["ann"], ["carol"])
    assert {*secrets.by_owner} == {"bob", "carol"}
    assert secrets.by_owner == (await loaded(database)).by_owner


@ON_BOTH
async def test_requests_at_the_same_time_sign_with_one_secret(database: Database) -> None:
    secrets = await loaded(database)
    made = await asyncio.gather(*(secrets.of("ann") for _ in range(3)))
    assert set(made) == {secrets.by_owner["ann"]}


@ON_BOTH
async def test_renewals_at_the_same_time_leave_what_is_stored(database: Database) -> None:
    secrets = await loaded(database)
    await asyncio.gather(*(secrets.renew([], ["ann", "bob"]) for _ in range(5)))
    assert secrets.by_owner == (await loaded(database)).by_owner


@pytest.mark.parametrize("committed", [True, False])
async def test_a_renewal_that_may_have_failed_can_be_repeated(database: Database, committed: bool) -> None:
    secrets = await loaded(database)
    before = await secrets.of("ann")
    with lost_commits(database, committed=committed), pytest.raises(OutcomeUnknown):
        await secrets.renew([], ["ann"])
    assert secrets.by_owner == {"ann": before}
    await secrets.renew([], ["ann"])
    assert secrets.by_owner == (await loaded(database)).by_owner != {"ann": before}
