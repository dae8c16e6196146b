"""Downloads beside other jobs: neither keeps the others waiting."""

import asyncio
import uuid
from functools import partial
from pathlib import Path

import pytest

from app.intake.downloads import download as real_download
from app.intake.uploads import Upload
from app.jobs.job import Job, Stage, Status
from app.jobs.running import executor, order
from app.jobs.running import runner as module
from app.jobs.running.order import MAX_DOWNLOADS
from app.transcript.timeline import Transcript
from tests import internet
from tests.event_loop import until
from tests.jobs.samples import TRANSCRIPT
from tests.jobs.sites import FakePipeline, Site, succeed

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

DRIP = "https://drip.example/talk.mp3"
QUICK = "https://media.example/talk.mp3"


class Sites:
    """Downloads that end at once, and dripping ones that end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cancelled = 0
        self.released = asyncio.Event()

    async def download(self, url: str, folder: Path, *_: object) -> Upload:
        self.begun.append(url)
        if url == DRIP:
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        path = folder / uuid.uuid4().hex
        path.write_bytes(b"ID3")
        return Upload(path, "talk.mp3", 3, "ab" * 32)


@pytest.fixture
async def sites(monkeypatch: pytest.MonkeyPatch) -> Sites:
    sites = Sites()
    monkeypatch.setattr(executor, "download", sites.download)
    return sites


async def until_downloading(site: Site, jobs: list[Job]) -> None:
    for job in jobs:
        job = await site.wait_for(job, "running")
        assert (job.status, job.progress.stage) == (Status.RUNNING, Stage.DOWNLOADING)
    while len(site.runner._running) < len(jobs):
        await site.changed()


async def until_dripping(site: Site, sites: Sites, job: Job) -> None:
    await until_downloading(site, [job])
    await until(lambda: sites.begun)


async def test_downloads_occupy_no_place_of_other_jobs(site: Site, sites: Sites) -> None:
    site.service.fleet.jobs_at_once = 1
    dripping = [await site.add(url=DRIP) for _ in range(MAX_DOWNLOADS)]
    site.runner.start()
    await until_downloading(site, dripping)
    uploaded = await site.add()
    site.runner.wake()
    await site.wait_for(uploaded, "succeeded")
    sites.released.set()
    for job in dripping:
        await site.wait_for(job, "succeeded")
    assert site.events[uploaded.id] == ["queued", "running", "succeeded"]
    assert len(sites.begun) == MAX_DOWNLOADS, "a recording was downloaded twice"


async def test_transcriptions_occupy_no_place_of_downloads(site: Site, sites: Sites) -> None:
    """A job that is downloaded waits for its place in the queue; its recording is stored already."""
    ended = asyncio.Event()

    async def work(pipeline: FakePipeline) -> Transcript:
        await ended.wait()
        return TRANSCRIPT

    site.service.fleet.jobs_at_once = 1
    site.service.work_on_job = work
    first = await site.add()
    site.runner.start()
    await site.wait_for(first, "running")
    downloaded = await site.add(url=QUICK)
    site.runner.wake()
    job = await site.wait_for(downloaded, "queued", times=2)
    assert job.submission.file in site.uploads
    ended.set()
    await site.wait_for(first, "succeeded")
    await site.wait_for(downloaded, "succeeded")
    assert site.events[downloaded.id] == ["queued", "running", "queued", "running", "succeeded"]
    assert sites.begun == [QUICK]


async def test_a_job_goes_on_after_its_download_if_there_is_a_place(site: Site, sites: Sites) -> None:
    job = await site.add(url=QUICK)
    site.runner.start()
    await site.wait_for(job, "succeeded")
    assert site.events[job.id] == ["queued", "running", "succeeded"]


async def test_a_dripping_download_gives_way_and_is_repeated(
    site: Site, sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "FIRST_SLICE_S", 0.2)
    monkeypatch.setattr(module, "_POLL_S", 0.05)
    dripping = [await site.add(url=DRIP) for _ in range(MAX_DOWNLOADS)]
    site.runner.start()
    await until_downloading(site, dripping)
    quick = await site.add(url=QUICK)
    site.runner.wake()
    await site.wait_for(quick, "succeeded")
    assert sites.cancelled == 1
    sites.released.set()
    for job in dripping:
        await site.wait_for(job, "succeeded")
    await site.wait_until_idle()
    assert len(site.uploads) == MAX_DOWNLOADS + 1


async def test_a_job_that_is_deleted_while_it_downloads_ends(site: Site, sites: Sites) -> None:
    job = await site.add(url=DRIP)
    site.runner.start()
    await until_dripping(site, sites, job)
    await site.store.cancel(job)
    await site.runner.cancel(job.id)
    assert sites.cancelled == 1
    assert site.events[job.id] == ["queued", "running", "cancelled"]
    assert not site.runner._running


async def test_a_stop_requeues_downloads(site: Site, sites: Sites) -> None:
    job = await site.add(url=DRIP)
    site.runner.start()
    await until_dripping(site, sites, job)
    await site.runner.stop()
    assert (await site.store.get(job.id)).status is Status.QUEUED
    sites.released.set()
    site.new_runner().start()
    await site.wait_for(job, "succeeded")
    assert sites.begun == [DRIP, DRIP]


@pytest.mark.timeout(120)
async def test_sites_that_drip_keep_no_upload_waiting(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With real download workers."""
    pytest.importorskip("yt_dlp")
    download = partial(real_download, resolver=internet.resolver, connect=internet.connect)
    monkeypatch.setattr(executor, "download", download)
    site.service.work_on_job = succeed
    dripping = [await site.add(url="http://media.example/stuck.mp3") for _ in range(MAX_DOWNLOADS)]
    site.runner.start()
    await until_downloading(site, dripping)
    uploaded = await site.add()
    site.runner.wake()
    await site.wait_for(uploaded, "succeeded")
    assert len([run for run in site.runner._running.values() if run.downloads]) == MAX_DOWNLOADS
