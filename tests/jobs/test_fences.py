"""A front end that stood still goes on after another one has its jobs: nothing that it writes then counts."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.common.errors import LostLease
from app.database import front_ends as lease
from app.database.connection import Database
from app.database.front_ends import FrontEnd
from app.database.tables import metadata
from app.jobs.job import Again, Job, JobError, JobProgress, Stage, Status
from app.jobs.running import runner as module
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.published_clips import PublishedClip
from app.jobs.storage.store import Store
from app.media.pcm_files import channel_paths
from app.recording.clip_decoding import ClipKey
from app.transcript.packed import pack_result
from app.transcript.timeline import Transcript
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import PEAKS, RESULT, SUBMISSION, TRANSCRIPT, submission
from tests.jobs.sites import URL, FakePipeline, Site, block, opened_site, succeed
from workers.messages import PCM_16K, Span

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

SPAN: Span = (0, 48_000)
CLIP: ClipKey = (*SPAN, None, 0)


class Owner:
    """What writes for the runs of one front end."""

    def __init__(self, database: Database, name: str, epoch: int) -> None:
        front_end = FrontEnd(database)
        front_end.name, front_end.epoch = name, epoch
        self.store = Store(database, front_end=front_end)
        self.clips = ClipStore(database, front_end)


async def content(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the database."""
    return {
        table.name: sorted((tuple(row) for row in await database.rows(sa.select(table))), key=repr)
        for table in metadata.sorted_tables
    }


async def store_clip(owner: Owner, job: Job) -> None:
    owner.clips.put(job.number, CLIP, 1, pack_result(RESULT))
    await owner.clips.flush()


async def store_voices(owner: Owner, job: Job) -> None:
    owner.clips.put_voices(job.number, SPAN, b"late")
    await owner.clips.flush()


async def store_progress(owner: Owner, job: Job) -> None:
    progress = JobProgress(Stage.TRANSCRIBING, 9.0, 9.0, 9, 9)
    await owner.store.store_progress({job.id: progress}, {job.id: [PublishedClip(SPAN, None)]})


async def store_facts(owner: Owner, job: Job) -> None:
    packed = PEAKS.pack()
    assert await owner.store.update(job.id, by_run=True, packed_peaks=packed, pcm="x", file="f") is None


WRITES: dict[str, Callable[[Owner, Job], Awaitable[Any]]] = {
    "a clip": store_clip,
    "voices": store_voices,
    "progress, text and their events": store_progress,
    "what is known of the recording": store_facts,
    "another digest": lambda owner, job: owner.store.set_result_digest(job, "another"),
    "a success": lambda owner, job: owner.store.succeed(job, TRANSCRIPT, keep_file=False),
    "a failure": lambda owner, job: owner.store.fail(job, JobError("late", None), False, TRANSCRIPT),
    "a revision": lambda owner, job: owner.store.succeed_again(job, TRANSCRIPT, None, replaces_voices=True),
    "a return to the queue": lambda owner, job: owner.store.requeue(job),
}
REFUSED = {"another digest", "a success", "a failure", "a revision", "a return to the queue"}


@ON_BOTH
@pytest.mark.parametrize("kind_of_write", WRITES)
async def test_a_late_write_changes_nothing(database: Database, kind_of_write: str) -> None:
    stopped, owner = Owner(database, "a", 1), Owner(database, "b", 2)
    more = {"webhook_url": "https://example.org/", "idempotency_key": "key"}
    parent = await owner.store.add(submission(**more))
    parent = await owner.store.succeed(await owner.store.begin(parent), TRANSCRIPT, keep_file=True)
    again = (
        Again(parent.id, parent.revision, keep_corrections=True) if kind_of_write == "a revision" else None
    )
    job = await stopped.store.begin(await stopped.store.add(submission(again=again, webhook_url=URL)))
    taken = await owner.store.begin(await owner.store.requeue(job, interrupted=True))
    assert (taken.front_end, taken.epoch, taken.interruptions) == ("b", 2, 1)
    taken = await owner.store.set_result_digest(taken, "digest")
    owner.clips.put(job.number, (*SPAN, "en", 0), 0, pack_result(RESULT))
    await owner.clips.flush()
    before = await content(database)
    if kind_of_write in REFUSED:
        with pytest.raises(LostLease):
            await WRITES[kind_of_write](stopped, job)
    else:
        await WRITES[kind_of_write](stopped, job)
    assert await content(database) == before
    if kind_of_write in ("a return to the queue", "what is known of the recording"):
        return
    await WRITES[kind_of_write](owner, taken)
    assert await content(database) != before, "the owner's own write counts"


@ON_BOTH
async def test_one_of_two_front_ends_claims_a_job(database: Database) -> None:
    one, other = Owner(database, "a", 1), Owner(database, "b", 2)
    jobs = [await one.store.add(SUBMISSION) for _ in range(10)]
    claims = [owner.store.begin(job) for job in jobs for owner in (one, other)]
    claimed = await asyncio.gather(*claims, return_exceptions=True)
    assert sum(isinstance(each, Job) for each in claimed) == len(jobs)
    rows = await one.store.with_status([Status.RUNNING])
    assert len(rows) == len(jobs)
    assert {(row.front_end, row.epoch) for row in rows} <= {("a", 1), ("b", 2)}


@pytest.fixture
def _short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LEASE_S", 0.6), ("RENEW_S", 0.1), ("_MAX_GAP_S", 0.3), ("_RETRY_S", 0.1)):
        monkeypatch.setattr(lease, name, value)
    monkeypatch.setattr(module, "_POLL_S", 0.1)


@pytest.mark.usefixtures("_short_lease")
@pytest.mark.parametrize("end", ["succeeds", "fails"])
async def test_a_front_end_that_stood_still_ends_its_runs_and_touches_no_file(
    tmp_path: Path, end: str
) -> None:
    released = asyncio.Event()

    async def stand_still(pipeline: FakePipeline) -> Transcript:
        pipeline.observer.published(SPAN, None)
        await released.wait()
        if end == "fails":
            raise ValueError
        return TRANSCRIPT

    async with (
        opened_site(tmp_path, front_end="a", keep_audio=False) as a,
        opened_site(tmp_path, front_end="b", keep_audio=False) as b,
    ):
        for site in (a, b):
            await site.front_end.start()
        a.service.work_on_job, b.service.work_on_job = stand_still, block
        job = await a.add()
        a.runner.start()
        await a.wait_for(job, "running")
        await until(lambda: a.decoded)
        renewing = a.front_end._task
        assert renewing is not None
        renewing.cancel()  # what it runs goes on meanwhile, as after SIGCONT
        b.runner.start()
        running = await b.wait_for(job, "running")
        assert (running.front_end, running.interruptions) == ("b", 1)
        assert running.epoch != job.epoch
        await until(lambda: b.decoded == [f"{job.id}-{running.epoch}"])
        released.set()
        await a.wait_until_idle()
        assert a.uploads == [SUBMISSION.file], "its new owner needs the recording"
        assert b.decoded == [f"{job.id}-{running.epoch}"]
        assert not {"succeeded", "failed"} & {*a.events[job.id]}
        assert (await b.store.get_any(job.id)).status is Status.RUNNING
        epoch = a.front_end.epoch
        a.front_end._task = asyncio.create_task(a.front_end._renew_forever())
        await until(lambda: a.front_end.epoch != epoch)
        b.service.work_on_job = succeed
        [run] = b.runner._running.values()
        run.task.cancel()
        await b.store.requeue(run.job)
        b.runner.wake()
        await until(lambda: not a.uploads)
        assert (await b.store.get_any(job.id)).status is Status.SUCCEEDED


@pytest.mark.usefixtures("_short_lease")
async def test_runs_end_when_the_lease_is_lost(tmp_path: Path) -> None:
    async with opened_site(tmp_path, front_end="a") as a, opened_site(tmp_path, front_end="b") as b:
        for site in (a, b):
            await site.front_end.start()
            site.front_end.on_lost = site.runner.abandon
        a.service.work_on_job = b.service.work_on_job = block
        job = await a.add()
        a.runner.start()
        await a.wait_for(job, "running")
        write = a.database._write_lock
        await write.acquire()  # a stands still
        b.runner.start()
        await b.wait_for(job, "running")
        epoch = a.front_end.epoch
        write.release()
        await until(lambda: a.front_end.epoch != epoch)
        assert not a.runner._running
        await until(lambda: b.decoded == [f"{job.id}-{b.front_end.epoch}"])
        for site in (a, b):
            site.service.work_on_job = succeed
        other = await a.add(file="1" * 32)
        a.runner.wake()
        assert (await a.wait_for(other, "succeeded")).epoch == a.front_end.epoch, "it goes on with others"


@pytest.mark.usefixtures("_short_lease")
async def test_twenty_seconds_without_a_database_lose_nothing(tmp_path: Path) -> None:
    async with opened_site(tmp_path, front_end="a") as a, opened_site(tmp_path, front_end="b") as b:
        sites, jobs = (a, b), []
        for site in sites:
            await site.front_end.start()
            site.front_end.on_lost = site.runner.abandon
            site.service.work_on_job = block
            job = await site.add(file=site.front_end.name * 32)
            site.runner.start()
            jobs.append(await site.wait_for(job, "running"))
        for site in sites:
            await site.database._write_lock.acquire()
        await asyncio.sleep(1.0)  # longer than a lease
        for site in sites:
            site.database._write_lock.release()
        await asyncio.sleep(1.0)
        for site, job in zip(sites, jobs, strict=True):
            now = await site.store.get_any(job.id)
            assert (now.status, now.epoch, now.interruptions) == (Status.RUNNING, job.epoch, 0)
            assert site.runner._running.keys() == {job.id}


async def test_the_sound_of_a_stream_is_not_added_to_a_recording_that_another_one_may_have(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await site.runner.open_live(submission(), ())
    sound = bytes(PCM_16K.bytes_per_second)
    await live.append(sound, PCM_16K)
    size = live.path.stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(FrontEnd, "holds", False)
        await live.append(sound, PCM_16K)
        assert live.path.stat().st_size == size
    await live.append(sound, PCM_16K)
    assert live.path.stat().st_size == size + 2 * len(sound), "nobody took the job over: nothing is lost"
    await live.append(sound[: len(sound) // 2], PCM_16K)
    monkeypatch.setattr(FrontEnd, "holds", False)
    await live.cancel()
    assert live.path.stat().st_size == size + 2 * len(sound)


async def test_decoded_audio_of_an_earlier_epoch_is_used_if_it_is_complete(tmp_path: Path) -> None:
    """And goes to the new run, so nobody removes it with the old one."""
    async with opened_site(tmp_path) as site:
        await site.front_end.start()
        site.service.finds_peaks, site.service.paused = True, True
        site.service.work_on_job = None
        job = await site.add()
        site.runner.start()
        await site.wait_for(job, "running")
        while (await site.store.get_any(job.id)).pcm is None:
            await site.changed()
        assert site.decoded == [f"{job.id}-1"]
        await site.runner.stop()
        channel_paths(site.folder.pcm / f"{job.id}-1")[0].write_bytes(bytes(2 * 67_200))
        await site.front_end.start()
        used: list[object] = []

        async def note(pipeline: FakePipeline) -> Transcript:
            used.append(pipeline.decoded)
            return await block(pipeline)

        site.service.work_on_job = note
        site.new_runner().start()
        await site.wait_for(job, "running", 2)
        await until(lambda: used)
        assert site.decoded == [f"{job.id}-2"]
        marker = (await site.store.get_any(job.id)).pcm
        assert marker is not None
        assert marker.endswith(f" {job.id}-2")
