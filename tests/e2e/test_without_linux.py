"""macOS, simulated: neither /proc nor the calls that only Linux has."""

import os
from pathlib import Path

import pytest

from tests.e2e.running import DATA

pytestmark = pytest.mark.timeout(120)

# Each Python process of the test imports it at its start.
ABSENCE = """
import os, sys

for name in ("pidfd_open", "sched_getaffinity", "sched_setaffinity", "memfd_create", "eventfd", "splice",
             "copy_file_range", "posix_fadvise", "posix_fallocate", "O_TMPFILE", "O_DIRECT", "sendfile"):
    if hasattr(os, name):
        delattr(os, name)

def refuse(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)) and os.fsdecode(args[0]).startswith("/proc/"):
        asked = os.open(os.environ["ASKED_FOR"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(asked, os.fsencode(args[0]) + b"\\n")
        os.close(asked)
        raise FileNotFoundError(2, "No such file or directory", args[0])

sys.addaudithook(refuse)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """The environment of a command that finds nothing of Linux."""
    (tmp_path / "sitecustomize.py").write_text(ABSENCE)
    folders = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        "ASKED_FOR": str(tmp_path / "asked"),
        "WHISPER_GPUS": "0",
    }


def test_a_recording_is_transcribed_on_the_cpu(commands, elsewhere: dict[str, str], tmp_path: Path) -> None:
    done = commands.run("transcribe", DATA / "short00.flac", "-o", tmp_path / "out.txt", **elsewhere)
    assert done.process.returncode == 0, done.stderr
    assert (tmp_path / "out.txt").read_text().strip() == "The captain reads a long letter."
    assert "/proc/self/statm" in (tmp_path / "asked").read_text(), "nothing was refused"
