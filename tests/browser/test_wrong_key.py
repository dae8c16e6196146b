"""A key that the service does not know: the page says so, asks again, and goes on after the right one."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.running import KEY

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def job(locked, talk):
    return locked.finished(locked.submit(talk.path)["id"])


@pytest.fixture(scope="module")
def site(locked):
    return locked


@pytest.fixture
def refused(page: Page) -> Page:
    """A page whose browser keeps a key that the service has withdrawn."""
    page.faults.expect("status of 401")  # type: ignore[attr-defined]
    page.add_init_script(
        "localStorage.getItem('whisperfleet.key') ?? localStorage.setItem('whisperfleet.key', '\"old\"')"
    )
    return page


def answer(page: Page, key: str) -> None:
    page.get_by_label("Key", exact=True).fill(key)
    page.keyboard.press("Enter")


def enter_the_right_key(page: Page) -> None:
    """All that was refused waits for one answer: each wrong one is followed by one more question."""
    dialog = page.get_by_role("dialog")
    for wrong in ("wrong", "also wrong"):
        expect(dialog.get_by_role("alert")).to_contain_text("does not know this key")
        expect(dialog).to_have_count(1)
        expect(page.get_by_label("Key", exact=True)).to_be_focused()
        answer(page, wrong)
    expect(dialog.get_by_role("alert")).to_contain_text("does not know this key")
    answer(page, KEY)
    expect(dialog).to_have_count(0)
    page.wait_for_timeout(500)
    expect(dialog).to_have_count(0)  # it asks no more


def test_the_list(refused, job):
    refused.goto("/")
    enter_the_right_key(refused)
    expect(refused.locator(f"[data-job='{job['id']}']")).to_be_visible()


def test_the_fleet_with_its_events(refused, job):
    refused.goto("/#/fleet")
    enter_the_right_key(refused)
    expect(refused.get_by_text("Live", exact=True)).to_be_visible()
    expect(refused.locator(".lane")).to_have_count(1)


def test_a_transcript_with_its_player(refused, job):
    refused.goto(f"/#/jobs/{job['id']}")
    enter_the_right_key(refused)
    expect(refused.locator(".segment").first).to_be_visible()
    refused.get_by_role("button", name="Play", exact=True).click()
    refused.wait_for_function("() => document.querySelector('video').currentTime > 0.3")
    expect(refused.locator(".waveform canvas")).to_be_visible()
    with refused.expect_download() as download:
        refused.get_by_role("main").get_by_role("button", name="Download", exact=True).click()
        refused.get_by_role("menuitem", name="SRT").click()
    assert "-->" in download.value.path().read_text(encoding="utf-8")


def test_the_events_of_a_running_job(refused, locked, talk):
    running = locked.submit(talk.path)
    refused.goto(f"/#/jobs/{running['id']}")
    enter_the_right_key(refused)
    expect(refused.locator(".segment").first).to_be_visible()
    locked.finished(running["id"])
    expect(refused.get_by_role("button", name="Share", exact=True)).to_be_visible()
    locked.client.delete(f"/v1/jobs/{running['id']}")


def test_an_upload(refused, locked, shorts):
    refused.goto("/#/")
    enter_the_right_key(refused)
    refused.evaluate("localStorage.setItem('whisperfleet.key', '\"old\"')")
    refused.reload()
    refused.get_by_role("dialog").wait_for()
    refused.locator("input[type=file]").first.set_input_files(shorts[0])
    enter_the_right_key(refused)
    row = refused.locator(".job-row", has_text=shorts[0].name)
    expect(row.locator("[data-status=succeeded]")).to_be_visible()
    locked.client.delete(f"/v1/jobs/{row.get_attribute('data-job')}")


def test_no_key_at_all(page, job):
    page.faults.expect("status of 401")
    page.goto("/")
    dialog = page.get_by_role("dialog", name="Access key")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("alert")).to_have_count(0)  # there was none that could be wrong
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("alert")).to_be_visible()  # the list says why it is missing
    page.get_by_role("button", name="Retry").click()
    answer(page, KEY)
    expect(page.locator(f"[data-job='{job['id']}']")).to_be_visible()
    page.reload()
    expect(page.locator(f"[data-job='{job['id']}']")).to_be_visible()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Sign out").click()
    expect(dialog).to_be_visible()
    assert page.evaluate("localStorage.getItem('whisperfleet.key')") in (None, '""')
