"""`whisperfleet transcribe` with a format that cannot hold the transcript."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.commands import transcribe
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Segment

SEGMENT = Segment(0, 2 * SAMPLE_RATE, " 猫が好き。", (), 0.0, -0.2, 1.1, 0.01)


class FakeService:
    """Transcribes every recording alike."""

    def __init__(self, *_: Any) -> None:
        self.catalogue = self

    def resolve(self, name: str) -> str:
        return "demo"

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def transcribe(self, *_: Any) -> Transcript:
        return Transcript("transcribe", "demo", "ja", 3 * SAMPLE_RATE, (), (SEGMENT,))


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transcribe, "TranscriptionService", FakeService)
    monkeypatch.setattr(transcribe, "check_compute_type", lambda plan: None)
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


def test_a_binary_format_reaches_its_file(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeService, "transcribe", _hear_english)
    assert run(recording, "out.stl", None) == 0
    assert Path("out.stl").read_bytes()[1024:].count(b"Cats.") == 1


async def _hear_english(*_: Any) -> Transcript:
    segment = Segment(0, 2 * SAMPLE_RATE, " Cats.", (), 0.0, -0.2, 1.1, 0.01)
    return Transcript("transcribe", "demo", "en", 3 * SAMPLE_RATE, (), (segment,))
