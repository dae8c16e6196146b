"""Which variables child processes do not inherit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.pool.child_environment import is_secret
from app.pool.process import ChildProcess
from app.settings import SECRET_SETTINGS
from tests.cases import read_cases
from workers import runtime

VARIABLES = read_cases("variables")
SECRETS = {f"WHISPER_{name.upper()}": "hunter2" for name in SECRET_SETTINGS} | VARIABLES["secrets"]
HARMLESS = VARIABLES["harmless"]


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_secrets(name: str) -> None:
    assert is_secret(name, SECRETS[name])


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_variables_that_libraries_need(name: str) -> None:
    assert not is_secret(name, HARMLESS[name])


def test_this_process_keeps_what_its_children_do_not_inherit() -> None:
    script = (
        "import os, subprocess, sys\n"
        "from app.pool.child_environment import hide_secrets\n"
        "hide_secrets(); hide_secrets()\n"
        "child = subprocess.run([sys.executable, '-c', 'import os; print(*os.environ)'],"
        " capture_output=True, text=True)\n"
        "print(os.environ['HF_TOKEN'], 'HF_TOKEN' in child.stdout, 'HF_HOME' in child.stdout)"
    )
    environ = {**os.environ, "HF_TOKEN": "mine", "HF_HOME": "/models"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["mine", "False", "True"], done.stderr


@pytest.mark.anyio
async def test_a_process_inherits_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (SECRETS | {"HARMLESS": "kept"}).items():
        monkeypatch.setenv(name, value)
    child = ChildProcess(runtime.initialise, "")
    await child.start()
    try:
        inherited = await child.call(inherited_environment)
        assert b"HARMLESS=kept" in inherited
        assert b"hunter2" not in inherited
        assert not SECRETS.keys() & (await child.call(eval, "set(__import__('os').environ)"))
    finally:
        await child.close()


def inherited_environment() -> bytes:
    return Path("/proc/self/environ").read_bytes()
