"""The unit for systemd: the paths, variables and exit codes that it names exist."""

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.commands.serve import GRACE_S
from app.settings import load_settings
from tests import systemd
from tests.test_kubernetes import THIRD_PARTY

UNIT = Path(__file__).parents[1] / "deploy" / "whisperfleet.service"
LINES = [line for line in UNIT.read_text().splitlines() if line and not line.startswith("#")]


def values(key: str) -> list[str]:
    return [line.partition("=")[2] for line in LINES if line.startswith(f"{key}=")]


def test_it_starts_the_service_and_stays_down_after_an_invalid_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    [command] = values("ExecStart")
    assert command == "/opt/whisperfleet/.venv/bin/whisperfleet serve"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHISPER_PORT", "http")
    refused = CliRunner().invoke(cli, command.split()[1:])
    assert values("RestartPreventExitStatus") == [str(refused.exit_code)]
    assert int(values("TimeoutStopSec")[0]) > GRACE_S


def test_its_variables_are_settings_or_those_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dict(pair.split("=", 1) for value in values("Environment") for pair in value.split())
    for name, value in given.items():
        assert re.fullmatch("/var/(lib|cache)/whisperfleet(/.*)?", value), "a folder that systemd creates"
        if name not in THIRD_PARTY:
            monkeypatch.setenv(name, value)
            assert str(getattr(load_settings(), name.removeprefix("WHISPER_").lower())) == value
    assert values("StateDirectory") == values("CacheDirectory") == values("User") == ["whisperfleet"]


@pytest.mark.skipif(systemd.ANALYZE is None, reason=systemd.MISSING)
@pytest.mark.parametrize(
    "source", [UNIT, UNIT.with_name("whisperfleet-watch.service")], ids=lambda path: path.stem
)
def test_systemd_knows_every_line(source: Path, tmp_path: Path) -> None:
    unit = tmp_path / source.name
    program = tmp_path / "whisperfleet"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit.write_text(source.read_text().replace("/opt/whisperfleet/.venv/bin/whisperfleet", str(program)))
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=30)
    found = [
        line for line in checked.stderr.splitlines() if source.name in line and "user" not in line.lower()
    ]
    assert found == []
