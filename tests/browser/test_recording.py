"""The page records: the microphone's sound becomes text while it comes."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.running import Server, wait_for

# The microphone hears the page's sample, and a test can cut the connection.
SPEAKING = """
MediaDevices.prototype.getUserMedia = async () => {
  const context = new AudioContext();
  const source = context.createBufferSource();
  source.buffer = await context.decodeAudioData(await (await fetch("/web/sample.ogg")).arrayBuffer());
  const microphone = context.createMediaStreamDestination();
  source.connect(microphone);
  source.start();
  return microphone.stream;
};
const { WebSocket } = window;
window.WebSocket = class extends WebSocket {
  constructor(...of) { super(...of); window.cut = () => this.close(4001); }
};
"""


def record(page: Page) -> None:
    page.context.grant_permissions(["microphone"])
    page.goto("/")
    page.get_by_role("button", name="Record", exact=True).click()


def job_of(site: Server) -> dict:
    (job,) = site.client.get("/v1/jobs").raise_for_status().json()["data"]
    return job


def words(site: Server, job: str) -> list[str]:
    document = site.client.get(f"/v1/jobs/{job}/segments").raise_for_status().json()
    return [segment["text"] for segment in document["segments"]]


def test_words_come_while_one_speaks_through_a_cut_and_a_closed_tab(new_page, site):
    page = new_page(site, layout="text")
    page.add_init_script(SPEAKING)
    record(page)
    expect(page.locator(".spoken[data-spoken=open]")).to_contain_text(re.compile(r"\w+ \w+"))
    page.evaluate("cut()")
    expect(page.locator(".microphone")).to_contain_text("No connection")
    expect(page.locator(".microphone")).not_to_contain_text("No connection")
    job = job_of(site)
    assert job["progress"]["stage"] == "recording"
    wait_for(lambda: words(site, job["id"]))
    page.close()
    again = page.context.new_page()
    again.add_init_script(SPEAKING)
    again.goto("/")
    again.get_by_role("link", name="Show the text").click()
    expect(again.locator(".spoken[data-spoken=open]")).to_contain_text(re.compile(r"\w+ \w+"))
    again.get_by_role("button", name="Pause").click()
    length = again.get_by_role("timer").text_content()
    again.get_by_role("button", name="Stop").click()
    done = site.finished(job["id"])
    assert done["status"] == "succeeded"
    assert done["filename"].startswith("Recording ")
    assert done["duration"] == pytest.approx(int(length.split(":")[1]), abs=1.1)
    text = words(site, job["id"])[-1]
    assert job_of(site)["id"] == job["id"]  # it is one recording
    expect(again.locator(".segments")).to_have_text(re.compile(re.escape(text)))
    expect(again.locator(".player")).to_be_visible()


def test_leaving_asks_and_other_screens_show_the_recording(page, site, shorts):
    job = site.finished(site.submit(shorts[0])["id"])
    record(page)
    expect(page.get_by_role("button", name="Stop")).to_be_focused()
    page.wait_for_function("() => document.querySelector('meter')?.value > 0.3")  # it beeps
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.close(run_before_unload=True)
    page.goto(f"/#/jobs/{job['id']}")
    expect(page.locator(".player .player-bar")).to_be_visible()
    box = page.locator(".microphone").bounding_box()
    assert box["y"] + box["height"] <= page.locator(".player").bounding_box()["y"]
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".microphone")).to_have_count(0)
    assert asked == ["beforeunload"]


def test_a_refused_microphone_says_how_to_allow_it(page):
    page.add_init_script("""
        const refuse = async () => { throw new DOMException("no", "NotAllowedError"); };
        navigator.mediaDevices.getUserMedia = refuse;
    """)
    page.goto("/")
    page.get_by_role("button", name="Record", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Allow it for this page")


def test_a_recording_that_cannot_begin_releases_the_microphone(page):
    page.add_init_script("""
        const { getUserMedia } = MediaDevices.prototype;
        MediaDevices.prototype.getUserMedia = async function (wanted) {
            return (window.stream = await getUserMedia.call(this, wanted));
        };
        AudioWorklet.prototype.addModule = async () => { throw new DOMException("busy", "AbortError"); };
    """)
    record(page)
    expect(page.get_by_role("alert")).to_contain_text("does not start")
    assert page.evaluate("window.stream.getTracks().map((track) => track.readyState)") == ["ended"]


def test_what_the_service_refuses_is_said(page):
    page.add_init_script("localStorage.setItem('whisperfleet.options', '{\"model\": \"gone\"}')")
    page.route(
        "**/v1/models", lambda route: route.fulfill(json={"data": []})
    )  # the page does not know it is gone
    record(page)
    expect(page.get_by_role("alert")).to_contain_text("There is no such model")
    expect(page.get_by_role("button", name="Record", exact=True)).to_be_enabled()


def test_without_a_secure_context_there_is_a_reason_instead_of_the_microphone(page):
    page.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false });")
    page.goto("/")
    expect(page.get_by_text("The microphone can be used only if")).to_be_visible()
    expect(page.get_by_role("button", name="Record", exact=True)).to_have_count(0)


def test_a_tab_without_sound_says_what_to_choose(page):
    page.add_init_script("""
        MediaDevices.prototype.getDisplayMedia = async () => document.createElement("canvas").captureStream();
    """)
    page.goto("/")
    page.get_by_role("button", name="Record a tab").click()
    expect(page.get_by_role("alert")).to_contain_text("Also share tab audio")


def test_words_of_a_tab_come_without_a_microphone(page, site):
    page.add_init_script(SPEAKING)
    page.add_init_script("""
        MediaDevices.prototype.getDisplayMedia = MediaDevices.prototype.getUserMedia;
        MediaDevices.prototype.getUserMedia = () => Promise.reject(new DOMException("", "NotFoundError"));
    """)
    page.goto("/")
    page.get_by_role("button", name="Record a tab").click()
    expect(page.locator(".spoken")).to_contain_text(re.compile(r"\w+ \w+"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".microphone")).to_have_count(0)
