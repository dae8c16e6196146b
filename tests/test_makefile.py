"""What `make install` does after an earlier installation. Python is a stub that writes down its arguments."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

OLD_PYTHON = """#!/bin/sh
exec "$REAL" -c 'import sys; sys.version_info = (3, 10, 12); exec(sys.argv[1])' "$2"
"""

PYTHON = """#!/bin/sh
test "$1" = -c && exit
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in
    *-m\\ venv*) for last; do :; done; mkdir -p "$last/bin" && cp "$0" "$last/bin/python" ;;
esac
"""


class Tree:
    """A source tree with stubs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, folder)
        (folder / "stubs").mkdir()
        programs = {
            "python3": PYTHON,
            "python3.10": OLD_PYTHON,
            "python3.12": PYTHON,
            "node": "#!/bin/sh\n",
            "npm": "#!/bin/sh\n",
        }
        for name, program in programs.items():
            (folder / "stubs" / name).write_text(program)
            (folder / "stubs" / name).chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """make, when it has ended."""
        path = f"{self.folder / 'stubs'}:{os.defpath}"
        return subprocess.run(
            ["make", "--no-print-directory", *arguments],
            cwd=self.folder,
            env={"PATH": path, "CALLS": str(self.folder / "calls"), "REAL": sys.executable},
            capture_output=True,
            text=True,
        )

    def make(self, *arguments: str) -> list[str]:
        """The commands that make runs. Fails if make does."""
        calls = self.folder / "calls"
        calls.unlink(missing_ok=True)
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return calls.read_text().splitlines() if calls.exists() else []

    def installs(self, *arguments: str) -> str:
        """What `make install` installs from this tree; empty if nothing."""
        calls = self.make("install", *arguments)
        return "".join(call.rpartition(" ")[2] for call in calls if " --editable " in call)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_second_installation_does_nothing(tree: Tree) -> None:
    assert tree.installs() == "."
    assert tree.installs() == ""
    (tree.folder / "pyproject.toml").touch()
    assert tree.installs() == "."


def test_extras_are_added_to_an_installation(tree: Tree) -> None:
    assert tree.installs() == "."
    assert tree.installs("EXTRAS=url") == ".[url]"
    assert tree.installs("EXTRAS=url") == ""
    assert tree.installs("EXTRAS=gpu,url") == ".[gpu,url]"
    assert tree.installs("EXTRAS=gpu") == "", "it is there"
    assert tree.installs() == "", "nothing is asked for"


def test_a_driver_that_comes_later_brings_the_extra_for_gpus(tree: Tree) -> None:
    assert tree.installs() == "."
    (tree.folder / "stubs" / "nvidia-smi").symlink_to("python3")
    assert tree.installs() == ".[gpu]"


def test_another_python_makes_the_environment_anew(tree: Tree) -> None:
    assert tree.installs("EXTRAS=url") == ".[url]"
    calls = tree.make("install", "PYTHON=python3.12")
    assert calls[0] == "python3.12 -m venv --clear .venv"
    assert tree.make("install") == [], "the default is not another one"
    assert tree.make("install", "PYTHON=python3.12") == []
    assert tree.installs("EXTRAS=url") == ".[url]", "it went with the old environment"


def test_the_python_of_the_environment_is_the_default(tree: Tree) -> None:
    tree.installs("PYTHON=python3.12")
    assert tree.make("install", "EXTRAS=url")[0] == "python3.12 -m venv .venv"


@pytest.mark.parametrize("python", ["python3.10", "python-that-is-not-here"])
def test_an_unsuitable_python_is_refused_with_the_cure(tree: Tree, python: str) -> None:
    done = tree.run("run", f"PYTHON={python}")
    assert done.returncode != 0
    assert f"whisperfleet needs Python 3.11 to 3.13, and {python} is not one of them." in done.stderr
    assert "make run PYTHON=python3.12" in done.stderr
    assert not (tree.folder / ".venv").exists()


def test_an_installation_of_an_older_makefile_is_kept(tree: Tree) -> None:
    tree.installs("PYTHON=python3.12")
    (tree.folder / ".venv" / ".installed").write_text("")
    assert tree.make("install", "PYTHON=python3") == []
    calls = tree.make("install", "EXTRAS=url")
    assert calls[0] == "python3 -m venv .venv"


def test_an_interrupted_installation_is_done_again(tree: Tree) -> None:
    tree.installs()
    (tree.folder / ".venv" / ".installed").unlink()
    assert tree.installs() == "."
