"""The transcript as text: paragraphs to read and to correct in place, beside a film or above the player."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import NewPage
from tests.browser.transcript_pages import Segment, correct, open_job, save, stored, with_lines
from tests.e2e.reading import Talk
from tests.e2e.running import Server, wait_for
from tests.media_files import RATE, encode, read_pcm

pytestmark = pytest.mark.timeout(120)

SPEAKERS = ("Anna", "Anna", "Anna", "Bert")
PLACE = "() => document.querySelector('video').currentTime"


@pytest.fixture(scope="module")
def context_options() -> dict[str, Any]:
    return {"layout": "text"}


@pytest.fixture(scope="module")
def interview(site: Server, talk: Talk) -> str:
    """A job with words and their times, of two people in turn."""
    return spoken(site, talk.path)


def spoken(site: Server, path: Path) -> str:
    job = site.finished(site.submit(path)["id"])
    segments = [
        {name: segment[name] for name in ("id", "start", "end", "text")} | {"speaker": SPEAKERS[number % 4]}
        for number, segment in enumerate(stored(site, job["id"]))
    ]
    correct(site, job["id"], segments)
    return str(job["id"])


def in_place(page: Page):  # type: ignore[no-untyped-def]
    return page.locator(".segment-text[contenteditable]")


def runs_of(segments: list[Segment]) -> list[str]:
    """The texts of segments of one speaker, together."""
    runs: list[str] = []
    for before, segment in zip([None, *segments], segments, strict=False):
        if before is None or before["speaker"] != segment["speaker"]:
            runs.append(segment["text"])
        else:
            runs[-1] += f" {segment['text']}"
    return runs


def test_someone_new_reads_paragraphs_and_the_choice_is_remembered(
    new_page: NewPage, site: Server, interview: str
) -> None:
    page = new_page(site, layout=None, viewport={"width": 1280, "height": 800})
    open_job(page, interview)
    page.wait_for_function("() => document.querySelector('video')?.readyState > 0")
    shown = page.locator(".paragraph-text").all_inner_texts()
    assert [text.strip() for text in shown] == runs_of(stored(site, interview))[: len(shown)]
    assert page.locator(".segment-speaker").all_inner_texts()[:2] == ["Anna", "Bert"]
    text = page.locator(".paragraph-text").first
    size, width = text.evaluate(
        "text => [parseFloat(getComputedStyle(text).fontSize), text.getBoundingClientRect().width]"
    )
    assert size >= 17
    assert 55 < width / (size * 0.55) < 80  # characters
    segment = stored(site, interview)[1]
    word = page.locator(f".segment[data-key='{segment['id']}'] .segment-text > span").nth(1)
    word.click()
    wait_for(lambda: page.evaluate(PLACE) > segment["words"][1]["start"], 20)
    expect(page.locator(".paragraph .segment[data-playing] [data-playing]")).to_have_count(1)
    page.keyboard.press("k")
    page.get_by_role("button", name="Subtitles").click()
    expect(page.locator(".paragraph")).to_have_count(0)
    page.reload()
    page.locator("li.segment").first.wait_for()
    page.get_by_role("button", name="Text", exact=True).click()
    expect(page.locator("li.segment")).to_have_count(0)
    page.reload()
    page.locator(".paragraph").first.wait_for()


def test_another_language_is_named_and_marked(new_page: NewPage, site: Server, interview: str) -> None:
    def in_two_languages(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        if "segments" in content:
            content["segments"][1]["language"] = "fr"
        else:
            content["languages"] = {"en": 0.82, "fr": 0.18}
        route.fulfill(response=answer, json=content)

    page = new_page(site, layout="text")
    for path in (f"**/v1/jobs/{interview}", f"**/v1/jobs/{interview}/segments"):
        page.route(path, in_two_languages)
    open_job(page, interview)
    expect(page.get_by_text("English 82%, French 18%")).to_be_visible()
    expect(page.locator(".segment-language")).to_have_text(["French"])
    languages = "texts => texts.map(text => text.lang)"
    assert page.locator(".paragraph-text").evaluate_all(languages)[:3] == ["en", "fr", "en"]
    page.get_by_role("button", name="Subtitles").click()
    expect(page.locator(".segment-language")).to_have_text(["French"])
    assert page.locator(".cue-text").evaluate_all(languages)[:3] == ["en", "fr", "en"]
    page.locator("li.segment").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("textarea.segment-text")).to_have_attribute("lang", "fr")


def test_a_paragraph_is_corrected_in_place(page: Page, site: Server, talk: Talk) -> None:
    """Segments keep their ids, and words their times. Nothing moves while somebody writes."""
    job = spoken(site, talk.path)
    before = stored(site, job)
    open_job(page, job)
    places = "() => [...document.querySelectorAll('.paragraph')].map(row => row.getBoundingClientRect().top)"
    at = page.evaluate(places)
    page.locator(f".segment[data-key='{before[1]['id']}'] .segment-text > span").nth(2).dblclick()
    expect(in_place(page)).to_be_focused()
    assert page.evaluate(places) == at
    page.keyboard.type("more")
    old = before[1]["words"][2]["word"]
    expect(in_place(page)).to_have_text(before[1]["text"].replace(old, "more", 1))
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")  # into the segment before
    expect(in_place(page)).to_have_text(before[0]["text"])
    page.keyboard.type(" Yes.")
    page.keyboard.press("ArrowRight")
    expect(in_place(page)).to_contain_text("more")
    page.keyboard.press(
        "ArrowUp"
    )  # to the line above, which is of the segment before, and back to where it was
    expect(in_place(page)).to_contain_text(f"{before[0]['text']} Yes.")
    page.keyboard.press("ArrowDown")
    expect(in_place(page)).to_contain_text("more")
    page.keyboard.press("Control+Home")
    page.evaluate("() => document.execCommand('insertText', false, 'One\\ntwo ')")
    page.keyboard.press("Escape")
    expect(in_place(page)).to_have_count(0)
    focused = page.locator(f".segment[data-key='{before[1]['id']}']")
    expect(focused).to_be_focused()
    save(page)
    after = stored(site, job)
    assert [segment["id"] for segment in after] == [segment["id"] for segment in before]
    assert after[0]["text"] == f"{before[0]['text']} Yes."
    assert after[1]["text"].startswith("One two ")
    times = {(word["word"], word["start"]) for segment in after for word in segment["words"]}
    kept = [word for word in before[1]["words"] if word["word"] != old]
    assert {(word["word"], word["start"]) for word in kept} <= times
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    assert page.locator(".paragraph-text").first.inner_text().strip() == runs_of(before)[0]
    save(page)


def test_a_finger_corrects_where_it_stays_or_by_the_pencil(
    new_page: NewPage, site: Server, interview: str
) -> None:
    phone = {"viewport": {"width": 375, "height": 667}, "has_touch": True, "is_mobile": True}
    page = new_page(site, layout="text", **phone)
    open_job(page, interview)
    page.locator(".paragraph").first.evaluate("row => scrollBy(0, row.getBoundingClientRect().top - 200)")
    before = stored(site, interview)
    words = before[1]["text"].split()
    sentence = page.locator(".segment").nth(1)
    box = sentence.locator(".segment-text > span").nth(2).bounding_box()
    assert box is not None
    finger = [{"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}]
    touch = page.context.new_cdp_session(page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": finger})
    expect(in_place(page)).to_be_focused()
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert page.evaluate("() => getSelection().toString()") == words[2]
    page.keyboard.type("wrong")
    page.get_by_role("button", name="Cancel").tap()
    expect(in_place(page)).to_have_count(0)
    expect(sentence).to_have_text(before[1]["text"])
    assert page.evaluate(PLACE) == 0  # nothing was played
    sentence.locator(".segment-text > span").nth(1).tap()
    page.locator(".paragraph").first.get_by_role("button", name="Edit text").tap()
    expect(in_place(page)).to_be_focused()
    assert page.evaluate("() => getSelection().toString()") == words[1]
    page.get_by_role("button", name="Done").tap()
    expect(in_place(page)).to_have_count(0)


def test_paragraphs_by_keys(page: Page, site: Server, talk: Talk) -> None:
    lines = [f"Line {number} has some words." for number in range(400)]
    open_job(page, with_lines(site, talk.path, lines, 0.1))
    page.locator(".segment").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".segment").nth(1)).to_be_focused()
    page.keyboard.press("End")
    last = page.locator(".segment", has_text="Line 399 ")
    expect(last).to_be_focused()
    expect(last).to_be_in_viewport()
    assert page.locator(".segment").count() < 250  # only what is near
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    page.keyboard.type(" The end.")
    page.keyboard.press("Enter")
    expect(last).to_be_focused()
    page.keyboard.press("s")
    expect(page.get_by_label("Speaker", exact=True)).to_be_focused()
    page.keyboard.type("Anna")
    page.keyboard.press("Enter")
    expect(page.locator(".paragraph", has=last).locator(".segment-speaker")).to_have_text("Anna")
    page.keyboard.press("Control+f")
    page.keyboard.type("Line 200 ")
    expect(page.locator(".segment", has_text="Line 200 ")).to_be_in_viewport()
    page.keyboard.press("Escape")
    button = page.get_by_role("button", name="Subtitles").bounding_box()
    page.mouse.click(button["x"] + 10, button["y"] + 10)  # Playwright's own click would scroll
    expect(page.locator("li.segment", has_text="Line 200 ")).to_be_in_viewport()  # stays at the place


COVERED = """() => [...document.querySelectorAll(".segment-speaker")].filter((name) => {
  const { left, top, bottom, width } = name.getBoundingClientRect();
  if (top < 0 || bottom > document.querySelector(".player").getBoundingClientRect().top) return false;
  const found = document.elementFromPoint(left + Math.min(width, 30) / 2, (top + bottom) / 2);
  return !name.contains(found);
}).length"""

BOXES = """() => Object.fromEntries([".player-picture", ".transcript", ".job-top", ".player"].map((name) => {
  const { left, right, top, bottom } = document.querySelector(name).getBoundingClientRect();
  return [name, { left, right, top, bottom }];
}))"""


@pytest.fixture(scope="module")
def film(site: Server, talk: Talk, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("films") / "film.webm"
    pcm = read_pcm(talk.path)[: 12 * RATE]
    path.write_bytes(encode(pcm, "webm", "libopus", rate=48000, video="libvpx"))
    return spoken(site, path)


def test_a_film_is_beside_the_text_or_small(page: Page, film: str) -> None:
    open_job(page, film)
    page.locator(".player-picture[data-size=large]").wait_for()
    for width in (1000, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        for layout in ("Text", "Subtitles"):
            page.get_by_role("button", name=layout, exact=True).click()
            boxes = page.evaluate(BOXES)
            picture, text = boxes[".player-picture"], boxes[".transcript"]
            assert picture["left"] >= text["right"] or picture["right"] <= text["left"], width
            assert text["right"] - text["left"] > 0.45 * min(width, 1360)
            assert text["top"] - boxes[".job-top"]["bottom"] < 130  # nothing but the speakers in between
            assert picture["bottom"] - picture["top"] > 200
            assert page.evaluate(COVERED) == 0
    page.get_by_role("button", name="Small picture").click()
    assert page.locator(".player-picture").bounding_box()["width"] < 260  # type: ignore[index]
    page.reload()
    page.locator(".player-picture[data-size=small]").wait_for()
    page.get_by_role("button", name="Small picture").click()
    page.locator(".player-picture[data-size=large]").wait_for()


OVER_THE_WAVEFORM = """() => {
  const wave = document.querySelector(".waveform").getBoundingClientRect();
  return [...document.querySelectorAll(".player :is(button, select)")].filter((control) => {
    const box = control.getBoundingClientRect();
    return box.width && box.left < wave.right && box.right > wave.left &&
      box.top < wave.bottom && box.bottom > wave.top;
  }).length;
}"""


def test_the_text_keeps_two_thirds(page: Page, film: str, interview: str) -> None:
    """On a phone, and on a desktop that is zoomed to 200 %: at first sight, and when it is scrolled."""
    for job in (film, interview):
        open_job(page, job)
        for width, height in ((375, 667), (640, 400)):
            page.set_viewport_size({"width": width, "height": height})
            page.locator(".job[data-small]").wait_for()
            page.locator(".waveform[data-state=ready]").wait_for()
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
            for layout in ("Text", "Subtitles"):
                page.get_by_role("button", name=layout, exact=True).click()
                page.evaluate("() => scrollTo(0, 0)")
                boxes = page.evaluate(BOXES)
                seen = boxes[".player"]["top"] - boxes[".transcript"]["top"]
                assert seen > height * 2 / 3, (layout, width, seen)
                page.mouse.move(width / 2, height / 2)
                page.mouse.wheel(0, 3000)
                boxes = page.evaluate(BOXES)
                tools = boxes[".job-top"]["bottom"] - boxes[".job-top"]["top"]
                assert boxes[".player"]["top"] - tools > height * 2 / 3, (layout, width)
            assert page.evaluate(OVER_THE_WAVEFORM) == 0
    page.get_by_role("heading", level=1).get_by_role("button").click()
    expect(page.locator(".job-facts")).to_contain_text("Demo model")
    expect(page.get_by_role("region", name="Speakers")).to_be_visible()
    page.get_by_role("button", name="More", exact=True).first.click()
    page.get_by_role("menuitem", name="Settings").click()
    expect(page.get_by_role("dialog", name="Settings")).to_be_visible()


def test_the_text_begins_high_in_the_window(page: Page, interview: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.add_init_script("localStorage['whisperfleet.demoKnown'] = 'true'")
    open_job(page, interview)
    top = page.locator(".segment-text").first.evaluate("(text) => text.getClientRects()[0].top")
    assert top < 240
    tools = page.get_by_role("toolbar", name="Corrections")
    expect(tools.locator(".speaker-name")).to_have_text(["Anna", "Bert"])
    for name in ("Share", "Download"):
        expect(page.locator(".job-header").get_by_role("button", name=name, exact=True)).to_be_visible()


def test_a_transcript_opens_where_it_was_left(page: Page, site: Server, talk: Talk) -> None:
    job = with_lines(site, talk.path, [f"Line {number} is one." for number in range(300)], 0.2)
    place = json.dumps([[job, 50.1]])
    page.add_init_script(f"localStorage['whisperfleet.player.positions'] = {json.dumps(place)}")
    open_job(page, job)
    for layout in ("Text", "Subtitles"):
        page.get_by_role("button", name=layout, exact=True).click()
        page.reload()
        expect(page.locator(".segment", has_text="Line 250 ")).to_be_in_viewport()
        expect(page.locator(".player-clock")).to_contain_text("0:50")


COLUMNS = """() => {
  const canvas = document.querySelector(".waveform canvas");
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const columns = [];
  for (let x = 0; x < width; x += 3) {
    const drawn = [...Array(height).keys()].filter((y) => data[(y * width + x) * 4 + 3] > 0);
    const at = (drawn[0] * width + x) * 4;
    columns.push([drawn.length / height, [...data.slice(at, at + 3)].join()]);
  }
  return columns;
}"""


def test_four_hours_are_readable_and_show_who_speaks(page: Page, interview: str) -> None:
    """Whether people speak or pause, each minute has a sample that is loud."""

    def four_hours(route: Route) -> None:
        points = int(route.request.url.rpartition("points=")[2])
        rms = [0.02 if point * 8 // points % 2 else 0.2 for point in range(points)]
        loud = [1.0] * points
        answer = {"duration": 14_400, "points": points, "min": [-1.0] * points, "max": loud, "rms": rms}
        route.fulfill(json=answer)

    def half_each(route: Route) -> None:
        segment = {"text": "Words.", "words": []}
        spoken = [
            {"id": "1", "start": 0, "end": 7200, "speaker": "Anna", **segment},
            {"id": "2", "start": 7200, "end": 14_400, "speaker": "Bert", **segment},
        ]
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "segments": spoken})

    page.route("**/peaks?*", four_hours)
    page.route(f"**/v1/jobs/{interview}/segments", half_each)
    page.route("**/audio", lambda route: route.abort())
    page.faults.expect("ERR_FAILED")  # type: ignore[attr-defined]
    open_job(page, interview)
    page.locator(".waveform[data-state=ready]").wait_for()
    wait_for(lambda: len(page.evaluate(COLUMNS)) > 100)
    columns = page.evaluate(COLUMNS)
    quarter = len(columns) // 8
    heights = [columns[eighth * quarter + quarter // 2][0] for eighth in range(8)]
    assert min(heights[::2]) - max(heights[1::2]) > 0.5
    assert columns[quarter][1] != columns[-quarter][1]
