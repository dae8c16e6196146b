"""One job: its download, its decoded audio, and the files that it leaves or does not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from runs import FILE, URL, Pipeline, Site, with_site
from samples import TRANSCRIPT

from app.errors import ClipFailed, DatabaseUnavailable
from app.jobs import executor as module
from app.jobs import runner
from app.jobs.job import JobStatus
from app.jobs.store import Store
from app.media.uploads import Upload
from app.transcript.timeline import Transcript
from workers.messages import BYTES_PER_SAMPLE

pytestmark = pytest.mark.timeout(30)

CONTENT = b"ID3 audio"


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs downloaded; each download is another file."""
    urls: list[str] = []

    async def download(url: str, folder: Path, *_: object) -> Upload:
        urls.append(url)
        path = folder / f"{len(urls):032x}"
        path.write_bytes(CONTENT)
        return Upload(path, "talk.mp3", len(CONTENT), "ab" * 32)

    monkeypatch.setattr(module, "download", download)
    return urls


@pytest.mark.parametrize("way", ["stop", "cancel"])
def test_what_was_downloaded_is_kept_where_that_is_noted(
    tmp_path: Path, downloads: list[str], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The run is cancelled when the row has been updated, and before it knows."""
    update, resumed = Store.update, False

    async def body(site: Site) -> None:
        nonlocal resumed
        noting = asyncio.Event()

        async def note(store: Store, *arguments: Any, **changes: Any) -> None:
            await update(store, *arguments, **changes)
            noting.set()
            if not resumed:
                await asyncio.Event().wait()  # on its way back

        monkeypatch.setattr(Store, "update", note)
        job = await site.add(url=URL)
        site.runner.start()
        await noting.wait()
        if way == "cancel":
            await site.store.cancel(job)
            await site.runner.cancel(job.id)
        else:
            await site.runner.stop()
        job = await site.store.get(job.id)
        assert site.uploads == [job.submission.file]
        assert (job.submission.filename, job.submission.size) == ("talk.mp3", len(CONTENT))
        if way == "stop":
            assert job.status is JobStatus.QUEUED
            resumed = True
            site.new_runner().start()
            await site.until(job, "succeeded")
            assert downloads == [URL]

    with_site(tmp_path, body)


def test_a_download_that_cannot_be_noted_is_removed_and_made_again(
    tmp_path: Path, downloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_PAUSES_S", (0.01,))
    update, failed = Store.update, 0

    async def fail_once(store: Store, *arguments: Any, **changes: Any) -> None:
        nonlocal failed
        failed += 1
        if failed == 1:
            raise DatabaseUnavailable("gone")
        await update(store, *arguments, **changes)

    async def body(site: Site) -> None:
        monkeypatch.setattr(Store, "update", fail_once)
        job = await site.add(url=URL)
        site.runner.start()
        job = await site.until(job, "succeeded")
        assert downloads == [URL, URL]
        assert site.uploads == [job.submission.file]

    with_site(tmp_path, body)


def test_a_file_that_is_gone(tmp_path: Path, downloads: list[str]) -> None:
    async def body(site: Site) -> None:
        from_url = await site.add(url=URL, file="f" * 32)
        (site.settings.uploads_dir / FILE).unlink(missing_ok=True)
        handed_in = await site.add(file="1" * 32)
        (site.settings.uploads_dir / ("1" * 32)).unlink()
        site.runner.start()
        job = await site.until(from_url, "succeeded")
        assert (downloads, site.uploads) == ([URL], [job.submission.file])
        job = await site.until(handed_in, "failed")
        assert job.error is not None
        assert job.error.code == "file_gone"

    with_site(tmp_path, body)


@pytest.mark.parametrize("keep_audio", [True, False])
@pytest.mark.parametrize("way", ["succeeded", "failed"])
@pytest.mark.parametrize("source", [{}, {"url": URL}])
def test_recordings_are_kept_or_not(
    tmp_path: Path,
    downloads: list[str],
    keep_audio: bool,
    way: str,
    source: dict[str, str],
) -> None:
    async def work(pipeline: Pipeline) -> Transcript:
        if way == "failed":
            raise ClipFailed("It failed.")
        return TRANSCRIPT

    async def body(site: Site) -> None:
        # The event is told before the files go: the run itself is what is waited for.
        site.service.work = work
        job = await site.add(**source)
        site.runner.start()
        job = await site.until(job, way)
        await site.at_rest()
        assert site.uploads == ([job.submission.file] if keep_audio else [])
        assert (job.submission.file is not None) is keep_audio
        assert site.decoded == []

    with_site(tmp_path, body, keep_audio=keep_audio)


@pytest.mark.parametrize(
    ("expected", "samples"),
    [
        ("50 this-boot", 50),
        ("50 another-boot", None),
        ("49 this-boot", None),
        ("51 this-boot", None),
        (None, None),
    ],
)
def test_decoded_audio_counts_where_it_is_whole_and_of_this_start_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: str | None, samples: int | None
) -> None:
    monkeypatch.setattr(module, "_boot_id", lambda: "this-boot")
    path = tmp_path / "pcm"
    assert module._decoded(expected, path) is None
    path.write_bytes(bytes(50 * BYTES_PER_SAMPLE))
    assert module._decoded(expected, path) == samples


def test_words_are_timed_whatever_was_asked_for(tmp_path: Path) -> None:
    async def body(site: Site) -> None:
        asked: list[bool] = []

        async def work(pipeline: Pipeline) -> Transcript:
            asked.append(pipeline.options.word_timestamps)
            return TRANSCRIPT

        site.service.work = work
        job = await site.add()
        assert not job.submission.options.word_timestamps
        site.runner.start()
        await site.until(job, "succeeded")
        assert asked == [True]

    with_site(tmp_path, body)


def test_an_unexpected_error_is_told_without_its_details(tmp_path: Path) -> None:
    async def work(pipeline: Pipeline) -> Transcript:
        raise ValueError("/secret/path")

    async def body(site: Site) -> None:
        site.service.work = work
        job = await site.add()
        site.runner.start()
        job = await site.until(job, "failed")
        assert job.error is not None
        assert job.error.code == "internal_error"
        assert "secret" not in job.error.message

    with_site(tmp_path, body)
