"""`whisperfleet subtitles`, as a shell runs it."""

import contextlib
import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import srt
from typer.testing import CliRunner

from app.cli import cli
from tests.cases import read_cases

USAGE = read_cases("usage")
WHISPERFLEET = Path(sys.executable).with_name("whisperfleet")

TRANSCRIPT = {
    "language": "german",
    "duration": 9.0,
    "segments": [
        {"start": 0.5, "end": 2.5, "text": " Schöne Grüße aus Österreich."},
        {"start": 4.0, "end": 6.0, "text": " Bis bald, auf Wiedersehen!"},
    ],
}

WEB = {"fastapi", "starlette", "uvicorn", "httpx", "sqlalchemy", "structlog"}
MODELS = {"torch", "faster_whisper", "ctranslate2", "onnxruntime", "av", "numpy", "opencc"}
SERVICE = {"app.settings", "app.pool.process", "app.recording.service"}


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TRANSCRIPT))
    return path


def run(folder: Path, *arguments: object, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run it in this process, which takes a tenth of the time."""
    words = ["subtitles", *map(str, arguments)]
    with contextlib.chdir(folder):
        done = CliRunner().invoke(cli, words, input=content, env={"COLUMNS": "200"})
    gc.enable()
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout_bytes, done.stderr_bytes)


def texts(content: bytes) -> list[str]:
    return [" ".join(cue.content.split()) for cue in srt.parse(content.decode())]


BOTH = ["Schöne Grüße aus Österreich.", "Bis bald, auf Wiedersehen!"]


def test_srt_to_standard_output(talk: Path) -> None:
    done = subprocess.run([str(WHISPERFLEET), "subtitles", str(talk)], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert texts(done.stdout) == BOTH
    assert done.stdout.startswith(b"1\n00:00:00,500 --> ")


@pytest.mark.parametrize("name", ["srt", "json", "stl"])
def test_the_format_by_name_or_suffix(talk: Path, name: str) -> None:
    by_name = run(talk.parent, talk, "--format", name)
    by_suffix = run(talk.parent, talk, "-o", f"out.{name}")
    assert (by_name.returncode, by_suffix.returncode) == (0, 0), by_name.stderr + by_suffix.stderr
    assert by_suffix.stdout == b""
    assert (talk.parent / f"out.{name}").read_bytes() == by_name.stdout != b""


def test_options(talk: Path) -> None:
    narrow = run(talk.parent, talk, "--option", "max_line_chars=15", "--option", "max_lines=4")
    lines = [line for cue in srt.parse(narrow.stdout.decode()) for line in cue.content.split("\n")]
    assert len(lines) > 2
    assert max(map(len, lines)) <= 15
    assert b'xml:lang="fr"' in run(talk.parent, talk, "-f", "ttml", "-l", "french").stdout
    assert b'xml:lang="en"' in run(talk.parent, talk, "-f", "ttml", "--option", "task=translate").stdout


def test_chinese_script(tmp_path: Path) -> None:
    segments = [{"start": 0, "end": 2, "text": "汉语"}]
    content = json.dumps({"language": "chinese", "segments": segments}).encode()
    done = run(tmp_path, "-", "--option", "chinese=traditional", content=content)
    assert texts(done.stdout) == ["漢語"]


def test_several_files_one_of_them_broken(talk: Path) -> None:
    (talk.parent / "broken.json").write_text('{"segments": [')
    (talk.parent / "other.json").write_text(json.dumps(TRANSCRIPT))
    done = run(talk.parent, "talk.json", "broken.json", "other.json", "-o", "subtitles", "-f", "vtt")
    assert (done.returncode, done.stdout) == (1, b"")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(b"broken.json: this is not JSON")
    assert {path.name for path in (talk.parent / "subtitles").iterdir()} == {"talk.vtt", "other.vtt"}


def test_a_transcript_without_times_says_so(tmp_path: Path) -> None:
    content = json.dumps({"text": "Hello there.", "usage": {"type": "duration", "seconds": 4}}).encode()
    done = run(tmp_path, "-", content=content)
    assert (done.returncode, texts(done.stdout)) == (0, ["Hello there."])
    assert b"verbose_json" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("arguments", "code", "named"), USAGE["subtitles"])
def test_what_cannot_be_done(talk: Path, arguments: list[str], code: int, named: str) -> None:
    folder = talk.parent
    (folder / "empty.json").touch()
    (folder / "talk.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n")
    paths = {"TALK": talk, "EMPTY": "empty.json", "SRT": "talk.srt", "FOLDER": folder}
    before = sorted(folder.rglob("*"))
    refused = run(folder, *(paths.get(argument, argument) for argument in arguments))
    message = refused.stderr.decode()
    assert (refused.returncode, refused.stdout) == (code, b""), message
    assert named in message
    assert len(message.splitlines()) == 1
    assert talk.read_text() == json.dumps(TRANSCRIPT)
    assert {path for path in folder.rglob("*") if path.is_file()} == {
        path for path in before if path.is_file()
    }


def test_a_reader_that_goes_away(talk: Path) -> None:
    """As `| head -1` does."""
    segments = [{"start": at, "end": at + 1, "text": f" Number {at}."} for at in range(2000)]
    talk.write_text(json.dumps({"segments": segments}))
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [str(WHISPERFLEET), "subtitles", str(talk)], stdout=writing, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert len(done.stderr.decode().splitlines()) == 1
    assert b"Traceback" not in done.stderr


def test_it_imports_little(talk: Path) -> None:
    """It starts in a fraction of a second."""
    script = (
        "import sys\nfrom app.cli import main\n"
        f"sys.argv = ['whisperfleet', 'subtitles', {str(talk)!r}]\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert texts(done.stdout) == BOTH
    imported = set(done.stderr.decode().split())
    assert "app.commands.subtitles" in imported
    assert not (WEB | MODELS | SERVICE) & imported
