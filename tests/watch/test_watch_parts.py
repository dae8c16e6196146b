"""Sidecar files, searches, locks of folders, the list of recordings, and headers."""

import asyncio
import errno
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from app.client.answers import NotRead, Refused
from app.commands.watch import in_own_task
from app.common import files
from app.common.errors import DatabaseUnavailable, InvalidSetting, ProcessCrashed, ProcessStuck
from app.common.options import Options
from app.pool.process import ChildProcess
from app.server.connections import EnsureResponse
from app.watch import sidecar
from app.watch.folder_locks import lock_folders
from app.watch.rules import Rules
from app.watch.scan import Scan
from app.watch.state import DONE, Entry, State, Version
from app.watch.streams import HeaderReader, SoundExtractor
from tests.media_files import encode, read_pcm
from workers.media.decode import decoded_pcm
from workers.media.findings import Findings

pytestmark = pytest.mark.timeout(60)

DATA = Path(__file__).parents[1] / "data"


class TestSidecar:
    @pytest.fixture
    def film(self, tmp_path: Path) -> Path:
        (tmp_path / "film.mkv").touch()
        return tmp_path / "film.mkv"

    @pytest.fixture
    def target(self, film: Path) -> Path:
        return film.with_name("film.de.srt")

    @pytest.fixture(params=["Linux", "no exchange", "no links"])
    def _system(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """What the system and the file system can do."""

        def refuse(*_: Any) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        if request.param != "Linux":
            monkeypatch.setattr(files, "_renameat2", lambda *_: False)
        if request.param == "no links":
            monkeypatch.setattr(os, "link", refuse)

    @pytest.mark.usefixtures("_system")
    def test_who_may_read_the_recording_may_read_it(self, film: Path, target: Path) -> None:
        film.chmod(0o440)
        assert sidecar.write(target, b"text", film, sidecar.NOTHING)
        assert target.stat().st_mode & 0o777 == 0o640
        target.chmod(0o664)
        assert sidecar.write(target, b"other", film, sidecar.digest_of(b"text"))
        assert (target.stat().st_mode & 0o777, target.read_bytes()) == (0o664, b"other")
        assert sidecar.digest(target) == sidecar.digest_of(b"other")
        assert {path.name for path in film.parent.iterdir()} == {film.name, target.name}

    @pytest.mark.usefixtures("_system")
    @pytest.mark.parametrize("before", [b"", b"ours"])
    def test_a_file_that_appears_meanwhile_stays(
        self, film: Path, target: Path, before: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if before:
            target.write_bytes(before)
        sync = os.fsync

        def save(number: int) -> None:
            sync(number)
            target.write_text("by hand")

        monkeypatch.setattr(os, "fsync", save)
        assert not sidecar.write(target, b"new", film, sidecar.digest_of(before))
        assert target.read_text() == "by hand"
        assert {path.name for path in film.parent.iterdir()} == {film.name, target.name}

    @pytest.mark.usefixtures("_system")
    def test_it_is_moved_over_no_other_file(self, target: Path) -> None:
        target.write_text("ours")
        other = target.with_name("other.de.srt")
        other.write_text("by hand")
        assert not sidecar.move(target, other)
        assert (target.read_text(), other.read_text()) == ("ours", "by hand")
        other.unlink()
        assert sidecar.move(target, other)
        assert [path.read_text() for path in target.parent.glob("*.srt")] == ["ours"]

    @pytest.mark.parametrize("killed", [False, True])
    def test_a_file_that_is_saved_at_the_last_moment_is_put_back(
        self, film: Path, target: Path, killed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After it was compared, so only the exchange shows it: to this process, or to the next one."""
        target.write_text("ours")
        own = {sidecar.digest_of(b"ours"), sidecar.digest_of(b"new")}

        def save_and_exchange(aside: Path, path: Path) -> bool:
            monkeypatch.undo()
            target.write_text("by hand")
            swapped = files.exchange(aside, path)
            if killed:
                monkeypatch.setattr(sidecar, "recover", lambda *_: None)
            return swapped

        monkeypatch.setattr(sidecar, "exchange", save_and_exchange)
        assert sidecar.write(target, b"new", film, sidecar.digest_of(b"ours")) is killed
        monkeypatch.undo()
        assert target.read_text() == ("new" if killed else "by hand")
        sidecar.recover(target, own)
        assert target.read_text() == "by hand"
        assert {path.name for path in film.parent.iterdir()} == {film.name, target.name}

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_replacement_that_was_killed_is_ended(self, target: Path, moment: str) -> None:
        target.write_text("ours" if moment == "before" else "new")
        aside = sidecar._aside(target)
        aside.write_text("new" if moment == "before" else "ours")
        sidecar.recover(target, {sidecar.digest_of(b"ours"), sidecar.digest_of(b"new")})
        assert [path.name for path in target.parent.glob("*.srt")] == [target.name]
        assert not aside.exists()

    def test_what_may_be_replaced(self, target: Path) -> None:
        own = {sidecar.digest_of(b"ours"), sidecar.NOTHING}
        assert sidecar.claim(target, ()) == sidecar.NOTHING
        target.write_text("ours")
        assert (sidecar.claim(target, own), sidecar.claim(target, ())) == (sidecar.digest_of(b"ours"), None)
        target.write_text("by hand")
        assert sidecar.claim(target, own) is None
        target.unlink()
        target.with_name("elsewhere").write_text("ours")
        target.symlink_to(target.with_name("elsewhere"))
        assert sidecar.claim(target, own) is None, "somebody has made it a link"
        target.unlink()
        os.mkfifo(target)
        assert sidecar.claim(target, own) is None
        target.unlink()
        target.touch()
        assert sidecar.claim(target, ()) is None
        assert sidecar.claim(target, own) == sidecar.NOTHING, "it held the name when this program was killed"
        assert not target.exists()


class TestScan:
    def scan(self, root: Path, folder: Path | None = None) -> tuple[set[str], dict[str, OSError]]:
        scan = Scan(root, Rules(Options()), lambda path: False)
        found = {path for files in scan.files(folder or root) for path in files}
        return {os.path.relpath(path, root) for path in found}, scan.unreadable

    def test_links_in_a_circle_and_hidden_folders(self, tmp_path: Path) -> None:
        for name in (
            "a/one.mkv",
            "a/.hidden/two.mkv",
            "@eaDir/three.mkv",
            "#recycle/four.mkv",
            "a/b/five.mkv",
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        (tmp_path / "a/b/up").symlink_to(tmp_path / "a")
        (tmp_path / "a/b/self").symlink_to(tmp_path / "a/b/self")
        (tmp_path / "a/broken.mkv").symlink_to(tmp_path / "nowhere.mkv")
        os.mkfifo(tmp_path / "a/pipe.mkv")
        assert self.scan(tmp_path) == ({"a/one.mkv", "a/b/five.mkv"}, {})
        assert self.scan(tmp_path, tmp_path / "a/b")[0] >= {"a/b/five.mkv"}

    def test_a_link_to_a_folder_elsewhere(self, tmp_path: Path) -> None:
        (tmp_path / "disk").mkdir()
        (tmp_path / "disk/film.mkv").touch()
        (tmp_path / "films").mkdir()
        (tmp_path / "films/linked").symlink_to(tmp_path / "disk")
        assert self.scan(tmp_path / "films") == ({"linked/film.mkv"}, {})

    def test_a_folder_that_cannot_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("open", "closed"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "film.mkv").touch()
        scandir = os.scandir

        def refuse(path: str) -> object:
            if path.endswith("closed"):
                raise PermissionError(13, "Permission denied")
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)
        files, unreadable = self.scan(tmp_path)
        assert files == {"open/film.mkv"}
        assert list(unreadable) == [str(tmp_path / "closed")]


class TestLocks:
    def test_the_same_folder_and_those_above_and_below(self, tmp_path: Path) -> None:
        films = tmp_path / "media" / "films"
        other = tmp_path / "media" / "filmsets"
        for folder in (films, other, tmp_path / "locks"):
            folder.mkdir(parents=True)
        (tmp_path / "link").symlink_to(films)
        locks = tmp_path / "locks"
        with lock_folders(locks, [films]):
            for folder in (films, tmp_path / "link", films.parent):
                with (
                    pytest.raises(InvalidSetting, match="another `whisperfleet watch` is at work"),
                    lock_folders(locks, [folder]),
                ):
                    pass
            with lock_folders(locks, [other]):
                pass
        with lock_folders(locks, [films.parent, films]):
            pass


class TestState:
    ENTRY = Entry(
        Path(os.fsdecode(b"/films/\xff.mkv")), Version(-1, 1 << 40, 1), DONE, "rules",
        sidecar=Path("/films/a.de.srt"), sidecar_digests=("d1", "d2"),
    )  # fmt: skip

    def test_what_is_stored_is_read(self, tmp_path: Path) -> None:
        state = State(tmp_path / "list.db", "srt:transcribe")
        state.put(self.ENTRY)
        state.close()
        state = State(tmp_path / "list.db", "srt:transcribe")
        assert state.get(self.ENTRY.path) == self.ENTRY
        assert state.with_version(self.ENTRY.version) == [self.ENTRY]
        files = {f"/films/{number}": Version(1, 1, number) for number in range(1200)}
        files[str(self.ENTRY.path)] = self.ENTRY.version
        assert state.final(files, "other rules") == {str(self.ENTRY.path)}
        assert State(tmp_path / "list.db", "vtt:transcribe").get(self.ENTRY.path) is None

    def test_a_renamed_recording_replaces_what_was_there(self, tmp_path: Path) -> None:
        state = State(tmp_path / "list.db", "srt:transcribe")
        target = Path("/films/b.mkv")
        state.put(self.ENTRY)
        state.put(replace(self.ENTRY, path=target, version=Version(2, 2, 2)))
        moved = state.move(self.ENTRY, target)
        assert (state.get(self.ENTRY.path), state.get(target)) == (None, moved)

    def test_a_damaged_list(self, tmp_path: Path) -> None:
        (tmp_path / "list.db").write_bytes(b"no database" * 1000)
        with pytest.raises(InvalidSetting, match=r"list\.db cannot be used"):
            State(tmp_path / "list.db", "srt:transcribe")

    def test_a_list_that_fails_later(self, tmp_path: Path) -> None:
        state = State(tmp_path / "list.db", "srt:transcribe")
        state.close()
        with pytest.raises(DatabaseUnavailable):
            state.get(self.ENTRY.path)


def film_with_subtitles(*languages: str) -> bytes:
    """A Matroska file with a second of sound and a subtitle in each of these languages."""
    pcm = read_pcm(DATA / "short00.flac")[:16_000]
    file = io.BytesIO()
    with (
        av.open(io.BytesIO(encode(pcm, "matroska", "flac"))) as source,
        av.open(file, "w", format="matroska") as output,
    ):
        sound = output.add_stream_from_template(source.streams.audio[0])
        subtitles = []
        for language in languages:
            stream = output.add_stream("ass")
            stream.metadata["language"] = language
            subtitles.append(stream)
        for packet in source.demux(source.streams.audio[0]):
            if packet.dts is not None:
                packet.stream = sound
                output.mux(packet)
    return file.getvalue()


@pytest.mark.anyio
async def test_headers(tmp_path: Path) -> None:
    (tmp_path / "film.mkv").write_bytes(film_with_subtitles("ger", "eng"))
    (tmp_path / "broken.mkv").write_bytes(b"no film")
    (tmp_path / "empty.mkv").touch()
    (tmp_path / "talk.flac").write_bytes((DATA / "talk.flac").read_bytes())
    reader = HeaderReader()
    try:
        film = await reader.read(tmp_path / "film.mkv")
        assert (round(film.seconds), film.subtitles) == (1, ("ger", "eng"))
        assert (await reader.read(tmp_path / "talk.flac")).seconds > 10
        for name in ("broken.mkv", "empty.mkv"):
            assert await reader.read(tmp_path / name) == type(film)(0.0, ())
        with pytest.raises(FileNotFoundError):
            await reader.read(tmp_path / "nowhere.mkv")
    finally:
        await reader.close()


@pytest.mark.anyio
async def test_the_sound_alone_is_what_is_transcribed(tmp_path: Path) -> None:
    """Sample by sample, although the sound of the video starts late."""
    pcm = read_pcm(DATA / "short00.flac")
    film, broken = tmp_path / "film.mkv", tmp_path / "broken.mkv"
    content = encode(pcm, "matroska", "aac", rate=48_000, layout="5.1", video="mpeg4", audio_starts_at=1.5)
    await asyncio.to_thread(film.write_bytes, content)
    await asyncio.to_thread(broken.write_bytes, b"no film")
    folder = tmp_path / "sound"
    await asyncio.to_thread(folder.mkdir)
    await asyncio.to_thread((folder / "left.flac").write_bytes, b"of a killed process")
    sound = SoundExtractor(folder)
    async with sound.sound_of(film) as (extracted, warnings):
        assert warnings == ()
        expected = b"".join(decoded_pcm(film, Findings()))
        assert b"".join(decoded_pcm(extracted, Findings())) == expected
        assert len(expected) >= 2 * (len(pcm) + 1.5 * 16_000)
    with pytest.raises(Refused, match="The file is text"):
        async with sound.sound_of(broken):
            pass
    with pytest.raises(NotRead):
        async with sound.sound_of(tmp_path / "nowhere.mkv"):
            pass
    assert await asyncio.to_thread(os.listdir, folder) == []


@pytest.mark.anyio
@pytest.mark.parametrize("error", [ProcessCrashed("It crashed."), ProcessStuck("It is stuck.")])
async def test_a_process_for_the_sound_that_cannot_start_is_not_the_fault_of_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(child: ChildProcess) -> None:
        raise error

    monkeypatch.setattr(ChildProcess, "start", fail)
    with pytest.raises(NotRead, match="the process for it does not start"):
        async with SoundExtractor(tmp_path / "sound").sound_of(DATA / "short00.flac"):
            pass


@pytest.mark.anyio
async def test_a_signal_in_the_middle_of_a_request_to_the_own_service_ends_the_watch() -> None:
    """The service answers what is cancelled, as for a server that stops: its client would go on."""
    asked = asyncio.Event()

    async def hang(request: Request) -> PlainTextResponse:
        asked.set()
        await asyncio.sleep(60)
        return PlainTextResponse("late")

    app = EnsureResponse(Starlette(routes=[Route("/", hang)]))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(in_own_task(app)), base_url="http://own"
    ) as client:
        watching = asyncio.create_task(client.get("/"))
        await asked.wait()
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
