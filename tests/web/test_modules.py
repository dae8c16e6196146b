"""The unit tests of the page's modules, by Node's test runner."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
VENDOR = ROOT / "app" / "web" / "vendor"
TIMEOUT_S = 120
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


pytestmark = pytest.mark.timeout(TIMEOUT_S + 10)


def run_node(*arguments: object) -> None:
    node = shutil.which("node", path=PATH)
    assert node, "there is no Node. `make test` installs one."
    command = [node, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules() -> None:
    tests = sorted(FOLDER.rglob("*.test.js"))
    assert tests
    run_node("--test", *tests)


def test_the_bundles_are_those_of_make_vendor(tmp_path: Path) -> None:
    run_node("vendor/bundle.mjs", tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    declarations = {path.name for path in VENDOR.glob("*.d.ts")}
    assert made == {p.name: p.read_bytes() for p in VENDOR.iterdir() if p.name not in declarations}
    assert declarations == {name.replace(".js", ".d.ts") for name in made if name.endswith(".js")}


def test_the_page_is_that_of_make_page(tmp_path: Path) -> None:
    run_node("vendor/page.mjs", tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in (VENDOR.parent / "bundle").iterdir()}


def test_versions_are_exact_and_name_no_registry() -> None:
    packages = json.loads((ROOT / "package.json").read_text())
    versions = packages["dependencies"] | packages["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    lock = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert not any("resolved" in entry for entry in lock.values())
    assert all("integrity" in entry for name, entry in lock.items() if name)
