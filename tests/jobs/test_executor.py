"""The run of one job: its download, its decoded audio, and the files that stay."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import ClipFailed, DatabaseUnavailable, SpeakerModelUnavailable
from app.common.options import Options
from app.intake.uploads import Upload
from app.jobs.job import Job, Status
from app.jobs.running import executor as module
from app.jobs.running import runner
from app.jobs.storage.store import Store
from app.media.pcm_files import channel_path
from app.transcript.timeline import Transcript
from tests.event_loop import until
from tests.jobs.samples import TRANSCRIPT
from tests.jobs.sites import FILE, URL, FakePipeline, Site, opened_site
from workers.messages import BYTES_PER_SAMPLE, Decoded

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

CONTENT = b"ID3 audio"


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs of all downloads; each download is another file."""
    urls: list[str] = []

    async def download(url: str, folder: Path, *_: object) -> Upload:
        urls.append(url)
        path = folder / f"{len(urls):032x}"
        path.write_bytes(CONTENT)
        return Upload(path, "talk.mp3", len(CONTENT), "ab" * 32)

    monkeypatch.setattr(module, "download", download)
    return urls


@pytest.mark.parametrize("cause", ["stop", "cancel"])
async def test_a_download_is_kept_if_the_run_is_cancelled_after_it_was_stored(
    site: Site, downloads: list[str], monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """The run is cancelled once the row is updated, before the update returns."""
    update, resumed = Store.update, False
    updated = asyncio.Event()

    async def update_and_block(store: Store, *arguments: Any, **changes: Any) -> None:
        await update(store, *arguments, **changes)
        updated.set()
        if not resumed:
            await asyncio.Event().wait()

    monkeypatch.setattr(Store, "update", update_and_block)
    job = await site.add(url=URL)
    site.runner.start()
    await updated.wait()
    if cause == "cancel":
        await site.store.cancel(job)
        await site.runner.cancel(job.id)
    else:
        await site.runner.stop()
    job = await site.store.get(job.id)
    assert site.uploads == [job.submission.file]
    assert (job.submission.filename, job.submission.size) == ("talk.mp3", len(CONTENT))
    if cause == "stop":
        assert job.status is Status.QUEUED
        resumed = True
        site.new_runner().start()
        await site.wait_for(job, "succeeded")
        assert downloads == [URL]


async def test_a_download_that_cannot_be_stored_is_removed_and_repeated(
    site: Site, downloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_BACKOFF_S", (0.01,))
    update, calls = Store.update, 0

    async def fail_once(store: Store, *arguments: Any, **changes: Any) -> Job | None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise DatabaseUnavailable("gone")
        return await update(store, *arguments, **changes)

    monkeypatch.setattr(Store, "update", fail_once)
    job = await site.add(url=URL)
    site.runner.start()
    job = await site.wait_for(job, "succeeded")
    assert downloads == [URL, URL]
    assert site.uploads == [job.submission.file]


@pytest.mark.parametrize("late", ["model", "speaker model"])
@pytest.mark.parametrize("source", [{}, {"url": URL}])
async def test_a_job_whose_model_is_being_downloaded_leaves_its_place_to_others(
    site: Site, downloads: list[str], monkeypatch: pytest.MonkeyPatch, late: str, source: dict[str, str]
) -> None:
    monkeypatch.setattr(module, "_MODEL_WAIT_S", 0.05)
    monkeypatch.setattr(runner, "_BACKOFF_S", (0.2,))
    arrived = asyncio.Event()

    async def ready(model: str, options: Options) -> tuple[None, str]:
        if options.diarize and late == "model":
            await arrived.wait()
        return None, model

    async def speaker_model() -> Any:
        if late == "speaker model":
            await arrived.wait()
        return site.service.media.speaker_model

    monkeypatch.setattr(site.service.fleet, "ready", ready)
    monkeypatch.setattr(site.service.media.speaker_models, "get", speaker_model)
    site.service.fleet.jobs_at_once = 1
    waiting = await site.add(file="1" * 32, options=Options(diarize=True), **source)
    other = await site.add()
    site.runner.start()
    await site.wait_for(other, "succeeded")
    await site.wait_for(waiting, "queued", times=3)
    arrived.set()
    await site.wait_for(waiting, "succeeded")


@pytest.mark.parametrize(("given", "filename"), [("", "talk.mp3"), ("My talk.flac", "My talk.flac")])
async def test_the_name_that_a_client_gives_stays(
    site: Site, downloads: list[str], given: str, filename: str
) -> None:
    job = await site.add(url=URL, filename=given)
    site.runner.start()
    job = await site.wait_for(job, "succeeded")
    assert (job.submission.filename, downloads) == (filename, [URL])


async def test_a_missing_file(site: Site, downloads: list[str]) -> None:
    from_url = await site.add(url=URL, file="f" * 32)
    (site.folder.uploads / FILE).unlink(missing_ok=True)
    uploaded = await site.add(file="1" * 32)
    (site.folder.uploads / ("1" * 32)).unlink()
    site.runner.start()
    job = await site.wait_for(from_url, "succeeded")
    assert (downloads, site.uploads) == ([URL], [job.submission.file])
    job = await site.wait_for(uploaded, "failed")
    assert job.error is not None
    assert job.error.code == "file_gone"


@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_job_waits_for_the_model_of_voices(
    site: Site, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    """As long as for a model that transcribes."""
    monkeypatch.setattr(runner, "_BACKOFF_S", (0.01, 0.02))
    attempts = 0

    async def model() -> Any:
        nonlocal attempts
        attempts += 1
        if comes_back and attempts > 2:
            return site.service.media.speaker_model
        raise SpeakerModelUnavailable("It cannot be downloaded.")

    monkeypatch.setattr(site.service.media.speaker_models, "get", model)
    job = await site.add(options=Options(diarize=True))
    site.runner.start()
    await until(lambda: site.events[job.id][-1] in ("succeeded", "failed"))
    job = await site.store.get(job.id)
    assert attempts == 3
    assert job.status is (Status.SUCCEEDED if comes_back else Status.FAILED)
    assert comes_back or (job.error and job.error.code) == "speaker_model_unavailable"


@pytest.mark.parametrize("keep_audio", [True, False])
@pytest.mark.parametrize("status", ["succeeded", "failed"])
@pytest.mark.parametrize("source", [{}, {"url": URL}])
async def test_recordings_are_kept_as_configured(
    tmp_path: Path, downloads: list[str], keep_audio: bool, status: str, source: dict[str, str]
) -> None:
    async def work(pipeline: FakePipeline) -> Transcript:
        if status == "failed":
            raise ClipFailed("It failed.")
        return TRANSCRIPT

    async with opened_site(tmp_path, keep_audio=keep_audio) as site:
        site.service.work_on_job = work
        job = await site.add(**source)
        site.runner.start()
        job = await site.wait_for(job, status)
        await site.wait_until_idle()
        assert site.uploads == ([job.submission.file] if keep_audio else [])
        assert (job.submission.file is not None) is keep_audio
        assert site.decoded == []


@pytest.mark.parametrize(
    ("description", "samples"),
    [
        ("50 this-boot 0 pcm", 50),
        ("50 another-boot 0 pcm", None),
        ("49 this-boot 0 pcm", None),
        ("51 this-boot 0 pcm", None),
        ("50 this-boot", None),
        (None, None),
    ],
)
def test_decoded_audio_is_used_if_it_is_complete_and_of_this_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, description: str | None, samples: int | None
) -> None:
    monkeypatch.setattr(module, "boot_id", lambda: "this-boot")
    path = tmp_path / "pcm"
    assert module._decoded_audio(description, path) is None
    path.write_bytes(bytes(50 * BYTES_PER_SAMPLE))
    expected = None if samples is None else Decoded(samples)
    assert module._decoded_audio(description, path) == expected


def test_channels_are_used_if_all_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "boot_id", lambda: "this-boot")
    audio = Decoded(50, channels=(0, 2, 5))
    marker, path = module._pcm_marker(audio, "pcm"), tmp_path / "pcm"
    for channel in audio.channels:
        assert module._decoded_audio(marker, path) is None
        channel_path(path, channel).write_bytes(bytes(50 * BYTES_PER_SAMPLE))
    assert module._decoded_audio(marker, path) == audio
    channel_path(path, 2).write_bytes(bytes(49 * BYTES_PER_SAMPLE))
    assert module._decoded_audio(marker, path) is None
