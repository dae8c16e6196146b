"""Jobs in the trash: what finds them, what they keep, how long they stay, and how they come back."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from app.common.errors import IllegalTransition, JobNotDone, NoTrash, QueueFull, UnknownJob
from app.database.connection import Database
from app.jobs.events import Event
from app.jobs.job import Again, Job, JobError, Status
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.retention import Retention
from app.jobs.storage.store import Store
from app.transcript.packed import pack_result
from tests.event_loop import Clock
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import RESULT, SUBMISSION, TRANSCRIPT, submission
from tests.jobs.sites import started_jobs
from tests.jobs.test_retention import correction, times

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

DAY_S = 86400.0
CLIP = (0, 16_000, None, 0)


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def store(database: Database, clock: Clock) -> Store:
    return Store(database, clock, retention=Retention(7 * DAY_S, trash_ttl_s=3 * DAY_S))


async def finished(store: Store, **changes: object) -> Job:
    job = await store.begin(await store.add(submission(**changes)))
    return await store.succeed(job, TRANSCRIPT, keep_file=True)


async def again(store: Store, parent: Job) -> Job:
    asked = Again(parent.id, parent.revision, keep_corrections=True)
    return await store.add(submission(file=None, again=asked, idempotency_key=None))


@ON_BOTH
async def test_only_the_trash_has_it_and_it_comes_back_as_it_was(store: Store, clock: Clock) -> None:
    job = await store.describe(await finished(store), lambda _: None, title="Ein Gespräch", tags=("Team",))
    job = await store.correct(job, correction(1))
    other = await finished(store)
    held = await store.bytes_by_owner()
    clock.now += DAY_S
    assert await store.trash(job) == []
    assert await store.trash(job) == [], "it stays as it is"

    with pytest.raises(UnknownJob):
        await store.get(job.id)
    with pytest.raises(UnknownJob):
        await store.correct(job, correction(2))
    assert await store.named([job.id, other.id]) == [other]
    assert list(await store.statuses([job.id, other.id])) == [other.id]
    trashed = await store.get_any(job.id, "somebody")
    assert (trashed.trashed_at, times(trashed)) == (clock.now, (clock.now + 3 * DAY_S,) * 2)
    for text, tags, found in ((None, (), [other]), ("gesprach", (), []), (None, ("team",), [])):
        assert (await store.page(None, 9, None, text, "somebody", tags))[0] == found
        assert (await store.page(None, 9, None, text, "somebody", tags, trashed=True))[0] == [trashed]
    assert (await store.page(None, 9, None, owner="nobody", trashed=True))[0] == []
    with pytest.raises(UnknownJob):
        await store.get_any(job.id, "nobody")
    assert await store.bytes_by_owner() == held
    assert await store.files() == {SUBMISSION.file}

    clock.now += 2 * DAY_S
    restored = await store.restore(trashed)
    assert restored == replace(job, audio_expires_at=(job.audio_expires_at or 0) + 2 * DAY_S)
    assert await store.get(job.id) == await store.restore(restored) == restored
    assert (await store.page(None, 9, None, "gesprach", tags=("team",)))[0] == [restored]
    assert await store.transcript(restored) == correction(1).transcript


@ON_BOTH
async def test_its_time_counts_from_then_and_stands_still_meanwhile(store: Store, clock: Clock) -> None:
    old, corrected = await finished(store), await finished(store)
    corrected = await store.correct(corrected, correction(1))
    clock.now += 6 * DAY_S
    await store.trash(old)
    await store.trash(corrected)
    clock.now += 2 * DAY_S
    assert await store.expired(9) == await store.with_expired_recordings(9) == []
    assert (await store.restore(old)).expires_at == clock.now + DAY_S
    clock.now += DAY_S + 1
    assert [job.id for job in await store.expired(9)] == [old.id, corrected.id]
    assert await store.restore(corrected)
    assert not await store.delete(corrected, only_expired=True), "it was restored just before"
    await store.trash(corrected)
    clock.now += 3 * DAY_S + 1
    assert await store.delete(corrected, only_expired=True)


@ON_BOTH
async def test_what_was_cancelled_goes_on_with_what_it_had(
    database: Database, store: Store, clip_store: ClipStore
) -> None:
    events: list[tuple[str, Event]] = []
    store.on_event = lambda job_id, event: events.append((job_id, event))
    parent = await finished(store)
    job, child = await store.begin(await store.add(SUBMISSION)), await store.begin(await again(store, parent))
    await asyncio.gather(
        *(clip_store.put(each.number, CLIP, 1, pack_result(RESULT)) for each in (job, child))
    )
    assert [each.status for each in await store.trash(job)] == [Status.CANCELLED]
    assert [each.id for each in await store.trash(parent)] == [child.id]
    assert [(job_id, event.type) for job_id, event in events[-2:]] == [
        (job.id, "job.cancelled"), (child.id, "job.cancelled"),
    ]  # fmt: skip
    for each in (job, child, parent):
        with pytest.raises(UnknownJob):
            await store.get(each.id)
    with pytest.raises(UnknownJob):
        await again(store, parent)
    assert await store.with_status(list(Status)) == []

    queued = await store.restore(job)
    assert (queued.status, queued.finished_at, queued.expires_at) == (Status.QUEUED, None, None)
    assert set((await clip_store.load(queued)).results) == {CLIP}
    assert [event.type for event in await store.events(queued, 0)] == [
        "job.queued", "job.running", "job.queued",
    ]  # fmt: skip
    assert (await store.restore(parent)).status is Status.SUCCEEDED
    child = await store.get(child.id)
    assert child.status is Status.QUEUED
    assert set((await clip_store.load(child)).results) == {CLIP}
    with pytest.raises(JobNotDone):
        await again(store, parent)
    assert await store.delete(await store.get(parent.id))
    with pytest.raises(UnknownJob):
        await store.get_any(child.id)


@ON_BOTH
async def test_its_idempotency_key_is_free_once_somebody_needs_it(store: Store) -> None:
    job = await finished(store, idempotency_key="k")
    await store.trash(job)
    assert await store.find("somebody", "k") is None
    await store.restore(job)
    assert (await store.find("somebody", "k")) == job
    with pytest.raises(IntegrityError):
        await store.add(submission(idempotency_key="k"))
    await store.trash(job)
    other = await store.add(submission(idempotency_key="k"))
    assert (await store.restore(job)).submission.idempotency_key is None
    assert await store.find("somebody", "k") == other


async def test_a_service_keeps_what_was_cancelled_over_a_restart_until_its_time_is_over(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    recording = tmp_path / "uploads" / ("a" * 32)
    async with started_jobs(url, tmp_path, clock, trash_ttl_s=DAY_S, max_queued_jobs=1) as jobs:
        recording.write_bytes(b"RIFF")
        job, _ = await jobs.submit(submission(file=recording.name))
        trashed = await jobs.trash(job)
        assert (trashed.status, trashed.trashed_at) == (Status.CANCELLED, clock.now)
        held = jobs.disk.stored["somebody"]
    async with started_jobs(url, tmp_path, clock, trash_ttl_s=DAY_S, max_queued_jobs=1) as jobs:
        assert recording.exists()
        jobs._service.fleet.jobs_at_once = 0
        other, _ = await jobs.submit(submission(file=None, url="https://media.example/talk.mp3"))
        with pytest.raises(QueueFull):
            await jobs.restore(trashed)
        await jobs.delete(other.id)
        assert (await jobs.restore(trashed)).status is Status.QUEUED
        await jobs.trash(job)
        assert jobs.disk.stored["somebody"] >= held
        clock.now += DAY_S + 1
        await jobs.sweep()
        assert not recording.exists()
        with pytest.raises(UnknownJob):
            await jobs.store.get_any(job.id)


async def test_a_service_without_a_trash_says_so(url: str, tmp_path: Path, clock: Clock) -> None:
    async with started_jobs(url, tmp_path, clock) as jobs:
        parent = await finished(jobs.store)
        other, _ = await jobs.submit(submission())
        await jobs.trash(other)
        child = await again(jobs.store, parent)
        with pytest.raises(NoTrash) as refused:
            await jobs.trash(child)
        assert refused.value.code == "has_parent"
    async with started_jobs(url, tmp_path, clock, trash_ttl_s=0) as jobs:
        with pytest.raises(NoTrash, match="WHISPER_TRASH_TTL_S is 0"):
            await jobs.trash(parent)
        assert (await jobs.store.get(parent.id)).trashed_at is None
        clock.now += 1
        await jobs.sweep()
        assert (await jobs.store.page(None, 9, None, trashed=True))[0] == []


async def test_what_transcribes_another_job_again_comes_back_with_it_alone(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    async with started_jobs(url, tmp_path, clock) as jobs:
        parent = await finished(jobs.store)
        child = await again(jobs.store, parent)
        await jobs.trash(parent)
        with pytest.raises(NoTrash) as refused:
            await jobs.restore(child)
        assert refused.value.code == "has_parent"
        await jobs.restore(parent)
        assert (await jobs.restore(child)).status is Status.QUEUED, "it is not there any more"


async def test_a_failed_job_does_not_run_again_in_the_trash(store: Store) -> None:
    job = await store.begin(await store.add(SUBMISSION))
    failed = await store.fail(job, JobError("It failed.", None), keep_file=True)
    await store.trash(failed)
    with pytest.raises(IllegalTransition):
        await store.reopen(failed)
    with pytest.raises(UnknownJob):
        await store.get(failed.id)


async def test_what_is_known_of_a_recording_is_stored_although_the_job_is_in_the_trash(store: Store) -> None:
    """A download may end just then."""
    job = await store.add(submission(file=None, url="https://media.example/talk.mp3"))
    await store.trash(job)
    await store.update(job.id, file="a" * 32, filename="talk.mp3", size=4)
    assert await store.files() == {"a" * 32}
    with pytest.raises(UnknownJob):
        await store.get(job.id)
    assert (await store.restore(job)).submission.file == "a" * 32


async def test_a_job_that_is_being_deleted_does_not_come_back(url: str, tmp_path: Path, clock: Clock) -> None:
    async with started_jobs(url, tmp_path, clock) as jobs:
        job, _ = await jobs.submit(submission())
        await jobs.trash(job)
        await jobs._admission.acquire()
        deletion = asyncio.create_task(jobs.delete(job.id))
        restoration = asyncio.create_task(jobs.restore(job))
        await asyncio.sleep(0.1)
        jobs._admission.release()
        await deletion
        with pytest.raises(UnknownJob):
            await restoration
