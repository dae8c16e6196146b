"""The peaks of jobs: with the decoded audio, or made once for all who ask."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.exc import StatementError
from structlog.testing import capture_logs

from app.common.errors import AudioNotKept, InvalidInput, JobNotDone
from app.database.connection import Database
from app.intake.uploads import Upload
from app.jobs.job import Job, JobError
from app.jobs.kept_recordings import _AT_ONCE, KeptRecordings
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.executor import JobObserver
from app.jobs.running.progress import Lengths, ProgressBuffer
from app.jobs.storage.store import Store
from app.pool.helper import Helper
from tests.event_loop import until
from tests.jobs.databases import opened
from tests.jobs.samples import PEAKS, TRACK, TRANSCRIPT, submission
from workers.messages import Decoded, Selection

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

PACKED = PEAKS.pack()


class FakeMedia:
    """Makes peaks when it may; the file of a recording is its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = self
        self.uploads = folder
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.made: list[Upload] = []
        self.in_progress = 0
        self.error: Exception | None = None

    async def peaks(self, upload: Upload, selection: Selection) -> bytes:
        self.made.append(upload)
        self.in_progress += 1
        try:
            await self.may_end.wait()
            if self.error is not None:
                raise self.error
            return PACKED
        finally:
            self.in_progress -= 1


@pytest.fixture
def media(tmp_path: Path) -> FakeMedia:
    return FakeMedia(tmp_path)


@pytest.fixture
async def recordings(media: FakeMedia, store: Store) -> AsyncIterator[KeptRecordings]:
    recordings = KeptRecordings(media, store, Helper())  # type: ignore[arg-type]
    yield recordings
    await recordings.stop()


async def done(store: Store, *, keep_file: bool = True, **changes: object) -> Job:
    """A job that has succeeded, without peaks."""
    return await store.succeed(
        await store.begin(await store.add(submission(**changes))), TRANSCRIPT, keep_file
    )


async def test_a_decoded_recording_is_stored_with_its_peaks(
    store: Store, clip_store: ClipStore, recordings: KeptRecordings
) -> None:
    job = await store.begin(await store.add(submission()))
    with pytest.raises(JobNotDone) as early:
        await recordings.stored_peaks(job)
    assert early.value.code == "audio_not_decoded"
    buffer = ProgressBuffer(store, clip_store)
    observer = JobObserver(job, buffer, Lengths(lambda: None), frozenset(), False, PEAKS)
    observer.decoded(Decoded(16_000, True, (TRACK,)))
    await buffer.store()
    job = await store.get(job.id)
    assert (job.pcm or "").startswith("16000 ")
    assert await recordings.stored_peaks(job) == PACKED
    assert await recordings.stored_peaks(await store.succeed(job, TRANSCRIPT, keep_file=False)) == PACKED


async def test_peaks_outlive_the_process_and_are_replaced(url: str) -> None:
    async with opened(url) as database:
        store = Store(database)
        job = await store.add(submission())
        for pcm in ("1 boot", "2 boot"):
            await store.update(job.id, packed_peaks=pcm.encode(), pcm=pcm)
    async with opened(url) as database:
        store = Store(database)
        assert await store.packed_peaks(job) == b"2 boot"
        assert (await store.get(job.id)).pcm == "2 boot"


async def test_the_marker_and_the_peaks_are_one_transaction(store: Store) -> None:
    job = await store.begin(await store.add(submission()))
    with pytest.raises(StatementError):
        await store.update(job.id, packed_peaks=object(), pcm="1 boot")  # type: ignore[arg-type]
    assert (await store._look_up(job.id)).pcm is None


async def test_peaks_go_with_their_job_and_are_not_stored_after_it(store: Store, database: Database) -> None:
    job = await done(store)
    await store.update(job.id, packed_peaks=PACKED)
    await store.delete(job)
    assert await store.packed_peaks(job) is None
    await store.update(job.id, packed_peaks=PACKED, pcm="1 boot")
    assert await store.packed_peaks(job) is None


async def test_a_deletion_while_peaks_are_stored(store: Store) -> None:
    for _ in range(10):
        job = await done(store)
        await asyncio.gather(store.update(job.id, packed_peaks=PACKED), store.delete(job))
        assert await store.packed_peaks(job) is None


async def test_a_running_job_whose_audio_was_decoded_without_peaks(
    store: Store, recordings: KeptRecordings
) -> None:
    job = await store.begin(await store.add(submission()))
    await store.update(job.id, pcm="1 boot")
    job = await store.get(job.id)
    assert await recordings.stored_peaks(job) is None
    assert await recordings.peaks(job) == PACKED
    assert (await store.get(job.id)).pcm == "1 boot"


async def test_a_failed_job_has_peaks_if_its_recording_can_be_decoded(
    store: Store, recordings: KeptRecordings, media: FakeMedia
) -> None:
    job = await store.begin(await store.add(submission()))
    job = await store.fail(job, JobError("broken", "broken_file"), keep_file=True)
    media.error = InvalidInput("The file is broken.", code="broken_file")
    with capture_logs() as logs, pytest.raises(InvalidInput):
        await recordings.peaks(job)
    assert [(log["job"], log["reason"]) for log in logs] == [(job.id, "The file is broken.")]
    media.error = None
    assert await recordings.peaks(job) == PACKED, "the error is not kept"


@pytest.mark.parametrize("keep_file", [True, False])
async def test_no_recording(
    store: Store, recordings: KeptRecordings, media: FakeMedia, keep_file: bool
) -> None:
    media.error = FileNotFoundError("gone")
    job = await done(store, keep_file=keep_file)
    assert await recordings.stored_peaks(job) is None
    with pytest.raises(AudioNotKept):
        await recordings.peaks(job)
    assert len(media.made) == keep_file


async def test_all_who_ask_share_one_making_and_some_may_leave(
    store: Store, recordings: KeptRecordings, media: FakeMedia
) -> None:
    media.may_end.clear()
    job = await done(store)
    asked = [asyncio.create_task(recordings.peaks(job)) for _ in range(3)]
    await until_decoding(media, 1)
    asked[0].cancel()
    await asyncio.gather(asked[0], return_exceptions=True)
    media.may_end.set()
    assert await asyncio.gather(*asked[1:]) == [PACKED] * 2
    assert len(media.made) == 1


async def test_a_making_that_nobody_waits_for_goes_on(
    store: Store, recordings: KeptRecordings, media: FakeMedia
) -> None:
    job, asked = await begun(store, recordings, media)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    media.may_end.set()
    await until(lambda: not recordings._tasks)
    assert await recordings.stored_peaks(job) == PACKED


async def test_only_a_few_recordings_are_decoded_at_once(
    store: Store, recordings: KeptRecordings, media: FakeMedia
) -> None:
    media.may_end.clear()
    asked = [asyncio.create_task(recordings.peaks(await done(store))) for _ in range(_AT_ONCE + 2)]
    await until_decoding(media, _AT_ONCE)
    for _ in range(20):
        await asyncio.sleep(0)
    assert media.in_progress == len(media.made) == _AT_ONCE
    media.may_end.set()
    assert await asyncio.gather(*asked) == [PACKED] * (_AT_ONCE + 2)


async def until_decoding(media: FakeMedia, count: int) -> None:
    """Wait until so many recordings are being decoded, or more."""
    await until(lambda: media.in_progress >= count)


async def begun(
    store: Store, recordings: KeptRecordings, media: FakeMedia
) -> tuple[Job, asyncio.Task[bytes]]:
    """A job that is done, and the task that waits for its peaks while its recording is being decoded."""
    media.may_end.clear()
    job = await done(store)
    asked = asyncio.create_task(recordings.peaks(job))
    await until_decoding(media, 1)
    return job, asked
