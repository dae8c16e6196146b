"""Wrong usage of `whisperfleet watch`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import cli


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nowhere"], "there is no folder nowhere"),
        ([".", "--only-language", "klingon"], "klingon"),
        ([".", "--language", "en", "--only-language", "de"], "--only-language excludes it"),
        ([".", "--format", "doc"], "doc"),
        ([".", "--server", "ftp://localhost"], "http://host:8000"),
        ([".", "--poll", "0"], "--poll"),
        ([".", "--settle", "0"], "--settle"),
        ([".", "--min-duration", "-1"], "--min-duration"),
        ([".", "--option", "beam_size=0"], "beam_size"),
        ([".", "--option", "colour=red"], "colour"),
    ],
)
def test_wrong_usage(
    arguments: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHISPER_DATA_DIR", str(tmp_path / "data"))
    refused = CliRunner().invoke(cli, ["watch", *arguments])
    assert refused.exit_code == 2
    assert named in refused.output
    assert len(refused.output.splitlines()) == 1


def test_a_data_folder_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").touch()
    monkeypatch.setenv("WHISPER_DATA_DIR", str(tmp_path / "data"))
    refused = CliRunner().invoke(cli, ["watch", str(tmp_path)])
    assert refused.exit_code == 2
    assert "WHISPER_DATA_DIR" in refused.output
