"""`whisperfleet transcribe` without workers: what it takes, what it writes, and what it refuses."""

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands import transcribe
from app.commands.progress import Meter, clock_time, speed
from app.common.errors import InvalidInput
from app.engines.catalogue import ModelCatalogue
from app.transcript.terms import Term, replace_terms
from app.transcript.timeline import Transcript
from tests.cases import read_cases
from workers.messages import SAMPLE_RATE, Segment

USAGE = read_cases("usage")

SEGMENT = Segment(0, 2 * SAMPLE_RATE, " 猫が好き。", (), 0.0, -0.2, 1.1, 0.01)


class FakeService:
    """Transcribes every recording alike."""

    fleet = SimpleNamespace(
        catalogue=SimpleNamespace(resolve=lambda name: "demo"), readiness=lambda: None, workers=list
    )

    def __init__(self, *_: Any) -> None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def transcribe(self, *_: Any, terms: tuple[Term, ...]) -> Transcript:
        segments = replace_terms([SEGMENT], terms, "ja")
        return Transcript("transcribe", "demo", "ja", 3 * SAMPLE_RATE, (), segments)


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transcribe, "TranscriptionService", FakeService)
    monkeypatch.setattr(transcribe, "check_compute_type", lambda plan: None)
    # Loggers that are configured stay so, and `capture_logs` of other tests would not see their lines.
    monkeypatch.setattr(transcribe, "configure_logs", lambda settings: None)
    monkeypatch.setenv("WHISPER_DEVICE", "cpu")
    path = tmp_path / "cat.wav"
    path.write_bytes(b"any")
    return path


def run(recording: Path, output: str | None, form: str | None) -> int:
    return transcribe.run_transcribe([recording], output, form, {}, "demo", None, None)


@pytest.mark.parametrize(("output", "stored"), [("out.scc", "out.json"), (None, "cat.json")])
def test_the_transcript_is_kept(
    recording: Path, output: str | None, stored: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(recording, output, "scc") == 1
    out, err = capfd.readouterr()
    lines = [line for line in err.splitlines() if "U+732B" in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"{recording}: SCC has no character '猫' (U+732B)")
    assert lines[0].endswith(f"The transcript is stored in {stored}.")
    assert out == ""
    assert "Traceback" not in err
    assert json.loads(Path(stored).read_text())["text"].strip() == "猫が好き。"
    assert not Path("out.scc").exists()


def test_no_other_file_is_overwritten(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("out.json").write_text("mine")
    Path("out.1.json").write_text("mine, too")
    assert run(recording, "out.stl", None) == 1
    assert "The transcript is stored in out.2.json." in capfd.readouterr().err
    assert (Path("out.json").read_text(), Path("out.1.json").read_text()) == ("mine", "mine, too")
    assert json.loads(Path("out.2.json").read_text())["segments"]


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"any")
    return folder


@pytest.fixture
def talks(recording: Path, tmp_path: Path) -> Path:
    return tree(
        tmp_path / "talks",
        "b.mkv",
        "2024/a.MP3",
        "2024/notes.txt",
        "2024/._a.mp3",
        ".trash/gone.mp3",
        "c.srt",
    )


def transcribe_all(*files: str, output: str | None = None, form: str | None = None, **flags: Any) -> int:
    return transcribe.run_transcribe(files, output, form, {}, "demo", None, None, **flags)


def written(folder: Path, suffix: str = ".srt") -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob(f"*{suffix}")}


def test_names_and_terms_of_a_file_and_of_the_service(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    terms, common = Path("terms.json"), Path("common.json")
    terms.write_text('{"data": [{"write": "犬", "for": ["猫"]}]}')
    common.write_text('[{"write": "鳥", "for": ["猫"]}, {"write": "嫌い", "for": ["好き"]}]')
    monkeypatch.setenv("WHISPER_TERMS", str(common))
    assert transcribe_all("cat.wav", form="txt", terms=terms) == 0
    assert capfd.readouterr().out == "犬が嫌い。\n"
    terms.write_text('[{"write": "犬"}]')
    assert transcribe_all("cat.wav", terms=terms) == 2
    assert "--terms terms.json: data.0.for" in capfd.readouterr().err
    assert transcribe_all("cat.wav", terms=Path("none.json")) == 2
    common.write_text("{}")
    assert transcribe_all("cat.wav") == 2
    assert "WHISPER_TERMS=common.json: data: Field required" in capfd.readouterr().err


def test_a_folder_gets_subtitles_beside_its_recordings(talks: Path) -> None:
    assert transcribe_all("talks") == 0
    assert written(talks) == {"b.srt", "2024/a.srt", "c.srt"}
    assert "猫が好き。" in (talks / "2024/a.srt").read_text()
    assert not list(talks.rglob("*.part"))


def test_an_output_folder_mirrors_the_tree(talks: Path, tmp_path: Path) -> None:
    assert transcribe_all("talks", output="out", form="vtt") == 0
    assert written(tmp_path / "out", ".vtt") == {"b.vtt", "2024/a.vtt"}


def test_existing_outputs_in_folders_are_skipped(talks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (talks / "b.srt").write_text("mine")
    assert transcribe_all("talks") == 0
    assert "1 of 2 recordings are skipped" in capfd.readouterr().err
    assert (talks / "b.srt").read_text() == "mine"
    (talks / "2024/a.srt").write_text("mine")
    assert transcribe_all("talks") == 0
    assert "2 of 2 recordings are skipped" in capfd.readouterr().err
    assert transcribe_all("talks", overwrite=True) == 0
    assert "猫が好き。" in (talks / "b.srt").read_text() + (talks / "2024/a.srt").read_text()


@pytest.mark.parametrize("pattern", ["talks/**/*.[mM][pP]3", "*/2024/?.MP3"])
def test_a_pattern_that_no_shell_expanded(talks: Path, tmp_path: Path, pattern: str) -> None:
    assert transcribe_all(pattern, output="out/") == 0
    assert written(tmp_path / "out") == {"a.srt"}


def test_a_file_whose_name_looks_like_a_pattern(recording: Path, tmp_path: Path) -> None:
    tree(tmp_path, "talk [1].mp3", "talk 1.mp3")
    assert transcribe_all("talk [1].mp3", output="out/") == 0
    assert written(tmp_path / "out") == {"talk [1].srt"}


def test_links_to_folders_are_not_followed(talks: Path) -> None:
    (talks / "2024/again").symlink_to(talks)
    assert transcribe_all("talks") == 0
    assert written(talks) == {"b.srt", "2024/a.srt", "c.srt"}


def test_the_file_behind_a_link_is_written(recording: Path) -> None:
    Path("there").mkdir()
    Path("out.srt").symlink_to("there/real.srt")
    assert run(recording, "out.srt", None) == 0
    assert Path("out.srt").is_symlink()
    assert "猫" in Path("there/real.srt").read_text()


def test_a_device_is_written_as_it_is(recording: Path) -> None:
    assert run(recording, "/dev/null", "srt") == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(("files", "output", "named"), USAGE["transcribe"])
def test_what_is_refused_before_any_work(
    talks: Path,
    tmp_path: Path,
    files: list[str],
    output: str,
    named: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeService, "transcribe", None)
    tree(tmp_path, "twins/b.mp3", "twins/b.mp4", "empty/readme.md", "film.srt")
    assert transcribe_all(*files, output=output or None) == 2
    out, err = capfd.readouterr()
    assert named in err
    assert (out, Path("film.srt").read_bytes()) == ("", b"any")


@pytest.mark.parametrize(("form", "options", "named"), USAGE["transcribe_options"])
def test_options_that_are_refused(
    recording: Path, form: str, options: dict[str, object], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert transcribe.run_transcribe([recording], None, form or None, options, "demo", None, None) == 2
    assert named in capfd.readouterr().err


def test_a_server_that_cannot_be_reached(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert transcribe.run_transcribe([recording], None, None, {}, None, "http://127.0.0.1:9", None) == 1
    assert "http://127.0.0.1:9/ cannot be reached" in capfd.readouterr().err


def test_turbo_cannot_translate(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Before anything is downloaded, and as the service says it."""
    code = transcribe.run_transcribe(
        [recording], None, "srt", {"task": "translate"}, "large-v3-turbo", None, None
    )
    with pytest.raises(InvalidInput) as refused:
        ModelCatalogue("large-v3-turbo", idle_s=0).resolve("", "translate")
    assert (code, capfd.readouterr().err) == (2, f"whisperfleet: {refused.value.message}\n")


def test_half_a_file_is_never_seen(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before the disk was full: a folder's next run would skip it."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run(recording, "out.srt", None) == 1
    assert sorted(Path().iterdir()) == [Path("cat.wav")]


def test_a_file_that_is_replaced_keeps_who_may_read_it(recording: Path) -> None:
    output = Path("out.srt")
    output.touch(0o600)
    assert run(recording, str(output), None) == 0
    assert output.read_text()
    assert output.stat().st_mode & 0o777 == 0o600


def test_a_transcript_that_cannot_be_written_is_kept(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert run(recording, "/dev/full", "srt") == 1
    [kept] = temporary.rglob("full")
    assert "猫が好き" in kept.read_text("utf-8")
    assert f"/dev/full cannot be written: No space left on device. It is kept as {kept}." in (
        capfd.readouterr().err
    )


def test_speed_and_time_left() -> None:
    now = 100.0
    long, short = Path("long"), Path("short")
    meter = Meter({long: 300, short: 100}, clock=lambda: now)
    assert meter.left_s is None
    now = 110.0
    meter.advance(short, 5, None)  # its length is not known yet
    assert (meter.left_s, speed(meter.audio_s, meter.elapsed_s)) == (None, "0.5 × real time")
    meter.advance(long, 200, 600)
    meter.advance(short, 200, 200)
    assert (meter.fraction, meter.left_s) == (0.5, 10)
    assert speed(meter.audio_s, meter.elapsed_s) == "40 × real time"
    meter.finish(long)  # or failed
    assert (meter.fraction, meter.left_s) == (1, 0)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0 s"), (59.96, "59.9 s"), (62.6, "1:02"), (3599.6, "59:59"), (3723, "1:02:03")],
)
def test_times_as_the_page_shows_them(seconds: float, shown: str) -> None:
    assert clock_time(seconds) == shown


def test_names_that_no_terminal_can_show(
    recording: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    talks = tree(tmp_path / "talks", os.fsdecode(b"caf\xe9 \x1b[2J.wav"))
    assert transcribe_all("talks") == 0
    [srt] = talks.glob("*.srt")
    assert os.fsencode(srt.name) == b"caf\xe9 \x1b[2J.srt"
    assert "caf� �[2J.wav → talks/caf� �[2J.srt: " in capfd.readouterr().err
