"""Runs the shell commands of containers with stubs in place of the programs."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

STUBS = {
    "ray": "",
    "nvidia-smi": 'exit "${DRIVER:-0}"\n',
    # The service ends when the node beside it has been started twice.
    "whisperfleet": 'test "$1" = serve || exit 0\n'
    'until test "$(grep -c "^ray start" "$CALLS")" -ge 2; do /bin/sleep 0.02; done\n',
    "sleep": "/bin/sleep 0.02\n",
}


class Run(NamedTuple):
    returncode: int
    calls: list[str]  # the stubs that it called, with their arguments
    errors: str


def run(command: Sequence[str], folder: Path, **variables: str) -> Run:
    """Run a command until its first process has ended; then kill what that has left, as a container does."""
    stubs = folder / "stubs"
    stubs.mkdir(parents=True)
    for name, text in STUBS.items():
        (stubs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\n{text}')
        (stubs / name).chmod(0o755)
    calls, errors = folder / "calls", folder / "errors"
    calls.touch()
    environ = {"PATH": f"{stubs}:{os.defpath}", "CALLS": str(calls), **variables}
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            command, env=environ, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
        )
        try:
            returncode = process.wait(30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    lines = [line for line in calls.read_text().splitlines() if not line.startswith("sleep")]
    return Run(returncode, lines, errors.read_text())
