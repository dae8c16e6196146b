"""Two owners at one service: what each of them sees on the page, and what a shared link opens."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import NewPage, watched_page
from tests.browser.transcript_pages import open_job, save, with_lines
from tests.e2e.fixtures import SharedServers
from tests.e2e.running import DATA, ONE_SIMULATED, Server

pytestmark = pytest.mark.timeout(120)

ALICE, BOB, OPERATOR = "sk-alice", "sk-bob", "sk-operator"
USER_HEADER = "X-Forwarded-User"
SETTINGS = ONE_SIMULATED | {
    "key": OPERATOR,
    "WHISPER_API_KEYS": f"alice:{ALICE},bob:{BOB},ops:{OPERATOR}:operator",
    "WHISPER_TRUSTED_USER_HEADER": USER_HEADER,
}
STORED = """async () => {
    const found = [JSON.stringify(localStorage), JSON.stringify(sessionStorage)];
    for (const { name } of await indexedDB.databases()) {
        const opened = await new Promise((resolve) => {
            const request = indexedDB.open(name);
            request.onsuccess = () => resolve(request.result);
        });
        for (const store of opened.objectStoreNames)
            found.push(await new Promise((resolve) => {
                const request = opened.transaction(store).objectStore(store).getAll();
                request.onsuccess = () => resolve(JSON.stringify(request.result));
            }));
        opened.close();
    }
    return found.join(" ");
}"""


@pytest.fixture(scope="module")
def owned(shared: SharedServers) -> Server:
    return shared(**SETTINGS)


@pytest.fixture(scope="module")
def job(owned: Server) -> str:
    """A job of alice."""
    with acting_as(owned, ALICE):
        return with_lines(owned, DATA / "talk.flac", ["An unmistakable zebra.", "And a line."])


@contextmanager
def acting_as(server: Server, key: str) -> Iterator[None]:
    """The server's client sends another key."""
    server.client.headers["Authorization"] = f"Bearer {key}"
    try:
        yield
    finally:
        server.client.headers["Authorization"] = f"Bearer {OPERATOR}"


@pytest.fixture
def sign_in(new_page: NewPage, owned: Server) -> Any:
    """Opens a page of someone who has given a key."""

    def page_of(key: str) -> Page:
        page = new_page(owned)
        page.faults.expect("status of 401")  # type: ignore[attr-defined]
        page.goto("/")
        page.get_by_label("Key", exact=True).fill(key)
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.locator(".history")).to_be_visible()
        return page

    return page_of


def settings_of(page: Page) -> Locator:
    page.get_by_role("button", name="Settings").click()
    return page.get_by_role("dialog", name="Settings")


def more_of(page: Page) -> Locator:
    """The items of the menu of a transcript, which it opens."""
    page.locator(".job-header").get_by_role("button", name="More", exact=True).click()
    return page.get_by_role("menuitem")


def share(page: Page, job: str, may: str = "Read", audio: bool = True, revisions: bool = False) -> str:
    """Make a link on the page of an owner, which stays open with the dialog."""
    open_job(page, job)
    page.locator(".job-header").get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share this transcript")
    dialog.get_by_label("What may they do?").select_option(label=may)
    dialog.get_by_label("How long?").select_option(label="A week")
    dialog.get_by_label("hear the recording").set_checked(audio)
    dialog.get_by_label("see earlier revisions").set_checked(revisions)
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_label("Your link").input_value()
    assert link.startswith("http")
    assert f"#/jobs/{job}?link=" in link
    return link


def test_owners_see_nothing_of_each_other(sign_in: Any, owned: Server, job: str) -> None:
    alice, bob = sign_in(ALICE), sign_in(BOB)
    asked: list[str] = []
    bob.on("request", lambda request: asked.append(request.url))
    expect(alice.locator(f"[data-job='{job}']")).to_be_visible()
    expect(alice.locator(f"[data-job='{job}']")).not_to_contain_text("of alice")
    bob.reload()
    expect(bob.locator(".top-bar")).to_contain_text("bob")
    expect(bob.locator(".job-row")).to_have_count(0)
    bob.goto("/#/?q=zebra")
    expect(bob.get_by_text("zebra")).to_have_count(0)
    bob.faults.expect("status of 404")
    bob.goto(f"/#/jobs/{job}")
    expect(bob.get_by_text("There is no such transcript")).to_be_visible()
    bob.goto("/#/fleet")
    expect(bob.locator(".history")).to_be_visible()
    expect(bob.get_by_role("link", name="Fleet", exact=True)).to_have_count(0)
    assert not [url for url in asked if "/v1/workers" in url]
    assert "zebra" not in bob.evaluate(STORED)
    assert "talk.flac" not in bob.evaluate(STORED)


def test_operators_see_whose_a_transcript_is(sign_in: Any, job: str) -> None:
    page = sign_in(OPERATOR)
    expect(page.locator(f"[data-job='{job}']")).to_contain_text("of alice")
    page.get_by_role("link", name="Fleet", exact=True).click()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(settings_of(page)).to_contain_text("You are ops, an operator")


def test_a_link_corrects_and_a_conflict_is_shown(
    sign_in: Any, new_page: NewPage, owned: Server, axe: Any
) -> None:
    with acting_as(owned, ALICE):
        job = with_lines(owned, DATA / "talk.flac", ["One line.", "Another line."])
    alice = sign_in(ALICE)
    link = share(alice, job, "Read and correct")
    assert not axe(alice)
    alice.keyboard.press("Escape")
    guest = new_page(owned)
    guest.add_init_script("localStorage.setItem('whisperfleet.key', '\"a key of the guest\"')")
    guest.goto(link)
    row = guest.locator(".segment")
    row.first.wait_for()
    assert "link=" not in guest.url
    expect(guest.locator(".waveform canvas")).to_be_visible()
    for name in ("Transcripts", "Fleet", "All transcripts"):
        expect(guest.get_by_role("link", name=name, exact=True)).to_have_count(0)
    expect(guest.get_by_role("button", name="Share", exact=True)).to_have_count(0)
    expect(more_of(guest)).to_have_text(["Revisions"])
    guest.keyboard.press("Escape")
    write(guest, 0, "Corrected by a guest.")
    save(guest)
    token = link.rpartition("=")[2]
    assert token not in guest.evaluate("JSON.stringify(localStorage)")
    assert guest.evaluate("localStorage['whisperfleet.key']") == '"a key of the guest"'
    guest.reload()
    expect(row.first).to_contain_text("Corrected by a guest.")

    write(alice, 0, "Corrected by alice.")
    alice.faults.expect("status of 412")
    alice.keyboard.press("Control+s")
    conflict = alice.get_by_role("dialog", name="Two versions")
    expect(conflict).to_contain_text("Corrected by a guest.")
    conflict.get_by_role("button", name="Take all of theirs").click()
    conflict.get_by_role("button", name="Save").click()
    expect(conflict).to_have_count(0)
    more_of(alice).filter(has_text="Revisions").click()
    expect(alice.locator(".revisions-list")).to_contain_text("by a link")


def test_a_draft_of_a_link_is_not_one_of_the_key_and_outlives_the_link(
    sign_in: Any, owned: Server, job: str
) -> None:
    alice = sign_in(ALICE)
    link = share(alice, job, "Read and correct")
    guest = alice.context.new_page()  # the browser of alice, who opens her own link
    guest.goto(link)
    guest.locator(".segment").first.wait_for()
    write(guest, 1, "A draft of the link.")
    guest.wait_for_timeout(600)
    alice.reload()
    expect(alice.locator(".segment").nth(1)).to_contain_text("And a line.")
    with acting_as(owned, ALICE):
        [*_, made] = owned.client.get(f"/v1/jobs/{job}/shared").json()["data"]
        owned.client.delete(f"/v1/jobs/{job}/shared/{made['id']}").raise_for_status()
    guest.keyboard.press("Control+s")
    expect(guest.get_by_text("This link has ended")).to_be_visible()
    with guest.expect_download() as download:
        guest.get_by_role("button", name="Download my version").click()
    assert "A draft of the link." in download.value.path().read_text(encoding="utf-8")


def write(page: Page, index: int, text: str) -> None:
    """Replace the text of a segment."""
    page.locator(".segment-text").nth(index).dblclick()
    field = page.locator("textarea.segment-text")
    field.fill(text)
    field.press("Escape")


def test_a_link_to_read_without_the_recording_and_its_end(
    sign_in: Any, new_page: NewPage, owned: Server, job: str
) -> None:
    alice = sign_in(ALICE)
    link = share(alice, job, audio=False)
    guest = new_page(owned)
    asked: list[str] = []
    guest.on("request", lambda request: asked.append(request.url))
    guest.goto(link)
    guest.locator(".segment").first.wait_for()
    expect(guest.locator(".player")).to_have_count(0)
    expect(guest.get_by_role("heading", level=1)).to_have_text("Transcript")  # not the name of the file
    expect(guest.locator(".job-header").get_by_role("button", name="More", exact=True)).to_have_count(0)
    expect(guest.locator(".save-status")).to_have_count(0)
    guest.locator(".segment-text").first.dblclick()
    expect(guest.locator("textarea")).to_have_count(0)
    expect(settings_of(guest)).to_contain_text("You came by a link")
    guest.keyboard.press("Escape")
    guest.get_by_role("main").get_by_role("button", name="Download", exact=True).click()
    expect(guest.get_by_role("menuitem", name="SRT")).to_be_visible()
    expect(guest.get_by_role("menuitem", name="Recording")).to_have_count(0)
    guest.keyboard.press("Escape")
    assert not [url for url in asked if url.endswith("/audio") or "/peaks" in url or "/v1/jobs?" in url]

    alice.get_by_role("list", name="Links that work").get_by_role("button", name="Revoke").last.click()
    expect(alice.get_by_label("Your link")).to_have_count(0)
    guest.faults.expect("status of 401")  # type: ignore[attr-defined]
    guest.reload()
    expect(guest.get_by_text("This link has ended")).to_be_visible()
    expect(guest.get_by_role("dialog")).to_have_count(0)
    guest.goto("/#/")  # an ordinary page again
    expect(guest.get_by_role("dialog", name="Access key")).to_be_visible()


def test_a_link_to_read_may_show_revisions_and_goes_with_its_transcript(
    sign_in: Any, new_page: NewPage, owned: Server, job: str
) -> None:
    alice, guest = sign_in(ALICE), new_page(owned)
    end = (datetime.now(UTC) + timedelta(days=3)).isoformat()

    def goes_soon(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"expires_at": end})

    alice.route(f"**/v1/jobs/{job}", goes_soon)
    guest.goto(share(alice, job, revisions=True))
    expect(more_of(guest)).to_have_text(["Revisions"])
    guest.keyboard.press("Escape")
    expect(guest.locator(".save-status")).to_have_count(0)
    expect(alice.get_by_role("listitem").filter(has_text="with earlier revisions")).to_have_count(1)
    goes = alice.get_by_text("The transcript itself goes on")
    expect(goes).to_be_visible()  # before the week of the link is over
    alice.get_by_label("How long?").select_option(label="A day")
    expect(goes).to_have_count(0)

    with acting_as(owned, ALICE):
        path, back = f"/v1/jobs/{job}/segments", {"segments": []}
        for body in (back, {"revision": "original"}):
            owned.client.put(path, json=body, headers={"If-Match": "*"}).raise_for_status()
    alice.keyboard.press("Escape")
    for page, who in ((alice, " · alice"), (guest, "")):
        more_of(page).filter(has_text="Revisions").click()
        listed = page.locator("[data-revision]").first.locator("small").last
        expect(listed).to_have_text(re.compile(rf"^Brought back: Original · \d+ segments? changed{who}$"))


def test_signing_out_forgets_the_key_and_drafts_if_wished(sign_in: Any, job: str) -> None:
    page = sign_in(ALICE)
    open_job(page, job)
    write(page, 1, "A draft.")
    page.wait_for_timeout(600)
    assert "A draft." in page.evaluate(STORED)
    dialog = settings_of(page)
    expect(dialog).to_contain_text("You are alice.")
    dialog.get_by_label("Also forget").check()
    dialog.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("dialog", name="Access key")).to_be_visible()
    stored = page.evaluate(STORED)
    assert "A draft." not in stored
    assert ALICE not in stored


def test_a_login_takes_the_place_of_a_key(browser: Any, new_page: NewPage, owned: Server) -> None:
    page = new_page(owned)
    page.faults.expect("status of 401")  # type: ignore[attr-defined]
    page.goto("/")
    link = page.get_by_role("dialog", name="Access key").get_by_role("link", name="Sign in")
    assert link.evaluate("(link) => link.href") == f"{owned.url}/login"
    with watched_page(browser, owned, extra_http_headers={USER_HEADER: "jane@example.org"}) as user:
        user.goto("/login")
        expect(user.locator(".top-bar")).to_contain_text("jane@example.org")
        expect(settings_of(user).get_by_role("button", name="Sign out")).to_have_count(0)
