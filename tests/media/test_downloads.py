"""Downloads through the real child, whose internet is `tests.internet`, and whose guard is the real one."""

import asyncio
import hashlib
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from app.errors import DiskFull, InvalidInput, TooLarge
from app.media import downloads as urls
from app.media.downloads import check_destination, check_url, clean, download
from app.media.uploads import Upload
from app.scheduling.process import ChildProcess
from tests import internet
from workers import runtime
from workers.download import fetch
from workers.messages import RecordingRefused

pytestmark = pytest.mark.timeout(60)

URL = "http://media.example/talk.mp3"
LIMIT = 1_000_000


async def get(url: str, folder: Path, max_bytes: int = LIMIT, **options: Any) -> Upload:
    options = {"resolver": internet.resolver, "connect": internet.connect} | options
    return await download(url, folder, max_bytes, None, **options)


def left(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def begun(folder: Path) -> bool:
    """Whether a part of a recording is there."""
    return any(folder.glob(f"*/{fetch.RECORDING}*"))


def test_a_recording_comes_whole_and_private(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "uploads"
    upload = asyncio.run(get(URL, folder))
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
        ("http://media.example/there", {}, InvalidInput, "url_refused"),
        ("http://private.example/talk.mp3", {}, InvalidInput, "url_refused"),
        ("http://127.0.0.1/talk.mp3", {}, InvalidInput, "url_refused"),
        ("file:///etc/passwd", {}, InvalidInput, "url_refused"),
        ("http://media.example/none", {}, InvalidInput, "url_unavailable"),
        ("http://nowhere.example/", {}, InvalidInput, "url_unavailable"),
        (URL, {"max_bytes": 400_000}, TooLarge, "file_too_large"),
        (URL, {"resolver": internet.deadly_resolver}, InvalidInput, "url_unavailable"),
        (URL, {"resolver": internet.WithoutYtDlp()}, InvalidInput, "url_unavailable"),
        (URL, {"connect": internet.connect_with_full_disk}, DiskFull, None),
    ],
)
def test_failures_say_why_and_leave_nothing(
    tmp_path: Path, url: str, options: dict[str, Any], error: type[Exception], code: str | None
) -> None:
    with pytest.raises(error) as raised:
        asyncio.run(get(url, tmp_path, **options))
    assert raised.value.code == code  # type: ignore[attr-defined]
    assert left(tmp_path) == []
    if isinstance(options.get("resolver"), internet.WithoutYtDlp):
        assert "whisperfleet[url]" in str(raised.value)


@pytest.mark.parametrize("way", ["cancelled", "too slow"])
def test_whatever_ends_a_download_ends_the_child_and_leaves_nothing(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[int] = []
    start = ChildProcess.start

    async def note(child: ChildProcess) -> None:
        await start(child)
        assert child.pid is not None
        children.append(child.pid)

    async def check() -> None:
        downloading = asyncio.create_task(get("http://media.example/stuck.mp3", tmp_path))
        if way == "cancelled":
            while not begun(tmp_path):  # noqa: ASYNC110 (another process)
                await asyncio.sleep(0.01)
            downloading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await downloading
        else:
            with pytest.raises(InvalidInput, match="too slow"):
                await downloading

    monkeypatch.setattr(ChildProcess, "start", note)
    if way == "too slow":
        monkeypatch.setattr(urls, "TAKE_TIMEOUT_S", 0.1)
    asyncio.run(check())
    assert left(tmp_path) == []
    [pid] = children
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_one_that_is_cancelled_when_all_is_there_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discard = urls._discard

    async def check() -> None:
        discarding = asyncio.Event()

        async def note(*arguments: Any) -> None:
            discarding.set()
            await discard(*arguments)

        monkeypatch.setattr(urls, "_discard", note)
        downloading = asyncio.create_task(get(URL, tmp_path))
        await discarding.wait()
        downloading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await downloading

    asyncio.run(check())
    assert left(tmp_path) == []


def test_the_child_itself_is_guarded(tmp_path: Path) -> None:
    """Whatever the server has checked before, or forgotten to."""

    async def check(port: int) -> None:
        child = ChildProcess(runtime.initialise, "")
        await child.start()
        try:
            await child.call(fetch.prepare, str(tmp_path), LIMIT, None)
            for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"):
                with pytest.raises(RecordingRefused) as refusal:
                    await child.call(fetch.look, f"http://{host}:{port}/talk.mp3")
                assert refusal.value.code == "url_refused"
            with pytest.raises(PermissionError, match="not allowed"):
                await child.call(socket.create_connection, ("127.0.0.1", port))
            with pytest.raises(MemoryError):
                await child.call(bytes, 2 << 30)
            with pytest.raises(OSError, match="File too large"):
                await child.call(Path.write_bytes, tmp_path / fetch.RECORDING, bytes(LIMIT + (17 << 20)))
        finally:
            await child.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        asyncio.run(check(server.getsockname()[1]))
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
def test_names_are_for_people(title: str, extension: str, name: str) -> None:
    assert urls._filename(fetch.Found(title, extension, None)) == name


def test_urls_are_checked_at_once() -> None:
    check_url(URL)
    for url in ("file:///etc/passwd", "http://10.0.0.1/", "http://localhost/", "talk.mp3"):
        with pytest.raises(InvalidInput) as error:
            check_url(url)
        assert (error.value.param, error.value.code) == ("url", "url_refused")


@pytest.mark.parametrize(
    ("url", "passes"),
    [
        (URL, True),
        ("http://nowhere.example/", True),  # perhaps its name servers are slow today
        ("http://private.example/", False),
        ("http://127.0.0.1/", False),
    ],
)
def test_names_are_resolved_early(url: str, passes: bool) -> None:
    if passes:
        asyncio.run(check_destination(url, internet.resolver))
    else:
        with pytest.raises(InvalidInput, match="public"):
            asyncio.run(check_destination(url, internet.resolver))


def test_clean_removes_downloads_that_were_cut_off(tmp_path: Path) -> None:
    (tmp_path / "0123.download").mkdir()
    (tmp_path / "0123.download" / "recording").touch()
    (tmp_path / ("a" * 32)).touch()
    clean(tmp_path)
    clean(tmp_path / "missing")
    assert [path.name for path in left(tmp_path)] == ["a" * 32]
