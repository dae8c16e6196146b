"""`whisperfleet doctor --json`: the findings for programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.commands.doctor.command import as_document
from app.commands.doctor.finding import Finding, fail, ok, warn

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([], "ok"),
        ([ok("a", "")], "ok"),
        ([ok("a", ""), warn("b", "", "")], "warn"),
        ([fail("a", "", ""), warn("b", "", "")], "fail"),
    ],
)
def test_the_whole_is_as_bad_as_the_worst(findings: list[Finding], status: str) -> None:
    assert as_document(findings)["status"] == status


def test_a_check() -> None:
    document = as_document([ok("python", "3.11"), fail("GPU 0", "lost", "Reboot.", "gpu-failed")])
    assert document["checks"] == [
        {"name": "python", "status": "ok", "detail": "3.11", "remedy": None},
        {
            "name": "GPU 0",
            "status": "fail",
            "detail": "lost",
            "remedy": "Reboot. (docs/trouble.md#gpu-failed)",
        },
    ]


@pytest.mark.parametrize(
    ("settings", "code", "status", "name", "detail"),
    [
        ({"WHISPER_ENGINE": "simulated"}, 0, "warn", "workers", "simulated"),
        ({"WHISPER_MODEL": "enormous", "WHISPER_DEVICE": "cpu"}, 2, "fail", "plan", "WHISPER_MODEL="),
        ({"WHISPER_DEVICE": "tpu"}, 2, "fail", "settings", "WHISPER_DEVICE="),
        (
            {"WHISPER_COMPUTE_TYPE": "int1", "WHISPER_DEVICE": "cpu", "WHISPER_MODEL": "demo"},
            2,
            "fail",
            "CTranslate2 on CPU",
            "WHISPER_COMPUTE_TYPE=int1",
        ),
    ],
)
def test_a_real_run(
    tmp_path: Path, settings: dict[str, str], code: int, status: str, name: str, detail: str
) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WHISPER_")}
    done = subprocess.run(
        [Path(sys.executable).with_name("whisperfleet"), "doctor", "--json"],
        env={**kept, **settings, "WHISPER_DATA_DIR": str(tmp_path), "WHISPER_PORT": "0"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )
    document = json.loads(done.stdout)
    assert (done.returncode, document["status"]) == (code, status), done.stdout
    [check] = [check for check in document["checks"] if check["name"] == name]
    assert check["status"] == status
    assert detail in check["detail"]
    assert check["remedy"]
    assert set(check) == {"name", "status", "detail", "remedy"}
