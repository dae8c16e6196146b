"""Sidecar files, searches, locks of folders, the list of recordings, and headers."""

import asyncio
import io
import os
from dataclasses import replace
from pathlib import Path

import av
import pytest

from app.client.answers import NotRead, Refused
from app.errors import DatabaseUnavailable, InvalidSetting
from app.options import Options
from app.watch import sidecar
from app.watch.folder_locks import FolderLocks
from app.watch.headers import HeaderReader
from app.watch.rules import Rules
from app.watch.scan import Scan
from app.watch.sound import SoundExtractor
from app.watch.state import DONE, Entry, State, Version
from tests.media_files import encode, read_pcm
from workers.media.decode import Findings, decoded_pcm

pytestmark = pytest.mark.timeout(60)

DATA = Path(__file__).parents[1] / "data"


class TestSidecar:
    def test_who_may_read_the_recording_may_read_it(self, tmp_path: Path) -> None:
        film, target = tmp_path / "film.mkv", tmp_path / "film.de.srt"
        film.touch()
        film.chmod(0o440)
        sidecar.write(target, b"text", film)
        assert target.stat().st_mode & 0o777 == 0o640
        target.chmod(0o664)
        mark = sidecar.write(target, b"other", film)
        assert (target.stat().st_mode & 0o777, target.read_bytes()) == (0o664, b"other")
        assert mark == sidecar.mark(target)

    def test_nothing_is_left_of_a_failure(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target = tmp_path / "film.de.srt"
        target.write_text("before")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            sidecar.write(target, b"after", tmp_path / "film.mkv")
        assert [path.name for path in tmp_path.iterdir()] == ["film.de.srt"]
        assert target.read_text() == "before"

    def test_a_left_temporary_file_is_replaced(self, tmp_path: Path) -> None:
        target = tmp_path / "film.de.srt"
        sidecar.temporary_path(target).write_text("half of it")
        sidecar.write(target, b"text", tmp_path / "film.mkv")
        assert [path.name for path in tmp_path.iterdir()] == ["film.de.srt"]


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
        first, second = FolderLocks(tmp_path / "locks"), FolderLocks(tmp_path / "locks")
        first.acquire([films])
        for folder in (films, tmp_path / "link", films.parent):
            with pytest.raises(InvalidSetting, match="another `whisperfleet watch` is at work"):
                second.acquire([folder])
            second.release()
        second.acquire([other])
        second.release()
        first.release()
        second.acquire([films.parent])
        second.release()


class TestState:
    ENTRY = Entry(
        Path(os.fsdecode(b"/films/\xff.mkv")), Version(-1, 1 << 40, 1), DONE, "rules",
        sidecar=Path("/films/a.de.srt"), sidecar_mark="1:2",
    )  # fmt: skip

    def test_what_is_stored_is_read(self, tmp_path: Path) -> None:
        state = State(tmp_path / "list.db", "srt:transcribe")
        state.put(self.ENTRY)
        state.close()
        state = State(tmp_path / "list.db", "srt:transcribe")
        assert state.get(self.ENTRY.path) == self.ENTRY
        assert state.with_version(self.ENTRY.version) == [self.ENTRY]
        paths = [str(self.ENTRY.path), *(f"/films/{number}" for number in range(1200))]
        assert list(state.known(paths)) == [str(self.ENTRY.path)]
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
    async with sound.sound_of(film) as extracted:
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
