"""Files that come, change, move and go while they are transcribed."""

import asyncio
import os
import shutil
import sqlite3
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from app.client.answers import ServiceFault
from app.common.errors import FAILURE_CODES, RECORDING_AT_FAULT, DatabaseUnavailable
from app.watch import recording, sidecar
from tests.watch.watched_folder import Watched, idle, until, until_stored, written

DATA = Path(__file__).parents[1] / "data"

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def test_what_is_there_and_what_comes(watched: Watched) -> None:
    watched.add("there.mkv")

    async with watched.watch() as watching:
        await until(lambda: len(watched.subtitles()) == 1)
        watched.add("Series/Season 1/comes.mkv")
        await written(watched, watching, 2)

    assert watched.subtitles() == {
        "there.en.srt": "transcript of there.mkv",
        "Series/Season 1/comes.en.srt": "transcript of Series/Season 1/comes.mkv",
    }
    assert [line.split()[0] for line in watched.report.lines] == ["done", "done"]
    assert watched.jobs.jobs == {}, "jobs are deleted, with the recordings that the service has stored"


async def test_nothing_is_done_twice(watched: Watched) -> None:
    for name in ("a.mkv", "broken.mkv", "refused.mkv"):
        watched.add(name)

    for _ in range(3):
        async with watched.watch() as watching:
            await idle(watching)

    assert sorted(watched.jobs.submitted) == ["a.mkv", "broken.mkv"]
    assert sorted(line.split()[0] for line in watched.report.lines) == ["done", "failed", "failed"]


async def test_a_file_that_fails_is_tried_again_when_it_changes(watched: Watched) -> None:
    path = watched.add("film.mkv", "broken")

    async with watched.watch() as watching:
        await idle(watching)
        path.write_text("whole")
        await written(watched, watching)

    assert watched.jobs.submitted == ["broken", "whole"]
    assert [line.split()[0] for line in watched.report.lines] == ["failed", "done"]
    assert "The file is broken." in watched.report.lines[0]


@pytest.mark.parametrize("code", [*FAILURE_CODES.values(), "internal_error", "clip_interrupted", None])
@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "not kept"])
async def test_a_job_that_fails_by_what_is_around_it_runs_again(
    watched: Watched, code: str | None, keeps: bool
) -> None:
    """The job itself if the service has kept its recording, or else another one."""
    watched.add("film.mkv")
    watched.jobs.failures = [(code, "Try again later.")]
    watched.jobs.runs_again = keeps

    async with watched.watch() as watching:
        await written(watched, watching)
        assert not watching._tools.pauses

    assert watched.jobs.submitted == ["film.mkv"] * (1 if keeps else 2)
    assert len(watched.jobs.ran_again) == keeps
    assert watched.jobs.jobs == {}
    assert [line.split()[0] for line in watched.report.lines] == ["done"]
    [notice] = watched.report.notices
    assert notice.endswith("film.mkv: Try again later. It is tried again.")


@pytest.mark.parametrize("code", sorted(RECORDING_AT_FAULT))
async def test_a_recording_that_is_at_fault_is_not_tried_again(watched: Watched, code: str) -> None:
    watched.add("film.mkv")
    watched.jobs.failures = [("internal_error", "It broke."), (code, "The recording is at fault.")]

    for _ in range(2):
        async with watched.watch() as watching:
            await until(lambda: watched.report.lines)
            await idle(watching)

    assert (watched.jobs.submitted, len(watched.jobs.ran_again)) == (["film.mkv"], 1)
    [line] = watched.report.lines
    assert line.startswith("failed film.mkv (The recording is at fault.")
    assert watched.jobs.jobs == {}


async def test_the_pauses_after_failures_grow(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_FIRST_PAUSE_S", 0.3)
    monkeypatch.setattr(recording, "_LONGEST_PAUSE_S", 1.2)
    watched.add("film.mkv")
    watched.jobs.failures = [("internal_error", "It broke.")] * 4

    began = time.monotonic()
    async with watched.watch() as watching:
        await written(watched, watching)

    times = [began, *watched.jobs.ran_again]
    pauses = [after - before for before, after in pairwise(times)]
    assert all(pause >= least for pause, least in zip(pauses, (0.3, 0.6, 1.2, 1.2), strict=True)), pauses
    assert watched.jobs.submitted == ["film.mkv"]


async def test_a_job_whose_state_cannot_be_had_is_kept(watched: Watched) -> None:
    watched.add("film.mkv")
    watched.jobs.fault = ServiceFault("The service failed.")

    async with watched.watch() as watching:
        await written(watched, watching)

    assert watched.jobs.submitted == ["film.mkv"]
    [notice] = watched.report.notices
    assert notice.endswith("film.mkv: The service failed. It is tried again.")
    assert [line.split()[0] for line in watched.report.lines] == ["done"]


async def test_a_growing_file_waits(watched: Watched) -> None:
    async with watched.watch(settle_s=1) as watching:
        path = watched.add("film.mkv", "1")
        for number in range(6):
            await asyncio.sleep(0.2)
            with path.open("a") as file:
                file.write(str(number))
        await written(watched, watching)

    assert watched.jobs.submitted == ["1012345"]


@pytest.mark.parametrize("down", [False, True], ids=["running", "stopped meanwhile"])
async def test_renamed_while_it_is_transcribed(watched: Watched, down: bool) -> None:
    path = watched.add("a/film.mkv", "film")
    target = watched.folder / "b" / "Film (2020).mkv"
    target.parent.mkdir()
    watched.jobs.paused = True

    async with watched.watch() as watching:
        await until(lambda: watched.jobs.jobs)
        if not down:
            path.rename(target)
            watched.jobs.paused = False
            await written(watched, watching)
    if down:
        path.rename(target)
        watched.jobs.paused = False
        async with watched.watch() as watching:
            await written(watched, watching)

    assert watched.subtitles() == {"b/Film (2020).en.srt": "transcript of film"}
    assert watched.jobs.submitted == ["film"]
    assert len(watched.report.lines) == 1


async def test_renamed_when_it_is_done(watched: Watched) -> None:
    path = watched.add("film.mkv")
    edited = watched.add("edited.mkv")

    async with watched.watch() as watching:
        await idle(watching)
        (watched.folder / "edited.en.srt").write_text("by hand")
        path.rename(watched.folder / "Film.mkv")
        edited.rename(watched.folder / "Edited.mkv")
        await idle(watching)

    assert watched.subtitles() == {"Film.en.srt": "transcript of film.mkv", "edited.en.srt": "by hand"}
    assert sorted(watched.jobs.submitted) == ["edited.mkv", "film.mkv"]
    assert watched.report.lines[-1].startswith("moved Film.mkv")


async def test_two_names_of_one_file_are_two_recordings(watched: Watched) -> None:
    first = watched.add("first.mkv", "film")
    os.link(first, watched.folder / "second.mkv")

    async with watched.watch() as watching:
        await written(watched, watching, 2)

    assert set(watched.subtitles()) == {"first.en.srt", "second.en.srt"}


async def test_replaced_while_it_is_transcribed(watched: Watched) -> None:
    path = watched.add("film.mkv", "old")
    watched.jobs.paused = True

    async with watched.watch() as watching:
        await until(lambda: watched.jobs.jobs)
        watched.add("film.new", "new content").replace(path)
        await until(lambda: "new content" in watched.jobs.submitted)
        watched.jobs.paused = False
        await written(watched, watching)

    assert watched.subtitles() == {"film.en.srt": "transcript of new content"}
    assert watched.jobs.deleted == ["old", "new content"]


async def test_another_file_takes_its_name(watched: Watched) -> None:
    path = watched.add("film.mkv", "film")
    watched.jobs.paused = True
    async with watched.watch() as watching:
        await until(lambda: watched.jobs.jobs)
        path.rename(watched.folder / "old.mkv")
        watched.add("film.mkv", "another film")
        await until(lambda: "another film" in watched.jobs.submitted)
        watched.jobs.paused = False
        await written(watched, watching, 2)
    assert watched.jobs.submitted == ["film", "another film"]
    assert watched.subtitles() == {
        "old.en.srt": "transcript of film",
        "film.en.srt": "transcript of another film",
    }


async def test_changed_while_it_is_sent(watched: Watched) -> None:
    path = watched.add("film.mkv", "old")

    def change() -> None:
        if path.read_text() == "old":
            path.write_text("longer than before")

    watched.jobs.before_job = change

    async with watched.watch() as watching:
        await written(watched, watching)

    assert watched.subtitles() == {"film.en.srt": "transcript of longer than before"}
    assert watched.jobs.deleted[0] == "old"


async def test_deleted_while_it_is_transcribed(watched: Watched) -> None:
    path = watched.add("film.mkv")
    watched.jobs.paused = True

    async with watched.watch() as watching:
        await until(lambda: watched.jobs.jobs)
        path.unlink()
        await until(lambda: watched.jobs.deleted)
        await idle(watching)

    assert watched.subtitles() == {}
    assert watched.report.lines == ["deleted film.mkv (before it was done; its job is cancelled)"]


async def test_a_mount_that_vanishes_is_no_deletion(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is there, and on another file system."""
    path = watched.add("film.mkv")
    elsewhere = watched.folder.with_name("elsewhere")
    watched.jobs.paused = True
    monkeypatch.setattr(recording, "_device_above", lambda path: -1)

    async with watched.watch() as watching:
        await until(lambda: watched.jobs.jobs)
        watched.folder.rename(elsewhere)
        watched.jobs.paused = False
        await until(lambda: not watching._running)
        assert len(watched.jobs.jobs) == 1
        elsewhere.rename(watched.folder)
        await written(watched, watching)

    assert path.exists()
    assert watched.jobs.submitted == ["film.mkv"]
    assert [line.split()[0] for line in watched.report.lines] == ["done"]
    assert any("is not there" in notice for notice in watched.report.notices)


async def test_a_folder_that_is_gone_and_comes_back(watched: Watched) -> None:
    elsewhere = watched.folder.with_name("elsewhere")
    watched.add("first.mkv")

    async with watched.watch() as watching:
        await idle(watching)
        watched.folder.rename(elsewhere)
        await until(lambda: any("not there" in notice for notice in watched.report.notices))
        elsewhere.rename(watched.folder)
        watched.add("second.mkv")
        await until(lambda: len(watched.subtitles()) == 2)
        watched.add("third.mkv")
        await until(lambda: len(watched.subtitles()) == 3)

    assert watched.jobs.submitted == ["first.mkv", "second.mkv", "third.mkv"]


async def test_without_events(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchfiles.watch", lambda *_, **__: pytest.fail("no events are wanted"))

    async with watched.watch(poll_s=0.1):
        await asyncio.sleep(0.05)
        watched.add("film.mkv")
        await until(watched.subtitles)

    assert watched.jobs.submitted == ["film.mkv"]


async def test_events_that_cannot_be_had(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(28, "no space left on device about ['/films']")

    monkeypatch.setattr("watchfiles.watch", refuse)
    monkeypatch.setattr("app.watch.watcher.FALLBACK_POLL_S", 0.1)

    async with watched.watch():
        await until(lambda: watched.report.notices)
        watched.add("film.mkv")
        await until(watched.subtitles)

    [notice] = watched.report.notices
    assert "max_user_watches" in notice


async def test_the_job_is_deleted_by_somebody_else(watched: Watched) -> None:
    watched.add("film.mkv")
    watched.jobs.paused = True

    async with watched.watch() as watching:
        await until(lambda: watched.jobs.jobs)
        watched.jobs.jobs.clear()
        watched.jobs.paused = False
        await written(watched, watching)

    assert watched.jobs.submitted == ["film.mkv", "film.mkv"]
    assert [line.split()[0] for line in watched.report.lines] == ["done"]


async def test_other_options_make_another_job(watched: Watched) -> None:
    path = watched.add("film.mkv")
    watched.jobs.paused = True

    async with watched.watch() as watching:
        await until_stored(watching, path)
    watched.jobs.paused = False
    async with watched.watch(options={"language": "en", "beam_size": 2}) as watching:
        await written(watched, watching)

    assert watched.jobs.submitted == ["film.mkv", "film.mkv"]
    assert len(watched.jobs.deleted) == 2


@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_full_disk(watched: Watched, monkeypatch: pytest.MonkeyPatch, by_hand: bool) -> None:
    """The transcript waits at the service. A subtitle that somebody writes meanwhile stays."""
    film = watched.add("film.mkv")
    write, full = sidecar.write, [True]

    def fill(*arguments: Any) -> bool:
        if full[0]:
            raise OSError(28, "No space left on device")
        return write(*arguments)

    monkeypatch.setattr(sidecar, "write", fill)

    async with watched.watch():
        await until(lambda: watched.report.notices)
        await asyncio.sleep(0.5)
        if by_hand:
            film.with_name("film.en.srt").write_text("by hand")
        full[0] = False
        await until(lambda: watched.report.lines)

    assert watched.jobs.submitted == ["film.mkv"]
    [notice] = watched.report.notices
    assert "No space left on device" in notice
    [line] = watched.report.lines
    assert line.startswith("skipped" if by_hand else "done")
    assert watched.subtitles() == {"film.en.srt": "by hand" if by_hand else "transcript of film.mkv"}


async def test_a_folder_that_cannot_be_written(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is transcribed in vain."""
    watched.add("film.mkv")
    watched.add("other.mkv")
    read_only = [True]
    access = os.access
    monkeypatch.setattr(os, "access", lambda *of, **how: not read_only[0] and access(*of, **how))

    async with watched.watch():
        await until(lambda: watched.report.notices)
        await asyncio.sleep(0.5)
        assert watched.jobs.submitted == []
        read_only[0] = False
        await until(lambda: len(watched.subtitles()) == 2)

    [notice] = watched.report.notices
    assert "read-only" in notice


async def test_an_unexpected_error_ends_only_one_recording(watched: Watched) -> None:
    watched.add("first.mkv")
    watched.jobs.error = RuntimeError("a bug")

    async with watched.watch() as watching:
        await idle(watching)
        watched.add("second.mkv")
        await written(watched, watching)

    assert [line.split()[:2] for line in watched.report.lines] == [
        ["failed", "first.mkv"],
        ["done", "second.mkv"],
    ]
    assert "RuntimeError: a bug" in watched.report.lines[0]


async def test_a_list_that_cannot_be_written(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, no job is submitted: it could not be found again."""
    watched.add("film.mkv")
    full = [True]

    async with watched.watch() as watching:
        put = watching._tools.state.put

        def refuse(entry: Any) -> None:
            if full[0]:
                raise DatabaseUnavailable("the list of recordings cannot be used: disk full")
            put(entry)

        monkeypatch.setattr(watching._tools.state, "put", refuse)
        await until(lambda: watched.report.notices)
        await asyncio.sleep(0.3)
        assert watched.jobs.submitted == []
        full[0] = False
        await until(watched.subtitles)

    assert watched.jobs.submitted == ["film.mkv"]


@pytest.mark.parametrize("moment", ["submitted", "written", "stored"])
async def test_killed_at_the_worst_moment(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """After the job is accepted, after the subtitle is written, after that is stored."""
    watched.add("film.mkv")

    def kill(*_: Any) -> Any:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        async with watched.watch() as watching:
            state = watching._tools.state
            put = state.put
            if moment == "submitted":
                patch.setattr(state, "put", lambda entry: kill() if entry.job else put(entry))
            elif moment == "written":
                patch.setattr(state, "put", lambda entry: kill() if entry.status == "done" else put(entry))
            else:
                patch.setattr(watched.jobs, "delete", kill)
            await until(lambda: watched.jobs.submitted)
            await until(lambda: not watching._running)
    async with watched.watch() as watching:
        await written(watched, watching)
        await until(lambda: not watched.jobs.jobs)

    assert watched.subtitles() == {"film.en.srt": "transcript of film.mkv"}
    assert watched.jobs.submitted == ["film.mkv"]
    assert "skipped" not in str(watched.report.lines)


async def test_a_subtitle_that_was_corrected_within_its_time_and_size_stays(watched: Watched) -> None:
    film = watched.add("film.mkv")
    subtitle = film.with_name("film.en.srt")
    async with watched.watch() as watching:
        await written(watched, watching)
        status = subtitle.stat()
        subtitle.write_text("Transcript of film.mkv")
        os.utime(subtitle, ns=(status.st_atime_ns, status.st_mtime_ns))
        film.touch()
        await until(lambda: len(watched.report.lines) == 2)

    assert watched.subtitles() == {"film.en.srt": "Transcript of film.mkv"}
    assert watched.report.lines[1].startswith("skipped")


async def test_a_temporary_file_of_a_killed_process_is_removed(watched: Watched) -> None:
    film = watched.add("film.mkv")
    left = sidecar.temporary_path(watched.folder / "other.en.srt")
    left.write_text("half")
    sidecar.temporary_path(film.with_name("film.en.srt")).write_text("half")

    async with watched.watch() as watching:
        await written(watched, watching)

    assert {path.name for path in watched.folder.iterdir()} == {"film.mkv", "film.en.srt"}


async def test_a_name_of_odd_bytes(watched: Watched) -> None:
    odd = watched.add(os.fsdecode(b"\xff two\nlines.mkv"), "odd")
    long = watched.add(f"{'x' * 250}.mkv")

    async with watched.watch() as watching:
        await idle(watching)

    assert watched.subtitles() == {f"{odd.stem}.en.srt": "transcript of odd"}
    [failed] = [line for line in watched.report.lines if line.startswith("failed")]
    assert long.name in failed
    assert "too long" in failed


async def test_a_name_that_ends_the_events(watched: Watched) -> None:
    """The library for events fails at names that are not UTF-8."""
    odd = watched.add(os.fsdecode(b"\xff.mkv"), "odd")

    def noticed() -> bool:
        odd.chmod(0o644)  # an event, once the folder is followed
        return bool(watched.report.notices)

    async with watched.watch():
        await until(noticed)
        watched.add("later.mkv")
        await until(lambda: len(watched.report.lines) == 2)

    assert len(watched.subtitles()) == 2
    [notice] = watched.report.notices
    assert "is not UTF-8: rename it" in notice


async def test_at_most_ten_at_once(watched: Watched) -> None:
    for number in range(25):
        watched.add(f"{number}.mkv")
    watched.jobs.paused = True

    async with watched.watch() as watching:
        await until(lambda: len(watched.jobs.jobs) == 10)
        await asyncio.sleep(0.3)
        assert len(watched.jobs.jobs) == 10
        watched.jobs.paused = False
        await idle(watching)

    assert len(watched.subtitles()) == 25


async def test_ninety_days_later(watched: Watched, tmp_path: Path) -> None:
    """The service has forgotten all jobs, and the mount has given the files other inodes."""
    for number in range(3):
        watched.add(f"{number}.mkv")

    async with watched.watch() as watching:
        await idle(watching)
    watched.jobs.jobs.clear()
    with sqlite3.connect(tmp_path / "recordings.db") as database:
        database.execute("UPDATE recordings SET inode = inode + 1000")
    async with watched.watch() as watching:
        await idle(watching)

    assert len(watched.jobs.submitted) == 3


@pytest.mark.parametrize(
    ("options", "extracted"), [({}, 1), ({"channels": "separate"}, 0), ({"audio_track": "0"}, 0)]
)
async def test_a_large_recording_is_sent_as_sound_unless_more_of_it_is_needed(
    watched: Watched, options: dict[str, Any], extracted: int
) -> None:
    shutil.copy(DATA / "short00.flac", watched.folder / "film.flac")
    sizes: list[int] = []
    async with watched.watch(options=options) as watching:
        sound = watching._tools.sound._folder
        watching._tools.large_bytes = 1000
        watched.jobs.before_job = lambda: sizes.append(len([*sound.iterdir()]))
        await written(watched, watching)
        assert [*sound.iterdir()] == []
    assert sizes == [extracted]


async def test_renamed_before_its_turn(watched: Watched) -> None:
    watched.jobs.paused = True
    async with watched.watch() as watching:
        for number in range(10):
            watched.add(f"{number}.mkv")
        await until(lambda: len(watched.jobs.jobs) == 10)
        waiting = watched.add("waiting.mkv")
        await until(lambda: watching._queued)
        waiting.rename(watched.folder / "renamed.mkv")
        await until(lambda: len(watching._queued) == 2)
        watched.jobs.paused = False
        await written(watched, watching, 11)
    assert watched.jobs.submitted.count("waiting.mkv") == 1
    assert watched.subtitles()["renamed.en.srt"] == "transcript of waiting.mkv"
    assert {line.split()[0] for line in watched.report.lines} == {"done"}
