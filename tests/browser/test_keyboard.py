"""Everything without a mouse: each control is reached, shows its focus, and never loses it to nothing."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import all_screens
from tests.browser.all_screens import World, world  # noqa: F401

pytestmark = pytest.mark.timeout(120)

MOST_CONTROLS = 150

# Numbers the elements that the Tab key must reach.
MARK = """() => {
  const root = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
  const wanted = [...root.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((element) => element.tabIndex >= 0 && !element.disabled && element.type !== "file")
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    // Arrows move within a group.
    .filter((element, _, all) => element.type !== "radio" ||
      element === all.find((other) => other.type === "radio" && other.name === element.name));
  wanted.forEach((element, index) => { element.dataset.tab = index; });
  document.activeElement?.blur?.();
  return wanted.map((element) => element.outerHTML.slice(0, 120));
}"""

# Which of them has the focus, and whether it shows.
FOCUSED = """() => {
  const element = document.activeElement;
  const isMarked = ({ outlineStyle, outlineWidth, boxShadow }) =>
    (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
  const box = element.getBoundingClientRect();
  return {
    index: element.dataset.tab ?? null,
    isBody: element === document.body || element === document.documentElement,
    // The mark of a link that covers its row is around the row.
    isShown: isMarked(getComputedStyle(element)) || isMarked(getComputedStyle(element, "::after")),
    isInView: box.bottom > 0 && box.top < innerHeight && box.width > 0,
    html: element.outerHTML.slice(0, 120),
  };
}"""

TOURS = [
    "new_list",
    "uploads_and_options",
    "transcript",
    "correcting",
    "failed_job",
    "lanes",
    "table",
    "settings",
    "keys",
    "revisions",
    "two_versions",
]


@pytest.mark.parametrize("name", TOURS)
def test_tab_reaches_everything_and_the_focus_is_seen(new_page, world: World, name: str) -> None:  # noqa: F811
    page: Page = getattr(all_screens, name)(new_page, world)
    page.emulate_media(reduced_motion="reduce")
    wanted = page.evaluate(MARK)
    assert wanted
    missing = set(range(len(wanted)))
    lost = 0
    for _ in range(MOST_CONTROLS):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused["isBody"]:  # the browser's own controls come between the last one and the first
            lost += 1
            assert lost <= 2, f"the focus is lost; not reached: {[wanted[index] for index in missing]}"
            continue
        assert focused["isShown"], f"the focus is not seen: {focused['html']}"
        assert focused["isInView"], f"out of sight: {focused['html']}"
        missing.discard(int(focused["index"] or -1))
        if not missing:
            break
    assert not missing, [wanted[index] for index in missing]


def tab_to(page: Page, selector: str) -> None:
    for _ in range(MOST_CONTROLS):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not reach {selector}")


def test_from_choosing_a_file_to_its_subtitles(page, site, talk, tmp_path):
    recording = tmp_path / "by keys.flac"
    recording.write_bytes(talk.path.read_bytes())
    page.on("filechooser", lambda _: None)  # Playwright would not wait until the browser tells of them
    page.goto("/")
    page.get_by_role("main").wait_for()
    tab_to(page, "details.options > summary")
    page.keyboard.press("Enter")
    tab_to(page, "textarea")  # the prompt
    page.keyboard.type("By keys")
    page.keyboard.press("Tab")
    page.keyboard.press("t")  # typed, and no way to another screen
    page.evaluate("scrollTo(0, 0)")
    page.reload()
    page.locator(".history > p, .job-row").first.wait_for()
    tab_to(page, ".drop-zone-sources .primary")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    with page.expect_request(lambda request: request.method == "POST" and "/v1/jobs" in request.url) as sent:
        chooser.value.set_files(recording)
    assert sent.value.post_data_json["prompt"] == "By keys"
    row = page.locator(".job-row", has_text="by keys.flac")
    expect(row.locator("[data-status=succeeded]")).to_be_visible()
    tab_to(page, ".job-row-name")
    page.keyboard.press("Enter")
    page.locator(".segment").first.wait_for()
    expect(page.get_by_role("main")).to_be_focused()  # the way goes on at the beginning of the new screen
    tab_to(page, ".player-play")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_focused()
    page.wait_for_function("() => document.querySelector('video').currentTime > 0.2")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_focused()
    tab_to(page, ".segment")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("All by keys.")
    page.keyboard.press("Escape")
    expect(page.locator(".segment").first).to_be_focused()
    page.keyboard.press("Control+s")
    page.locator(".save-status[data-state=saved]").wait_for()
    page.keyboard.press("?")
    help_dialog = page.get_by_role("dialog")
    expect(help_dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(help_dialog).to_have_count(0)
    expect(page.locator(".segment").first).to_be_focused()
    page.keyboard.press("t")
    expect(page).to_have_url(f"{site.url}/#/")
    page.keyboard.press("f")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.go_back()
    page.go_back()
    page.locator(".segment").first.wait_for()
    download = page.get_by_role("main").get_by_role("button", name="Download", exact=True)
    download.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="SRT")).to_be_focused()
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert "All by keys." in saved.value.path().read_text(encoding="utf-8")
    expect(download).to_be_focused()


def test_revisions_come_back_by_keys(page, site, world: World) -> None:  # noqa: F811
    all_screens.open_job(page, world.done)
    opener = page.get_by_role("button", name="Revisions")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    original = dialog.locator("[data-revision='0']")
    original.wait_for()
    tab_to(page, "[data-revision='0']")
    page.keyboard.press("Enter")
    restore = dialog.get_by_role("button", name="Bring back")
    expect(restore).to_be_enabled()
    tab_to(page, "[role=dialog] .primary, dialog .primary")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text("Brought back: Original")
    expect(opener).to_be_focused()
