"""The subtitles on the page are those of the file: before and after a correction, a mark and another edge."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.transcript_pages import Segment, correct, open_job, restore, save, stored
from tests.e2e.reading import Talk
from tests.e2e.running import Server, wait_for

pytestmark = pytest.mark.timeout(120)

# Sentences run across the edges of segments, which keep the times of the speech.
TEXTS = [
    "When the old bridge was closed last year, nobody",
    "in the village knew how long it would take until",
    "the new one was built & opened.",
    "That was the first thing we asked.",
]

# Of each row: its number, start and end, and its lines with the dashes and names that the file adds.
ROWS = """() => [...document.querySelectorAll(".cue")].map((row) => {
  const text = row.querySelector(".cue-text").cloneNode(true);
  for (const line of text.querySelectorAll("br")) line.replaceWith("\\n");
  for (const lead of text.querySelectorAll(".cue-lead")) lead.replaceWith(lead.dataset.lead);
  const [start, end] = [...row.querySelector(".cue-times").children].map((time) => time.textContent);
  const lines = text.textContent.split("\\n").map((line) => line.trim());
  return [row.querySelector(".cue-number").textContent, start, end, ...lines];
})"""


@pytest.fixture(scope="module")
def transcribed(site: Server, talk: Talk) -> str:
    return str(site.finished(site.submit(talk.path, diarize=True)["id"])["id"])


@pytest.fixture
def job(site: Server, transcribed: str) -> str:
    """The same one for all tests: each begins with these texts, and with the times of the speech."""
    restore(site, transcribed, 0)
    segments = stored(site, transcribed)
    for segment, text in zip(segments, TEXTS, strict=False):
        segment["text"] = text
    correct(site, transcribed, [one(segment) for segment in segments])
    return transcribed


def one(segment: Segment) -> Segment:
    return {name: segment[name] for name in ("id", "start", "end", "text", "speaker")}


def clock(time: str) -> str:
    """As the page writes a time of SRT: `00:01:02,345`."""
    hours, minutes, seconds, ms = map(int, re.split("[:,]", time))
    hundredths = (((hours * 60 + minutes) * 60 + seconds) * 1000 + ms + 5) // 10
    return f"{hundredths // 6000}:{hundredths // 100 % 60:02}.{hundredths % 100:02}"


def in_file(site: Server, job_id: str, **options: str) -> list[list[str]]:
    file = site.client.get(f"/v1/jobs/{job_id}/result", params={"format": "srt", **options}).text
    rows = []
    for cue in file.strip().split("\n\n"):
        number, times, *lines = cue.split("\n")
        rows.append([number, *map(clock, times.split(" --> ")), *lines])
    return rows


def shows_the_file(page: Page, site: Server, job_id: str, **options: str) -> None:
    wanted = in_file(site, job_id, **options)

    def is_shown() -> bool:
        shown = page.evaluate(ROWS)
        return bool(shown) and shown == wanted[: len(shown)]

    try:
        wait_for(is_shown, 10)
    except AssertionError:
        assert page.evaluate(ROWS) == wanted


def test_the_page_shows_the_file_in_each_style_before_and_after_corrections(
    page: Page, site: Server, job: str
) -> None:
    rows = open_job(page, job)
    shows_the_file(page, site, job)
    page.get_by_label("Subtitle style").select_option("social")
    shows_the_file(page, site, job, profile="social")
    with page.expect_download() as download:  # in the style that is seen
        page.get_by_role("button", name="Download", exact=True).click()
        page.get_by_role("menuitem").filter(has_text=re.compile("^SRT")).click()
    file = site.client.get(f"/v1/jobs/{job}/result", params={"format": "srt", "profile": "social"})
    assert download.value.path().read_bytes() == file.content
    page.get_by_label("Subtitle style").select_option("")
    page.get_by_label("Format").select_option("scc")  # 32 characters a line
    answer = site.client.get(f"/v1/jobs/{job}/cues", params={"format": "scc"}).json()["cues"]
    wait_for(lambda: [row[3:] for row in page.evaluate(ROWS)][:4] == [cue["lines"] for cue in answer[:4]])
    page.get_by_label("Format").select_option("srt")
    page.get_by_label("Format").press("Escape")  # from the tools to the cues
    expect(page.locator(".cue:focus")).to_have_count(1)
    shows_the_file(page, site, job)

    second = rows.nth(1)
    second.locator("span", has_text=re.compile("^village$")).dblclick()
    page.keyboard.type("mountain village")
    field = page.locator("textarea.segment-text")
    expect(field).to_have_value("in the mountain village\nknew how long it would take until")  # broken anew
    page.keyboard.press("Escape")
    before = page.evaluate(ROWS)
    save(page)
    shows_the_file(page, site, job)
    assert page.evaluate(ROWS) == before  # the service has shown what it stores

    rows.nth(3).focus()
    page.keyboard.press("b")
    expect(rows.nth(3).get_by_text("first thing")).to_have_count(0)
    before = page.evaluate(ROWS)
    save(page)
    shows_the_file(page, site, job)
    assert page.evaluate(ROWS) == before
    assert stored(site, job)[3]["marks"][0]["kind"] == "break"
    rows.nth(3).focus()
    page.keyboard.press("j")
    save(page)
    shows_the_file(page, site, job)
    assert stored(site, job)[3]["marks"][0]["kind"] == "join"


def test_an_edge_is_moved_by_keys_and_on_the_waveform(page: Page, site: Server, job: str) -> None:
    rows = open_job(page, job)
    shows_the_file(page, site, job)
    first, second, third = in_file(site, job)[:3]
    rows.nth(1).focus()
    rows.nth(1).get_by_role("button", name="More").click()
    expect(page.get_by_role("menuitem", name="Transcribe again …")).to_be_visible()
    page.keyboard.press("Escape")
    rows.nth(1).focus()
    edges = page.locator(".waveform-edge")
    expect(edges).to_have_count(2)
    assert page.locator(".waveform-region").bounding_box()["width"] > 100  # some seconds are in sight
    page.keyboard.press(".")
    page.keyboard.press("-")
    save(page)
    shows_the_file(page, site, job)
    moved = in_file(site, job)
    assert moved[1][3:] == second[3:]
    assert moved[1][1] > second[1]
    assert moved[1][2] < second[2]
    assert [moved[0][1], moved[2]] == [first[1], third]  # those beside it begin where they did
    end = edges.nth(1).bounding_box()
    x, y = end["x"] + end["width"] / 2, end["y"] + 10
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y)
    page.mouse.up()
    save(page)
    shows_the_file(page, site, job)
    assert in_file(site, job)[1][2] < moved[1][2]
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    save(page)
    shows_the_file(page, site, job)


def test_a_broken_limit_is_named_with_what_cures_it(page: Page, site: Server, job: str, axe) -> None:
    segments = stored(site, job)
    segments[3]["text"] = (
        "That was the very first thing that all of us asked each other in the village, then."
    )
    correct(site, job, [one(segment) for segment in segments])
    rows = open_job(page, job)
    shows_the_file(page, site, job)
    rows.first.focus()
    page.keyboard.press("e")
    row = page.locator(".cue[data-current=true]")
    expect(row.locator(".cue-problems")).to_contain_text("characters a second, 20 at most.")
    assert axe(page) == []
    row.get_by_role("button", name="Shorten").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("We asked.")
    expect(row.locator(".cue-problems")).to_have_count(0)
    page.keyboard.press("Escape")
    save(page)
    shows_the_file(page, site, job)
