"""The fleet's screen, with simulated workers and with the demo model."""

import re
import signal
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import new_tab
from tests.e2e.fixtures import write_wav
from tests.e2e.running import SIMULATED, Server, wait_for
from tests.media_files import RATE, read_pcm

EIGHT = SIMULATED | {"WHISPER_CPU_WORKERS": 8}
TWO = SIMULATED | {"WHISPER_CPU_WORKERS": 2}
SLOW = "batch=2,fixed_ms=400,clip_ms=200"  # five minutes of speech take some seconds


@pytest.fixture(scope="module")
def five_minutes(talk, tmp_path_factory):
    return write_wav(tmp_path_factory.mktemp("talks"), np.resize(read_pcm(talk.path), 300 * RATE))


def fleet(page: Page) -> Page:
    page.goto("/#/fleet")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    return page


def lane(page: Page, slot: int) -> Locator:
    return page.locator(f'.lane[data-slot="{slot}"]')


def is_painted(lane: Locator) -> bool:
    """Whether a timeline shows anything."""
    return lane.locator("canvas").evaluate(
        """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
           .data.some((value) => value !== 0)"""
    )


def newest_block_x(lane: Locator) -> float:
    """Where the last painted pixel of a timeline is, in CSS pixels from its left edge."""
    return lane.locator("canvas").evaluate(
        """canvas => {
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, Math.floor(height / 2), width, 1);
          let x = width - 1;
          while (x > 0 && data[4 * x + 3] === 0) x--;
          return (x * canvas.clientWidth) / width;
        }"""
    )


@pytest.fixture(scope="module")
def site(module_commands) -> Server:
    return module_commands.ready(**EIGHT, WHISPER_SIMULATED=SLOW)


@pytest.fixture(scope="module")
def job(site, five_minutes) -> str:
    """A job that all workers have worked for."""
    submitted: str = site.submit(five_minutes)["id"]
    site.finished(submitted)
    return submitted


def test_a_lane_for_each_worker_with_its_work_and_links_to_the_job(page, site, five_minutes):
    page.set_viewport_size({"width": 1280, "height": 800})
    fleet(page)
    expect(page.locator(".lane")).to_have_count(8)
    last = lane(page, 7).bounding_box()
    assert (
        last["y"] + last["height"] <= page.locator(".axis").bounding_box()["y"] + 1
    )  # all of them are in sight
    expect(page.get_by_text("8 of 8")).to_be_visible()
    job = site.submit(five_minutes)
    expect(page.locator(".lane .badge", has_text="Busy").first).to_be_visible()
    entry = page.locator(f".legend a[href='#/jobs/{job['id']}']")
    expect(entry).to_have_text(five_minutes.name)
    site.finished(job["id"])
    expect(page.get_by_role("region", name="Speed").locator(".figure")).not_to_have_text("0 ×")
    expect(page.locator(".lane .badge", has_text="Busy")).to_have_count(0)
    wait_for(lambda: is_painted(lane(page, 0)))
    page.reload()  # the snapshot has the blocks as well
    wait_for(lambda: is_painted(lane(page, 0)))


def test_pointing_at_a_block_names_its_job_and_a_click_keeps_the_link(page, site, five_minutes, job):
    fleet(page)
    wait_for(lambda: is_painted(lane(page, 2)))
    track = lane(page, 2).locator(".track")
    height = track.bounding_box()["height"]
    at: Any = {"x": newest_block_x(lane(page, 2)), "y": height / 2}
    track.hover(position=at)
    tip = lane(page, 2).locator(".tip")
    expect(tip).to_contain_text(five_minutes.name)
    expect(tip).to_contain_text(re.compile(r"of audio in .* real time"))
    expect(page.locator(".legend .strong")).to_contain_text(five_minutes.name)
    expect(tip.locator("a")).to_have_count(0)
    track.click(position={**at, "x": newest_block_x(lane(page, 2))})
    tip.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"#/jobs/{job}$"))


def test_the_keyboard_alone_reaches_blocks_and_other_workers(page, site, five_minutes, job):
    fleet(page)
    wait_for(lambda: is_painted(lane(page, 1)))
    page.locator(".legend a", has_text=five_minutes.name).first.wait_for()  # its name is known by then
    page.locator(".legend :is(a, button)").last.focus()
    page.keyboard.press("Tab")
    expect(lane(page, 0).locator(".track")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(lane(page, 1).locator(".track")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(lane(page, 1).locator(".tip")).to_contain_text(five_minutes.name)
    expect(page.locator('p[role="status"]')).to_contain_text(five_minutes.name)
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_have_count(0)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/jobs/{job}$"))


def test_what_was_transcribed_this_month_is_listed_and_downloaded(page, site, job):
    fleet(page)
    page.get_by_text("Transcribed this month").click()
    table = page.locator("details table")
    expect(table.locator("thead")).to_have_text("WhoModelRecordingsMinutes")
    expect(table.locator("tbody tr")).to_have_count(1)
    owner, model, jobs, minutes = table.locator("tbody tr").locator("th, td").all_inner_texts()
    assert (owner, float(minutes) >= 5 * int(jobs) > 0) == ("–", True)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download by day").click()
    head, row = download.value.path().read_text("utf-8").splitlines()
    assert (download.value.suggested_filename, head) == ("usage.csv", "day,owner,model,jobs,minutes")
    assert row.split(",")[1:4] == ["", model, jobs]


def test_direct_requests_have_no_link(page, site, talk):
    fleet(page)
    site.srt(talk.path)
    expect(page.locator(".legend button", has_text="Other programs")).to_be_visible()
    expect(page.locator(".legend a", has_text="Other programs")).to_have_count(0)


def test_a_killed_worker_is_red_and_green_again_and_a_restart_is_followed(commands, new_page):
    server = commands.ready()
    page = fleet(new_page(server))
    killed = lane(page, 1)
    expect(killed.locator(".badge.success")).to_have_text("Ready")
    expect(page.get_by_text("No work in the last five minutes.")).to_be_visible()
    assert not is_painted(killed)
    with server.killed(server.workers()[1]["pid"]):
        expect(killed.locator(".badge.danger")).to_have_text("Restarting", timeout=60_000)
        expect(killed).to_contain_text("crashed")
        expect(killed).to_contain_text("It starts again by itself")
    expect(killed.locator(".badge.success")).to_have_text("Ready", timeout=60_000)
    expect(killed.locator(".restarts")).to_contain_text("1 restart")
    wait_for(lambda: is_painted(killed))  # the time in which it was away
    assert lane(page, 0).locator(".restarts").count() == 0

    page.faults.expect("ERR_|Failed to load")
    server.kill(server.process.pid)
    expect(page.get_by_text("Connection lost")).to_be_visible()
    expect(page.locator(".fleet.stale .lane")).to_have_count(2)
    wait_for(lambda: is_painted(lane(page, 0)))  # the time about which nothing is known
    commands.ready(**TWO, port=server.port)
    expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=60_000)
    expect(page.locator(".fleet.stale")).to_have_count(0)


def test_a_service_that_stopped_is_noticed_on_every_screen(page, site):
    """As after a sleep of the laptop: nothing comes, and nobody says that the connection is gone."""
    fleet(page)
    listed = new_tab(page.context)
    listed.goto("/")
    listed.locator(".history > p, .job-row").first.wait_for()
    site.signal(signal.SIGSTOP)
    try:
        for shown in (listed, page):
            expect(shown.get_by_role("alert")).to_contain_text("The service cannot be reached.")
        expect(page.get_by_text("Connection lost")).to_be_visible()
        listed.get_by_role("link", name="Fleet", exact=True).click()
        expect(listed.get_by_text("Nothing is known of the workers now.")).to_be_visible()
        assert listed.get_by_text(re.compile("0 of 0|nothing waits")).count() == 0
    finally:
        site.signal(signal.SIGCONT)
    for shown in (listed, page):
        expect(shown.get_by_text("Live", exact=True)).to_be_visible(timeout=60_000)
        expect(shown.get_by_role("alert")).to_have_count(0)


def test_a_deleted_job_has_no_name_and_no_link(page, site, five_minutes):
    deleted, other = [site.submit(five_minutes)["id"] for _ in range(2)]
    for job in (deleted, other):
        site.finished(job)
    site.client.delete(f"/v1/jobs/{deleted}").raise_for_status()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "ids=" in request.url else None)
    fleet(page)
    expect(page.locator(f".legend a[href='#/jobs/{other}']")).to_have_text(five_minutes.name)
    expect(page.locator(".legend button", has_text="Deleted recording").first).to_be_visible()
    expect(page.locator(f".legend a[href='#/jobs/{deleted}']")).to_have_count(0)
    assert len(asked) == 1


@pytest.mark.soak
def test_a_fleet_without_a_worker_in_service_says_that_jobs_wait(commands, new_page, talk):
    server = commands.ready(**TWO, WHISPER_SIMULATED="poisoned_for_good=0+1")
    page = fleet(new_page(server))
    server.submit(talk.path)
    expect(page.locator(".lane .badge.danger", has_text="Quarantined")).to_have_count(2, timeout=60_000)
    expect(page.locator(".reason").first).to_contain_text("No worker is in service")
    expect(page.get_by_text("The other workers")).to_have_count(0)


def test_one_stream_while_the_screen_is_open_and_none_after(page, site):
    streams: list[str] = []
    path = "/v1/workers/events"
    page.on("request", lambda request: streams.append(request.url) if path in request.url else None)
    page.on("requestfailed", lambda request: streams.remove(request.url) if path in request.url else None)
    fleet(page)
    assert len(streams) == 1
    page.get_by_role("link", name="Transcripts", exact=True).click()
    wait_for(lambda: page.wait_for_timeout(50) or not streams)


def test_nothing_is_drawn_while_the_tab_is_hidden(page, site):
    fleet(page)
    page.evaluate(
        """() => {
          window.drawn = 0;
          const { clearRect } = CanvasRenderingContext2D.prototype;
          CanvasRenderingContext2D.prototype.clearRect = function (...area) {
            window.drawn += 1;
            return clearRect.apply(this, area);
          };
        }"""
    )
    wait_for(lambda: page.evaluate("drawn") > 0)
    page.evaluate(
        """() => {
          Object.defineProperty(document, "hidden", { configurable: true, value: true });
          document.dispatchEvent(new Event("visibilitychange"));
          window.drawn = 0;
        }"""
    )
    page.wait_for_timeout(600)  # two beats
    assert page.evaluate("drawn") == 0


def test_a_phone_shows_each_timeline_below_its_worker(page, job):
    page.set_viewport_size({"width": 375, "height": 812})
    fleet(page)
    expect(page.locator(".legend a").first).to_be_visible()
    # At once: work that begins meanwhile would move both.
    below_px = lane(page, 0).evaluate(
        """(lane) => lane.querySelector(".timeline").getBoundingClientRect().top -
            lane.querySelector(".worker").getBoundingClientRect().bottom"""
    )
    assert below_px >= -1
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
