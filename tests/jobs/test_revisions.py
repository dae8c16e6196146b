"""The revisions of a transcript."""

import asyncio
import json
import zlib
from dataclasses import replace

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from app.common.errors import OutcomeUnknown, PreconditionFailed, UnknownJob
from app.database.connection import Database
from app.database.tables import revisions, transcripts
from app.jobs.corrections import PackedCorrection
from app.jobs.document import document
from app.jobs.job import Job
from app.jobs.serialization import (
    EXCERPT_CHARS,
    PackedTranscript,
    identified,
    pack_transcript,
    pack_with_summary,
    summary,
    unpack_transcript,
)
from app.jobs.storage.revisions import KEPT, KEPT_BY_LINKS, briefest
from app.jobs.storage.store import Store
from app.jobs.webhooks.outbox import Outbox
from app.transcript.timeline import Transcript
from tests.jobs.databases import ON_BOTH, lost_commits
from tests.jobs.samples import TRANSCRIPT, submission

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

WEBHOOK = "https://receiver.example/hook"


def corrected(text: str) -> Transcript:
    """The transcript, with another text in its first segment."""
    first, *others = identified(TRANSCRIPT)
    edited = replace(first, text=text, words=(), tokens=(), speaker="Anna", timed_by_hand=True)
    return replace(TRANSCRIPT, segments=(edited, *others))


def correction(revision: int, text: str = " Hallo.") -> PackedCorrection:
    content, words = pack_with_summary(corrected(text))
    return PackedCorrection(PackedTranscript(revision, content), words, 1)


async def finished(store: Store, **changes: object) -> Job:
    job = await store.begin(await store.add(submission(**changes)))
    return await store.succeed(job, TRANSCRIPT, keep_file=True)


async def read(store: Store, job: Job, revision: int | None = None) -> tuple[int, Transcript]:
    packed = await store.transcript(job, revision)
    return packed.revision, unpack_transcript(packed.content)


@ON_BOTH
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


async def test_a_list_has_the_beginning_and_the_speakers_of_the_newest_text(store: Store) -> None:
    new = await store.add(submission())
    assert (new.excerpt, new.speakers) == (None, None)
    job = await finished(store)
    assert (job.excerpt, job.speakers) == (TRANSCRIPT.text, ())
    await store.correct(job, correction(1, f" Hallo.{' Und' * EXCERPT_CHARS}"))
    [listed, _], _ = await store.page(None, 9, None)
    assert listed.excerpt is not None
    assert listed.excerpt.startswith("Hallo. Und Und")
    assert len(listed.excerpt) == EXCERPT_CHARS
    assert listed.speakers == ("Anna",)


@ON_BOTH
async def test_a_job_names_the_languages_of_its_newest_text_if_there_are_several(store: Store) -> None:
    first, second = identified(TRANSCRIPT)
    french = replace(TRANSCRIPT, segments=(first, replace(second, language="fr")))
    job = await store.begin(await store.add(submission()))
    job = await store.succeed(job, french, keep_file=True)
    assert list((job.languages or {}).items()) == [("de", 0.9697), ("fr", 0.0303)]
    assert document(job, 0).languages == job.languages
    one = PackedCorrection(PackedTranscript(1, pack_transcript(TRANSCRIPT)), summary(TRANSCRIPT), 1)
    assert (await store.correct(job, one)).languages is None
    back = PackedCorrection(PackedTranscript(2, pack_transcript(french)), summary(french), 1)
    assert (await store.correct(job, back)).languages == job.languages


@given(st.lists(st.floats(0, 1e6), max_size=3 * KEPT).map(sorted))
def test_of_many_corrections_those_that_lasted_are_kept(times: list[float]) -> None:
    removed = briefest(list(enumerate(times, 1)))
    kept = [(number, at) for number, at in enumerate(times, 1) if number not in removed]
    assert len(kept) == min(KEPT, len(times))
    assert not times or kept[-1] == (len(times), times[-1])


def test_an_hour_of_many_saves_leaves_the_days_before() -> None:
    days = [(number, number * 86_400.0) for number in range(1, KEPT)]
    saves = [(KEPT + count, 2e6 + 5 * count) for count in range(700)]
    stored: list[tuple[int, float]] = []
    for correction in days + saves:
        stored.append(correction)
        stored = [one for one in stored if one[0] not in briefest(stored)]
    assert stored == [*days, saves[-1]]


def test_a_link_that_corrects_all_day_leaves_those_of_others() -> None:
    own = [(number, float(number)) for number in range(1, KEPT + 1)]
    by_link = [(KEPT + count, 86_400.0 * count) for count in range(1, 100)]
    stored: list[tuple[int, float]] = []
    for correction in own + by_link:
        stored.append(correction)
        removed = briefest(stored, {number for number, _ in by_link})
        stored = [one for one in stored if one[0] not in removed]
    assert len(set(stored) & set(own)) == KEPT - KEPT_BY_LINKS
    assert len(set(stored) & set(by_link)) == KEPT_BY_LINKS
    assert stored[-1] == by_link[-1]


async def test_corrections_by_a_link_remove_each_other(store: Store) -> None:
    job = await finished(store)
    for number in range(1, KEPT):
        await store.correct(job, correction(number), by_link=number > 3)
    assert [each.number for each in await store.revisions(job) if not each.by_link] == [3, 2, 1, 0]
    assert len(await store.revisions(job)) == 4 + KEPT_BY_LINKS


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
    outbox = Outbox(database)
    [succeeded] = await outbox.due(1e12)
    await outbox.remove(succeeded.id)
    calls: list[None] = []
    store.on_webhook = lambda *_: calls.append(None)
    job = await store.correct(job, correction(1))
    with pytest.raises(PreconditionFailed):
        await store.correct(job, correction(1))
    [delivery] = await outbox.due(1e12)
    body = json.loads(delivery.body)
    assert (delivery.url, body["type"], body["data"]["revision"]) == (WEBHOOK, "job.corrected", 1)
    assert body["timestamp"] > body["data"]["finished_at"]
    assert len(calls) == 1
    assert await store.events(job, 0) == events


@pytest.mark.parametrize("committed", [False, True])
@ON_BOTH
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
