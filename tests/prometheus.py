"""The machine's Prometheus and its promtool."""

import os
import shutil

import pytest

REQUIRED = os.environ.get("REQUIRE_PROMETHEUS") == "1"
MISSING = "there is no Prometheus. Install it (Debian: `apt-get install prometheus`)"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`. Skips the test if it is missing, or fails if it is required."""
    found = shutil.which(name)
    if found is None:
        (pytest.fail if REQUIRED else pytest.skip)(MISSING)
    return found
