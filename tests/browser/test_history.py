"""The list of transcripts: search, states, cancelling, deleting with undo, and archives of a selection."""

import io
import re
import zipfile

import pytest
from playwright.sync_api import expect

from tests.browser.modules import load_modules
from tests.e2e.fixtures import without_jobs
from tests.e2e.running import KEY, wait_for

MOMENT_MS = 7500  # longer than the message of a deletion is shown


def rows(page):
    return page.locator(".job-row")


def row(page, name):
    return rows(page).filter(has_text=name)


def exists(server, job):
    return server.client.get(f"/v1/jobs/{job['id']}").status_code == 200


def add(server, recording, name, folder):
    """A job of a recording under another name, once it has ended."""
    path = folder / name
    path.write_bytes(recording.read_bytes())
    return server.finished(server.submit(path)["id"])


@pytest.fixture(scope="module")
def three(site, shorts, tmp_path_factory):
    """Three jobs that are done, and one that has failed."""
    folder = tmp_path_factory.mktemp("names")
    jobs = [
        add(site, path, f"{name}.flac", folder)
        for path, name in zip(shorts, ["harbour", "garden", "harvest"], strict=False)
    ]
    broken = folder / "broken.txt"
    broken.write_text("no sound at all")
    return [*jobs, site.finished(site.submit(broken)["id"])]


def test_it_shows_jobs_with_their_states_newest_first(page, site, three):
    page.goto("/")
    expect(row(page, "broken.txt").locator("[data-status=failed]")).to_be_visible()
    expect(row(page, "broken.txt")).to_contain_text(
        "The file is no recording. Choose audio or video, such as MP3, WAV or MP4."
    )
    text = site.result(three[1]["id"], "txt").split("\n")[0]
    for fact in (text, "0:0", "English", "kept until"):
        expect(row(page, "garden")).to_contain_text(fact)
    names = rows(page).locator(".job-row-name").all_inner_texts()
    assert [name for name in names if name.startswith("har")] == ["harvest.flac", "harbour.flac"]
    row(page, "garden").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1, name="garden.flac")).to_be_visible()
    assert page.url.endswith(f"/#/jobs/{three[1]['id']}")


COLUMNS = """() => [...document.querySelectorAll(".job-row-facts")].map((facts) =>
  [...facts.children].map((fact) => fact.getBoundingClientRect()).flatMap(({ left, right }, index) =>
    index === 0 ? right : index === 3 ? left : []))"""


def test_lengths_and_days_are_in_columns_of_a_window_that_is_used(page, three):
    page.goto("/")
    expect(row(page, "garden")).to_be_visible()
    for width in (1280, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert len({tuple(ends) for ends in page.evaluate(COLUMNS)[1:]}) == 1  # the first has no length
        assert (
            page.locator(".history-list").evaluate("(list) => list.getBoundingClientRect().right")
            > width - 32
        )


def test_a_search_finds_names_and_texts_and_survives_a_reload(page, site, three):
    page.goto("/")
    expect(row(page, "garden")).to_have_count(1)
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    page.keyboard.type("har")
    expect(rows(page)).to_have_count(2)
    expect(page.get_by_role("status").filter(has_text="2 transcripts found")).to_have_count(1)
    assert page.url.endswith("#/?q=har")
    page.reload()
    expect(field).to_have_value("har")
    expect(rows(page)).to_have_count(2)
    word = site.result(three[1]["id"], "txt").split()[-1].strip(".")
    field.fill(f"garden {word}")
    expect(rows(page)).to_have_count(1)
    field.fill("zzzzzz")
    expect(rows(page)).to_have_count(0)
    page.get_by_role("button", name="Show all").click()
    expect(field).to_have_value("")
    expect(row(page, "garden")).to_have_count(1)


def test_a_filter_by_state_survives_a_reload_and_the_way_back(page, three):
    page.faults.expect("status of 400")  # the sound of a broken file
    page.goto("/")
    page.get_by_label("State").select_option("failed")
    expect(row(page, "broken.txt")).to_have_count(1)
    expect(row(page, "garden")).to_have_count(0)
    page.reload()
    expect(page.get_by_label("State")).to_have_value("failed")
    expect(row(page, "garden")).to_have_count(0)
    row(page, "broken.txt").get_by_role("link").click()
    page.get_by_role("main").get_by_role("link", name="All transcripts").click()
    expect(page.get_by_label("State")).to_have_value("failed")
    expect(row(page, "broken.txt")).to_have_count(1)


def test_a_running_job_shows_its_progress_and_can_be_cancelled(new_page, paced, ten_minutes):
    without_jobs(paced)
    page, job = new_page(paced), paced.submit(ten_minutes)
    page.clock.install()
    page.goto("/")
    shown = rows(page).first
    expect(shown.locator("progress")).to_be_attached()
    expect(shown).to_contain_text(re.compile(r"\d%"))
    expect(shown).to_contain_text("left", timeout=60_000)  # once the first clip is transcribed
    expect(shown).to_contain_text("10:00")
    shown.get_by_role("button", name="Cancel").click()
    expect(page.locator(".toast")).to_contain_text("Cancelled")
    wait_for(lambda: not exists(paced, job))
    page.get_by_role("button", name="Undo").click()
    expect(shown).to_contain_text(re.compile(r"\d%"))
    assert paced.job(job["id"])["status"] in ("queued", "running")


def test_a_deletion_can_be_undone(new_page, site, three):
    page = new_page(site)
    page.clock.install()
    page.goto("/")
    expect(rows(page)).to_have_count(4)
    row(page, "garden").get_by_role("button", name="Delete").dblclick()
    expect(rows(page)).to_have_count(3)  # not the one that has slid below the pointer
    expect(row(page, "garden")).to_have_count(0)
    row(page, "harvest").get_by_role("link").focus()
    page.keyboard.press("Delete")
    expect(rows(page)).to_have_count(2)
    expect(page.locator(".toast")).to_have_count(1)
    expect(page.locator(".toast")).to_contain_text("2")
    page.get_by_role("button", name="Undo").click()
    expect(rows(page)).to_have_count(4)
    row(page, "garden").get_by_role("link").focus()
    page.keyboard.press("Delete")
    expect(row(page, "garden")).to_have_count(0)
    expect(page.locator(":focus")).to_contain_class("job-row-name")  # the focus is not lost with the row
    page.clock.fast_forward(MOMENT_MS)
    expect(page.locator(".toast")).to_have_count(0)
    wait_for(lambda: not exists(site, three[1]))
    page.keyboard.press("Control+z")
    expect(row(page, "garden")).to_have_count(1)
    page.reload()
    expect(row(page, "garden")).to_have_count(1)
    assert exists(site, three[1])


def test_what_was_deleted_is_restored_or_deleted_for_ever(new_page, site, three, shorts, tmp_path):
    page = new_page(site)
    jobs = [add(site, shorts[0], f"left {number}.flac", tmp_path) for number in range(3)]
    page.goto("/#/?q=left")
    expect(rows(page)).to_have_count(3)
    page.get_by_role("checkbox", name="Select all").click()
    page.locator(".history-selection").get_by_role("button", name="Delete").click()
    expect(rows(page)).to_have_count(0)
    wait_for(lambda: not any(exists(site, job) for job in jobs))
    page.get_by_label("State").select_option("Recently deleted")
    expect(page.get_by_role("heading", name="Recently deleted")).to_be_visible()
    expect(rows(page)).to_have_count(3)
    page.reload()
    expect(page.get_by_label("State")).to_have_value("trash")
    expect(row(page, "left 0")).to_contain_text("kept until")
    expect(page.locator(".job-row-name[href]")).to_have_count(0)  # there is nothing to open
    row(page, "left 0").get_by_role("button", name="Restore").click()
    expect(rows(page)).to_have_count(2)
    wait_for(lambda: exists(site, jobs[0]))
    row(page, "left 1").get_by_role("button", name="Delete for ever").click()
    page.locator(".toast").get_by_role("button", name="Delete").click()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("checkbox", name="Select all").click()
    page.locator(".history-selection").get_by_role("button", name="Restore").click()
    expect(page.locator(".history .empty")).to_contain_text("No transcript was deleted recently.")
    page.get_by_role("button", name="Show all").click()
    expect(rows(page)).to_have_count(6)
    expect(row(page, "left 1")).to_have_count(0)
    assert site.client.post(f"/v1/jobs/{jobs[1]['id']}/restore").status_code == 404
    for job in (jobs[0], jobs[2]):
        site.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()


def test_a_deletion_that_the_service_refuses_brings_the_row_back(new_page, site, three):
    page = new_page(site)
    page.faults.expect("status of 503")
    page.route(
        f"**/v1/jobs/{three[1]['id']}/trash",
        lambda route: route.fulfill(status=503, json={"error": {"message": "The disk is on strike."}}),
    )
    page.goto("/")
    row(page, "garden").get_by_role("button", name="Delete").click()
    expect(page.locator(".toast")).to_have_count(1)
    expect(page.locator(".toast")).to_contain_text("on strike")
    expect(row(page, "garden")).to_have_count(1)


def answer_without_trash(route):
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace('"trash": true', '"trash": false'))


def test_without_a_trash_the_page_asks_before_it_deletes(new_page, site, three):
    page = new_page(site)
    page.route("/", answer_without_trash)
    deleted = []
    page.route(
        f"**/v1/jobs/{three[1]['id']}",
        lambda route: route.fulfill(status=204) or deleted.append(route.request.method),
    )
    page.goto("/")
    expect(page.get_by_role("option", name="Recently deleted")).to_have_count(0)
    row(page, "garden").get_by_role("button", name="Delete").click()
    expect(page.locator(".toast")).to_contain_text("Delete 1 transcript for ever?")
    expect(row(page, "garden")).to_have_count(1)
    assert deleted == []
    page.locator(".toast").get_by_role("button", name="Delete").click()
    wait_for(lambda: page.wait_for_timeout(20) or deleted == ["DELETE"])


def test_a_selection_comes_as_a_zip_and_arrows_lead_through_rows_and_menus(page, site, three):
    page.goto("/#/?q=har")
    expect(rows(page)).to_have_count(2)
    boxes = page.locator(".job-row-select input")
    boxes.nth(0).click()
    boxes.nth(1).click(modifiers=["Shift"])
    page.get_by_role("button", name="Download 2 as").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="VTT").click()
    assert download.value.suggested_filename == "transcripts-vtt.zip"
    archive = zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes()))
    assert sorted(archive.namelist()) == ["harbour.vtt", "harvest.vtt"]
    assert archive.read("harbour.vtt").decode() == site.result(three[0]["id"], "vtt")
    follow_arrows(page)


def test_the_list_follows_the_service_and_keeps_focus_and_selection(page, site, shorts, three, tmp_path):
    page.goto("/")
    row(page, "garden").get_by_role("checkbox").click()
    row(page, "harvest").get_by_role("link").focus()
    name = "<img src=x onerror=alert(1)> newcomer.flac"
    job = add(site, shorts[0], name, tmp_path)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as on the way back to the tab
    expect(row(page, "newcomer").locator(".job-row-name")).to_have_text(name)  # whatever it contains
    assert page.locator(".history img").count() == 0
    expect(row(page, "harvest").get_by_role("link")).to_be_focused()
    expect(row(page, "garden").get_by_role("checkbox")).to_be_checked()
    site.client.delete(f"/v1/jobs/{job['id']}")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(row(page, "newcomer")).to_have_count(0)


def test_a_late_answer_does_not_replace_a_later_one(page, three):
    late = []
    page.route("**/v1/jobs?*q=har*", lambda route: late.append(route))
    page.goto("/#/?q=har")
    wait_for(lambda: page.wait_for_timeout(50) or late)
    page.get_by_role("searchbox").fill("garden")
    expect(row(page, "garden")).to_have_count(1)
    late[0].continue_()
    page.wait_for_timeout(500)
    expect(row(page, "har")).to_have_count(0)
    expect(row(page, "garden")).to_have_count(1)


def page_of_sixty(first):
    """An answer of the service that has 60 jobs: those from number `first` on."""
    job = {
        "status": "succeeded",
        "filename": "x",
        "created_at": "2026-01-01T00:00:00Z",
        "duration": 1.0,
        "error": None,
        "progress": {"stage": "done", "done_s": 1},
    }
    numbers = range(first, min(first + 50, 60))
    return {"data": [job | {"id": f"{number:032x}"} for number in numbers], "has_more": first == 0}


def test_an_upload_that_ends_does_not_keep_the_next_page_from_coming(page):
    held = []
    page.route(
        "**/v1/jobs?*",
        lambda route: (
            held.append(route)
            if f"after={49:032x}" in route.request.url
            else route.fulfill(json=page_of_sixty(0))
        ),
    )
    load_modules(page)
    page.goto("/")
    expect(rows(page)).to_have_count(50)
    rows(page).last.scroll_into_view_if_needed()
    wait_for(lambda: page.wait_for_timeout(50) or held)
    page.evaluate("() => void import('/web/list/job_store.js').then(({ refresh }) => refresh())")
    page.wait_for_timeout(200)
    held[0].fulfill(json=page_of_sixty(50))
    expect(rows(page)).to_have_count(60)


def test_the_list_is_where_it_was_after_a_look_at_a_transcript(page, site, three):
    page.set_viewport_size({"width": 800, "height": 300})
    page.goto("/")
    row(page, "harbour").scroll_into_view_if_needed()
    top = page.evaluate("scrollY")
    assert top > 0
    row(page, "harbour").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1, name="harbour.flac")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    page.get_by_role("main").get_by_role("link", name="All transcripts").click()
    expect(row(page, "harbour")).to_be_visible()
    page.wait_for_function("(top) => scrollY === top", arg=top)


def follow_arrows(page):
    rows(page).first.get_by_role("link").focus()
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(1).get_by_role("link")).to_be_focused()
    button = rows(page).nth(1).get_by_role("button", name="Download")
    button.focus()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem").last).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Word")).to_be_focused()
    page.keyboard.press("t")
    expect(page.get_by_role("menuitem", name="TXT")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    expect(page.get_by_role("menu")).to_have_count(0)
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "harbour.srt"


def test_archives_and_recordings_come_where_keys_are_on(new_page, locked, shorts, tmp_path):
    job = add(locked, shorts[0], "secret.flac", tmp_path)
    page = new_page(locked)
    page.add_init_script(f"localStorage.setItem('whisperfleet.key', JSON.stringify('{KEY}'))")
    page.goto("/")
    page.get_by_role("checkbox", name="Select all").click()
    page.get_by_role("button", name="Download 1 as").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="SRT").click()
    archive = zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes()))
    assert archive.read("secret.srt").decode() == locked.result(job["id"])
    row(page, "secret").get_by_role("button", name="Download").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Original recording").click()
    assert download.value.suggested_filename == "secret.flac"
    assert download.value.path().read_bytes() == shorts[0].read_bytes()


def test_the_key_is_asked_for_once(new_page, locked):
    page = new_page(locked)
    page.faults.expect("status of 401")
    page.clock.install()
    page.goto("/")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("access key")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.clock.fast_forward(60_000)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_role("link", name="whisperfleet").click()
    assert [url for url in requests if "/v1/jobs" in url] == []
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Retry").click()
    page.get_by_label("Key", exact=True).fill(KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
