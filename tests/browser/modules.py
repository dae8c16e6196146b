"""Pages of which a test uses modules."""

import subprocess
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]


def load_modules(page: Page) -> None:
    """Let the page load its modules, not their bundle: a test that imports one shares it with the page."""
    _replace_bundle(page, 'import "../main.js";')


def load_entry(page: Page, entry: str) -> None:
    """Let the page run this script instead: less than the whole page loads sooner."""
    _replace_bundle(page, _bundled(entry))


@cache
def _bundled(entry: str) -> str:
    """A script of the bundle's folder, with what it imports: one request instead of fifty."""
    done = subprocess.run(
        [ROOT / "node_modules/.bin/esbuild", "--bundle", "--format=esm", "--external:../texts/*.js"],
        cwd=ROOT / "app/web/bundle",
        input=entry,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _replace_bundle(page: Page, script: str) -> None:
    page.context.route(
        "**/web/bundle/main.js", lambda route: route.fulfill(content_type="text/javascript", body=script)
    )
