"""The Chromium of the browser tests: the machine's, since Playwright's own would be another download.

Best without its windows, the headless shell, which opens a page in half the time.
"""

import os
import shutil
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FOLDER = Path(__file__).parent
REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
MISSING = (
    "there is no Chromium. Install it (Debian: `apt-get install chromium-headless-shell`), "
    "or name one in CHROMIUM"
)
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
    "--use-fake-ui-for-media-stream",  # and that is allowed: the headless shell has nobody to ask
    # Else each page comes with two processes more: for the next page, and for suggestions in the address bar.
    # The last list counts, so that Playwright's is repeated as far as it matters here.
    "--disable-features=SpareRendererForSitePerProcess,WebUIOmniboxPopup,WebUIOmniboxAimPopup,"
    "HttpsUpgrades,PaintHolding,MediaRouter,OptimizationHints,DestroyProfileOnBrowserClose,"
    "AvoidUnnecessaryBeforeUnloadCheckSync,ThirdPartyStoragePartitioning",
)


def find_chromium() -> str | None:
    """Its path; None if there is none. The variable CHROMIUM names the only one that counts."""
    chosen = os.environ.get("CHROMIUM")
    names = (chosen,) if chosen is not None else NAMES
    return next(filter(None, map(shutil.which, names)), None)
