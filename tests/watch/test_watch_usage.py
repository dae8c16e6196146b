"""Wrong usage of `whisperfleet watch`."""

import hashlib
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.cases import read_cases

USAGE = read_cases("usage")["watch"]


@pytest.mark.parametrize(("arguments", "named"), USAGE)
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


def test_a_lock_that_cannot_be_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(os.fsencode(tmp_path.resolve())).hexdigest()[:16]
    lock = tmp_path / "data" / "watch" / f"{digest}.lock"
    lock.mkdir(parents=True)
    monkeypatch.setenv("WHISPER_DATA_DIR", str(tmp_path / "data"))
    refused = CliRunner().invoke(cli, ["watch", str(tmp_path)])
    assert refused.exit_code == 1
    assert refused.output == f"whisperfleet: [Errno 21] Is a directory: '{lock}'\n"
