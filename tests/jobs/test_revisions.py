"""The revisions of a transcript, on both databases."""

import asyncio
import json
import zlib
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.errors import JobNotDone, OutcomeUnknown, PreconditionFailed, UnknownJob, UnknownRevision
from app.jobs.corrections import PackedCorrection
from app.jobs.database import Database
from app.jobs.job import Failure, Job
from app.jobs.outbox import DatabaseOutbox
from app.jobs.revisions import KEPT
from app.jobs.serialization import (
    PackedTranscript,
    identified,
    pack_transcript,
    pack_with_words,
    unpack_transcript,
)
from app.jobs.store import Store
from app.jobs.tables import revisions, transcripts
from app.transcript.timeline import Transcript
from tests.jobs.databases import lost_commits, opened
from tests.jobs.samples import TRANSCRIPT, submission

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

WEBHOOK = "https://receiver.example/hook"


def corrected(text: str) -> Transcript:
    """The transcript, with another text in its first segment."""
    first, *others = identified(TRANSCRIPT)
    edited = replace(first, text=text, words=(), tokens=(), speaker="Anna", timed_by_hand=True)
    return replace(TRANSCRIPT, segments=(edited, *others))


def correction(revision: int, text: str = " Hallo.") -> PackedCorrection:
    content, words = pack_with_words(corrected(text), "talk.flac")
    return PackedCorrection(PackedTranscript(revision, content), words, 1)


async def finished(store: Store, **changes: object) -> Job:
    job = await store.begin(await store.add(submission(**changes)))
    return await store.succeed(job, TRANSCRIPT, keep_file=True)


async def read(store: Store, job: Job, revision: int | None = None) -> tuple[int, Transcript]:
    number, content = await store.transcript(job, revision)
    return number, unpack_transcript(content)


async def test_the_newest_revision_is_the_transcript_and_the_original_stays(url: str) -> None:
    async with opened(url) as database:
        store = Store(database)
        job = await finished(store)
        assert await read(store, job) == (0, TRANSCRIPT)
        assert (await store.correct(job, correction(1, " Eins."))).revision == 1
        assert (await store.correct(job, correction(2, " Zwei."))).revision == 2
        assert (await store.get(job.id)).revision == 2
    async with opened(url) as database:
        store = Store(database)
        assert (await store.get(job.id)).revision == 2
        assert await read(store, job) == (2, corrected(" Zwei."))
        assert await read(store, job, 1) == (1, corrected(" Eins."))
        assert await read(store, job, 0) == (0, TRANSCRIPT)


async def test_the_list_of_revisions(database: Database) -> None:
    times = iter(range(1000, 2000))
    store = Store(database, clock=lambda: float(next(times)))
    job = await finished(store)
    first = (0, job.finished_at, 0)
    assert await store.revisions(job) == [first]
    await store.correct(job, correction(1)._replace(changed=7))
    await store.correct(job, correction(2))
    newest, older, original = await store.revisions(job)
    assert original == first
    assert (newest.number, newest.changed, older.number, older.changed) == (2, 1, 1, 7)
    assert job.finished_at < older.created_at < newest.created_at


@pytest.mark.parametrize("revision", [1, 3])
async def test_a_correction_of_another_revision_than_the_newest_is_refused(
    store: Store, revision: int
) -> None:
    job = await finished(store)
    await store.correct(job, correction(1, " Eins."))
    with pytest.raises(PreconditionFailed):
        await store.correct(job, correction(revision))
    assert await read(store, job) == (1, corrected(" Eins."))
    assert [number for number, _, _ in await store.revisions(job)] == [1, 0]


async def test_of_two_corrections_at_once_one_is_stored(store: Store) -> None:
    job = await finished(store)
    texts = [" Eins.", " Zwei."]
    for base in range(5):
        outcomes = await asyncio.gather(
            *(store.correct(job, correction(base + 1, text)) for text in texts), return_exceptions=True
        )
        stored = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Job)]
        assert len(stored) == 1
        assert isinstance(outcomes[1 - stored[0]], PreconditionFailed)
        assert await read(store, job) == (base + 1, corrected(texts[stored[0]]))


async def test_the_original_and_the_newest_corrections_are_kept(store: Store, database: Database) -> None:
    job, other = await finished(store), await finished(store)
    await store.correct(other, correction(1))
    for number in range(1, KEPT + 6):
        await store.correct(job, correction(number, f" {number}."))
    newest = KEPT + 5
    kept = [number for number, _, _ in await store.revisions(job)]
    assert kept == [*range(newest, newest - KEPT, -1), 0]
    for number in (5, newest + 1):
        with pytest.raises(UnknownRevision, match=f"no revision {number}:"):
            await store.transcript(job, number)
    assert await read(store, job, 6) == (6, corrected(" 6."))
    assert await read(store, job, 0) == (0, TRANSCRIPT)
    assert len(await store.revisions(other)) == 2
    async with database.read() as connection:
        assert await connection.scalar(sa.select(sa.func.count()).select_from(revisions)) == KEPT + 1


async def test_only_jobs_that_have_succeeded_can_be_corrected(store: Store) -> None:
    queued = await store.add(submission())
    running = await store.begin(await store.add(submission()))
    failed = await store.begin(await store.add(submission()))
    failed = await store.fail(failed, Failure("broken", "broken_file"), [], keep_file=True)
    for job in (queued, running, failed):
        with pytest.raises(JobNotDone, match=job.status):
            await store.correct(job, correction(1))


async def test_a_deleted_job_loses_its_corrections(store: Store, database: Database) -> None:
    job = await finished(store)
    await store.correct(job, correction(1))
    await store.delete(job)
    for attempt in (store.correct(job, correction(2)), store.transcript(job), store.transcript(job, 1)):
        with pytest.raises(UnknownJob):
            await attempt
    async with database.read() as connection:
        for table in (revisions, transcripts):
            assert await connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0


async def test_a_correction_queues_a_webhook_and_adds_no_event(store: Store, database: Database) -> None:
    job = await finished(store, webhook_url=WEBHOOK)
    events = await store.events(job, 0)
    outbox = DatabaseOutbox(database)
    [succeeded] = await outbox.due(1e12)
    await outbox.delivered(succeeded.id)
    calls: list[None] = []
    store.on_delivery = lambda: calls.append(None)
    job = await store.correct(job, correction(1))
    with pytest.raises(PreconditionFailed):
        await store.correct(job, correction(1))
    [delivery] = await outbox.due(1e12)
    body = json.loads(delivery.body)
    assert (delivery.url, body["type"], body["data"]["revision"]) == (WEBHOOK, "job.corrected", 1)
    assert body["timestamp"] > body["data"]["finished_at"]
    assert len(calls) == 1
    assert await store.events(job, 0) == events


async def test_no_webhook_without_a_url(store: Store, database: Database) -> None:
    await store.correct(await finished(store), correction(1))
    assert await DatabaseOutbox(database).due(1e12) == []


@pytest.mark.parametrize("committed", [False, True])
async def test_a_commit_that_fails(store: Store, database: Database, committed: bool) -> None:
    """The client gets an error; afterwards the old or the new revision is there, and everyone sees it."""
    job = await finished(store)
    with lost_commits(database, committed=committed), pytest.raises(OutcomeUnknown):
        await store.correct(job, correction(1))
    revision = int(committed)
    assert (await store.get(job.id)).revision == revision
    assert await read(store, job) == (revision, corrected(" Hallo.") if committed else TRANSCRIPT)
    assert (await store.correct(job, correction(revision + 1))).revision == revision + 1


async def test_transcripts_of_the_first_version_have_no_clips(store: Store, database: Database) -> None:
    job = await finished(store)
    head, *lines = zlib.decompress(pack_transcript(TRANSCRIPT)).split(b"\n")
    stored = json.loads(head)
    del stored["clips"]
    content = zlib.compress(b"\n".join([json.dumps(stored).encode(), *lines]))
    async with database.write() as connection:
        await connection.execute(sa.update(transcripts).values(content=content))
    _, transcript = await read(store, job)
    assert transcript == TRANSCRIPT
    assert [segment.id for segment in identified(transcript)] == ["0-0", "0-1"]
    await store.correct(job, correction(1))
    assert await read(store, job) == (1, corrected(" Hallo."))


def test_edited_segments_keep_all_that_they_have() -> None:
    transcript = corrected(' "id": Grüße\u2028')
    assert unpack_transcript(pack_transcript(transcript)) == transcript
    assert identified(unpack_transcript(pack_transcript(transcript))) == transcript.segments
