"""Submissions whose commit seems to fail: the job may be in the database all the same."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.common.errors import DatabaseUnavailable, OutcomeUnknown
from app.database.connection import Database
from app.jobs import service as module
from app.jobs.job import Job, Status, Submission
from app.jobs.service import JobService
from app.jobs.storage.store import Store
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH, lost_commits
from tests.jobs.samples import SUBMISSION
from tests.jobs.sites import started_jobs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


@pytest.fixture
async def jobs(url: str, tmp_path: Path) -> AsyncIterator[JobService]:
    async with started_jobs(url, tmp_path / "data") as jobs:
        yield jobs


def upload(jobs: JobService, name: str) -> Submission:
    """A submission with an idempotency key and a file of its own."""
    file = name * 32
    (jobs._service.media.folder.uploads / file).write_bytes(b"RIFF")
    return replace(SUBMISSION, idempotency_key="key", file=file)


def uploads(jobs: JobService) -> set[str]:
    return {path.name[0] for path in jobs._service.media.folder.uploads.iterdir()}


async def succeeded(jobs: JobService, job: Job) -> Job:
    jobs._service.fleet.reason = None  # type: ignore[attr-defined]
    while (job := await jobs.store.get(job.id)).status is not Status.SUCCEEDED:
        assert job.error is None
        await asyncio.sleep(0.01)
    return job


async def test_a_job_that_is_in_the_database_was_submitted(jobs: JobService) -> None:
    with lost_commits(jobs._database, committed=True, reads=True):
        job, keeps_file = await jobs.submit(upload(jobs, "a"))
    assert keeps_file
    assert (await succeeded(jobs, job)).submission.file == "a" * 32


async def test_a_repeated_request_gets_the_job_with_its_first_file(jobs: JobService) -> None:
    with lost_commits(jobs._database, committed=True), pytest.raises(OutcomeUnknown):
        await jobs.submit(upload(jobs, "a"))
    job, keeps_file = await jobs.submit(upload(jobs, "b"))
    assert not keeps_file
    assert job.number == 1
    assert (await succeeded(jobs, job)).submission.file == "a" * 32


async def test_a_repeated_request_replaces_a_file_that_is_gone(jobs: JobService) -> None:
    job, _ = await jobs.submit(upload(jobs, "a"))
    (jobs._service.media.folder.uploads / ("a" * 32)).unlink()
    again, keeps_file = await jobs.submit(upload(jobs, "b"))
    assert keeps_file
    assert (again.id, again.submission.file) == (job.id, "b" * 32)
    await succeeded(jobs, job)
    last, keeps_file = await jobs.submit(upload(jobs, "c"))
    assert (last.id, keeps_file) == (job.id, False)
    (jobs._service.media.folder.uploads / ("b" * 32)).unlink()
    _, keeps_file = await jobs.submit(upload(jobs, "c"))
    assert not keeps_file, "a job that is done needs no file"


@ON_BOTH
async def test_a_commit_that_comes_through_after_the_repeated_request_was_checked(
    jobs: JobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = await jobs.submit(upload(jobs, "a"))
    find, calls = Store.find, 0

    async def find_late(store: Store, owner: str, key: str) -> Job | None:
        nonlocal calls
        calls += 1
        return None if calls == 1 else await find(store, owner, key)

    monkeypatch.setattr(Store, "find", find_late)
    again, keeps_file = await jobs.submit(upload(jobs, "b"))
    assert (again.id, keeps_file) == (job.id, False)


@pytest.mark.parametrize("committed", [True, False])
async def test_a_file_without_a_job_is_removed_after_a_while(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    monkeypatch.setattr(module, "_SWEEP_S", 0.02)
    monkeypatch.setattr(module, "_COMMIT_S", 0.5)
    async with started_jobs(url, tmp_path) as jobs:
        with lost_commits(jobs._database, committed=committed), pytest.raises(OutcomeUnknown):
            await jobs.submit(upload(jobs, "a"))
        await asyncio.sleep(0.1)
        assert jobs._uncertain.keys() == {"a" * 32}
        assert uploads(jobs) == {"a"}, "the commit may still come through"
        await until(lambda: not jobs._uncertain)
        assert uploads(jobs) == ({"a"} if committed else set())


@pytest.mark.parametrize("committed", [True, False])
async def test_a_file_without_a_job_is_removed_at_the_next_start(
    url: str, tmp_path: Path, committed: bool
) -> None:
    async with started_jobs(url, tmp_path) as jobs:
        with lost_commits(jobs._database, committed=committed), pytest.raises(OutcomeUnknown):
            await jobs.submit(upload(jobs, "a"))
    async with started_jobs(url, tmp_path) as jobs:
        assert uploads(jobs) == ({"a"} if committed else set())


async def test_only_an_error_of_the_commit_leaves_the_outcome_open(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable) as refused:
        async with database.write():
            raise OSError("the connection was lost")
    assert not isinstance(refused.value, OutcomeUnknown)
