"""A session on a lent GPU, but on a CPU and with tiny models: what it needs, says and survives."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import gpu_session
from bench.gpu_session import GROUPS, Session, report, run_group

PROGRAM = Path(gpu_session.__file__)
SMALL = "--carried CARRIED --out OUT --device cpu --small"

# What a machine with torch may have. Whatever else is installed here cannot be imported.
ONLY_TORCH = """
import importlib.metadata, sys
torch = "torch torchgen functorch numpy sympy mpmath networkx jinja2 markupsafe filelock fsspec packaging"
kept = {*torch.split(), "typing_extensions", "setuptools", "bench", "workers"}
refused = {*importlib.metadata.packages_distributions(), "app"} - kept
class Finder:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in refused else self.finder.find_spec(name, path, target)
    def find_distributions(self, *args):
        return getattr(self.finder, "find_distributions", lambda *args: [])(*args)
sys.meta_path[:] = map(Finder, sys.meta_path)
"""


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("session") / "carried"
    run("--prepare CARRIED --no-packages --small", folder)
    return folder


def run(options: str, carried: Path, **environment: str) -> str:
    words = options.replace("CARRIED", str(carried)).replace("OUT", str(carried.parent / "out")).split()
    command = [sys.executable, str(PROGRAM), *words]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def test_torch_and_numpy_are_enough_for_what_it_measures_of_torch(carried: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(ONLY_TORCH)
    parts = "--groups make-turbo,turbo,worker --parts large-v3-turbo,load,texts"
    found = run(f"{SMALL} {parts}", carried, PYTHONPATH=str(tmp_path))
    assert "turbo texts: draft: texts right 2 of 2" in found
    results = json.loads((carried.parent / "out" / "session.json").read_text())["parts"]
    assert results["turbo load"]["windows at once"] == 2
    assert results["worker"] == {"error": "its packages are not here"}


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_all_parts_have_figures(carried: Path) -> None:
    found = run(SMALL, carried)
    results = json.loads((carried.parent / "out" / "session.json").read_text())["parts"]
    assert not [part for part, figures in results.items() if "error" in figures]
    parts = {f"{name} {part}" for name, group in GROUPS.items() for part in group.parts}
    assert set(results) == parts - {"turbo memory", "large memory"}, "memory is that of a GPU"
    rows = re.findall(r"^\| .* \| ([^|]+) \|$", found.partition("| part |")[0], re.MULTILINE)
    assert rows
    assert "not measured" not in rows


class Parts:
    """Parts that end in other ways than with figures."""

    def parts(self) -> dict[str, object]:
        return {"fails": lambda: 1 / 0, "hangs": lambda: time.sleep(9), "works": lambda: {"x s": 1.5}}


def test_a_part_that_fails_or_hangs_costs_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    group = gpu_session.Group(lambda session, stack: Parts(), ("fails", "hangs", "works"))
    monkeypatch.setitem(GROUPS, "group", group)
    monkeypatch.setitem(gpu_session.LONGER_S, "hangs", 1)
    run_group("group", group.parts, Session("cpu", True, tmp_path, tmp_path), tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["group fails"]["error"] == "ZeroDivisionError: division by zero"
    assert found["group hangs"]["error"] == "TimeoutError: it took too long"
    assert found["group works"]["x s"] == 1.5
    assert "| group works | x s | 1.5 |" in report(found, {})
