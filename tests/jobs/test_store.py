"""The store on both databases."""

import asyncio
import json
from dataclasses import replace

import pytest
import sqlalchemy as sa
from samples import SUBMISSION, TRANSCRIPT, submission, with_database, with_store
from sqlalchemy.exc import IntegrityError

from app.errors import IllegalTransition, InvalidInput, UnknownJob
from app.jobs.job import TRANSITIONS, Failure, Job, JobProgress, JobStatus, Stage
from app.jobs.outbox import DatabaseOutbox
from app.jobs.store import Store
from app.jobs.tables import metadata

pytestmark = pytest.mark.timeout(60)


async def brought_to(store: Store, status: JobStatus, **changes: object) -> Job:
    """A new job that has come to a status the way that jobs do."""
    job = await store.add(submission(**changes))
    if status is JobStatus.QUEUED:
        return job
    job = await store.begin(job)
    return job if status is JobStatus.RUNNING else await moved(store, job, status)


async def moved(store: Store, job: Job, status: JobStatus) -> Job:
    moves = {
        JobStatus.QUEUED: lambda: store.requeue(job),
        JobStatus.RUNNING: lambda: store.begin(job),
        JobStatus.SUCCEEDED: lambda: store.succeed(job, TRANSCRIPT, keep_file=True),
        JobStatus.FAILED: lambda: store.fail(job, Failure("broken", "broken_file"), [(1, 2)], keep_file=True),
        JobStatus.CANCELLED: lambda: store.cancel(job),
    }
    return await moves[status]()


def test_a_job_comes_back_as_it_was_handed_in(url: str) -> None:
    async def body(store: Store) -> None:
        job = await store.add(SUBMISSION)
        assert job.submission == SUBMISSION
        assert (job.status, job.progress) == (JobStatus.QUEUED, JobProgress())
        assert await store.get(job.id) == job

    with_store(url, body)


def test_it_is_there_when_the_database_is_opened_again(url: str) -> None:
    job = with_store(url, lambda store: brought_to(store, JobStatus.SUCCEEDED))
    assert with_store(url, lambda store: store.get(job.id)) == job
    assert with_store(url, lambda store: store.transcript(job)) == TRANSCRIPT


@pytest.mark.parametrize("before", JobStatus)
def test_only_legal_transitions(url: str, before: JobStatus) -> None:
    async def body(store: Store) -> None:
        for after in JobStatus:
            job = await brought_to(store, before)
            if after in TRANSITIONS[before]:
                assert (await moved(store, job, after)).status is after
                continue
            told = await store.events(job, 0)
            with pytest.raises(IllegalTransition):
                await moved(store, job, after)
            assert await store.get(job.id) == job
            assert await store.events(job, 0) == told

    with_store(url, body)


def test_times_of_a_job(url: str) -> None:
    async def body(database: object) -> None:
        now = [100.0]
        store = Store(database, clock=lambda: now[0])  # type: ignore[arg-type]
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
        shown = job.public(200.0)
        assert shown["created_at"] == "1970-01-01T00:01:40.000Z"
        assert shown["progress"]["realtime_factor"] == 0.5
        assert shown["failed_spans"] == [{"start": 3.75, "end": 4.375}]

    with_database(url, body)


def test_progress_never_goes_back(url: str) -> None:
    async def body(store: Store) -> None:
        job = await brought_to(store, JobStatus.RUNNING)
        await store.progress({job.id: JobProgress(Stage.TRANSCRIBING, 60.0, 600.0, 2, 20)})
        earlier = JobProgress(Stage.DECODING, 30.0, None, 1, None)
        await store.progress({job.id: earlier, "nobody": earlier})
        job = await store.get(job.id)
        assert job.progress == JobProgress(Stage.DECODING, 60.0, 600.0, 2, 20)
        job = await store.begin(await store.requeue(job))
        assert job.progress == JobProgress(Stage.DECODING, 60.0, 600.0, 2, 20)

    with_store(url, body)


def test_events_tell_all_without_a_gap(url: str) -> None:
    async def body(store: Store) -> None:
        live = []
        store.on_event = lambda job_id, event: live.append((job_id, event))
        job = await brought_to(store, JobStatus.RUNNING)
        await store.progress({job.id: JobProgress(Stage.DECODING, 1.0)})
        other = await brought_to(store, JobStatus.QUEUED)
        await moved(store, job, JobStatus.SUCCEEDED)
        await store.progress({job.id: JobProgress(Stage.DECODING, 2.0)})  # too late
        stored = await store.events(job, 0)
        kinds = ["queued", "running", "progress", "succeeded"]
        assert [event.type for event in stored] == [f"job.{kind}" for kind in kinds]
        assert [event.number for event in stored] == [1, 2, 3, 4]
        assert [event.is_last for event in stored] == [False, False, False, True]
        assert [event for job_id, event in live if job_id == job.id] == stored
        statuses = [json.loads(event.data)["status"] for event in stored]
        assert statuses == ["queued", "running", "running", "succeeded"]
        assert await store.events(job, 2) == stored[2:]
        assert len(await store.events(other, 0)) == 1

    with_store(url, body)


def test_jobs_wait_in_their_order(url: str) -> None:
    async def body(store: Store) -> None:
        assert await store.next_queued() is None
        first, second = await store.add(SUBMISSION), await store.add(SUBMISSION)
        assert await store.next_queued() == first
        first = await store.begin(first)
        assert await store.next_queued() == second
        first = await store.requeue(first)
        assert await store.next_queued() == first
        assert await store.in_state([JobStatus.QUEUED]) == [first, second]
        assert await store.count([JobStatus.QUEUED]) == 2
        assert await store.count([JobStatus.QUEUED], owner="nobody") == 0

    with_store(url, body)


def test_owners_take_turns(url: str) -> None:
    async def body(store: Store) -> None:
        many = [await store.add(submission(owner="many")) for _ in range(3)]
        one = await store.add(submission(owner="one"))
        assert await store.next_queued({}) == many[0], "the longest waiting, where nobody has more running"
        assert await store.next_queued({"many": 1}) == one
        assert await store.next_queued({"many": 1, "one": 1}) == many[0]
        assert await store.next_queued({"many": 1, "one": 2}) == many[0]
        assert await store.next_queued({"many": 1}, [one.id]) == many[0]
        assert await store.next_queued({}, [many[0].id]) == many[1]
        assert await store.next_queued({}, [job.id for job in [*many, one]]) is None

    with_store(url, body)


def test_pages(url: str) -> None:
    async def body(store: Store) -> None:
        jobs = [await store.add(SUBMISSION) for _ in range(5)]
        running = await store.begin(jobs[1])
        jobs[1] = running
        newest = jobs[::-1]
        assert await store.page(None, 2, None) == (newest[:2], True)
        assert await store.page(None, 2, newest[1].id) == (newest[2:4], True)
        assert await store.page(None, 2, newest[3].id) == (newest[4:], False)
        assert await store.page(None, 5, None) == (newest, False)
        assert await store.page(JobStatus.RUNNING, 5, None) == ([running], False)
        with pytest.raises(InvalidInput):
            await store.page(None, 5, "unknown")

    with_store(url, body)


def test_an_idempotency_key_is_one_jobs_and_one_owners(url: str) -> None:
    async def body(store: Store) -> None:
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

    with_store(url, body)


def test_deleting_leaves_nothing_but_the_webhook(url: str) -> None:
    async def body(database) -> None:
        store = Store(database)
        job = await brought_to(store, JobStatus.SUCCEEDED, webhook_url="https://example.org/hook")
        await store.delete(job)
        with pytest.raises(UnknownJob):
            await store.get(job.id)
        async with database.read() as connection:
            rows = {
                table.name: await connection.scalar(sa.select(sa.func.count()).select_from(table))
                for table in metadata.sorted_tables
            }
        assert rows == {"jobs": 0, "clips": 0, "transcripts": 0, "events": 0, "deliveries": 1}
        assert (await store.add(SUBMISSION)).number > job.number

    with_database(url, body)


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED])
def test_the_end_of_a_job_is_announced(url: str, status: JobStatus) -> None:
    async def body(database) -> None:
        store, outbox = Store(database, clock=lambda: 1000.0), DatabaseOutbox(database)
        woken = []
        store.on_delivery = lambda: woken.append(True)
        await brought_to(store, status)  # of which nobody wants to hear
        assert await outbox.next_due() is None
        job = await brought_to(store, status, webhook_url="https://example.org/hook")
        assert woken == [True]
        [delivery] = await outbox.due(1000.0)
        message = json.loads(delivery.body)
        assert message["type"] == f"job.{status}"
        assert message["timestamp"] == "1970-01-01T00:16:40.000Z"
        assert message["data"] == job.public(1000.0)
        assert (delivery.url, delivery.attempts) == ("https://example.org/hook", 0)

    with_database(url, body)


def test_the_outbox(url: str) -> None:
    async def body(database) -> None:
        store, outbox = Store(database, clock=lambda: 1000.0), DatabaseOutbox(database)
        await brought_to(store, JobStatus.FAILED, webhook_url="https://example.org/1")
        await brought_to(store, JobStatus.FAILED, webhook_url="https://example.org/2")
        assert await outbox.due(999.0) == []
        first, second = await outbox.due(1000.0)
        await outbox.put_off(first.id, 1, 1005.0)
        assert [delivery.id for delivery in await outbox.due(1000.0)] == [second.id]
        assert await outbox.next_due() == 1000.0
        await outbox.delivered(second.id)
        assert await outbox.next_due() == 1005.0
        assert await outbox.due(1005.0) == [replace(first, attempts=1)]
        await outbox.give_up(first.id)
        assert await outbox.next_due() is None

    with_database(url, body)


def test_many_at_once(url: str) -> None:
    """Readers and writers of one process do not trip over one another."""

    async def one(store: Store) -> str:
        job = await brought_to(store, JobStatus.RUNNING)
        await store.progress({job.id: JobProgress(Stage.DECODING, 1.0)})
        await store.page(None, 10, None)
        return (await moved(store, job, JobStatus.SUCCEEDED)).id

    async def body(store: Store) -> None:
        ids = await asyncio.gather(*(one(store) for _ in range(30)))
        assert len(set(ids)) == 30
        assert await store.count([JobStatus.SUCCEEDED]) == 30

    with_store(url, body)
