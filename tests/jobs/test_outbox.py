"""The outbox of webhooks: it stays small, whatever clients and their receivers do."""

import json

import pytest

from app.database.connection import Database
from app.jobs.job import Job, Status
from app.jobs.storage.store import Store
from app.jobs.webhooks import outbox as outboxes
from app.jobs.webhooks.delivery import Attempt, Webhooks
from app.jobs.webhooks.outbox import Delivery, Outbox
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import submission
from tests.jobs.test_revisions import WEBHOOK, correction, finished

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def waiting(outbox: Outbox) -> list[Delivery]:
    return await outbox.due(1e12)


def kinds(deliveries: list[Delivery]) -> list[tuple[str, int]]:
    """The type and the revision of each."""
    bodies = [json.loads(delivery.body) for delivery in deliveries]
    return sorted((body["type"], body["data"]["revision"]) for body in bodies)


@ON_BOTH
async def test_an_unsent_webhook_gives_way_to_a_newer_one_of_its_job(
    store: Store, database: Database
) -> None:
    outbox = Outbox(database)
    job = await finished(store, webhook_url=WEBHOOK)
    other = await finished(store, webhook_url=WEBHOOK)
    await store.correct(other, correction(1))
    await store.correct(job, correction(1))
    [sent] = [
        each for each in await waiting(outbox) if job.id in each.body and '"job.corrected"' in each.body
    ]
    for revision in range(2, 30):
        await store.correct(job, correction(revision))
    assert kinds(await waiting(outbox)) == [
        ("job.corrected", 1),
        ("job.corrected", 29),
        ("job.succeeded", 0),
        ("job.succeeded", 0),
    ]
    await outbox.postpone(sent.id, 1, 0.0)  # it was on its way when the newer one came
    assert sent.id not in {each.id for each in await waiting(outbox)}


async def cancelled(store: Store, owner: str) -> Job:
    return await store.cancel(await store.add(submission(owner=owner, webhook_url=WEBHOOK)))


@ON_BOTH
async def test_of_too_many_webhooks_of_an_owner_those_that_failed_most_are_given_up(
    store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "MOST_OF_OWNER", 3)
    outbox = Outbox(database)
    webhooks = Webhooks(outbox, None, allow_private=True)
    store.on_webhook = webhooks.added
    others = await cancelled(store, "other")
    jobs = [await cancelled(store, "owner") for _ in range(3)]
    assert webhooks.attempts[Attempt.GIVEN_UP] == 0
    [failed] = [each for each in await waiting(outbox) if jobs[1].id in each.body]
    await outbox.postpone(failed.id, 2, 1e11)
    jobs += [await cancelled(store, "owner") for _ in range(2)]
    left = {json.loads(each.body)["data"]["id"] for each in await waiting(outbox)}
    assert left == {others.id, jobs[2].id, jobs[3].id, jobs[4].id}
    assert webhooks.attempts[Attempt.GIVEN_UP] == 2
    assert all(job.status is Status.CANCELLED for job in jobs)
