"""Many recordings: where a word was said, what it was called, and which belong together."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Axe
from tests.browser.transcript_pages import stored, with_lines
from tests.e2e.running import Server, wait_for

LINES = [f"Line {number} of the meeting." for number in range(60)]


def press(target: Locator, key: str = "Enter") -> None:
    target.focus()
    target.page.keyboard.press(key)


@pytest.fixture(scope="module")
def jobs(site: Server, shorts: list[Path]) -> list[str]:
    spoken = [*LINES[:40], "Then the Überblick of the budget came.", *LINES[40:]]
    wanted = with_lines(site, shorts[0], spoken, seconds=0.02)
    return [wanted, with_lines(site, shorts[1], ["Nothing of the kind."])]


def test_a_sentence_is_found_opened_named_and_tagged_by_keyboard(
    page: Page, site: Server, jobs: list[str], shorts: list[Path], axe: Axe
) -> None:
    wanted, other = jobs
    page.goto("/")
    expect(page.locator(".job-row")).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("uberblick budg")
    expect(page.locator(".job-row")).to_have_count(1)
    sentence = page.get_by_role("list", name="Sentences found").get_by_role("link")
    expect(sentence.locator("mark")).to_have_text(["Überblick", "budg"])
    assert axe(page) == []
    press(sentence)
    expect(page.locator(".segment:focus")).to_contain_text("Überblick of the budget")
    assert page.evaluate("getSelection().toString()") == "Überblick"  # and not only the place that would play
    (segment,) = (each["id"] for each in stored(site, wanted) if "budget" in each["text"])
    assert page.url.endswith(f"/#/jobs/{wanted}?at={segment}")
    page.wait_for_function("() => Math.abs(document.querySelector('audio, video')?.currentTime - 0.8) < 0.05")
    page.keyboard.press("Space")
    page.wait_for_function("() => !document.querySelector('audio, video').paused")
    page.keyboard.press("Space")

    press(page.get_by_role("button", name="Title, tags and notes"))
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert axe(page) == []
    expect(dialog.get_by_label("Title")).to_be_focused()
    dialog.get_by_label("Tags").fill("team, 2026")
    dialog.get_by_label("Notes").fill("With the new\nfigures")
    dialog.get_by_label("Title").fill("Weekly <b>meeting</b>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Weekly <b>meeting</b>")).to_be_visible()
    expect(page).to_have_title("Weekly <b>meeting</b> – whisperfleet")
    expect(page.locator(".job-notes")).to_have_text("With the new\nfigures", use_inner_text=True)
    job = site.client.get(f"/v1/jobs/{wanted}").json()
    assert (job["title"], job["notes"], job["tags"]) == (
        "Weekly <b>meeting</b>",
        "With the new\nfigures",
        ["team", "2026"],
    )
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
        page.get_by_role("menuitem", name="SRT").click()
    assert download.value.suggested_filename.startswith("Weekly ")

    press(page.get_by_role("link", name="team"))
    expect(page.locator(".job-row-name")).to_have_text(["Weekly <b>meeting</b>"])
    expect(page).to_have_title("whisperfleet")
    press(page.get_by_role("button", name="Show transcripts with any tag"))
    expect(page.locator(".job-row")).to_have_count(2)
    page.reload()
    expect(page.locator(f".job-row[data-job='{other}']")).to_be_visible()

    page.goto(f"/#/jobs/{wanted}")
    press(page.get_by_role("button", name="Title, tags and notes"))
    dialog.get_by_label("Tags").fill("2026")
    dialog.get_by_label("Title").fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=shorts[0].name)).to_be_visible()
    expect(page.get_by_role("list", name="Tags").get_by_role("link")).to_have_text(["2026"])


def test_a_tag_is_given_to_a_selection_taken_off_and_undone(
    page: Page, site: Server, jobs: list[str], axe: Axe
) -> None:
    for job, names in zip(jobs, (["team", "old"], []), strict=True):
        site.client.patch(f"/v1/jobs/{job}", json={"tags": names}).raise_for_status()

    def tags() -> list[list[str]]:
        return [site.job(job)["tags"] for job in jobs]

    def choose(name: str) -> None:
        press(page.get_by_role("button", name="Tags of 2 recordings"))
        press(page.get_by_role("menu").get_by_text(name, exact=True).locator("xpath=ancestor::button"))

    toast = page.locator(".toast").last
    page.goto("/")
    press(page.get_by_role("checkbox", name="Select all"), "Space")
    choose("team")
    expect(toast).to_contain_text("Tag “team” added: 1")
    assert tags() == [["team", "old"], ["team"]]
    press(toast.get_by_role("button", name="Undo"))
    wait_for(lambda: tags() == [["team", "old"], []])

    press(page.get_by_role("button", name="Tags of 2 recordings"))
    assert axe(page) == []
    page.keyboard.press("Escape")
    choose("New tag")
    page.keyboard.type("2026")
    page.keyboard.press("Enter")
    expect(toast).to_contain_text("Tag “2026” added: 2")
    expect(page.locator(".job-row").get_by_role("link", name="2026")).to_have_count(2)
    choose("2026")
    expect(toast).to_contain_text("Tag “2026” removed: 2")
    assert tags() == [["team", "old"], []]
    press(toast.get_by_role("button", name="Undo"))
    wait_for(lambda: tags() == [["team", "old", "2026"], ["2026"]])
