"""Failed jobs that run again: what they keep, and what is forgotten."""

import asyncio
from dataclasses import replace

import pytest

from app.common.errors import ClipFailed, IllegalTransition
from app.database.connection import Database
from app.engines.ledger import JobName
from app.jobs.job import JobError, Status
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.store import Store
from app.transcript.packed import pack_result
from app.transcript.timeline import Transcript
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import RESULT, SUBMISSION, TRANSCRIPT
from tests.jobs.sites import FakePipeline, Site

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

DONE, CRASHED = (0, 16_000, None, 0), (16_000, 32_000, None, 0)
FAILURE = JobError("It failed.", "clip_failed")


@ON_BOTH
async def test_clips_with_results_stay_and_crashes_are_forgotten(
    database: Database, store: Store, clip_store: ClipStore
) -> None:
    job = await store.begin(await store.add(SUBMISSION))
    await asyncio.gather(
        clip_store.put(job.number, DONE, 1, pack_result(RESULT)), clip_store.put(job.number, CRASHED, 3, None)
    )
    partial = replace(TRANSCRIPT, failed_spans=((16_000, 32_000),))
    failed = await store.fail(job, FAILURE, keep_file=True, transcript=partial)
    assert (failed.failed_spans, failed.excerpt) == (partial.failed_spans, partial.text)
    assert (await clip_store.load(failed)).crash_count(CRASHED) == 3

    queued = await store.reopen(failed)
    assert (queued.status, queued.error, queued.progress.done_s) == (Status.QUEUED, None, 0)
    assert (queued.started_at, queued.finished_at) == (None, None)
    kept = await clip_store.load(queued)
    assert (set(kept.results), kept.crash_count(CRASHED)) == ({DONE}, 0)
    assert (await store.transcript(queued)).revision == 0

    ended = await store.succeed(await store.begin(queued), TRANSCRIPT, keep_file=True)
    assert ended.failed_spans == TRANSCRIPT.failed_spans != partial.failed_spans
    types = [event.type.removeprefix("job.") for event in await store.events(ended, 0)]
    assert types == ["queued", "running", "queued", "running", "succeeded"]
    numbers = [event.number for event in await store.events(ended, 0)]
    assert numbers == [1, 2, 4, 5, 6]


@pytest.mark.parametrize("status", sorted({*Status} - {Status.FAILED}))
async def test_no_other_job_is_reopened(store: Store, status: Status) -> None:
    job = await store.add(SUBMISSION)
    if status is not Status.QUEUED:
        job = await store.begin(job)
    if status is Status.SUCCEEDED:
        job = await store.succeed(job, TRANSCRIPT, keep_file=True)
    elif status is Status.CANCELLED:
        job = await store.cancel(job)
    with pytest.raises(IllegalTransition):
        await store.reopen(job)
    assert (await store.get(job.id)).status is status


async def test_the_end_of_a_failed_job_is_not_mistaken_for_a_job_that_waits(store: Store) -> None:
    """A run that ends late must not queue a job again that has failed meanwhile."""
    job = await store.begin(await store.add(SUBMISSION))
    await store.fail(job, FAILURE, keep_file=True)
    with pytest.raises(IllegalTransition):
        await store.requeue(job)


async def test_a_job_runs_again_once_its_last_run_has_removed_its_files(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed, runs = asyncio.Event(), 0

    async def work(pipeline: FakePipeline) -> Transcript:
        nonlocal runs
        runs += 1
        failed = ClipFailed("It failed.", code="clip_failed")
        site.service.failure = failed if runs == 1 else None
        return TRANSCRIPT

    async def remove_decoded(job: JobName) -> None:
        await removed.wait()

    site.service.work_on_job = work
    monkeypatch.setattr(site.service, "remove_decoded", remove_decoded)
    job = await site.add()
    site.runner.start()
    failed = await site.wait_for(job, "failed")
    assert failed.error == FAILURE
    await site.store.reopen(failed)
    for _ in range(5):
        site.runner.wake()
        await asyncio.sleep(0.02)
    assert (runs, (await site.store.get(job.id)).status) == (1, Status.QUEUED)
    removed.set()
    await site.wait_for(job, "succeeded")
    await until(lambda: not site.runner._running)
    assert runs == 2
