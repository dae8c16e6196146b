"""Which jobs run when, retries, and what is requeued."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.common.errors import DatabaseUnavailable, DiskFull, ModelUnavailable, NotReady, OutgrowsDisk
from app.database import connection as sql_connection
from app.jobs.job import Job, Status
from app.jobs.running import runner as module
from app.jobs.serialization import Summary
from app.jobs.storage import store as store_module
from app.jobs.storage.store import Store
from app.recording.recording_work import Progress
from app.transcript.timeline import Transcript
from tests.event_loop import until
from tests.jobs.databases import backends, stopped
from tests.jobs.samples import TRANSCRIPT
from tests.jobs.sites import FakePipeline, Site, block, opened_site, succeed
from tests.postgresql import NewDatabase
from workers.messages import Decoded, RecordingWarning

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BACKOFF_S", (0.01, 0.02))


@pytest.mark.parametrize(
    ("error", "code"), [(DiskFull, "disk_full"), (ModelUnavailable, "model_unavailable")]
)
async def test_a_job_that_may_be_at_fault_fails_after_its_retries(
    site: Site, error: type[Exception], code: str
) -> None:
    job = await site.add()
    decoded = []

    async def work(pipeline: FakePipeline) -> Transcript:
        if pipeline.pcm_path.name != job.id:
            return TRANSCRIPT
        decoded.append(len(site.decoded))
        raise error("it does not work")

    site.service.work_on_job = work
    site.runner.start()
    other = await site.add(file="1" * 32)
    failed = await site.wait_for(job, "failed")
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == (code, "it does not work")
    assert site.events[job.id] == ["queued", *["running", "queued"] * 2, "running", "failed"]
    assert len(decoded) == len(module._BACKOFF_S) + 1
    await site.wait_for(other, "succeeded")


async def test_a_job_that_filled_the_disk_by_itself_is_not_retried(site: Site) -> None:
    job = await site.add()

    async def work(pipeline: FakePipeline) -> Transcript:
        if pipeline.pcm_path.name != job.id:
            return TRANSCRIPT
        raise OutgrowsDisk("its audio fills the disk", code="audio_outgrows_disk")

    site.service.work_on_job = work
    site.runner.start()
    failed = await site.wait_for(job, "failed")
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == ("audio_outgrows_disk", "its audio fills the disk")
    assert site.events[job.id] == ["queued", "running", "failed"]
    await site.wait_until_idle()
    assert site.decoded == []
    other = await site.add(file="1" * 32)
    site.runner.wake()
    await site.wait_for(other, "succeeded")


async def test_decoded_audio_is_removed_if_the_disk_is_full_and_other_jobs_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BACKOFF_S", (3600.0,))

    async def fill_the_disk(pipeline: FakePipeline) -> Transcript:
        raise DiskFull("full")

    site.service.fleet.jobs_at_once = 1
    site.service.work_on_job = fill_the_disk
    large = await site.add()
    site.runner.start()
    await site.wait_for(large, "queued", times=2)
    assert site.decoded == []
    site.service.work_on_job = succeed
    other = await site.add(file="1" * 32)
    site.runner.wake()
    await site.wait_for(other, "succeeded")
    assert site.events[large.id] == ["queued", "running", "queued"], "it was not paused"


@pytest.mark.parametrize("error", [NotReady, DatabaseUnavailable])
async def test_a_job_that_is_not_at_fault_is_retried_without_limit(
    site: Site, error: type[Exception]
) -> None:
    attempts = 0

    async def work(pipeline: FakePipeline) -> Transcript:
        nonlocal attempts
        attempts += 1
        if attempts <= len(module._BACKOFF_S) + 3:
            raise error("not now")
        return TRANSCRIPT

    site.service.work_on_job = work
    job = await site.add()
    site.runner.start()
    await site.wait_for(job, "succeeded")
    assert attempts == len(module._BACKOFF_S) + 4


async def test_a_job_that_had_to_wait_gets_all_its_retries(site: Site) -> None:
    attempts = 0

    async def work(pipeline: FakePipeline) -> Transcript:
        nonlocal attempts
        attempts += 1
        if attempts <= 5:
            raise NotReady("The model is being downloaded.")
        raise ModelUnavailable("The connection is lost.")

    site.service.work_on_job = work
    job = await site.add()
    site.runner.start()
    await site.wait_for(job, "failed")
    assert attempts == 5 + len(module._BACKOFF_S) + 1


@pytest.mark.parametrize("passes", [True, False])
async def test_a_job_whose_end_cannot_be_stored_does_not_stay_running(
    site: Site, monkeypatch: pytest.MonkeyPatch, passes: bool
) -> None:
    pack = store_module.pack_with_summary
    attempts = 0

    def fail_to_pack(transcript: Transcript) -> tuple[bytes, Summary]:
        nonlocal attempts
        attempts += 1
        if passes and attempts > 1:
            return pack(transcript)
        raise MemoryError

    monkeypatch.setattr(store_module, "pack_with_summary", fail_to_pack)
    job = await site.add()
    site.runner.start()
    job = await site.wait_for(job, "succeeded" if passes else "failed")
    assert attempts == (2 if passes else len(module._BACKOFF_S) + 1)
    if not passes:
        assert job.error is not None
        assert job.error.code == "internal_error"
        await site.wait_until_idle()
        assert site.decoded == []


async def test_a_job_that_runs_in_the_database_only_is_requeued(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the runner is woken meanwhile."""
    monkeypatch.setattr(module, "_POLL_S", 0.05)

    async def wake_forever() -> None:
        while True:
            site.runner.wake()
            await asyncio.sleep(0.005)

    orphan = await site.store.begin(await site.add())
    running = await site.add(file="1" * 32)
    site.service.work_on_job = block
    site.runner.start()
    await site.wait_for(running, "running")
    waking = asyncio.create_task(wake_forever())
    try:
        await site.wait_for(orphan, "running", times=2)
    finally:
        waking.cancel()
    assert site.events[running.id] == ["queued", "running"], "a job that runs was requeued"


async def test_a_start_that_seems_to_fail_is_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0.05)
    begin, calls = Store.begin, 0

    async def lose_the_answer(store: Store, job: Job) -> Job:
        nonlocal calls
        calls += 1
        job = await begin(store, job)
        if calls == 1:
            raise DatabaseUnavailable("the connection was lost at the commit")
        return job

    monkeypatch.setattr(Store, "begin", lose_the_answer)
    job = await site.add()
    site.runner.start()
    await site.wait_for(job, "succeeded")
    assert site.events[job.id] == ["queued", "running", "queued", "running", "succeeded"]


async def test_the_runner_goes_on_after_errors(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0.01)
    with_status, calls = Store.with_status, 0

    async def fail_twice(store: Store, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls <= 2:
            raise (DatabaseUnavailable("gone") if calls == 1 else MemoryError)
        return await with_status(store, *arguments)

    monkeypatch.setattr(Store, "with_status", fail_twice)
    job = await site.store.begin(await site.add())
    site.runner.start()
    await site.wait_for(job, "succeeded")


async def test_a_stop_requeues_jobs_and_stores_their_progress(site: Site) -> None:
    began = asyncio.Event()

    warning = RecordingWarning("cut_off", "The file ends at 0:16 of 3:03.", 16, 183)

    async def work(pipeline: FakePipeline) -> Transcript:
        pipeline.observer.decoded(Decoded(50, True, (), warnings=(warning,)))
        pipeline.observer.progressed(Progress(60.0, 60.0, 30.0, 1, 2))
        began.set()
        return await block(pipeline)

    site.service.work_on_job = work
    job = await site.add()
    site.runner.start()
    await began.wait()
    await site.runner.stop()
    job = await site.store.get(job.id)
    assert job.status is Status.QUEUED
    assert (job.progress.done_s, job.progress.clips_done) == (30.0, 1)
    assert job.pcm is not None
    decoded = []

    async def resume(pipeline: FakePipeline) -> Transcript:
        decoded.append(pipeline.decoded)
        return TRANSCRIPT

    site.service.work_on_job = resume
    site.new_runner().start()
    await site.wait_for(job, "succeeded")
    assert decoded == [Decoded(50, warnings=(warning,))], "else the recording would be decoded again"


async def test_a_stop_ends_although_the_database_is_silent(
    tmp_path: Path, postgresql: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_ANSWER_S", "_CONNECT_S"):
        monkeypatch.setattr(sql_connection, name, 0.5)
    async with opened_site(tmp_path, database_url=postgresql()) as site:
        site.service.work_on_job = block
        job = await site.add()
        site.runner.start()
        await site.wait_for(job, "running")
        pids = await backends(site.database)
        with stopped([psutil.Process(pids[0]).ppid(), *pids]):
            async with asyncio.timeout(10):
                await site.runner.stop()
        assert not site.runner._running


async def test_a_cancelled_job_ends(site: Site) -> None:
    ended = asyncio.Event()

    async def work(pipeline: FakePipeline) -> Transcript:
        with suppress(asyncio.CancelledError):
            return await block(pipeline)
        ended.set()
        raise asyncio.CancelledError

    site.service.work_on_job = work
    job = await site.add()
    site.runner.start()
    await until(lambda: site.decoded)
    await site.store.cancel(job)
    await site.runner.cancel(job.id)
    assert ended.is_set()
    assert site.events[job.id] == ["queued", "running", "cancelled"]
    await site.runner.cancel("unknown")


async def test_owners_take_turns(site: Site) -> None:
    owners = []
    both = asyncio.Event()

    async def work(pipeline: FakePipeline) -> Transcript:
        owners.append((await site.store.get(pipeline.pcm_path.name)).submission.owner)
        if len(owners) == 2:
            both.set()
        await both.wait()
        return TRANSCRIPT

    site.service.fleet.jobs_at_once = 2
    site.service.work_on_job = work
    jobs = [await site.add(owner=owner) for owner in ("many", "many", "many", "one")]
    site.runner.start()
    for job in jobs:
        await site.wait_for(job, "succeeded")
    assert sorted(owners[:2]) == ["many", "one"]
    assert owners[2:] == ["many", "many"]


async def until_running(site: Site, count: int) -> set[str]:
    """The jobs that run, once there are so many."""
    while len(site.runner._running) != count:
        await site.changed()
    return set(site.runner._running)


async def test_a_long_job_gives_way_to_a_short_one(site: Site) -> None:
    """And goes on from its complete decoded audio, or from the start."""

    async def work(pipeline: FakePipeline) -> Transcript:
        if pipeline.upload.path.name == "a" * 32:
            return TRANSCRIPT
        if pipeline.pcm_path.name == jobs[3].id:
            pipeline.observer.decoded(Decoded(50, True, ()))
        pipeline.observer.progressed(Progress(7200.0))
        return await block(pipeline)

    site.service.work_on_job = work
    jobs = [await site.add(file=str(number) * 32) for number in range(6)]
    site.runner.start()
    for job in jobs:  # those before it have given way to the last two
        await site.wait_for(job, "running")
    await until_running(site, 4)
    short = await site.add(file="a" * 32)
    site.runner.wake()
    await site.wait_for(short, "succeeded")
    assert site.events[short.id] == ["queued", "running", "succeeded"]
    running = await until_running(site, 3)
    assert running >= {job.id for job in jobs[:2]}
    waiting_ids = {job.id for job in jobs} - running
    assert {site.events[id][-1] for id in waiting_ids} == {"queued"}
    assert jobs[3].id in waiting_ids
    assert set(site.decoded) <= running | {jobs[3].id}, "a part of the decoded audio is useless"
    assert jobs[3].id in site.decoded


async def test_a_job_is_known_to_be_long_after_a_restart(site: Site) -> None:
    async def work(pipeline: FakePipeline) -> Transcript:
        pipeline.observer.progressed(Progress(7200.0, 7200.0))
        began.append(pipeline.pcm_path.name)
        return await block(pipeline)

    began: list[str] = []
    site.service.work_on_job = work
    jobs = [await site.add(file=str(number) * 32) for number in range(4)]
    site.runner.start()
    while len(began) < 4:
        await site.changed()
    await site.runner.stop()
    site.new_runner().start()
    assert await until_running(site, 3) == {job.id for job in jobs[:3]}
    short = await site.add(file="a" * 32)
    site.runner.wake()
    await site.wait_for(short, "running")
    assert site.events[jobs[2].id] == ["queued", "running"] * 2


async def test_a_job_that_is_deleted_while_it_gives_way_stays_deleted(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    requeue = Store.requeue

    async def delete_first(store: Store, job: Job, **options: Any) -> Job:
        await store.cancel(job)
        await store.delete(job)
        return await requeue(store, job, **options)

    async def work(pipeline: FakePipeline) -> Transcript:
        pipeline.observer.progressed(Progress(7200.0))
        return await block(pipeline)

    monkeypatch.setattr(Store, "requeue", delete_first)
    site.service.work_on_job = work
    jobs = [await site.add(file=str(number) * 32) for number in range(4)]
    site.runner.start()
    while not site.runner._lengths.remaining_s(jobs[3].id):
        await site.changed()
    site.service.work_on_job = succeed
    short = await site.add(file="a" * 32)
    site.runner.wake()
    await site.wait_for(short, "succeeded")
    assert site.events[jobs[3].id] == ["queued", "running", "cancelled"]
    assert jobs[3].id not in site.decoded


async def test_no_job_starts_before_a_worker_is_ready(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READY_POLL_S", 0.005)
    asked = asyncio.Event()

    def readiness() -> str | None:
        asked.set()
        return site.service.fleet.reason

    monkeypatch.setattr(site.service.fleet, "readiness", readiness)
    site.service.fleet.reason = "the model is being loaded"
    job = await site.add()
    site.runner.start()
    await asked.wait()
    assert site.events[job.id] == ["queued"]
    site.service.fleet.reason = None
    await site.wait_for(job, "succeeded")
