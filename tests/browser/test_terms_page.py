"""Names and terms on the page: the list, what it replaced, and "always"."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Axe
from tests.browser.transcript_pages import open_job, save, stored, texts
from tests.e2e.running import Server, wait_for


@pytest.fixture
def listless(site: Server) -> Iterator[Server]:
    """The service, which has no list before and after the test."""
    site.client.put("/v1/terms", json={"data": []}).raise_for_status()
    yield site
    site.client.put("/v1/terms", json={"data": []}).raise_for_status()


def test_a_term_is_listed_replaced_undone_and_offered(
    page: Page, listless: Server, shorts: list[Path], axe: Axe
) -> None:
    site = listless
    page.faults.expect("status of 400")  # type: ignore[attr-defined]
    plain = site.finished(site.submit(shorts[0])["id"])["excerpt"]
    word = str(re.findall(r"\b[a-z]{4,}\b", plain)[-1])
    page.goto("/")
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Names and terms").click()
    field = dialog.get_by_role("textbox", name="Names and terms")
    assert axe(page) == []
    field.fill(f"{word} Lovelace")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("status")).to_contain_text("This line has no arrow")
    field.fill(f"{word}; no such thing → Ada Lovelace\nKähse → Käse [de]")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("status")).to_contain_text("From now on")
    dialog.get_by_role("button", name="Close").click()
    assert site.client.get("/v1/terms").json()["data"] == [
        {"write": "Ada Lovelace", "for": [word, "no such thing"], "language": None},
        {"write": "Käse", "for": ["Kähse"], "language": "de"},
    ]

    job = site.finished(site.submit(shorts[0])["id"])
    assert "Ada Lovelace" in job["excerpt"]
    open_job(page, job["id"])
    replaced = page.locator(f".segment-text > [title='Instead of “{word}”']")
    expect(replaced).to_have_text(["Ada", re.compile("Lovelace")])
    row = page.locator(".segment", has=replaced.first)
    row.hover()
    row.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name=f"Write “{word}” again").click()
    expect(replaced).to_have_count(0)
    save(page)
    assert " ".join(texts(site, job["id"])) == plain
    assert not any("terms" in segment for segment in stored(site, job["id"]))

    row = page.locator(".segment", has_text=word)
    row.dblclick(position={"x": 300, "y": 18})
    field = page.locator("textarea.segment-text")
    field.fill(field.input_value().replace(word, "Babbage"))
    page.keyboard.press("Escape")
    offer = page.locator(".toast", has_text=f"Write “Babbage” instead of “{word}”")
    offer.get_by_role("button", name="Always").click()
    # The list says otherwise already, and that is said.
    expect(page.locator(".toast.danger")).to_contain_text("stands for both")
    site.client.put("/v1/terms", json={"data": []}).raise_for_status()
    row = page.locator(".segment", has_text="Babbage")
    row.dblclick(position={"x": 300, "y": 18})
    field.fill(field.input_value().replace("Babbage", "Charles B."))
    page.keyboard.press("Escape")
    page.locator(".toast", has_text="instead of “Babbage”").get_by_role("button", name="Always").click()
    wait_for(lambda: site.client.get("/v1/terms").json()["data"])
    assert site.client.get("/v1/terms").json()["data"] == [
        {"write": "Charles B", "for": ["Babbage"], "language": None}
    ]
