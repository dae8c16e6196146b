"""Events are stored as what changed, and read as they were published."""

import json
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from app.database.connection import Database
from app.database.tables import events
from app.jobs.events import Event, restore, shorten
from app.jobs.job import Job, JobError, JobProgress, Stage
from app.jobs.storage.store import Store
from tests.jobs.samples import submission

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


async def rows(database: Database, job: Job) -> list[str]:
    query = sa.select(events.c.data).where(events.c.job_number == job.number).order_by(events.c.number)
    async with database.read() as connection:
        return list(await connection.scalars(query))


async def run_to_the_end(store: Store) -> tuple[Job, list[Event]]:
    """A job that is downloaded, retried, and fails; and its events as they were published."""
    published: list[Event] = []
    store.on_event = lambda job_id, event: published.append(event)
    job = await store.add(submission(file=None, filename="", url="https://media.example/Rede über Äpfel"))
    job = await store.begin(job)
    await store.update(job.id, file="0" * 32, filename='Rede über "Äpfel" 🍏.mp3', size=5, sha256="ab")
    for done in range(3):
        progress = JobProgress(Stage.TRANSCRIBING, done * 30.1, 3600.0 if done else None, done, None)
        await store.store_progress({job.id: progress})
    job = await store.begin(await store.requeue(job))
    await store.fail(job, JobError("Line 1\nand 2", "clip_failed"), keep_file=True)
    return job, published


async def test_events_are_read_as_they_were_published(store: Store) -> None:
    job, published = await run_to_the_end(store)
    assert len(published) == 8
    assert await store.events(job, 0) == published
    for after in range(9):
        assert await store.events(job, after, limit=2) == published[after : after + 2]


async def test_rows_have_what_changed(database: Database, store: Store) -> None:
    job, published = await run_to_the_end(store)
    first, *others = await rows(database, job)
    assert first == published[0].data
    assert all("options" not in json.loads(row) for row in others)
    progress = json.loads(others[3])
    assert progress.pop("progress").keys() == {"stage", "done_s", "total_s", "clips_done", "realtime_factor"}
    assert progress.keys() == {"status", "started_at", "filename"}


async def test_rows_of_earlier_versions_have_whole_jobs(database: Database, store: Store) -> None:
    """Also of a job that goes on with this version."""
    job, published = await run_to_the_end(store)
    async with database.write() as connection:
        for event in published[:4]:
            row = (events.c.job_number == job.number) & (events.c.number == event.number)
            await connection.execute(sa.update(events).where(row).values(data=event.data))
    assert await store.events(job, 0) == published
    assert await store.events(job, 3) == published[3:]


async def test_a_later_version_with_more_options_restores_the_events_of_a_job_from_before(
    database: Database, store: Store
) -> None:
    job = await store.add(submission())
    first = json.loads((await rows(database, job))[0])
    del first["options"]["beam_size"], first["webhook_url"]
    async with database.write() as connection:
        await connection.execute(sa.update(events).values(data=json.dumps(first)))
    await store.begin(job)
    published: list[Event] = []
    store.on_event = lambda job_id, event: published.append(event)
    await store.store_progress({job.id: JobProgress(Stage.DECODING, 1.0)})
    assert (await store.events(job, 0))[-1] == published[0]
    assert json.loads(published[0].data)["options"]["beam_size"] == 5


LEAVES = st.sampled_from([None, True, False, 0, 1, 0.0, 1.0, "", "Ä", []])
NESTED = st.dictionaries(st.sampled_from("abc"), LEAVES)
DOCUMENTS = st.dictionaries(st.sampled_from(["status", "progress", "error", "url"]), LEAVES | NESTED)


@given(DOCUMENTS, DOCUMENTS, st.booleans())
def test_any_change_is_restored(first: dict[str, Any], change: dict[str, Any], keep: bool) -> None:
    first = {"id": "1", **first}
    document = json.dumps({"id": "1", **(first if keep else {}), **change}, ensure_ascii=False)
    assert restore(first, shorten(first, document)) == document
