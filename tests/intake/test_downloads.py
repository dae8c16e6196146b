"""Downloads in the real download worker, with the real sandbox and the internet of `tests.internet`."""

import asyncio
import hashlib
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import DiskFull, InvalidInput, TooLarge
from app.intake import downloads
from app.intake.downloads import clean, download
from app.intake.uploads import Upload
from app.intake.url_policy import check_destination
from app.pool.process import ChildProcess
from tests import internet
from tests.event_loop import until
from workers import runtime
from workers.download import fetch
from workers.messages import FoundRecording, RecordingRefused

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

URL = "http://media.example/talk.mp3"
LIMIT = 1_000_000


async def get(url: str, folder: Path, max_bytes: int = LIMIT, **options: Any) -> Upload:
    options = {"resolver": internet.resolver, "connect": internet.connect} | options
    return await download(url, folder, max_bytes, None, **options)


def left(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def started(folder: Path) -> bool:
    """Whether a part of a recording is on disk."""
    return any(folder.glob(f"*/{fetch.RECORDING}*"))


async def test_a_recording_is_downloaded_completely_and_privately(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "uploads"
    upload = await get(URL, folder)
    content = b"ID3" + bytes(500_000)
    assert left(folder) == [upload.path]
    assert len(upload.path.name) == 32
    assert upload.path.read_bytes() == content
    assert (upload.filename, upload.size) == ("talk.mp3", len(content))
    assert upload.sha256 == hashlib.sha256(content).hexdigest()
    assert upload.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("url", "options", "error", "code"),
    [
        ("http://private.example/talk.mp3", {}, InvalidInput, "url_refused"),
        ("http://media.example/none", {}, InvalidInput, "url_unavailable"),
        (URL, {"max_bytes": 400_000}, TooLarge, "file_too_large"),
        (URL, {"resolver": internet.crashing_resolver}, InvalidInput, "url_unavailable"),
        (URL, {"resolver": internet.WithoutYtDlp()}, InvalidInput, "url_unavailable"),
        (URL, {"connect": internet.connect_with_full_disk}, DiskFull, None),
    ],
)
async def test_failures_have_a_reason_and_leave_no_files(
    tmp_path: Path, url: str, options: dict[str, Any], error: type[Exception], code: str | None
) -> None:
    with pytest.raises(error) as raised:
        await get(url, tmp_path, **options)
    assert raised.value.code == code  # type: ignore[attr-defined]
    assert left(tmp_path) == []
    if isinstance(options.get("resolver"), internet.WithoutYtDlp):
        assert "pip install yt-dlp" in str(raised.value)


@pytest.mark.parametrize("way", ["cancelled", "too slow"])
async def test_an_unfinished_download_ends_its_worker_and_leaves_no_files(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[int] = []
    start = ChildProcess.start

    async def record(child: ChildProcess) -> None:
        await start(child)
        assert child.pid is not None
        children.append(child.pid)

    monkeypatch.setattr(ChildProcess, "start", record)
    if way == "too slow":
        monkeypatch.setattr(downloads, "DOWNLOAD_TIMEOUT_S", 0.1)
    downloading = asyncio.create_task(get("http://media.example/stuck.mp3", tmp_path))
    if way == "cancelled":
        await until(lambda: started(tmp_path))
        downloading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await downloading
    else:
        with pytest.raises(InvalidInput, match="too slow"):
            await downloading
    assert left(tmp_path) == []
    [pid] = children
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_cancellation_after_the_download_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discard = downloads._discard
    discarding = asyncio.Event()

    async def record(*arguments: Any) -> None:
        discarding.set()
        await discard(*arguments)

    monkeypatch.setattr(downloads, "_discard", record)
    downloading = asyncio.create_task(get(URL, tmp_path))
    await discarding.wait()
    downloading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await downloading
    assert left(tmp_path) == []


async def test_the_worker_is_sandboxed(tmp_path: Path) -> None:
    """Whether or not the server has checked the URL before."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        child = ChildProcess(runtime.initialise, "")
        await child.start()
        try:
            await child.call(fetch.prepare, str(tmp_path), LIMIT, None)
            for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"):
                with pytest.raises(RecordingRefused) as refusal:
                    await child.call(fetch.probe, f"http://{host}:{port}/talk.mp3")
                assert refusal.value.code == "url_refused"
            with pytest.raises(PermissionError, match="not allowed"):
                await child.call(socket.create_connection, ("127.0.0.1", port))
            with pytest.raises(MemoryError):
                await child.call(bytes, 2 << 30)
            with pytest.raises(OSError, match="File too large"):
                await child.call(Path.write_bytes, tmp_path / fetch.RECORDING, bytes(LIMIT + (17 << 20)))
        finally:
            await child.close()
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("title", "extension", "name"),
    [
        ("A talk", "mp3", "A talk.mp3"),
        ("AC/DC: live\\loud\n\x07", "webm", "AC_DC: live_loud.webm"),
        ("../../etc/passwd", "", ".._.._etc_passwd"),
        ("x" * 999, "mp3", "x" * 150 + ".mp3"),
        ("talk", "../sh", "talk"),
        ("talk", "unknown_video", "talk"),
        ("", "mp3", "mp3"),
    ],
)
def test_file_names_are_for_display(title: str, extension: str, name: str) -> None:
    assert downloads._filename(FoundRecording(title, extension, None)) == name


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://10.0.0.1/", "http://localhost/", "talk.mp3"])
async def test_urls_are_checked_at_once(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput) as error:
        await downloads.download(url, tmp_path, 1, None)
    assert (error.value.param, error.value.code) == ("url", "url_refused")


@pytest.mark.parametrize(
    ("url", "passes"),
    [
        (URL, True),
        ("http://nowhere.example/", True),  # the worker resolves it once more
        ("http://private.example/", False),
        ("http://127.0.0.1/", False),
    ],
)
async def test_names_are_resolved_early(url: str, passes: bool) -> None:
    if passes:
        await check_destination(url, downloads.PARAM, internet.resolver)
    else:
        with pytest.raises(InvalidInput, match="public"):
            await check_destination(url, downloads.PARAM, internet.resolver)


def test_clean_removes_partial_downloads(tmp_path: Path) -> None:
    (tmp_path / "0123.download").mkdir()
    (tmp_path / "0123.download" / "recording").touch()
    (tmp_path / ("a" * 32)).touch()
    clean(tmp_path)
    clean(tmp_path / "missing")
    assert [path.name for path in left(tmp_path)] == ["a" * 32]
