"""The way of one recording: from the drop to the subtitles that are taken away."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_intake import drop

pytestmark = pytest.mark.timeout(150)


def test_a_first_visit_says_what_is_possible_and_has_a_sample(page, site):
    page.goto("/")
    expect(page.get_by_role("list", name="What is possible")).to_contain_text("Click a word to hear it.")
    page.get_by_role("button", name="Try a sample").click()
    expect(page.get_by_role("heading", level=1, name="Sample talk.ogg")).to_be_visible()
    expect(page.locator(".segment").first).to_contain_text("The good bridge remains small")
    page.get_by_role("main").get_by_role("link", name="All transcripts").click()
    expect(page.locator(".job-row")).to_contain_text("The good bridge remains small")
    expect(page.get_by_role("list", name="What is possible")).to_have_count(0)


def test_from_drop_to_download(page, site, talk, shorts, tmp_path):
    recordings = [
        tmp_path / name for name in ("lecture.flac", *(f"note {number}.flac" for number in range(4)))
    ]
    for recording, source in zip(recordings, [talk.path, *shorts], strict=True):
        recording.write_bytes(source.read_bytes())
    page.goto("/")
    expect(page.get_by_role("button", name="Choose files")).to_be_visible()
    drop(page, *recordings)  # five at once, and no click for options
    for recording in recordings:
        row = page.locator(".job-row", has_text=recording.name)
        expect(row.locator("[data-status=succeeded]")).to_be_visible(timeout=60_000)
    expect(page.locator(".uploads")).to_have_count(0)
    page.get_by_role("link", name="lecture.flac").click()
    segments = page.locator(".segment")
    first = segments.first.locator("span.segment-text")
    before = first.inner_text()
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".segment[data-playing]")).to_have_count(1)
    page.get_by_role("button", name="Pause", exact=True).click()
    segments.first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("Zwölf Boxkämpfer & <i>friends</i>.")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+s")
    page.locator(".save-status[data-state=saved]").wait_for()
    page.reload()
    expect(first).to_have_text("Zwölf Boxkämpfer & <i>friends</i>.")
    job = re.search(r"#/jobs/(\w+)$", page.url)
    assert job
    for name in ("SRT", "VTT"):
        with page.expect_download() as download:
            page.get_by_role("main").get_by_role("button", name="Download", exact=True).click()
            page.get_by_role("menuitem", name=name).click()
        assert download.value.suggested_filename == f"lecture.{name.lower()}"
        text = download.value.path().read_text(encoding="utf-8")
        assert "Zwölf Boxkämpfer" in " ".join(text.split())
        assert before.split()[0] not in text.split("-->")[1].split("\n")[1]
        assert text == site.result(job[1], name.lower())


def test_a_broken_file_says_why_and_stands_in_nobodys_way(page, site, shorts, tmp_path):
    page.faults.expect("status of 400")  # the sound of a broken file
    broken = tmp_path / "broken.mp3"
    broken.write_bytes(b"no sound at all " * 1000)
    page.goto("/")
    drop(page, broken, shorts[1])
    row = page.locator(".job-row", has_text="broken.mp3")
    expect(row.locator("[data-status=failed]")).to_be_visible()
    reason = "The file is no recording. Choose audio or video"
    expect(row).to_contain_text(reason)
    other = page.locator(".job-row", has_text=shorts[1].name).first
    expect(other.locator("[data-status=succeeded]")).to_be_visible()
    row.get_by_role("link").click()
    expect(page.get_by_role("alert")).to_contain_text(reason)
    expect(page.get_by_role("button", name="Download", exact=True)).to_have_count(0)
