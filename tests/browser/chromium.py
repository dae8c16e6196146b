"""The Chromium of the browser tests: the machine's, since Playwright's own would be another download."""

import os
import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
FOLDER = Path(__file__).parent
REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
MISSING = "there is no Chromium. Install it (Debian: `apt-get install chromium`), or name one in CHROMIUM"
# It runs as root in containers, and reaches for nothing outside the machine.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",  # a microphone that beeps
)


def find_chromium() -> str | None:
    """Its path; None if there is none. The variable CHROMIUM names the only one that counts."""
    chosen = os.environ.get("CHROMIUM")
    names = (chosen,) if chosen is not None else NAMES
    return next(filter(None, map(shutil.which, names)), None)
