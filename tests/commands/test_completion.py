"""What shells complete after `whisperfleet`, and how to install that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.transcript.formats import FORMATS

WHISPERFLEET = Path(sys.executable).with_name("whisperfleet")

pytestmark = pytest.mark.timeout(60)

# What each shell passes for a line, and how a completed value looks in the answer.
SHELLS = {
    "bash": (lambda line: {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}, "{}"),
    "zsh": (lambda line: {"_TYPER_COMPLETE_ARGS": line}, '"{}"'),
    "fish": (lambda line: {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "{}"),
}


def complete(line: str, shell: str = "bash") -> str:
    variables = {"_WHISPERFLEET_COMPLETE": f"complete_{shell}", **SHELLS[shell][0](line)}
    done = subprocess.run(
        [WHISPERFLEET], env={**os.environ, **variables}, capture_output=True, text=True, timeout=30
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_completes_formats(shell: str) -> None:
    answer = complete("whisperfleet transcribe talk.mp3 --format t", shell)
    for name in FORMATS:
        assert (SHELLS[shell][1].format(name) in answer) is name.startswith("t"), answer


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("whisperfleet mo", ["models"]),
        ("whisperfleet models pull large-v3", ["large-v3", "large-v3-turbo"]),
        ("whisperfleet transcribe --model ti", ["tiny.en", "tiny"]),
        ("whisperfleet transcribe --task transl", ["translate"]),
        ("whisperfleet subtitles --option max_l", ["max_line_chars=", "max_lines="]),
        ("whisperfleet doctor --j", ["--json"]),
        ("whisperfleet dr", ["drain"]),
    ],
)
def test_values(line: str, values: list[str]) -> None:
    assert complete(line).split() == values


def test_a_completion_imports_little() -> None:
    """A person waits for it with a finger on the key."""
    code = (
        "import sys; from app import cli; cli._complete_model('s')\n"
        "heavy = {'pydantic', 'rich', 'structlog', 'fastapi', 'huggingface_hub', 'httpx', 'app.settings'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_bash_gets_its_script_by_the_option() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{WHISPERFLEET} --show-completion; true"], capture_output=True, text=True, timeout=30
    )
    assert "complete -o default -F _whisperfleet_completion whisperfleet" in done.stdout
