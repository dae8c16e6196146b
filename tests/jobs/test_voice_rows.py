"""The voices in clips of jobs, and those that clients know, in the database: how long they stay there."""

import asyncio

import numpy as np
import pytest
import sqlalchemy as sa

from app.common.options import Options
from app.database.connection import Database
from app.database.tables import known_speakers, voices
from app.jobs.job import Job, JobError
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.store import Store
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.timeline import Transcript
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import SUBMISSION, TRANSCRIPT, submission
from tests.jobs.sites import FakePipeline, Site
from workers.messages import Span, SpeakerModel

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

FIRST, SECOND = (0, 480_000), (480_000, 800_000)
CONTENT = {FIRST: b"\0first", SECOND: b"second" * 1000}
KNOWN = (
    KnownSpeaker("Zoë", np.array([0.6, 0.8], np.float32), "fake"),
    KnownSpeaker("Ann", np.array([1, 1e-9], np.float32), "fake"),
)
DIARIZED = submission(options=Options(diarize=True))


class Embedder:
    """Notes which clips it embeds."""

    def __init__(self) -> None:
        self.embedded: list[Span] = []

    async def __call__(self, clip: Span) -> bytes:
        self.embedded.append(clip)
        return CONTENT[clip]


@pytest.fixture
async def job(store: Store) -> Job:
    """A running job."""
    return await store.begin(await store.add(DIARIZED, KNOWN))


async def embed(clip_store: ClipStore, job: Job) -> list[Span]:
    """Embed the voices in both clips of a job, the later first. Returns those that were not stored."""
    embedder = Embedder()
    recording = await clip_store.load(job)
    found = await asyncio.gather(*(recording.get_or_embed(clip, embedder) for clip in (SECOND, FIRST)))
    assert found == [CONTENT[SECOND], CONTENT[FIRST]]
    await clip_store.flush()
    return embedder.embedded


async def rows(database: Database) -> tuple[int, int]:
    """How many clips have voices, and how many voices are known."""
    async with database.read() as connection:
        counts = [
            await connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (voices, known_speakers)
        ]
    return counts[0] or 0, counts[1] or 0


async def test_stored_voices_are_used_after_a_kill(database: Database, store: Store, job: Job) -> None:
    killed = ClipStore(database)  # never stopped
    killed.start()
    assert await embed(killed, job) == [SECOND, FIRST]
    job = await store.begin(await store.requeue(job))
    restarted = ClipStore(database)
    assert await embed(restarted, job) == []
    assert await store.voices(job) == [CONTENT[FIRST], CONTENT[SECOND]]
    other = await store.begin(await store.add(SUBMISSION))
    assert await store.voices(other) == []


async def test_the_voices_of_a_cancelled_caller_are_stored(
    database: Database, store: Store, job: Job
) -> None:
    clip_store = ClipStore(database)  # not started yet, so nothing is stored
    recording = await clip_store.load(job)
    caller = asyncio.create_task(recording.get_or_embed(FIRST, Embedder()))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    clip_store.start()
    await clip_store.stop()
    assert await store.voices(job) == [CONTENT[FIRST]]


async def test_voices_of_another_digest_are_removed(store: Store, job: Job, clip_store: ClipStore) -> None:
    job = await store.set_result_digest(job, "fake")
    await embed(clip_store, job)
    job = await store.set_result_digest(job, "fake")
    assert await embed(clip_store, job) == []
    job = await store.set_result_digest(job, "second model")
    assert await store.voices(job) == []
    assert await embed(clip_store, job) == [SECOND, FIRST]


@ON_BOTH
async def test_voices_stay_with_a_job_that_succeeds_until_it_is_deleted(
    database: Database, store: Store, job: Job, clip_store: ClipStore
) -> None:
    await embed(clip_store, job)
    job = await store.succeed(job, TRANSCRIPT, keep_file=True)
    assert await store.voices(job) == [CONTENT[FIRST], CONTENT[SECOND]]
    assert await rows(database) == (2, 0), "nobody needs known voices any more"
    await store.delete(job)
    assert await rows(database) == (0, 0)


@pytest.mark.parametrize("keep_file", [True, False])
async def test_voices_of_a_job_that_fails_go_with_its_recording(
    database: Database, store: Store, job: Job, clip_store: ClipStore, keep_file: bool
) -> None:
    await embed(clip_store, job)
    job = await store.fail(job, JobError("broken", None), keep_file)
    assert await rows(database) == ((2, 2) if keep_file else (0, 0))


@pytest.mark.parametrize("end", ["cancel", "delete"])
async def test_no_voices_stay_of_other_jobs(
    database: Database, store: Store, job: Job, clip_store: ClipStore, end: str
) -> None:
    await embed(clip_store, job)
    assert await rows(database) == (2, 2)
    if end == "cancel":
        await store.cancel(job)
    else:
        await store.delete(job)
    assert await rows(database) == (0, 0)


async def test_known_voices_are_kept_in_their_order(store: Store, job: Job) -> None:
    known = await store.known_speakers(job)
    assert [speaker.name for speaker in known] == ["Zoë", "Ann"]
    for speaker, sent in zip(known, KNOWN, strict=True):
        assert speaker.embedding.dtype == np.float32
        assert np.array_equal(speaker.embedding, sent.embedding)
        assert speaker.model == sent.model
    requeued = await store.requeue(job)
    assert len(await store.known_speakers(requeued)) == 2


async def test_a_job_runs_with_its_voices(site: Site) -> None:
    """And with those of the model that is there now: it cannot compare the known ones of another model."""
    known: list[list[str]] = []
    embedded: asyncio.Queue[list[Span]] = asyncio.Queue()  # what each run had to embed

    async def work(pipeline: FakePipeline) -> Transcript:
        known.append([speaker.name for speaker in pipeline.known])
        embedder = Embedder()
        for clip in (FIRST, SECOND):
            await pipeline.results.get_or_embed(clip, embedder)
        embedded.put_nowait(embedder.embedded)
        if len(known) < 3:
            await asyncio.Event().wait()
        return TRANSCRIPT

    site.service.work_on_job = work
    (site.folder.uploads / str(DIARIZED.file)).write_bytes(b"RIFF")
    job = await site.store.add(DIARIZED, KNOWN)
    site.runner.start()
    assert await embedded.get() == [FIRST, SECOND]
    await site.runner.stop()
    site.new_runner().start()
    assert await embedded.get() == []
    await site.runner.stop()
    site.service.media.speaker_model = SpeakerModel("other", "", "second model")
    site.new_runner().start()
    assert await embedded.get() == [FIRST, SECOND]
    await site.wait_for(job, "succeeded")
    assert known == [["Zoë", "Ann"], ["Zoë", "Ann"], []]
