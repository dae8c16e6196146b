"""The page transcribes again: selected segments, all of it, and on top of corrections that came meanwhile."""

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.transcript_pages import correct, open_job, stored, texts
from tests.e2e.fixtures import write_wav
from tests.e2e.saboteur.sitecustomize import FAILING
from tests.e2e.test_faults import with_pattern
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(120)


def notice(page):
    return page.locator(".again-notice")


def test_selected_segments_are_transcribed_again(page, site, talk, axe):
    job = site.finished(site.submit(talk.path)["id"])["id"]
    segments = stored(site, job)
    segments[1] |= {"text": "Mangled."}
    segments[2] |= {"text": "Kept as it is."}
    correct(site, job, segments)
    rows = open_job(page, job)
    rows.nth(1).focus()
    page.keyboard.press("Shift+ArrowDown")
    tool = page.get_by_role("button", name="Transcribe these again …")
    tool.press("Enter")
    dialog = page.get_by_role("dialog", name="Transcribe again")
    expect(dialog).to_contain_text("All else stays as it is.")
    keep = dialog.get_by_role("checkbox", name="Keep what was corrected")
    expect(keep).to_be_checked()
    dialog.get_by_label("Language spoken").select_option("de")
    expect(dialog.get_by_role("checkbox")).to_be_disabled()
    assert axe(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    tool.press("Enter")
    keep.press("Space")
    dialog.get_by_role("button", name="Transcribe", exact=True).press("Enter")
    expect(page.get_by_role("status").get_by_text("Transcribed again.", exact=True)).to_have_count(1)
    expect(page.locator(".segment", has_text="Mangled.")).to_have_count(0)
    transcribed = texts(site, job)
    assert not {"Mangled.", "Kept as it is."} & set(transcribed)
    assert transcribed[0] == segments[0]["text"]
    assert transcribed[-1] == segments[-1]["text"]
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Revisions").click()
    expect(page.get_by_role("dialog").get_by_text("Revision 2")).to_be_visible()


def test_a_correction_meanwhile_counts_and_the_page_offers_to_begin_from_it(new_page, paced, three_minutes):
    job = paced.finished(paced.submit(three_minutes)["id"])["id"]
    page = new_page(paced)
    rows = open_job(page, job)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Transcribe again …").click()
    dialog = page.get_by_role("dialog", name="Transcribe again")
    dialog.get_by_label("Example of style").fill("Two sentences. Like these.")
    dialog.get_by_label("Names and terms").fill("Reykjavík, Kubernetes")
    dialog.get_by_role("button", name="Transcribe", exact=True).click()
    expect(notice(page)).to_contain_text("It is being transcribed again.")
    expect(rows.first).to_be_visible()
    segments = stored(paced, job)
    segments[0] |= {"text": "Corrected meanwhile."}
    correct(paced, job, segments)
    on_top = notice(page).get_by_role("button", name="Transcribe again on top of the corrections")
    expect(on_top).to_be_visible()
    on_top.click()
    expect(notice(page)).to_contain_text("It is being transcribed again.")
    page.reload()
    expect(notice(page)).to_contain_text("It is being transcribed again.")
    expect(page.get_by_role("status").get_by_text("Transcribed again.", exact=True)).to_have_count(1)
    expect(notice(page)).to_have_count(0)
    assert texts(paced, job)[0] == "Corrected meanwhile."
    [child, *_] = paced.client.get(f"/v1/jobs?parent={job}").json()["data"]
    assert (child["status"], child["options"]["prompt"]) == ("succeeded", "Two sentences. Like these.")
    assert child["options"]["hotwords"] == "Reykjavík, Kubernetes"
    page.goto(f"/#/jobs/{job}")


def test_a_job_that_failed_runs_again(new_page, commands, sabotage, talk_pcm, tmp_path, axe):
    sabotage.plan(failing=True)
    server = commands.ready(WHISPER_GPUS="0", **sabotage.settings)
    recording = write_wav(tmp_path, with_pattern(np.resize(talk_pcm, 60 * RATE), 20, FAILING))
    job = server.finished(server.submit(recording)["id"])
    assert job["status"] == "failed"
    page = new_page(server)
    rows = open_job(page, job["id"])
    expect(page.get_by_role("alert")).to_contain_text("This recording could not be transcribed.")
    expect(page.locator(".segment-failed")).to_have_count(1)
    before = rows.count()
    assert axe(page) == []
    sabotage.plan()
    page.get_by_role("button", name="Transcribe again", exact=True).click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".segment-failed")).to_have_count(0)
    expect(page.get_by_role("button", name="Share", exact=True)).to_be_visible()
    assert server.job(job["id"])["status"] == "succeeded"
    assert rows.count() > before
