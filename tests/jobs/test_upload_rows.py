"""Resumable uploads: rows and files, limits, expiry, crashes at any point, and the jobs that use them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.common.errors import (
    DiskFull,
    OutcomeUnknown,
    QueueFull,
    UnknownUpload,
    UploadConflict,
    UploadExpired,
)
from app.database.tables import uploads as table
from app.intake.disk import MARGIN_BYTES
from app.intake.resumable import EMPTY_LIFETIME_S, LIFETIME_S, REMEMBERED_S
from app.jobs import service as service_module
from app.jobs.job import Job, Submission
from app.jobs.service import JobService
from tests.event_loop import Clock, until
from tests.intake.disks import SmallDisk
from tests.jobs.databases import ON_BOTH, lost_commits
from tests.jobs.samples import SUBMISSION
from tests.jobs.sites import started_jobs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

OWNER = "somebody"
CONTENT = bytes(range(256)) * 4


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000_000.0)


@pytest.fixture
def start(url: str, tmp_path: Path, clock: Clock) -> Callable[..., AbstractAsyncContextManager[JobService]]:
    """Starts a job service on the same database and folder, as after a restart."""
    return partial(started_jobs, url, tmp_path / "data", clock=clock)


@pytest.fixture
async def jobs(start) -> AsyncIterator[JobService]:
    async with start() as jobs:
        yield jobs


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def append(jobs: JobService, upload_id: str, content: bytes, **options: object) -> int:
    """Append what is missing of `content`."""
    async with jobs.uploads.lock(OWNER, upload_id) as (upload, file):
        at = await file.received()
        _, received = await jobs.uploads.append(upload, file, at, chunks(content[at:]), **options)
        return received


async def uploaded(jobs: JobService, content: bytes = CONTENT) -> str:
    """The id of a complete upload."""
    upload = await jobs.uploads.create(OWNER, len(content), "talk.wav", "filename dGFsay53YXY=")
    await append(jobs, upload.id, content)
    return upload.id


async def submission(jobs: JobService, upload_id: str, key: str | None = None) -> Submission:
    async with jobs.uploads.complete(OWNER, upload_id) as upload:
        return of(upload.path.name, upload.sha256, key)


def of(file: str, sha256: str, key: str | None) -> Submission:
    return replace(
        SUBMISSION, file=file, sha256=sha256, fingerprint=sha256, idempotency_key=key, from_upload=True
    )


async def submitted(jobs: JobService, upload_id: str, key: str | None = None) -> Job:
    """What `POST /v1/jobs` does."""
    async with jobs.uploads.complete(OWNER, upload_id) as upload:
        job, _ = await jobs.submit(of(upload.path.name, upload.sha256, key))
    return job


def files(jobs: JobService) -> set[str]:
    return {path.name for path in jobs._service.media.folder.uploads.iterdir()}


def reserved(jobs: JobService) -> int:
    return sum(space.outstanding for space in jobs._service.media.folder.disk.reservations)


async def row(jobs: JobService, upload_id: str) -> object:
    return await jobs.uploads._rows.get(upload_id)


# A job uses an upload


async def test_a_job_takes_over_the_file(jobs: JobService) -> None:
    upload_id = await uploaded(jobs)
    job = await submitted(jobs, upload_id)
    assert job.submission.file == upload_id
    assert job.submission.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert files(jobs) == {upload_id}
    assert (await jobs.uploads.find(OWNER, upload_id)).job_id == job.id
    assert await jobs.uploads.offset(OWNER, upload_id) == (await row(jobs, upload_id), len(CONTENT))
    await jobs.uploads.delete(OWNER, upload_id)
    assert files(jobs) == {upload_id}, "the file is the job's"
    await jobs.delete(job.id)
    assert not files(jobs)


@ON_BOTH
async def test_of_many_submissions_at_once_one_gets_the_upload(jobs: JobService) -> None:
    upload_id = await uploaded(jobs)
    attempts = await asyncio.gather(*(submitted(jobs, upload_id) for _ in range(8)), return_exceptions=True)
    refused = [attempt for attempt in attempts if isinstance(attempt, UploadConflict)]
    assert len(refused) == 7
    assert len(await jobs.store.files()) == 1


async def test_a_repeated_request_does_not_share_an_unused_upload(jobs: JobService) -> None:
    """The recording of the first request is gone: the upload of the second one stays its own."""
    first = await uploaded(jobs)
    job = await submitted(jobs, first, "key")
    (jobs._service.media.folder.uploads / first).unlink()
    second = await uploaded(jobs)
    assert (await submitted(jobs, second, "key")).submission.file == first
    assert (await submitted(jobs, second)).id != job.id


async def test_an_incomplete_upload_is_refused_without_ending_its_request(jobs: JobService) -> None:
    upload = await jobs.uploads.create(OWNER, 100, "", "")
    begun, resumed = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield bytes(60)
        begun.set()
        await resumed.wait()
        yield bytes(40)

    async def send() -> int:
        async with jobs.uploads.lock(OWNER, upload.id) as (found, file):
            _, received = await jobs.uploads.append(found, file, 0, slowly())
            return received

    request = asyncio.create_task(send())
    await begun.wait()
    with pytest.raises(UploadConflict, match="bytes are missing") as refused:
        await submitted(jobs, upload.id)
    assert refused.value.code == "upload_incomplete"
    resumed.set()
    assert await request == 100


# Crashes


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("restart", [True, False])
async def test_a_commit_whose_end_is_unknown(
    start, monkeypatch: pytest.MonkeyPatch, committed: bool, restart: bool
) -> None:
    """The upload either belongs to the job, or is still there to be used."""
    monkeypatch.setattr(service_module, "_SWEEP_S", 0.02)
    monkeypatch.setattr(service_module, "_COMMIT_S", 0.05)
    async with start() as jobs:
        upload_id = await uploaded(jobs)
        given = await submission(jobs, upload_id, "key")
        with lost_commits(jobs._database, committed=committed), pytest.raises(OutcomeUnknown):
            await jobs.submit(given)
        await asyncio.sleep(0.2)
        assert files(jobs) == {upload_id}
        if not restart:
            await check_usable(jobs, upload_id)
    if restart:
        async with start() as jobs:
            assert files(jobs) == {upload_id}
            await check_usable(jobs, upload_id)


async def check_usable(jobs: JobService, upload_id: str) -> None:
    job = await submitted(jobs, upload_id, "key")
    assert job.number in (1, 2)  # PostgreSQL skips the number of a transaction that failed
    assert job.submission.file == upload_id
    assert await jobs.store.files() == {upload_id}


async def test_a_restart_keeps_live_uploads_and_removes_files_without_a_row(start) -> None:
    async with start() as jobs:
        complete = await uploaded(jobs)
        begun = await jobs.uploads.create(OWNER, 1000, "", "")
        await append(jobs, begun.id, bytes(300))
        empty = await jobs.uploads.create(OWNER, 500, "", "")
        (jobs._service.media.folder.uploads / ("f" * 32)).write_bytes(b"no row")
        assert reserved(jobs) == 700 + 500
    async with start() as jobs:
        assert files(jobs) == {complete, begun.id}
        assert reserved(jobs) == 700 + 500
        assert (await jobs.uploads.offset(OWNER, begun.id))[1] == 300
        assert (await jobs.uploads.offset(OWNER, empty.id))[1] == 0
        await append(jobs, begun.id, bytes(1000))
        assert (await submitted(jobs, begun.id)).submission.sha256 == hashlib.sha256(bytes(1000)).hexdigest()
        assert (await submitted(jobs, complete)).submission.sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert reserved(jobs) == 500


# The end of an upload


async def test_an_upload_ends_after_a_day_and_is_forgotten_a_day_later(
    jobs: JobService, clock: Clock
) -> None:
    upload_id = await uploaded(jobs)
    clock.now += LIFETIME_S - 1
    await jobs.uploads.sweep()
    assert files(jobs) == {upload_id}
    clock.now += 1
    for request in (jobs.uploads.find, jobs.uploads.offset, jobs.uploads.delete, submitted_by(jobs)):
        with pytest.raises(UploadExpired):
            await request(OWNER, upload_id)
    await jobs.uploads.sweep()
    assert not files(jobs)
    assert not jobs._service.media.folder.disk.reservations
    with pytest.raises(UploadExpired):
        await jobs.uploads.find(OWNER, upload_id)
    clock.now += REMEMBERED_S + 1
    await jobs.uploads.sweep()
    with pytest.raises(UnknownUpload):
        await jobs.uploads.find(OWNER, upload_id)
    assert await row(jobs, upload_id) is None


def submitted_by(jobs: JobService) -> Callable[..., object]:
    async def submit(owner: str, upload_id: str) -> Job:
        return await submitted(jobs, upload_id)

    return submit


async def test_the_sweeper_runs(start, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(service_module, "_SWEEP_S", 0.02)
    async with start() as jobs:
        await uploaded(jobs)
        clock.now += LIFETIME_S
        await until(lambda: not files(jobs))


async def test_an_upload_that_ended_while_the_service_was_down(start, clock: Clock) -> None:
    async with start() as jobs:
        upload_id = await uploaded(jobs)
    clock.now += LIFETIME_S
    async with start() as jobs:
        assert not files(jobs)
        with pytest.raises(UploadExpired):
            await jobs.uploads.find(OWNER, upload_id)


async def test_the_end_of_a_used_upload_does_not_touch_its_job(jobs: JobService, clock: Clock) -> None:
    upload_id = await uploaded(jobs)
    job = await submitted(jobs, upload_id, "key")
    clock.now += LIFETIME_S
    await jobs.uploads.sweep()
    assert files(jobs) == {upload_id}
    assert (await submitted(jobs, upload_id, "key")).id == job.id
    clock.now += REMEMBERED_S + 1
    await jobs.uploads.sweep()
    assert files(jobs) == {upload_id}


async def test_an_upload_that_a_commit_of_unknown_end_has_used_is_not_removed(
    jobs: JobService, clock: Clock
) -> None:
    upload_id = await uploaded(jobs)
    given = await submission(jobs, upload_id)
    with lost_commits(jobs._database, committed=True), pytest.raises(OutcomeUnknown):
        await jobs.submit(given)
    clock.now += LIFETIME_S
    await jobs.uploads.sweep()
    assert files(jobs) == {upload_id}
    assert not jobs._service.media.folder.disk.reservations


async def test_an_upload_that_has_ended_is_not_used(jobs: JobService, clock: Clock) -> None:
    """Its time was over between the check and the transaction."""
    upload_id = await uploaded(jobs)
    given = await submission(jobs, upload_id)
    clock.now += LIFETIME_S
    with pytest.raises(UploadConflict):
        await jobs.submit(given)
    assert await jobs.store.files() == set()


# Owners, limits and space


async def test_live_uploads_are_limited(start, clock: Clock) -> None:
    async with start(max_uploads=2, api_keys="one,two") as jobs:  # 20 in all, 2 guaranteed to each key
        own = [await uploaded(jobs) for _ in range(20)]
        with pytest.raises(QueueFull, match="20 resumable"):
            await jobs.uploads.create(OWNER, 1, "", "")
        for _ in range(2):
            await jobs.uploads.create("another", 1, "", "")
        assert reserved(jobs) == 2
        await submitted(jobs, own[0])
        with pytest.raises(QueueFull, match=r"19 of your .* may have 10 while others"):
            await jobs.uploads.create(OWNER, 1, "", "")
        clock.now += LIFETIME_S
        await jobs.uploads.create(OWNER, 1, "", "")


async def test_creations_at_once_do_not_exceed_the_limit(start) -> None:
    async with start(max_uploads=1) as jobs:
        made = await asyncio.gather(
            *(jobs.uploads.create("", 1, "", "") for _ in range(15)), return_exceptions=True
        )
        assert sum(isinstance(upload, QueueFull) for upload in made) == 5
        async with jobs._database.read() as connection:
            assert await connection.scalar(sa.select(sa.func.count()).select_from(table)) == 10


async def test_missing_bytes_stay_reserved(start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with start() as jobs:
        SmallDisk(monkeypatch, tmp_path / "data" / "uploads", MARGIN_BYTES + 10_000)
        with pytest.raises(DiskFull):
            await jobs.uploads.create(OWNER, 10_001, "", "")
        first = await jobs.uploads.create(OWNER, 6_000, "", "")
        with pytest.raises(DiskFull):
            await jobs.uploads.create(OWNER, 4_001, "", "")
        await append(jobs, first.id, bytes(1_000))
        assert reserved(jobs) == 5_000
    async with start() as jobs:
        with pytest.raises(DiskFull):
            await jobs.uploads.create(OWNER, 4_001, "", "")
        await jobs.uploads.create("another", 4_000, "", "")
        await append(jobs, first.id, bytes(6_000))
        assert reserved(jobs) == 4_000
        await jobs.uploads.delete(OWNER, first.id)
        await jobs.uploads.create(OWNER, 6_000, "", "")


async def test_an_owner_reserves_a_part_of_the_disk(
    start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with start() as jobs:
        SmallDisk(monkeypatch, tmp_path / "data" / "uploads", MARGIN_BYTES + 100_000)
        made = await asyncio.gather(
            *(jobs.uploads.create(OWNER, 20_000, "", "") for _ in range(9)), return_exceptions=True
        )
        refused = [upload for upload in made if isinstance(upload, DiskFull)]
        assert (len(refused), reserved(jobs)) == (6, 60_000)
        assert {error.code for error in refused} == {"storage_share_full"}
        await jobs.uploads.create("another", 25_000, "", "")
        with pytest.raises(DiskFull):
            await jobs.uploads.create("another", 15_000, "", "")


async def test_an_upload_without_bytes_lives_for_minutes(jobs: JobService, clock: Clock) -> None:
    empty, begun = [await jobs.uploads.create(OWNER, 1_000, "", "") for _ in range(2)]
    assert empty.expires_at == clock.now + EMPTY_LIFETIME_S
    clock.now += EMPTY_LIFETIME_S - 1
    async with jobs.uploads.lock(OWNER, begun.id) as (upload, file):
        upload, received = await jobs.uploads.append(upload, file, 0, chunks(b"", b"x"))
    assert (received, upload.expires_at) == (1, upload.created_at + LIFETIME_S)
    clock.now += 1
    await jobs.uploads.sweep()
    assert reserved(jobs) == 999
    assert await jobs.uploads.offset(OWNER, begun.id) == (upload, 1)
    with pytest.raises(UploadExpired, match="10 minutes"):
        await jobs.uploads.find(OWNER, empty.id)


async def test_a_part_without_bytes_does_not_prolong_an_upload(jobs: JobService, clock: Clock) -> None:
    upload = await jobs.uploads.create(OWNER, 1_000, "", "")
    async with jobs.uploads.lock(OWNER, upload.id) as (found, file):
        assert await jobs.uploads.append(found, file, 0, chunks()) == (upload, 0)
    clock.now += EMPTY_LIFETIME_S
    with pytest.raises(UploadExpired):
        await jobs.uploads.find(OWNER, upload.id)


async def test_a_creation_that_fails_reserves_nothing(jobs: JobService) -> None:
    with lost_commits(jobs._database, committed=True), pytest.raises(OutcomeUnknown):
        await jobs.uploads.create(OWNER, 1_000, "", "")
    assert reserved(jobs) == 0


async def test_an_upload_whose_creation_seemed_to_fail_can_be_continued(jobs: JobService) -> None:
    with lost_commits(jobs._database, committed=True), pytest.raises(OutcomeUnknown):
        await jobs.uploads.create(OWNER, len(CONTENT), "", "")
    async with jobs._database.read() as connection:
        upload_id = await connection.scalar(sa.select(table.c.id))
    await append(jobs, upload_id, CONTENT[:500])
    assert reserved(jobs) == len(CONTENT) - 500
    await append(jobs, upload_id, CONTENT)
    assert (await submitted(jobs, upload_id)).submission.size == SUBMISSION.size
