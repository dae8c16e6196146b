"""Which jobs are worked on, what hinders them, and what is put back."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from runs import Pipeline, Site, hold, succeed, with_site
from samples import TRANSCRIPT
from silence import backends, silent

from app.errors import DatabaseUnavailable, DiskFull, ModelUnavailable, NotReady
from app.jobs import database as database_module
from app.jobs import runner as module
from app.jobs import store as store_module
from app.jobs.job import JobStatus
from app.jobs.store import Store
from app.transcript.timeline import Transcript
from app.transcription.pipeline import Progress
from tests.postgresql import NewDatabase

pytestmark = pytest.mark.timeout(30)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (0.01, 0.02))


@pytest.mark.parametrize(
    ("error", "code"), [(DiskFull, "disk_full"), (ModelUnavailable, "model_unavailable")]
)
def test_what_a_job_may_itself_be_the_cause_of_is_given_up(
    tmp_path: Path, error: type[Exception], code: str
) -> None:
    async def body(site: Site) -> None:
        hindered = await site.add()
        seen_decoded = []

        async def work(pipeline: Pipeline) -> Transcript:
            if pipeline.pcm_path.name != hindered.id:
                return TRANSCRIPT
            seen_decoded.append(len(site.decoded))
            raise error("there is something in the way")

        site.service.work = work
        site.runner.start()
        other = await site.add(file="1" * 32)
        failed = await site.until(hindered, "failed")
        assert failed.error is not None
        assert (failed.error.code, failed.error.message) == (code, "there is something in the way")
        assert site.kinds[hindered.id] == ["queued", *["running", "queued"] * 2, "running", "failed"]
        assert len(seen_decoded) == len(module._PAUSES_S) + 1
        await site.until(other, "succeeded")

    with_site(tmp_path, body)


def test_a_full_disk_is_made_emptier_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (3600.0,))

    async def body(site: Site) -> None:
        async def fill(pipeline: Pipeline) -> Transcript:
            raise DiskFull("full")

        site.service.jobs_at_once = 1
        site.service.work = fill
        filling = await site.add()
        site.runner.start()
        await site.until(filling, "queued", times=2)
        assert site.decoded == []
        site.service.work = succeed
        other = await site.add(file="1" * 32)
        site.runner.wake()
        await site.until(other, "succeeded")
        assert site.kinds[filling.id] == ["queued", "running", "queued"], "it pauses"

    with_site(tmp_path, body)


@pytest.mark.parametrize("error", [NotReady, DatabaseUnavailable])
def test_what_is_no_jobs_fault_is_waited_for_however_long(tmp_path: Path, error: type[Exception]) -> None:
    async def body(site: Site) -> None:
        tries = 0

        async def work(pipeline: Pipeline) -> Transcript:
            nonlocal tries
            tries += 1
            if tries <= len(module._PAUSES_S) + 3:
                raise error("not now")
            return TRANSCRIPT

        site.service.work = work
        job = await site.add()
        site.runner.start()
        await site.until(job, "succeeded")
        assert tries == len(module._PAUSES_S) + 4

    with_site(tmp_path, body)


@pytest.mark.parametrize("passes", [True, False])
def test_a_job_whose_end_cannot_be_stored_is_not_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: bool
) -> None:
    pack = store_module.pack_transcript
    tries = 0

    def short_of_memory(transcript: Transcript) -> bytes:
        nonlocal tries
        tries += 1
        if passes and tries > 1:
            return pack(transcript)
        raise MemoryError

    monkeypatch.setattr(store_module, "pack_transcript", short_of_memory)

    async def body(site: Site) -> None:
        job = await site.add()
        site.runner.start()
        job = await site.until(job, "succeeded" if passes else "failed")
        assert tries == (2 if passes else len(module._PAUSES_S) + 1)
        if not passes:
            assert job.error is not None
            assert job.error.code == "internal_error"
            await site.at_rest()
            assert site.decoded == []

    with_site(tmp_path, body)


def test_a_job_that_runs_by_the_database_alone_is_adopted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the runner is woken for others meanwhile."""
    monkeypatch.setattr(module, "_LOOK_S", 0.05)

    async def body(site: Site) -> None:
        async def wake_forever() -> None:
            while True:
                site.runner.wake()
                await asyncio.sleep(0.005)

        job = await site.store.begin(await site.add())
        running = await site.add(file="1" * 32)
        site.service.work = hold
        site.runner.start()
        await site.until(running, "running")
        waking = asyncio.create_task(wake_forever())
        try:
            await site.until(job, "running", times=2)
        finally:
            waking.cancel()
        assert site.kinds[running.id] == ["queued", "running"], "which is being worked on"

    with_site(tmp_path, body)


def test_a_begin_that_seems_to_fail_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.05)
    begin, begun = Store.begin, 0

    async def lose_the_answer(store: Store, job: Any) -> Any:
        nonlocal begun
        begun += 1
        job = await begin(store, job)
        if begun == 1:
            raise DatabaseUnavailable("the connection was lost at the commit")
        return job

    async def body(site: Site) -> None:
        job = await site.add()
        site.runner.start()
        await site.until(job, "succeeded")
        assert site.kinds[job.id] == ["queued", "running", "queued", "running", "succeeded"]

    monkeypatch.setattr(Store, "begin", lose_the_answer)
    with_site(tmp_path, body)


def test_what_fails_while_jobs_are_looked_for_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    in_state, failed = Store.in_state, 0

    async def fail_at_first(store: Store, *arguments: Any) -> Any:
        nonlocal failed
        failed += 1
        if failed <= 2:
            raise (DatabaseUnavailable("gone") if failed == 1 else MemoryError)
        return await in_state(store, *arguments)

    async def body(site: Site) -> None:
        job = await site.store.begin(await site.add())
        site.runner.start()
        await site.until(job, "succeeded")

    monkeypatch.setattr(Store, "in_state", fail_at_first)
    with_site(tmp_path, body)


def test_a_stop_puts_jobs_back_with_all_that_is_known_of_them(tmp_path: Path) -> None:
    async def body(site: Site) -> None:
        begun = asyncio.Event()

        async def work(pipeline: Pipeline) -> Transcript:
            pipeline.on_decoded(50)
            pipeline.on_progress(Progress(60.0, 60.0, 30.0, 1, 2))
            begun.set()
            return await hold(pipeline)

        site.service.work = work
        job = await site.add()
        site.runner.start()
        await begun.wait()
        await site.runner.stop()
        job = await site.store.get(job.id)
        assert job.status is JobStatus.QUEUED
        assert (job.progress.done_s, job.progress.clips_done) == (30.0, 1)
        assert job.pcm is not None
        seen = []

        async def go_on(pipeline: Pipeline) -> Transcript:
            seen.append(pipeline.decoded)
            return TRANSCRIPT

        site.service.work = go_on
        site.new_runner().start()
        await site.until(job, "succeeded")
        assert seen == [50], "nothing is decoded again"

    with_site(tmp_path, body)


def test_a_stop_ends_where_the_database_is_silent(
    tmp_path: Path, postgresql: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_ANSWER_S", "_CONNECT_S"):
        monkeypatch.setattr(database_module, name, 0.5)

    async def body(site: Site) -> None:
        site.service.work = hold
        job = await site.add()
        site.runner.start()
        await site.until(job, "running")
        pids = await backends(site.database)
        with silent([psutil.Process(pids[0]).ppid(), *pids]):
            async with asyncio.timeout(10):
                await site.runner.stop()
        assert not site.runner._running

    with_site(tmp_path, body, database_url=postgresql())


def test_a_cancelled_job_is_let_go(tmp_path: Path) -> None:
    async def body(site: Site) -> None:
        ended = asyncio.Event()

        async def work(pipeline: Pipeline) -> Transcript:
            with suppress(asyncio.CancelledError):
                return await hold(pipeline)
            ended.set()
            raise asyncio.CancelledError

        site.service.work = work
        job = await site.add()
        site.runner.start()
        while not site.decoded:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await site.store.cancel(job)
        await site.runner.cancel(job.id)
        assert ended.is_set()
        assert site.kinds[job.id] == ["queued", "running", "cancelled"]
        await site.runner.cancel("unknown")

    with_site(tmp_path, body)


def test_owners_take_turns(tmp_path: Path) -> None:
    async def body(site: Site) -> None:
        order = []

        async def work(pipeline: Pipeline) -> Transcript:
            order.append((await site.store.get(pipeline.pcm_path.name)).submission.owner)
            if len(order) == 2:
                both.set()
            await both.wait()
            return TRANSCRIPT

        both = asyncio.Event()
        site.service.jobs_at_once = 2
        site.service.work = work
        jobs = [await site.add(owner=owner) for owner in ("many", "many", "many", "one")]
        site.runner.start()
        for job in jobs:
            await site.until(job, "succeeded")
        assert sorted(order[:2]) == ["many", "one"]
        assert order[2:] == ["many", "many"]

    with_site(tmp_path, body)


def test_no_job_is_begun_before_a_worker_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READY_POLL_S", 0.005)

    async def body(site: Site) -> None:
        asked = asyncio.Event()

        def loading() -> str | None:
            asked.set()
            return site.service.reason

        site.service.readiness = loading  # type: ignore[method-assign]
        site.service.reason = "the model is being loaded"
        job = await site.add()
        site.runner.start()
        await asked.wait()
        assert site.kinds[job.id] == ["queued"]
        site.service.reason = None
        await site.until(job, "succeeded")

    with_site(tmp_path, body)
