"""A run on a machine without a Chromium says so, and fails where one is required."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]


def run(*options, **variables):
    """pytest on a test of the page, with a CHROMIUM that is not there."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    inherited.pop("REQUIRE_BROWSER", None)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "tests/browser/test_page.py::test_the_focus_comes_back_from_a_dialog",
            *options,
        ],
        cwd=ROOT,
        env=inherited | {"CHROMIUM": "/nowhere/chromium"} | variables,
        capture_output=True,
        text=True,
    )


def test_the_last_line_names_what_was_not_run_and_what_to_install():
    done = run("--numprocesses", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("NOT RUN: 1 browser tests (tests/browser)")
    assert "apt-get install chromium" in last


@pytest.mark.soak
def test_a_required_chromium_that_is_missing_is_a_failure():
    done = run(REQUIRE_BROWSER="1")
    assert done.returncode == 1
    assert "apt-get install chromium" in done.stdout
    assert "NOT RUN" not in done.stdout
