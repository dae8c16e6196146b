"""The start of the job service, and subscriptions to jobs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.common.errors import NotReady
from app.database.connection import FILE_NAME, Database
from app.intake.uploads import Upload
from app.jobs.folder_token import FolderToken
from app.jobs.job import Job, Status
from app.jobs.service import JobService
from app.jobs.storage.store import Store
from app.media.pcm_files import channel_paths
from app.settings import Settings
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH, opened
from tests.jobs.samples import TRANSCRIPT, submission
from tests.jobs.sites import serving
from workers.messages import Selection

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

ORPHAN = "e" * 32


def started(folder: Path, **settings: Any) -> AbstractAsyncContextManager[JobService]:
    return serving(Settings(data_dir=folder, _env_file=None, **settings))


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[JobService]:
    """A job service with default settings that is started."""
    async with started(tmp_path) as jobs:
        yield jobs


async def test_recordings_of_jobs_in_another_database_are_kept(tmp_path: Path) -> None:
    other_url = f"sqlite:///{tmp_path}/other.db"
    data = tmp_path / "data"
    uploads, note = data / "uploads", data / "database"
    async with started(data) as jobs:
        recording = uploads / ("a" * 32)
        recording.write_bytes(b"RIFF")
        job, _ = await jobs.submit(submission(file=recording.name))
    (uploads / ORPHAN).write_bytes(b"RIFF")
    for _ in range(2):
        with capture_logs() as logs:
            async with started(data, database_url=other_url):
                assert {path.name for path in uploads.iterdir()} == {recording.name, ORPHAN}
        [warning] = [line for line in logs if line["log_level"] == "warning"]
        assert warning["remove_to_go_on"] == str(note)
    with capture_logs() as logs:
        async with started(data) as jobs:
            assert [path.name for path in uploads.iterdir()] == [recording.name]
            assert (await jobs.store.get(job.id)).status is Status.QUEUED
    assert not [line for line in logs if line["log_level"] == "warning"]
    note.unlink()  # as the warning says
    async with started(data, database_url=other_url):
        assert list(uploads.iterdir()) == []


@pytest.mark.parametrize("how", ["new", "older copy"])
async def test_recordings_of_jobs_that_the_database_has_lost_are_kept(tmp_path: Path, how: str) -> None:
    """The path is the same: the file was removed, or replaced by a copy of some days ago."""
    database = tmp_path / FILE_NAME
    async with started(tmp_path):
        pass
    copy = database.read_bytes()
    async with started(tmp_path) as jobs:
        recording = tmp_path / "uploads" / ("a" * 32)
        recording.write_bytes(b"RIFF")
        job, _ = await jobs.submit(submission(file=recording.name))
    present = database.read_bytes()
    for _ in range(2):
        database.write_bytes(copy) if how == "older copy" else database.unlink()
        with capture_logs() as logs:
            async with started(tmp_path):
                assert recording.exists()
        [warning] = [line for line in logs if line["log_level"] == "warning"]
        assert warning["remove_to_go_on"] == str(tmp_path / "database")
    database.write_bytes(present)
    with capture_logs() as logs:
        async with started(tmp_path) as jobs:
            assert (await jobs.store.get(job.id)).submission.file == recording.name
    assert not [line for line in logs if line["log_level"] == "warning"]


async def test_a_copy_of_the_database_is_an_older_one_as_soon_as_jobs_were_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.service._SWEEP_S", 0.02)
    async with started(tmp_path) as jobs:
        note = (tmp_path / "database").read_text()
        await asyncio.sleep(0.1)
        assert (tmp_path / "database").read_text() == note
        await jobs.submit(submission())
        await until(lambda: (tmp_path / "database").read_text() != note)


@ON_BOTH
@pytest.mark.parametrize("written", ["none", "both"])
async def test_a_kill_while_the_token_is_renewed(tmp_path: Path, url: str, written: str) -> None:
    async with opened(url) as database:
        token = FolderToken(database, tmp_path / "note", "")
        assert await token.check()
        await token.renew()
        note = (tmp_path / "note").read_text()
        again = FolderToken(database, tmp_path / "note", "")
        assert await again.check()
        await again.renew()
        if written == "none":  # the database alone was written
            (tmp_path / "note").write_text(note)
        last = FolderToken(database, tmp_path / "note", "")
        assert await last.check()
        await last.renew()
        (tmp_path / "note").write_text(note)
        assert await FolderToken(database, tmp_path / "note", "").check() is (written == "none")


async def test_the_note_of_a_version_without_tokens_is_that_of_its_database(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("")
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / ORPHAN).write_bytes(b"RIFF")
    async with started(tmp_path):
        assert list((tmp_path / "uploads").iterdir()) == []
        assert (tmp_path / "database").read_text()


async def test_a_restoration_that_was_killed_is_finished_by_the_next_start(tmp_path: Path) -> None:
    recording = "a" * 32
    async with started(tmp_path) as jobs:
        await jobs.submit(submission(file=recording))
        for name in (recording, ORPHAN):
            (tmp_path / "uploads" / name).write_bytes(b"RIFF")
        jobs._service.media.folder.begin_restoration("uploads.until-now")
    with capture_logs() as logs:
        async with started(tmp_path):
            pass
    aside = tmp_path / "uploads.until-now"
    assert {path.name for path in aside.iterdir()} == {recording, ORPHAN}
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == [recording]
    [warning] = [line for line in logs if line["log_level"] == "warning"]
    assert warning["folder"] == str(aside)


async def end(jobs: JobService, job: Job) -> None:
    await jobs.store.succeed(await jobs.store.begin(job), TRANSCRIPT, keep_file=True)


async def event_types(jobs: JobService, job: Job, after: int) -> list[str]:
    return [event.type async for event in jobs.subscribe(job, after)]


@pytest.mark.parametrize("after", [3, 4, 99_999])
async def test_a_subscription_after_the_last_event_ends_with_the_job(jobs: JobService, after: int) -> None:
    job, _ = await jobs.submit(submission())
    subscription = asyncio.create_task(event_types(jobs, job, after))
    await until(lambda: jobs._subscriptions._queues)
    await end(jobs, job)
    assert await subscription == []
    # The same job value, looked up before the end, with a subscription after it.
    assert await event_types(jobs, job, after) == []


async def test_an_end_while_a_subscription_begins_is_published(
    jobs: JobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = await jobs.submit(submission())
    events = Store.events

    async def end_after(store: Store, *arguments: Any, **options: Any) -> Any:
        stored = await events(store, *arguments, **options)
        if not stored:
            monkeypatch.setattr(Store, "events", events)
            await end(jobs, job)
        return stored

    monkeypatch.setattr(Store, "events", end_after)
    assert await event_types(jobs, job, 0) == ["job.queued", "job.running", "job.succeeded"]


async def test_a_deleted_job_leaves_no_audio_of_any_channel(jobs: JobService) -> None:
    job, _ = await jobs.submit(submission())
    pcm = jobs._service.media.folder.pcm
    for path in channel_paths(pcm / job.id):
        path.touch()
    await jobs.delete(job.id)
    assert not list(pcm.iterdir())


async def test_expired_jobs_are_read_in_parts_and_all_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading thousands of rows at once would hold the event loop."""
    monkeypatch.setattr("app.jobs.service._SWEPT_AT_ONCE", 2)
    database = Database(None, tmp_path)
    await database.open()
    store = Store(database, clock=lambda: 0.0)  # long ago
    for _ in range(5):
        job = await store.add(submission())
        await store.succeed(await store.begin(job), TRANSCRIPT, keep_file=True)
    await database.close()
    sizes: list[int] = []
    read = Store.expired

    async def expired(store: Store, limit: int) -> list[Job]:
        found = await read(store, limit)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(Store, "expired", expired)
    async with started(tmp_path):
        await until(lambda: len(sizes) >= 4)
    assert sizes == [2, 2, 1, 0]


async def test_a_stop_ends_the_making_of_peaks(tmp_path: Path) -> None:
    began = asyncio.Event()

    async def peaks(upload: Upload, selection: Selection) -> bytes:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with started(tmp_path) as jobs:
        jobs._service.media.peaks = peaks  # type: ignore[method-assign]
        job, _ = await jobs.submit(submission())
        await end(jobs, job)
        asked = asyncio.create_task(jobs.recordings.peaks(await jobs.store.get(job.id)))
        await began.wait()
    assert asked.done(), "the service is stopped"
    assert isinstance(asked.exception(), NotReady)
