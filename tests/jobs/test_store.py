"""The store and the outbox."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import IllegalTransition, UnknownJob
from app.database.connection import Database
from app.database.tables import jobs, metadata
from app.jobs.corrections import PackedCorrection
from app.jobs.document import public
from app.jobs.events import Event
from app.jobs.job import TRANSITIONS, Job, JobError, JobProgress, Stage, Status
from app.jobs.link_secrets import LinkSecrets
from app.jobs.serialization import PackedTranscript, pack_with_summary, unpack_transcript
from app.jobs.storage.rows import submission_row
from app.jobs.storage.store import QueuedRow, Store
from app.jobs.webhooks.outbox import Outbox
from tests.jobs.databases import ON_BOTH, opened
from tests.jobs.samples import SUBMISSION, TRANSCRIPT, submission

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def new_job(store: Store, status: Status, **changes: object) -> Job:
    """A new job that has reached a status by legal transitions."""
    job = await store.add(submission(**changes))
    if status is Status.QUEUED:
        return job
    job = await store.begin(job)
    return job if status is Status.RUNNING else await transition(store, job, status)


async def transition(store: Store, job: Job, status: Status) -> Job:
    transitions = {
        Status.QUEUED: lambda: store.requeue(job),
        Status.RUNNING: lambda: store.begin(job),
        Status.SUCCEEDED: lambda: store.succeed(job, TRANSCRIPT, keep_file=True),
        Status.FAILED: lambda: store.fail(job, JobError("broken", "broken_file"), keep_file=True),
        Status.CANCELLED: lambda: store.cancel(job),
    }
    return await transitions[status]()


@ON_BOTH
async def test_jobs_outlive_the_process(url: str) -> None:
    async with opened(url) as database:
        job = await new_job(Store(database), Status.SUCCEEDED)
    async with opened(url) as database:
        store = Store(database)
        assert await store.get(job.id) == job
        assert unpack_transcript((await store.transcript(job)).content) == TRANSCRIPT


async def test_options_stored_by_a_version_with_fewer_of_them(store: Store, database: Database) -> None:
    job = await store.add(SUBMISSION)
    numbers = {"max_line_chars": 42, "max_lines": 2, "max_cps": 20.0, "min_cue_s": 5 / 6, "max_cue_s": 7.0}
    new = {"profile", "min_gap_s", "fps", "start_offset_s", "word_level", "srt_bom", "srt_crlf"}
    stored = SUBMISSION.options.model_dump(mode="json", exclude=new) | numbers
    async with database.write() as connection:
        await connection.execute(sa.update(jobs).where(jobs.c.id == job.id).values(options=stored))
    loaded = await Store(database).get(job.id)
    assert loaded.submission.options == SUBMISSION.options.model_copy(update=numbers)
    options = public(loaded, 0.0)["options"]
    assert options == SUBMISSION.options.model_dump(mode="json") | numbers


@pytest.mark.parametrize("before", Status)
async def test_only_legal_transitions(store: Store, before: Status) -> None:
    for after in Status:
        job = await new_job(store, before)
        if after in TRANSITIONS[before]:
            assert (await transition(store, job, after)).status is after
            continue
        events = await store.events(job, 0)
        with pytest.raises(IllegalTransition):
            await transition(store, job, after)
        assert await store.get(job.id) == job
        assert await store.events(job, 0) == events


async def test_times_of_a_job(database: Database) -> None:
    now = [100.0]
    store = Store(database, clock=lambda: now[0])
    job = await store.add(SUBMISSION)
    assert (job.created_at, job.started_at, job.finished_at) == (100, None, None)
    now[0] = 101.0
    job = await store.begin(job)
    now[0] = 102.0
    job = await store.requeue(job)
    now[0] = 103.0
    job = await store.begin(job)
    assert (job.started_at, job.finished_at) == (101, None)
    now[0] = 111.0
    job = await store.succeed(job, TRANSCRIPT, keep_file=False)
    assert (job.started_at, job.finished_at) == (101, 111)
    assert (job.duration, job.language, job.submission.file) == (5.0, "de", None)
    assert (job.progress.done_s, job.progress.total_s) == (5.0, 5.0)
    shown = public(job, 200.0)
    assert shown["created_at"] == "1970-01-01T00:01:40.000Z"
    assert shown["progress"]["realtime_factor"] == 0.5
    assert shown["failed_spans"] == [{"start": 3.75, "end": 4.375}]


async def test_progress_never_decreases(store: Store) -> None:
    job = await new_job(store, Status.RUNNING)
    await store.store_progress({job.id: JobProgress(Stage.TRANSCRIBING, 60.0, 600.0, 2, 20)})
    less = JobProgress(Stage.DECODING, 30.0, None, 1, None)
    await store.store_progress({job.id: less, "unknown": less})
    job = await store.get(job.id)
    assert job.progress == JobProgress(Stage.DECODING, 60.0, 600.0, 2, 20)
    job = await store.begin(await store.requeue(job))
    assert job.progress == JobProgress(Stage.DECODING, 60.0, 600.0, 2, 20)


@ON_BOTH
async def test_events_have_no_gap(store: Store) -> None:
    published: list[tuple[str, Event]] = []
    store.on_event = lambda job_id, event: published.append((job_id, event))
    job = await new_job(store, Status.RUNNING)
    await store.store_progress({job.id: JobProgress(Stage.DECODING, 1.0)})
    other = await new_job(store, Status.QUEUED)
    await transition(store, job, Status.SUCCEEDED)
    await store.store_progress({job.id: JobProgress(Stage.DECODING, 2.0)})  # too late
    stored = await store.events(job, 0)
    types = ["queued", "running", "progress", "succeeded"]
    assert [event.type for event in stored] == [f"job.{kind}" for kind in types]
    assert [event.number for event in stored] == [1, 2, 3, 4]
    assert [event.is_last for event in stored] == [False, False, False, True]
    assert [event for job_id, event in published if job_id == job.id] == stored
    statuses = [json.loads(event.data)["status"] for event in stored]
    assert statuses == ["queued", "running", "running", "succeeded"]
    assert await store.events(job, 2) == stored[2:]
    assert len(await store.events(other, 0)) == 1


async def test_the_first_queued_jobs_of_each_owner_are_read(store: Store, database: Database) -> None:
    row = submission_row(SUBMISSION) | asdict(JobProgress()) | {"created_at": 0.0, "failed_spans": []}
    rows = [row | {"id": f"{number}", "status": "queued"} for number in range(400)]
    async with database.write() as connection:
        await connection.execute(sa.insert(jobs), rows)
    last = await store.add(submission(owner="another"))
    queued = await store.queued()
    assert [each.id for each in queued] == [*(f"{number}" for number in range(300)), last.id]


async def test_jobs_are_queued_in_order(store: Store) -> None:
    assert await store.queued() == []
    first, second = await store.add(SUBMISSION), await store.add(SUBMISSION)
    assert [row.id for row in await store.queued()] == [first.id, second.id]
    first = await store.begin(first)
    assert [row.id for row in await store.queued()] == [second.id]
    first = await store.requeue(first)
    assert [row.id for row in await store.queued()] == [first.id, second.id]
    assert await store.with_status([Status.QUEUED]) == [first, second]
    assert await store.count([Status.QUEUED]) == 2
    assert await store.count_by_owner([Status.QUEUED]) == {SUBMISSION.owner: 2}


async def test_queued_jobs_have_what_their_order_depends_on(store: Store) -> None:
    url = await store.add(submission(owner="other", file=None, size=None, url="https://media.example/a"))
    file = await store.begin(await store.add(submission(size=5)))
    await store.store_progress({file.id: JobProgress(Stage.TRANSCRIBING, 60.0, 600.0, 2, 20)})
    await store.requeue(file)
    assert await store.queued() == [
        QueuedRow(url.id, url.number, "other", None, None, 0.0, has_file=False),
        QueuedRow(file.id, file.number, "somebody", 5, 600.0, 60.0, has_file=True),
    ]


@ON_BOTH
async def test_an_idempotency_key_belongs_to_one_job_of_one_owner(store: Store) -> None:
    job = await store.add(submission(idempotency_key="key"))
    with pytest.raises(IntegrityError):
        await store.add(submission(idempotency_key="key"))
    other = await store.add(submission(idempotency_key="key", owner="another"))
    await store.add(submission(idempotency_key=None))
    await store.add(submission(idempotency_key=None))
    assert await store.find("somebody", "key") == job
    assert await store.find("another", "key") == other
    assert await store.find("nobody", "key") is None
    await store.delete(job)
    assert await store.find("somebody", "key") is None


@ON_BOTH
async def test_deleting_a_job_leaves_its_webhook_and_its_usage_only(database: Database, store: Store) -> None:
    job = await new_job(store, Status.SUCCEEDED, webhook_url="https://example.org/hook")
    await store.delete(job)
    with pytest.raises(UnknownJob):
        await store.get(job.id)
    async with database.read() as connection:
        rows = {
            table.name: await connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in metadata.sorted_tables
        }
    assert {table for table, count in rows.items() if count} == {"deliveries", "readers", "usage"}
    assert (await store.add(SUBMISSION)).number > job.number


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED])
async def test_a_webhook_announces_the_end_of_a_job(database: Database, status: Status) -> None:
    store, outbox = Store(database, clock=lambda: 1000.0), Outbox(database)
    calls = []
    store.on_webhook = lambda *_: calls.append(True)
    await new_job(store, status)  # without a webhook
    assert await outbox.next_due() is None
    job = await new_job(store, status, webhook_url="https://example.org/hook")
    assert calls == [True]
    [delivery] = await outbox.due(1000.0)
    message = json.loads(delivery.body)
    assert message["type"] == f"job.{status}"
    assert message["timestamp"] == "1970-01-01T00:16:40.000Z"
    assert message["data"] == public(job, 1000.0)
    assert (delivery.url, delivery.attempts) == ("https://example.org/hook", 0)


@ON_BOTH
async def test_the_outbox(database: Database) -> None:
    store, outbox = Store(database, clock=lambda: 1000.0), Outbox(database)
    await new_job(store, Status.FAILED, webhook_url="https://example.org/1")
    await new_job(store, Status.FAILED, webhook_url="https://example.org/2")
    assert await outbox.due(999.0) == []
    first, second = await outbox.due(1000.0)
    assert (first.owner, first.host) == (SUBMISSION.owner, "example.org")
    assert await outbox.due(1000.0, [first.id]) == [second]
    assert await outbox.due(1000.0, owners=["", SUBMISSION.owner]) == []
    assert await outbox.due(1000.0, hosts=[("", ""), (SUBMISSION.owner, "example.org")]) == []
    others = [(SUBMISSION.owner, "example.com"), ("another", "example.org")]
    assert await outbox.due(1000.0, [], ["another"], others) == [first, second]
    await outbox.postpone(first.id, 1, 1005.0)
    assert [delivery.id for delivery in await outbox.due(1000.0)] == [second.id]
    assert await outbox.next_due() == 1000.0
    await outbox.remove(second.id)
    assert await outbox.next_due() == 1005.0
    assert await outbox.due(1005.0) == [replace(first, attempts=1)]
    await outbox.remove(first.id)
    assert await outbox.next_due() is None


async def test_a_cancelled_caller_does_not_leave_sqlite_locked(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/jobs.db") as database:
        store = Store(database)
        for step in range(80):
            adding = asyncio.create_task(store.add(SUBMISSION))
            await asyncio.sleep(step * 5e-5)
            adding.cancel()
            await asyncio.gather(adding, return_exceptions=True)
            before = await store.count([Status.QUEUED])
            async with asyncio.timeout(2):
                await store.add(SUBMISSION)
            assert await store.count([Status.QUEUED]) == before + 1


async def cancelled_after_the_commit(database: Database, change: Coroutine[Any, Any, object]) -> None:
    """Run a change. Its caller is cancelled when the transaction is committed, before what follows."""
    write, is_committed = database.write, False

    @asynccontextmanager
    async def write_and_cancel() -> AsyncIterator[AsyncConnection]:
        nonlocal is_committed
        async with write() as connection:
            yield connection
        caller.cancel()
        await asyncio.sleep(0)
        is_committed = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "write", write_and_cancel)
        caller = asyncio.ensure_future(change)
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert is_committed


async def test_what_follows_a_commit_follows_although_the_caller_is_cancelled(database: Database) -> None:
    store = Store(database)
    seen: list[str] = []
    store.on_event = lambda job_id, event: seen.append(event.type)
    store.on_webhook = lambda *_: seen.append("webhook")

    await cancelled_after_the_commit(database, store.add(submission(webhook_url="https://example.org")))
    assert seen == ["job.queued"]
    [job] = (await store.page(None, 1, None))[0]
    await cancelled_after_the_commit(database, store.begin(job))
    assert seen[1:] == ["job.running"]
    await cancelled_after_the_commit(database, store.succeed(job, TRANSCRIPT, keep_file=True))
    assert seen[2:] == ["job.succeeded", "webhook"]
    assert (await store.get(job.id)).status is Status.SUCCEEDED, "the cached job"
    await cancelled_after_the_commit(database, store.delete(job))
    with pytest.raises(UnknownJob):
        await store.get(job.id)


@ON_BOTH
async def test_what_the_jobs_of_an_owner_hold(store: Store) -> None:
    """Recordings, and about as much as the rows of texts take."""
    assert await store.bytes_by_owner() == {}
    for owner, file, size in (("ann", "a", 5_000_000), ("ann", "b", 1_000_000), ("bob", None, 7_000_000)):
        await store.add(submission(owner=owner, file=file, size=size))
    assert await store.bytes_by_owner() == {"ann": 6_020_000, "bob": 10_000}
    job = await new_job(store, Status.SUCCEEDED)
    before = (await store.bytes_by_owner())[job.submission.owner]
    packed = pack_with_summary(TRANSCRIPT)
    await store.correct(job, PackedCorrection(PackedTranscript(1, packed[0]), packed[1], 1, True))
    after = (await store.bytes_by_owner())[job.submission.owner]
    assert job.duration is not None
    assert after - before == int(20 * job.duration)


@ON_BOTH
async def test_webhooks_of_one_owner_are_dropped(store: Store, database: Database) -> None:
    ann, bob = [
        await store.add(submission(owner=owner, webhook_url="https://example.org"))
        for owner in ("ann", "bob")
    ]
    for job in (ann, bob):
        await store.begin(job)
        await store.succeed(job, TRANSCRIPT, keep_file=True)
    await store.drop_webhooks("ann")
    assert (await store.get(ann.id)).submission.webhook_url is None
    assert (await store.get(bob.id)).submission.webhook_url == "https://example.org"
    [waiting] = await Outbox(database).due(1e12)
    assert bob.id in waiting.body


async def test_a_withdrawn_secret_is_replaced_although_the_caller_is_cancelled(database: Database) -> None:
    secrets, stored = LinkSecrets(database), LinkSecrets(database)
    before = await secrets.of("ann")
    await cancelled_after_the_commit(database, secrets.renew([], ["ann"]))
    await stored.load()
    assert secrets.by_owner == stored.by_owner != {"ann": before}


@ON_BOTH
async def test_concurrent_readers_and_writers(store: Store) -> None:
    async def one() -> str:
        job = await new_job(store, Status.RUNNING)
        await store.store_progress({job.id: JobProgress(Stage.DECODING, 1.0)})
        await store.page(None, 10, None)
        return (await transition(store, job, Status.SUCCEEDED)).id

    ids = await asyncio.gather(*(one() for _ in range(30)))
    assert len(set(ids)) == 30
    assert await store.count([Status.SUCCEEDED]) == 30
