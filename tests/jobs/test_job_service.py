"""Starts, and the following of jobs, below HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from samples import TRANSCRIPT, submission
from structlog.testing import capture_logs

from app.jobs.job import Job, JobStatus
from app.jobs.service import JobService
from app.jobs.store import Store
from app.settings import Settings
from tests.api.fake_service import FakeService

pytestmark = pytest.mark.timeout(30)

ORPHAN = "e" * 32


@asynccontextmanager
async def started(folder: Path, **settings: Any) -> AsyncIterator[JobService]:
    """Jobs in a data folder; they wait, for no worker is ready."""
    service = FakeService(Settings(data_dir=folder, _env_file=None, **settings))
    service.reason = "the model is being loaded"
    await service.start()
    jobs = JobService(service, service.settings)  # type: ignore[arg-type]
    await jobs.start()
    try:
        yield jobs
    finally:
        await jobs.stop()


def test_recordings_of_jobs_in_another_database_are_left_alone(tmp_path: Path) -> None:
    elsewhere = f"sqlite:///{tmp_path}/other.db"
    data = tmp_path / "data"
    uploads, note = data / "uploads", data / "database"

    async def check() -> None:
        async with started(data) as jobs:
            recording = uploads / ("a" * 32)
            recording.write_bytes(b"RIFF")
            job, _ = await jobs.submit(submission(file=recording.name))
        (uploads / ORPHAN).write_bytes(b"RIFF")
        for _ in range(2):
            with capture_logs() as logs:
                async with started(data, database_url=elsewhere):
                    assert {path.name for path in uploads.iterdir()} == {recording.name, ORPHAN}
            [warning] = [line for line in logs if line["log_level"] == "warning"]
            assert warning["remove_to_go_on"] == str(note)
        with capture_logs() as logs:
            async with started(data) as jobs:
                assert [path.name for path in uploads.iterdir()] == [recording.name]
                assert (await jobs.get(job.id)).status is JobStatus.QUEUED
        assert not [line for line in logs if line["log_level"] == "warning"]
        note.unlink()  # whoever means it
        async with started(data, database_url=elsewhere):
            assert list(uploads.iterdir()) == []

    asyncio.run(check())


def test_the_note_of_whose_recordings_they_are_holds_no_password(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path, _env_file=None, database_url="postgresql://somebody:secret@host/database"
    )
    service = FakeService(settings)
    JobService(service, settings)._clean(set(), set())  # type: ignore[arg-type]
    assert "secret" not in (tmp_path / "database").read_text()


async def end(jobs: JobService, job: Job) -> None:
    await jobs._store.succeed(await jobs._store.begin(job), TRANSCRIPT, keep_file=True)


async def kinds(jobs: JobService, job: Job, after: int) -> list[str]:
    return [event.type async for event in jobs.follow(job, after)]


@pytest.mark.parametrize("after", [3, 4, 99_999])
def test_whoever_has_seen_more_than_there_is_is_let_go_at_the_end(tmp_path: Path, after: int) -> None:
    async def check() -> None:
        async with started(tmp_path) as jobs:
            job, _ = await jobs.submit(submission())
            following = asyncio.create_task(kinds(jobs, job, after))
            while not jobs._followers._queues:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await end(jobs, job)
            assert await following == []
            # And one that was looked up before the end, and is followed after it.
            assert await kinds(jobs, job, after) == []

    asyncio.run(check())


def test_an_end_between_being_looked_up_and_being_followed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with started(tmp_path) as jobs:
            job, _ = await jobs.submit(submission())
            events = Store.events

            async def end_after(store: Store, *arguments: Any, **options: Any) -> Any:
                stored = await events(store, *arguments, **options)
                if not stored:
                    monkeypatch.setattr(Store, "events", events)
                    await end(jobs, job)
                return stored

            monkeypatch.setattr(Store, "events", end_after)
            assert await kinds(jobs, job, 0) == ["job.queued", "job.running", "job.succeeded"]

    asyncio.run(check())
