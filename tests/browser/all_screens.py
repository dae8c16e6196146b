"""Every screen of the page, with each of its dialogs and menus open, in any language."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.transcript_pages import correct, open_job, stored, with_lines
from tests.e2e.fixtures import Commands, write_wav
from tests.e2e.running import DATA, SIMULATED, Server, wait_for
from tests.media_files import RATE, read_pcm

LINES = ["The first of some lines.", "A second one.", "And a third, which is much longer than both."]
LONG_NAME = f"{'a very long name of a recording ' * 4}.flac"
LANES = SIMULATED | {
    "WHISPER_CPU_WORKERS": 4,
    "WHISPER_SIMULATED": "batch=2,fixed_ms=5000,poisoned_for_good=1",
}


@dataclass(frozen=True)
class World:
    """Services with jobs in every state."""

    site: Server
    lanes: Server  # its worker 1 is quarantined
    done: str  # jobs of `site`
    failed: str
    running: str  # a job of `lanes`, which ends after the first screens
    broken: Path  # a text
    nothing: Path  # a file without content


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest, module_commands: Commands, tmp_path_factory: pytest.TempPathFactory
) -> World:
    folder = tmp_path_factory.mktemp("world")
    long_name, broken, nothing = (folder / name for name in (LONG_NAME, "broken.txt", "nothing.mp3"))
    long_name.write_bytes((DATA / "talk.flac").read_bytes())
    broken.write_text("no sound at all")
    nothing.touch()
    lanes = module_commands.serve(**LANES)
    site = request.getfixturevalue("site")  # that starts meanwhile
    long = write_wav(folder, np.resize(read_pcm(DATA / "talk.flac"), 900 * RATE))
    done = with_lines(site, long_name, LINES)
    failed = site.finished(site.submit(broken)["id"])["id"]
    running = lanes.wait_until_up().submit(long)["id"]
    wait_for(lambda: lanes.workers()[1]["state"] == "failed", 150)
    return World(site, lanes, done, failed, running, broken, nothing)


Opened = Callable[..., Page]  # by `NewPage` with a server


def with_menu(page: Page, button: Locator) -> Page:
    button.click()
    page.get_by_role("menu").wait_for()
    return page


def new_list(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    page.goto("/")
    page.locator(".job-row").first.wait_for()
    return page


def empty_list(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    page.route("**/v1/jobs?*", lambda route: route.fulfill(json={"data": [], "has_more": False}))
    page.goto("/")
    page.locator(".history > p").wait_for()
    return page


def uploads_and_options(new_page: Opened, world: World) -> Page:
    page = new_list(new_page, world)
    page.faults.expect("status of 400")  # type: ignore[attr-defined]
    page.locator("input[type=file]").first.set_input_files(world.nothing)
    page.locator(".upload-message.wrong").wait_for()
    page.locator(".options > details > summary").click()
    page.locator(".options-more > summary").click()
    return page


def recording(new_page: Opened, world: World) -> Page:
    page = new_page(world.site, permissions=["microphone"])
    page.goto("/")
    page.locator(".drop-zone-sources button").nth(-2).click()
    page.locator("meter").wait_for()
    return page


def something_dragged(new_page: Opened, world: World) -> Page:
    page = new_list(new_page, world)
    page.evaluate(
        """() => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(["x"], "x.mp3"));
          dispatchEvent(new DragEvent("dragenter", { dataTransfer, cancelable: true }));
        }"""
    )
    page.locator(".drop-overlay").wait_for()
    return page


def selection(new_page: Opened, world: World) -> Page:
    page = new_list(new_page, world)
    page.locator("#history-all").click()
    return with_menu(page, page.locator(".history-selection [aria-haspopup=menu]").last)


def nothing_found(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    page.goto("/#/?q=zzzz")
    page.locator(".history .empty").wait_for()
    return page


def unreachable(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    page.faults.expect("ERR_FAILED")  # type: ignore[attr-defined]
    page.route("**/v1/jobs?*", lambda route: route.abort())
    page.goto("/")
    page.get_by_role("alert").wait_for()
    return page


def deleted_with_undo(new_page: Opened, world: World) -> Page:
    job = world.site.finished(world.site.submit(world.broken)["id"])["id"]
    page = new_list(new_page, world)
    page.locator(f".job-row[data-job='{job}'] .job-row-name").focus()
    page.keyboard.press("Delete")
    page.locator(".toast").wait_for()
    return page


def recently_deleted(new_page: Opened, world: World) -> Page:
    job = world.site.finished(world.site.submit(world.broken)["id"])["id"]
    world.site.client.post(f"/v1/jobs/{job}/trash").raise_for_status()
    page = new_page(world.site)
    page.goto("/#/?trash=true")
    page.locator(f".job-row[data-job='{job}']").get_by_role("checkbox").click()
    page.locator(f".job-row[data-job='{job}']").get_by_role("button", name="Delete for ever").click()
    page.locator(".toast").wait_for()
    return page


def transcript(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    open_job(page, world.done)
    page.locator("h1 > button").click()  # on a phone, facts and speakers are behind the name
    page.locator(".job-facts").wait_for()
    return page


def correcting(new_page: Opened, world: World) -> Page:
    page = transcript(new_page, world)
    page.locator(".segment").nth(1).focus()
    page.keyboard.press("Control+h")
    page.locator(".segment").nth(1).focus()
    page.keyboard.press("Enter")
    page.locator("textarea.segment-text").wait_for()
    return page


def correcting_in_place(new_page: Opened, world: World) -> Page:
    page = new_page(world.site, layout="text")
    open_job(page, world.done)
    page.locator(".segment").nth(1).focus()
    page.keyboard.press("Enter")
    page.locator(".segment-text[contenteditable]").wait_for()
    return page


def segment_menu(new_page: Opened, world: World) -> Page:
    page = transcript(new_page, world)
    page.locator(".segment").nth(1).hover()
    return with_menu(page, page.locator(".segment").nth(1).locator("[aria-haspopup=menu]"))


def downloads(new_page: Opened, world: World) -> Page:
    page = transcript(new_page, world)
    return with_menu(page, page.locator(".job-title [aria-haspopup=menu]").first)


def player_menu(new_page: Opened, world: World) -> Page:
    page = transcript(new_page, world)
    return with_menu(page, page.locator(".player [aria-haspopup=menu]"))


def revisions(new_page: Opened, world: World) -> Page:
    page = transcript(new_page, world)
    with_menu(page, page.locator(".job-title [aria-haspopup=menu]").last)
    page.get_by_role("menuitem").nth(1).click()
    page.locator("[data-revision='0']").click()
    page.locator(".revisions-text li").first.wait_for()
    return page


def two_versions(new_page: Opened, world: World) -> Page:
    page = transcript(new_page, world)
    page.faults.expect("status of 412")  # type: ignore[attr-defined]
    page.locator(".segment").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.type(" Mine.")
    page.keyboard.press("Enter")
    theirs = stored(world.site, world.done)
    theirs[0]["text"] += " Theirs."
    correct(world.site, world.done, theirs)
    page.keyboard.press("Control+s")
    page.get_by_role("dialog").wait_for()
    return page


def running_job(new_page: Opened, world: World) -> Page:
    page = new_page(world.lanes)
    open_job(page, world.running)
    assert world.lanes.job(world.running)["status"] == "running"
    return page


def failed_job(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    page.goto(f"/#/jobs/{world.failed}")
    page.get_by_role("alert").first.wait_for()
    return page


def missing_job(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    page.faults.expect("status of 404")  # type: ignore[attr-defined]
    page.goto(f"/#/jobs/{'0' * 32}")
    page.locator(".unavailable h1").wait_for()
    return page


def settings(new_page: Opened, world: World) -> Page:
    page = new_list(new_page, world)
    page.locator(".top-bar .icon-button").last.click()
    page.get_by_role("dialog").wait_for()
    return page


def keys(new_page: Opened, world: World) -> Page:
    page = transcript(new_page, world)
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    return page


def wrong_key(new_page: Opened, world: World) -> Page:
    page = new_page(world.site)
    page.faults.expect("status of 401")  # type: ignore[attr-defined]
    page.add_init_script("localStorage.setItem('whisperfleet.key', JSON.stringify('wrong'))")
    page.route("**/v1/jobs?*", lambda route: route.fulfill(status=401, json={"error": {"message": "Wrong."}}))
    page.goto("/")
    page.locator("#key-wrong").wait_for()
    return page


def lanes(new_page: Opened, world: World) -> Page:
    page = new_page(world.lanes)
    page.goto("/#/fleet")
    page.locator(".lane .reason").wait_for()
    page.locator(".legend .entry").first.wait_for()
    page.locator(".track").first.focus()
    page.keyboard.press("ArrowLeft")
    page.locator(".tip").wait_for()
    return page


def table(new_page: Opened, world: World) -> Page:
    page = lanes(new_page, world)
    page.locator(".fleet > .toolbar button").click()
    expect(page.get_by_role("row").nth(2)).to_be_visible()
    return page


# All that the Tab key reaches is on these. The others are menus, which arrows walk, or add nothing to them.
TOURED = [
    lanes,
    table,
    new_list,
    uploads_and_options,
    transcript,
    correcting,
    correcting_in_place,
    revisions,
    two_versions,
    failed_job,
    settings,
    keys,
]
SCREENS = [
    running_job,
    *TOURED,
    empty_list,
    recording,
    something_dragged,
    selection,
    nothing_found,
    unreachable,
    deleted_with_undo,
    recently_deleted,
    segment_menu,
    downloads,
    player_menu,
    missing_job,
    wrong_key,
]
