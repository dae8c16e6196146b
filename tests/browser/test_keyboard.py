"""Everything without a mouse, from choosing a file to its subtitles."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.timeout(120)

MOST_CONTROLS = 150


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
    tab_to(page, ".options > details > summary")
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
    page.keyboard.press("ArrowDown")  # over the preview
    expect(page.get_by_role("menuitem", name="SRT")).to_be_focused()
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert "All by keys." in saved.value.path().read_text(encoding="utf-8")
    expect(download).to_be_focused()
