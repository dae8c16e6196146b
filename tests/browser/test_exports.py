"""What goes out of a job: every format, the clipboard, the recording, and earlier revisions."""

import re

import pytest
from playwright.sync_api import expect

from app.transcript.formats import FORMATS
from tests.browser.conftest import new_tab
from tests.browser.modules import load_modules
from tests.browser.transcript_pages import ONE_WINDOW_S, correct, stored, texts
from tests.e2e.running import wait_for

FORMAT_NAMES = [*FORMATS, "verbose_json"]
LABELS = {"verbose_json": "JSON, detailed", "docx": "Word", "md": "Markdown"}


@pytest.fixture
def job(site, talk, tmp_path):
    """A job that the test may change."""
    path = tmp_path / "talk.flac"
    path.write_bytes(talk.path.with_name("talk_de.flac").read_bytes())
    done = site.finished(site.submit(path, end=ONE_WINDOW_S)["id"])
    yield done
    site.client.delete(f"/v1/jobs/{done['id']}")


@pytest.fixture(scope="module")
def finished(site, talk):
    """A job that no test changes."""
    return site.finished(site.submit(talk.path)["id"])


def open_job(page, job):
    page.goto(f"/#/jobs/{job['id']}")
    page.get_by_role("heading", level=1, name=job["filename"]).wait_for()


def choose(page, menu, *items):
    page.get_by_role("main").get_by_role("button", name=menu, exact=True).first.click()
    for item in items:
        page.get_by_role("menuitem").filter(has=page.get_by_text(item, exact=True)).click()


def revise(site, job, change):
    """Store a revision: `change` edits the list of segments."""
    segments = stored(site, job["id"])
    change(segments)
    correct(site, job["id"], segments)


def set_text(index, text):
    def change(segments):
        segments[index]["text"] = text

    return change


def test_without_keys_the_address_is_what_is_shared(page, site, finished):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_job(page, finished)
    page.get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share this transcript")
    expect(dialog).to_contain_text("This service has no keys")
    address = dialog.get_by_label("Address of this transcript").input_value()
    assert address == f"{site.url}/#/jobs/{finished['id']}"
    dialog.get_by_role("button", name="Copy link").click()
    expect(page.locator(".toast")).to_contain_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == address


def open_revisions(page, job):
    """The dialog with the revisions of a job."""
    open_job(page, job)
    choose(page, "More", "Revisions")
    return page.get_by_role("dialog")


def test_every_format_is_in_the_menu_those_that_most_people_want_first(page, site, finished):
    open_job(page, finished)
    page.get_by_role("button", name="Download", exact=True).click()
    names = page.locator(".menu-text > span")
    usual = ["Word", "SRT", "VTT", "TXT"]
    expect(names).to_have_text([*usual, "More formats …", "Preview and print", "Original recording"])
    page.keyboard.press("Escape")
    for form in FORMAT_NAMES:
        label = LABELS.get(form, form.upper())
        with page.expect_download() as download:
            choose(page, "Download", *([] if label in usual else ["More formats …"]), label)
        extension = "json" if form == "verbose_json" else form
        assert download.value.suggested_filename == f"talk.{extension}"
        content = download.value.path().read_bytes()
        url = f"/v1/jobs/{finished['id']}/result?format={form}"
        if form != "stl":  # it has the date of its making
            assert content == site.client.get(url).content


def test_a_file_is_shown_before_it_is_taken_and_printed(page, site, talk, tmp_path):
    job = site.finished(
        site.submit(talk.path, end=ONE_WINDOW_S, channels="separate", speaker_names="Ann")["id"]
    )
    revise(site, job, lambda segments: [segment.update(speaker="Ann") for segment in segments])
    open_job(page, job)
    choose(page, "Download", "Preview and print")
    dialog = page.get_by_role("dialog", name="Preview and print")
    preview = dialog.locator(".preview-text")
    expect(preview.get_by_role("heading", name="talk")).to_be_visible()
    expect(preview.get_by_text("Ann:").first).to_be_visible()
    dialog.get_by_label("With speakers").uncheck()
    expect(preview.get_by_text("Ann:")).to_have_count(0)

    dialog.get_by_label("Format").select_option("txt")
    dialog.get_by_label("With times").check()
    expect(preview).to_contain_text(re.compile(r"^\[00:00:\d\d\] "))
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").click()
    path = f"/v1/jobs/{job['id']}/result"
    wanted = {"format": "txt", "times": "true", "speakers": "false"}
    assert download.value.path().read_bytes() == site.client.get(path, params=wanted).content

    dialog.get_by_label("Format").select_option("srt")
    expect(preview).to_contain_text("-->")
    dialog.get_by_label("Characters in a line").fill("12")
    narrow = site.client.get(path, params={"format": "srt", "max_line_chars": 12}).text
    expect(preview).to_contain_text(narrow[:100].strip(), use_inner_text=True)
    page.keyboard.press("Escape")

    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    sheet = page.locator(".print-only .sheet")
    expect(sheet.get_by_role("heading", name="talk")).to_be_visible()
    expect(page.locator("#page")).to_be_hidden()
    printed = " ".join(sheet.inner_text().split())
    for segment in stored(site, job["id"]):
        assert " ".join(segment["text"].split()) in printed
    assert "Ann:" not in printed
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("#page")).to_be_visible()


def test_the_recording_comes_as_it_was_sent(page, talk, finished):
    open_job(page, finished)
    with page.expect_download() as download:
        choose(page, "Download", "Original recording")
    assert download.value.suggested_filename == "talk.flac"
    assert download.value.path().read_bytes() == talk.path.read_bytes()


def test_a_format_that_cannot_hold_the_text_says_why(page, site, job):
    revise(site, job, set_text(0, "漢字"))
    page.faults.expect("status of 400")
    open_job(page, job)
    choose(page, "Download", "More formats …", "SCC")
    expect(page.locator(".toast.danger")).to_contain_text("The transcript does not fit this format.")


@pytest.mark.parametrize("is_secure", [True, False])
def test_it_copies(page, site, finished, is_secure):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader = new_tab(page.context)
    reader.goto("/")
    if not is_secure:  # as at http://192.0.2.1
        page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    open_job(page, finished)
    for item, form in (("As text", "txt"), ("As subtitles (SRT)", "srt")):
        reader.bring_to_front()
        reader.evaluate("navigator.clipboard.writeText('')")
        page.bring_to_front()
        choose(page, "Copy", item)
        expect(page.locator(".toast")).to_contain_text("Copied")
        reader.bring_to_front()
        copied = reader.evaluate("navigator.clipboard.readText()")
        assert copied.replace("\r\n", "\n") == site.result(finished["id"], form)
        page.locator(".toast").get_by_role("button", name="Close").click()


def test_revisions_show_what_differs_and_come_back(page, site, job):
    original = texts(site, job["id"])
    revise(site, job, set_text(0, original[0] + " Indeed."))
    revise(site, job, lambda segments: segments.pop(3))
    dialog = open_revisions(page, job)
    expect(dialog.locator("[data-revision] strong")).to_contain_text(["Revision 2", "Revision 1", "Original"])
    expect(dialog.locator("[data-revision='2']")).to_contain_text("Corrected · 1 segment changed")
    rows = dialog.locator(".revisions-text li")
    dialog.locator("[data-revision='2']").click()
    expect(dialog.locator("del")).to_have_text(original[3])
    expect(rows).to_have_count(1)
    expect(dialog.get_by_role("button", name="Bring back")).to_be_disabled()
    dialog.locator("[data-revision='1']").click()
    expect(dialog.locator("ins")).to_have_text(" Indeed.")
    expect(dialog.get_by_text("what this revision added to Original")).to_be_visible()
    expect(rows).to_have_count(1)  # and not what came later
    dialog.get_by_label("Show segments without differences").check()
    expect(rows).to_have_count(len(original))
    dialog.locator("[data-revision='0']").click()
    expect(dialog.locator("ins, del")).to_have_count(0)
    expect(rows).to_have_count(len(original))
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").click()
        page.get_by_role("menuitem", name="TXT").click()
    assert download.value.suggested_filename == "talk.original.txt"
    stored = site.client.get(f"/v1/jobs/{job['id']}/result?format=txt&revision=original").content
    assert download.value.path().read_bytes() == stored
    dialog.get_by_role("button", name="Bring back").click()
    expect(page.locator(".toast")).to_contain_text("Brought back: Original")
    expect(dialog).to_have_count(0)
    assert texts(site, job["id"]) == original
    assert site.job(job["id"])["revision"] == 3


def test_bringing_back_overwrites_nothing_that_came_meanwhile(page, site, job):
    original = texts(site, job["id"])
    revise(site, job, set_text(0, "First correction."))
    dialog = open_revisions(page, job)
    dialog.locator("[data-revision='0']").click()
    expect(dialog.get_by_role("button", name="Bring back")).to_be_enabled()
    revise(site, job, set_text(1, "Meanwhile."))
    page.faults.expect("status of 412")
    dialog.get_by_role("button", name="Bring back").click()
    expect(dialog.get_by_role("alert")).to_contain_text("changed meanwhile")
    assert texts(site, job["id"])[:2] == ["First correction.", "Meanwhile."]
    expect(dialog.locator("[data-revision='2']")).to_be_visible()
    dialog.get_by_role("button", name="Bring back").click()
    expect(dialog).to_have_count(0)
    assert texts(site, job["id"]) == original


def test_revisions_that_do_not_load_say_so(page, site, corrected):
    page.faults.expect("status of 503")
    answer = {"error": {"message": "The database does not answer."}}
    page.route("**/revisions", lambda route: route.fulfill(status=503, json=answer))
    dialog = open_revisions(page, corrected)
    expect(dialog.get_by_role("alert")).to_have_text("The database does not answer.")
    expect(dialog.get_by_text("Loading")).to_have_count(0)


def test_bringing_back_twice_in_a_row_is_once(page, site, job):
    revise(site, job, set_text(0, "First correction."))
    dialog = open_revisions(page, job)
    dialog.locator("[data-revision='0']").click()
    expect(dialog.get_by_role("button", name="Bring back")).to_be_enabled()
    dialog.get_by_role("button", name="Bring back").evaluate("(button) => [button.click(), button.click()]")
    expect(page.locator(".toast")).to_contain_text("Brought back: Original")
    assert site.job(job["id"])["revision"] == 2


def test_a_job_is_deleted_from_its_screen(new_page, site, job):
    page = new_page(site)
    open_job(page, job)
    choose(page, "More", "Delete")
    expect(page.locator(".toast")).to_contain_text("Deleted: talk.flac")
    expect(page.locator(f"[data-job='{job['id']}']")).to_have_count(0)
    wait_for(lambda: site.client.get(f"/v1/jobs/{job['id']}").status_code == 404)


def test_times_that_are_missing_are_named(page, site, finished):
    page.route(
        f"**/v1/jobs/{finished['id']}",
        lambda route: route.fulfill(json={**finished, "failed_spans": [{"start": 61.2, "end": 90.5}]}),
    )
    open_job(page, finished)
    expect(page.locator(".notice.warning").get_by_role("button")).to_have_text(re.compile(r"1:01\s–\s1:30"))


def test_corrections_are_saved_before_they_go_out(page, site, finished):
    load_modules(page)
    page.goto("/")
    deeds = page.evaluate(
        """async (job) => {
            const { downloadResult } = await import("./web/job/exports.js");
            const deeds = [];
            const send = window.fetch;
            window.fetch = (...request) => (deeds.push("download"), send(...request));
            const session = { dirty: { value: true }, save: async () => {
                await new Promise((resolve) => setTimeout(resolve, 50));
                deeds.push("save");
                session.dirty.value = false;
            } };
            await downloadResult(job, "txt", { unsaved: session });
            session.save = async () => false;
            session.dirty.value = true;
            await downloadResult(job, "txt", { unsaved: session });
            return deeds;
        }""",
        finished,
    )
    assert deeds == ["save", "download", "download"]
    expect(page.locator(".toast")).to_contain_text("The file has the saved text")


@pytest.fixture(scope="module")
def corrected(site, talk):
    done = site.finished(site.submit(talk.path.with_name("talk_de.flac"), end=ONE_WINDOW_S)["id"])
    revise(site, done, set_text(0, "Corrected."))
    return done


def test_revisions_give_the_focus_back(page, corrected):
    dialog = open_revisions(page, corrected)
    dialog.locator("[data-revision='1']").click()
    expect(dialog.locator(".revisions-text li")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="More", exact=True)).to_be_focused()
