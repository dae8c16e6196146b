"""The page in a real browser, with the real service and the demo model."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.chromium import ARGUMENTS, FOLDER, MISSING, REQUIRED, find_chromium
from tests.browser.watching import Faults
from tests.e2e.fixtures import SharedServers, without_jobs, write_wav
from tests.e2e.running import DATA, KEYED, ONE_SIMULATED, Server
from tests.media_files import RATE, read_pcm

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")
ANSWER_MS = 20_000  # the machine may be busy with other things

expect.set_options(timeout=ANSWER_MS)

NewPage = Callable[..., Page]
Axe = Callable[[Page], list[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_chromium() is not None or REQUIRED:
        return
    for item in items:
        if item.path.is_relative_to(FOLDER) and "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Looked for before a server is started."""
    path = find_chromium()
    assert path is not None, f"{MISSING}."
    return path


@pytest.fixture(scope="session")
def chromium_session(chromium: str) -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """A browser for all modules, since each start takes seconds of a core, and Playwright's event loop."""
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)


@pytest.fixture(scope="module")
def browser(chromium_session: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """Only a module of browser tests sees Playwright's loop: asynchronous tests of others have their own."""
    browser, loop = chromium_session
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture(scope="module")
def paced(shared: SharedServers) -> Server:
    """Made-up text, a clip every 0.7 s: as slow on a fast machine as on a busy one."""
    return shared(**ONE_SIMULATED, WHISPER_SIMULATED="batch=1,fixed_ms=700,clip_ms=1")


@pytest.fixture(scope="session")
def three_minutes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Talk that takes `paced` some seconds."""
    return write_wav(tmp_path_factory.mktemp("talks"), np.resize(read_pcm(DATA / "talk.flac"), 180 * RATE))


@pytest.fixture(scope="module")
def site(emptied: Server) -> Server:
    """The service: the demo model, two workers, and no keys. A module begins without jobs."""
    return emptied


@pytest.fixture(scope="module")
def locked(shared: SharedServers) -> Server:
    """A service with one simulated worker and a key, `KEY`, which its client sends."""
    return without_jobs(shared(**KEYED))


# What the reader would have chosen before. `about:blank` has no storage.
CHOOSE_LAYOUT = """
try { localStorage["whisperfleet.transcript.layout"] ??= JSON.stringify("%s"); } catch {}
"""


def new_context(
    browser: Browser, server: Server, layout: str | None = "subtitles", **options: Any
) -> tuple[BrowserContext, Faults]:
    """`layout`: how the page shows a transcript, until a test changes it. None: as for someone new."""
    # What moves is drawn 60 times a second, which took a seventh of Chromium's time.
    context = browser.new_context(base_url=server.url, reduced_motion="reduce", **options)
    if layout is not None:
        context.add_init_script(CHOOSE_LAYOUT % layout)
    context.set_default_timeout(ANSWER_MS)
    return context, Faults(context, server.url)


@contextmanager
def watched_page(browser: Browser, server: Server, **options: Any) -> Iterator[Page]:
    context, faults = new_context(browser, server, **options)
    page = context.new_page()
    page.faults = faults  # type: ignore[attr-defined]
    try:
        yield page
    finally:
        context.close()
    assert not faults.unexpected()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[NewPage]:
    """Opens pages in contexts of their own: `new_page(server, layout=…)`. A tab: `page.context.new_page()`.

    At the end, the test fails if a page had a fault that `page.faults.expect(…)` does not name.
    """
    with ExitStack() as stack:
        yield lambda server, **options: stack.enter_context(watched_page(browser, server, **options))


@pytest.fixture(scope="module")
def context_options() -> dict[str, Any]:
    """What all pages of a module have, such as touch."""
    return {}


@pytest.fixture(scope="module")
def opener(browser: Browser, site: Server, context_options: dict[str, Any]) -> Iterator[tuple[Page, Faults]]:
    """An empty page of `site`. The pages that it opens share its process: another one takes as much time."""
    context, faults = new_context(browser, site, **context_options)
    empty = context.new_page()
    headers = {"Cross-Origin-Opener-Policy": "same-origin"}  # as those that it opens: they stay together
    empty.route("**/empty", lambda route: route.fulfill(headers=headers, content_type="text/html", body=""))
    empty.goto("/empty")
    yield empty, faults
    context.close()


def new_tab(context: BrowserContext) -> Page:
    """Another tab of the browser of `page`."""
    with context.expect_page() as opened:
        context.pages[0].evaluate("() => { open('about:blank'); }")
    return opened.value


@pytest.fixture
def page(opener: tuple[Page, Faults], site: Server) -> Iterator[Page]:
    """A page of `site`, not opened yet: `page.goto("/")`. A clock would stay in its context: `new_page`."""
    empty, faults = opener
    context = empty.context
    page = new_tab(context)
    faults.clear()
    page.faults = faults  # type: ignore[attr-defined]
    yield page
    for other in context.pages[1:]:
        other.close()
    context.unroute_all()
    context.clear_permissions()
    context.set_offline(False)
    everything = {"origin": site.url, "storageTypes": "all"}
    context.new_cdp_session(empty).send("Storage.clearDataForOrigin", everything)
    assert not faults.unexpected()


DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


@pytest.fixture(scope="session")
def axe() -> Axe:
    """The serious violations of accessibility that axe-core finds on a page."""
    source = AXE.read_text(encoding="utf-8")

    def violations(page: Page) -> list[str]:
        if not page.evaluate("'axe' in window"):
            page.evaluate(source)
        page.evaluate(DRAWN)  # a theme is, from the next frame on
        # Preloading, axe-core adds a style sheet of its own, which the content policy forbids.
        options = {"preload": False, "resultTypes": ["violations"]}
        found = page.evaluate("options => axe.run(document, options)", options)["violations"]
        return [
            f"{rule['id']}: {rule['help']}: {', '.join(str(node['target']) for node in rule['nodes'])}"
            for rule in found
            if rule["impact"] in GRAVE
        ]

    return violations
