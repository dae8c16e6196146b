"""Corrections reach the service, and none is lost on the way."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import NewPage, new_tab
from tests.browser.modules import load_entry
from tests.browser.transcript_pages import correct, stored, texts
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(120)

SEGMENTS = re.compile("/segments$")
LATER_MS = 61_000  # all pauses of the page are shorter

SLOW = SIMULATED | {
    "WHISPER_GPUS": "a",
    "WHISPER_SIMULATED": "fixed_ms=1500,batch=1",
}

# The page's own session of a job, with the state of saving in view: all that these tests need of the page.
ENTRY = """
import { Announcer } from "../core/announcer.js";
import { loadTexts } from "../core/text.js";
import { Toasts } from "../core/toasts.js";
import * as drafts from "../job/drafts.js";
import * as edits from "../job/edits.js";
import { LostCorrections, SaveStatus } from "../job/saving_status.js";
import { openSession } from "../job/session.js";
import { deleteForEver, removeJobs } from "../list/deletions.js";
import { KeyDialog } from "../shell/key_dialog.js";
import { html, render } from "../vendor/ui.js";

await loadTexts();
Object.assign(window, { drafts, edits, deleteForEver, removeJobs, open(id) {
    window.session = openSession(id);
    render(
        html`<main><${SaveStatus} session=${session} /><${LostCorrections} session=${session} /></main>
            <${KeyDialog} /><${Toasts} /><${Announcer} />`,
        document.getElementById("page"),
    );
} });
"""


class Session:
    """A session on a page."""

    def __init__(self, page: Page, job_id: str) -> None:
        self.page = page
        self._job_id = job_id
        load_entry(page, ENTRY)
        self.open()

    def open(self) -> None:
        self.page.goto("/")
        self.page.wait_for_function("() => window.drafts")
        self.page.evaluate("(id) => open(id)", self._job_id)
        self.page.wait_for_function("() => session.job.value || session.error.value")

    def wait(self, condition: str) -> None:
        """`condition`: of JavaScript, about `session`."""
        self.page.wait_for_function(f"() => {condition}", timeout=60_000)

    def wait_until_complete(self) -> None:
        self.wait("session.complete.value")

    def run(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {expression}")

    def edit(self, name: str, change: str) -> None:
        """`change`: an expression of JavaScript about `edits` and the `list` of segments."""
        assert self.run(f"session.edit('{name}', (list) => {change})")

    def set_text(self, index: int, text: str) -> None:
        self.edit("text", f"edits.setText(list, list[{index}].id, {text!r})")

    def texts(self) -> list[str]:
        found: list[str] = self.run("session.segments.value.map((segment) => segment.text)")
        return found

    def state(self) -> str:
        return str(self.run("session.saveState.value"))

    def save(self) -> bool:
        return bool(self.run("session.save()"))

    def refuse_once(self, status: int, message: str, code: str | None = None) -> None:
        """Answer the next save with this error."""
        self.page.faults.expect(f"status of {status}")  # type: ignore[attr-defined]
        error = {"error": {"message": message, "code": code}}
        self.page.route(SEGMENTS, lambda route: route.fulfill(status=status, json=error), times=1)

    def download(self, button: str) -> str:
        """The text of the file that a button gives."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name=button).first.click()
        return download.value.path().read_text(encoding="utf-8")

    def drafts(self) -> list[dict[str, Any]]:
        """What the browser keeps of the job."""
        found: list[dict[str, Any]] = self.run(f"drafts.readDrafts('{self._job_id}', async () => false)")
        return found

    def wait_for_draft(self) -> None:
        wait_for(lambda: self.drafts())

    def wait_for_no_draft(self) -> None:
        wait_for(lambda: not self.drafts())


def new_job(server: Server) -> str:
    """A job that is done, with some segments."""
    job: str = server.submit(DATA / "talk.flac")["id"]
    assert server.finished(job)["status"] == "succeeded"
    return job


def revision(server: Server, job_id: str) -> int:
    return int(server.job(job_id)["revision"])


@pytest.fixture(scope="module")
def shared_job(site: Server) -> str:
    return new_job(site)


@pytest.fixture
def job(site: Server, shared_job: str) -> str:
    """A job without corrections."""
    original = {"revision": "original"}
    address = f"/v1/jobs/{shared_job}/segments"
    site.client.put(address, headers={"If-Match": "*"}, json=original).raise_for_status()
    return shared_job


@pytest.fixture
def session(page: Page, job: str) -> Session:
    opened = Session(page, job)
    opened.wait_until_complete()
    return opened


def test_a_correction_is_in_the_page_and_in_the_files(
    session: Session, new_page: NewPage, site: Server, job: str
) -> None:
    page = new_page(site)
    before = stored(site, job)
    session.set_text(0, "The marvellous correction.")
    assert session.state() == "unsaved"
    assert session.save()
    assert session.state() == "saved"
    wait_for(lambda: session.run("session.job.value.revision") == revision(site, job))
    assert session.run("session.job.value.expires_at") is None
    page.goto(f"/#/jobs/{job}")
    expect(page.get_by_text("The marvellous correction.").first).to_be_visible()
    expect(page.locator(".job-facts")).to_contain_text("recording kept until")
    for form in ("srt", "vtt"):
        assert "marvellous" in site.result(job, form)
    assert [one["text"] for one in stored(site, job)[1:]] == [one["text"] for one in before[1:]]


def test_the_words_of_a_saved_text_get_times(session: Session) -> None:
    session.set_text(0, "Entirely other words.")
    session.wait("session.saveState.value === 'saved'")  # by itself, some seconds later
    words = session.run("session.segments.value[0].words.map(({ word, start, end }) => [word, start <= end])")
    assert words == [["Entirely", True], ["other", True], ["words.", True]]


def test_tabs_that_change_different_segments_are_merged(session: Session, site: Server, job: str) -> None:
    other = Session(new_tab(session.page.context), job)
    other.wait_until_complete()
    before = session.texts()
    session.page.faults.expect("412")  # type: ignore[attr-defined]
    session.set_text(0, "of the first tab")
    assert session.save()
    other.set_text(1, "of the second tab")
    assert other.save()
    assert other.texts()[:2] == ["of the first tab", "of the second tab"]
    assert texts(site, job) == other.texts()
    expect(other.page.locator(".toast")).to_contain_text("Others have corrected this text")
    session.run("session.reload()")
    assert session.texts() == other.texts()
    assert other.run("session.undo().name") == "text"
    assert other.texts() == ["of the first tab", *before[1:]]
    assert other.run("session.undo()") is None


@pytest.fixture
def conflict(session: Session, job: str) -> Session:
    """The second of two tabs that have changed the same segments."""
    other = Session(new_tab(session.page.context), job)
    other.wait_until_complete()
    session.page.faults.expect("412")  # type: ignore[attr-defined]
    for index in (0, 2):
        session.set_text(index, f"theirs {index}")
    assert session.save()
    for index in (0, 2):
        other.set_text(index, f"mine {index}")
    other.set_text(1, "only mine")
    assert not other.save()
    return other


def test_a_conflict_shows_both_sides_and_lets_choose(conflict: Session, site: Server, job: str) -> None:
    dialog = conflict.page.get_by_role("dialog", name="Two versions")
    places = dialog.get_by_role("group")
    expect(places).to_have_count(2)
    expect(places.first).to_contain_text("mine 0")
    expect(places.first).to_contain_text("theirs 0")
    save = dialog.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    # By keyboard alone.
    places.first.get_by_role("radio", name="Keep mine").focus()
    conflict.page.keyboard.press("Space")
    places.last.get_by_role("radio", name="Keep mine").focus()
    conflict.page.keyboard.press("ArrowDown")
    expect(places.last.get_by_role("radio", name="Take theirs")).to_be_checked()
    save.focus()
    conflict.page.keyboard.press("Enter")
    conflict.wait("session.saveState.value === 'saved'")
    expect(dialog).to_have_count(0)
    assert texts(site, job)[:3] == ["mine 0", "only mine", "theirs 2"]


def test_all_of_theirs_and_a_copy_of_mine(conflict: Session, site: Server, job: str) -> None:
    dialog = conflict.page.get_by_role("dialog", name="Two versions")
    copy = conflict.download("Keep mine as a copy")
    assert "mine 0" in copy
    assert "theirs" not in copy
    dialog.get_by_role("button", name="Take all of theirs").click()
    dialog.get_by_role("button", name="Save").click()
    conflict.wait("session.saveState.value === 'saved'")
    assert texts(site, job)[:3] == ["theirs 0", "only mine", "theirs 2"]


def test_a_conflict_can_wait(conflict: Session) -> None:
    dialog = conflict.page.get_by_role("dialog", name="Two versions")
    dialog.wait_for()
    conflict.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert conflict.texts()[:1] == ["mine 0"]
    conflict.page.get_by_role("button", name="Choose").click()
    dialog.wait_for()


# Routes of Playwright end with the page, and a closed page still sends what it has.
WITHOUT_SAVING = """() => {
    const real = window.fetch;
    window.fetch = (url, options) =>
        options?.method === "PUT" ? Promise.reject(new TypeError("cut")) : real(url, options);
}"""


def close_with_unsaved_work(session: Session) -> Page:
    """Returns another page of the same browser."""
    session.page.evaluate(WITHOUT_SAVING)
    session.set_text(0, "unsaved work")
    session.edit("remove", "edits.remove(list, new Set([list[2].id]))")
    session.wait_for_draft()
    page = new_tab(session.page.context)
    session.page.close()
    return page


def test_work_of_a_closed_tab_comes_back(session: Session, site: Server, job: str) -> None:
    count = len(session.texts())
    again = Session(close_with_unsaved_work(session), job)
    again.wait("session.dirty.value")
    expect(again.page.get_by_text("Unsaved corrections are back").first).to_be_attached()
    assert (again.texts()[0], len(again.texts())) == ("unsaved work", count - 1)
    assert again.run("session.segments.value[1].words.length > 0")
    assert again.save()
    assert texts(site, job) == again.texts()
    again.wait_for_no_draft()
    again.open()
    again.wait_until_complete()
    assert not again.run("session.dirty.value")


def test_a_hidden_page_saves(session: Session, site: Server, job: str) -> None:
    session.set_text(0, "saved by leaving")
    session.run("""(() => {
        Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    })()""")
    wait_for(lambda: texts(site, job)[0] == "saved by leaving" and session.run("1"))


def test_a_refused_segment_is_named(session: Session) -> None:
    session.page.faults.expect("status of 400")  # type: ignore[attr-defined]
    session.edit("times", "list.with(1, { ...list[1], end: 9e6 })")
    assert not session.save()
    assert session.state() == "refused"
    assert session.run("session.refusal.value.id === session.segments.value[1].id")
    session.run("session.undo()")
    assert session.state() == "saved"


def test_a_deleted_job_says_so(page: Page, site: Server) -> None:
    job = new_job(site)
    session = Session(page, job)
    session.wait_until_complete()
    session.page.faults.expect("status of 404")  # type: ignore[attr-defined]
    session.set_text(0, "too late")
    site.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert not session.save()
    assert session.run("session.error.value.status") == 404
    assert "too late" in session.download("Download my version")


def test_corrections_of_a_running_job_survive_a_reload_and_a_restart(
    commands: Commands, new_page: NewPage, three_minutes: Path
) -> None:
    server = commands.ready(**SLOW)
    job = server.submit(three_minutes, language="en")["id"]
    page = new_page(server)
    page.clock.install()
    page.faults.expect("ERR_|status of 50[34]")  # type: ignore[attr-defined]
    session = Session(page, job)
    session.wait("session.segments.value.length > 1 && !session.complete.value")
    session.set_text(0, "Corrected while it runs.")
    assert not session.save()
    session.wait_for_draft()
    session.open()  # a reload in mid-job
    session.wait("session.segments.value[0]?.text === 'Corrected while it runs.'")
    assert not session.run("session.complete.value")
    server.kill(server.pid)
    assert not server.end()
    session.set_text(1, "Corrected while it is away.")
    session.wait("!session.connected.value")
    quick = SLOW | {"WHISPER_SIMULATED": "fixed_ms=1"}
    again = commands.serve(folder=server.folder, port=server.port, **quick).wait_until_up()

    def saved() -> bool:
        page.clock.fast_forward(LATER_MS)  # the page waits before it connects again
        return bool(session.run("session.complete.value && session.saveState.value === 'saved'"))

    wait_for(saved, pause_s=0.5)
    assert texts(again, job) == session.texts()
    assert session.texts()[:2] == ["Corrected while it runs.", "Corrected while it is away."]
    assert revision(again, job) == 1  # nothing was saved before its end


def leave(session: Session) -> Page:
    """Close the tab at once. Returns another page of the same browser."""
    page = new_tab(session.page.context)
    session.page.close()
    return page


def test_a_choice_that_waits_is_asked_for_again_by_the_next_tab(
    conflict: Session, site: Server, job: str
) -> None:
    before = stored(site, job)
    conflict.page.get_by_role("dialog").wait_for()
    conflict.page.keyboard.press("Escape")
    edited = "edited while the choice waits"
    conflict.set_text(3, edited)
    wait_for(
        lambda: any((c["after"] or {}).get("text") == edited for d in conflict.drafts() for c in d["changes"])
    )
    again = Session(leave(conflict), job)
    again.wait("session.dirty.value")
    assert again.state() == "conflict"
    parts = again.run("session.conflict.value.parts.map((part) => [part.mine[0].text, part.theirs[0].text])")
    assert parts == [["mine 0", "theirs 0"], ["mine 2", "theirs 2"]]
    assert again.texts()[:4] == ["mine 0", "only mine", "mine 2", edited]
    assert not again.save()
    assert stored(site, job) == before


def test_work_of_a_closed_tab_outlives_its_job(page: Page, site: Server) -> None:
    job = new_job(site)
    session = Session(page, job)
    session.wait_until_complete()
    other = close_with_unsaved_work(session)
    site.client.delete(f"/v1/jobs/{job}").raise_for_status()
    page.faults.expect("status of 404")  # type: ignore[attr-defined]
    again = Session(other, job)
    assert again.run("session.error.value.status") == 404
    assert "unsaved work" in again.download("Download my version")
    again.wait_for_no_draft()


def test_what_was_saved_by_leaving_is_no_unsaved_work_later(session: Session, site: Server, job: str) -> None:
    session.set_text(0, "saved by leaving")
    session.wait_for_draft()
    session.run("session.close()")
    session.wait_for_no_draft()
    segments = stored(site, job)
    assert segments[0]["text"] == "saved by leaving"
    segments[0]["text"] = "corrected by someone else"
    correct(site, job, segments)
    session.open()
    session.wait_until_complete()
    assert (session.state(), session.texts()[0]) == ("saved", "corrected by someone else")


NO_DRAFTS = """() => {
    IDBObjectStore.prototype.put = () => { throw new DOMException("no space", "QuotaExceededError"); };
}"""
LEAVE = "(() => { const e = new Event('beforeunload', { cancelable: true }); return !dispatchEvent(e); })()"


def test_a_browser_that_keeps_no_drafts_warns(session: Session) -> None:
    session.page.evaluate(NO_DRAFTS)
    assert not session.run(LEAVE)
    session.set_text(0, "kept nowhere")
    expect(session.page.locator(".save-status")).to_contain_text("only this tab has it")
    assert session.run(LEAVE)
    assert session.save()
    assert not session.run(LEAVE)


def test_a_draft_stays_until_another_one_has_its_content(session: Session, job: str) -> None:
    again = Session(close_with_unsaved_work(session), job)
    again.wait("session.dirty.value")
    again.page.evaluate(WITHOUT_SAVING)
    again.wait_for_draft()
    full = new_tab(again.page.context)
    full.add_init_script(f"({NO_DRAFTS})()")
    again.page.close()
    unable = Session(full, job)
    unable.wait("session.dirty.value")
    unable.page.evaluate(WITHOUT_SAVING)
    unable.page.get_by_text("Unsaved corrections are back").first.wait_for()
    last = Session(leave(unable), job)
    last.wait("session.dirty.value")
    assert last.texts()[0] == "unsaved work"


def test_corrections_without_a_place_survive_a_closed_tab(session: Session, job: str) -> None:
    session.run("{ session.lost.value = [{ ...session.segments.value[0], text: 'without a place' }]; }")
    session.wait_for_draft()
    again = Session(leave(session), job)
    again.page.get_by_text("without a place").wait_for()
    again.page.get_by_role("button", name="Dismiss").click()
    again.wait_for_no_draft()


def test_a_save_whose_answer_was_lost_is_recognised(session: Session, site: Server, job: str) -> None:
    """The service has stored it. The page says so, and goes on with the ids of its new segments."""

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    session.page.faults.expect("ERR_FAILED|412")  # type: ignore[attr-defined]
    session.page.route(SEGMENTS, lose, times=1)
    session.edit("split", "edits.split(list, list[1].id, list[1].text.indexOf(' '))")
    new = session.run("session.segments.value[2].id")
    assert not session.save()
    session.edit("text", f"edits.setText(list, '{new}', 'typed meanwhile')")
    assert session.save()
    assert session.run("session.segments.value[2].id") == new
    assert texts(site, job) == session.texts()
    assert session.texts()[2] == "typed meanwhile"


def test_a_full_disk_is_named(session: Session, site: Server, job: str) -> None:
    session.refuse_once(507, "The disk is full (WHISPER_DATA_DIR).", "disk_full")
    session.set_text(0, "saved when there is space")
    assert not session.save()
    status = session.page.locator(".save-status")
    expect(status).to_contain_text("The service has no space left.")
    expect(status).not_to_contain_text("cannot be reached")
    status.get_by_role("button", name="Save").click()
    session.wait("session.saveState.value === 'saved'")
    assert texts(site, job)[0] == "saved when there is space"


def test_a_key_that_is_refused_in_mid_save_loses_nothing(session: Session, site: Server, job: str) -> None:
    page = session.page
    session.refuse_once(401, "The API key is wrong.", "invalid_api_key")
    session.set_text(0, "saved with another key")
    session.run("{ session.save(); }")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator(".save-status")).to_contain_text("This service needs an access key.")
    page.get_by_role("button", name="Save").click()
    session.wait("session.saveState.value === 'saved'")
    assert texts(site, job)[0] == "saved with another key"


def test_saving_goes_on_after_many_conflicts_in_turn(session: Session, site: Server, job: str) -> None:
    page = session.page
    page.faults.expect("status of 412")  # type: ignore[attr-defined]
    answer = {"status": 412, "json": {"error": {"message": "It has changed.", "code": "revision_changed"}}}

    def refuse(route: Route) -> None:
        if route.request.method == "PUT":
            route.fulfill(**answer)
        else:
            route.continue_()

    page.route(SEGMENTS, refuse)
    session.set_text(0, "at last")
    assert not session.save()
    page.unroute(SEGMENTS)
    session.wait("session.saveState.value === 'saved'")
    assert texts(site, job)[0] == "at last"


def test_an_answer_that_breaks_off_is_asked_for_again(page: Page, job: str) -> None:
    page.route(SEGMENTS, lambda route: route.fulfill(body='{"segments": ['), times=1)
    Session(page, job).wait("session.complete.value && session.segments.value.length > 0")


def test_a_save_that_hangs_does_not_keep_the_job_closed(session: Session) -> None:
    def hang(route: Route) -> None:
        if route.request.method != "PUT":
            route.continue_()

    session.page.route(SEGMENTS, hang)
    session.set_text(0, "on its way")
    session.run("session.close()")
    session.run("open(session.id)")
    session.wait("session.complete.value && session.dirty.value")
    assert session.texts()[0] == "on its way"


DRAFT_KEYS = """new Promise((resolve) => {
    const opening = indexedDB.open("whisperfleet");
    opening.onsuccess = () => {
        const request = opening.result.transaction("drafts").objectStore("drafts").getAllKeys();
        request.onsuccess = () => resolve(request.result);
    };
})"""


def test_drafts_that_nobody_came_back_to_are_removed(page: Page, job: str) -> None:
    session = Session(page, job)
    days = 91 * 86_400_000
    old = f"{{ key: 'old', job: 'gone', revision: 0, changes: [], lost: [], at: Date.now() - {days} }}"
    assert session.run(f"drafts.writeDraft({old})")
    assert "old" in session.run(DRAFT_KEYS)
    session.open()
    wait_for(lambda: "old" not in session.run(DRAFT_KEYS))


def test_a_job_that_the_user_deletes_for_ever_leaves_no_draft(page: Page, site: Server) -> None:
    session = Session(page, new_job(site))
    session.wait_until_complete()
    page.evaluate(WITHOUT_SAVING)
    session.set_text(0, "not worth keeping")
    session.wait_for_draft()
    session.run("session.close()")
    job = "session.job.value"
    session.run(f"removeJobs([{job}])")
    assert session.drafts()
    session.run(f"deleteForEver([{job}])")
    session.wait_for_no_draft()


def test_a_failed_job_offers_the_corrections_that_it_cannot_take(
    session: Session, site: Server, job: str
) -> None:
    page = close_with_unsaved_work(session)
    failed = {**site.job(job), "status": "failed", "error": {"message": "It broke.", "code": None}}
    unfinished = {**site.client.get(f"/v1/jobs/{job}/segments").json(), "complete": False}
    page.route(re.compile(f"/v1/jobs/{job}$"), lambda route: route.fulfill(json=failed))
    page.route(SEGMENTS, lambda route: route.fulfill(json=unfinished))
    page.context.unroute("**/web/bundle/main.js")
    page.goto(f"/#/jobs/{job}")
    status = page.locator(".save-status")
    expect(status).to_contain_text("The transcription failed, so corrections cannot be saved.")
    with page.expect_download() as download:
        status.get_by_role("button", name="Download my version").click()
    assert "unsaved work" in download.value.path().read_text(encoding="utf-8")


def test_a_page_that_waits_for_the_service_says_so(page: Page, job: str) -> None:
    page.faults.expect("ERR_FAILED")  # type: ignore[attr-defined]
    page.goto("/")
    page.route("**/v1/**", lambda route: route.abort())
    page.goto(f"/#/jobs/{job}")
    expect(page.get_by_text("The service cannot be reached.")).to_be_visible()
    page.unroute("**/v1/**")
    page.locator(".segment").first.wait_for()
