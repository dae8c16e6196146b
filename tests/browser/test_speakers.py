"""Who speaks, on the page: renamed everywhere, reassigned, joined, and found again by the real service."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.transcript_pages import (
    correct,
    document,
    open_job,
    save,
    stored,
    timed,
    with_lines,
)
from tests.e2e.running import DATA

pytestmark = pytest.mark.timeout(120)

PART_S = 24  # of the dialogue: all three speak
LINES = ["One bird sings.", "Two birds fly high.", "Three birds sleep.", "The cat sees a bird."]


@pytest.fixture(scope="module")
def dialogue(site):
    job = site.finished(site.submit(DATA / "dialogue.flac", diarize=True, end=PART_S)["id"])
    assert job["status"] == "succeeded", job
    return job["id"]


def restore_original(site, job_id):
    headers = {"If-Match": document(site, job_id).headers["etag"]}
    site.client.put(f"/v1/jobs/{job_id}/segments", json={"revision": 0}, headers=headers).raise_for_status()


@pytest.fixture
def found(site, dialogue):
    """A job whose three speakers were found, without corrections, and these."""
    restore_original(site, dialogue)
    labels = speakers(site, dialogue)
    assert set(labels) == {"S1", "S2", "S3"}
    return dialogue, labels


def spoken(site, job_id):
    return [(segment["text"], segment["speaker"]) for segment in stored(site, job_id)]


@pytest.fixture(scope="module")
def shared_lines(site, talk):
    return with_lines(site, talk.path, LINES)


@pytest.fixture
def lines(site, shared_lines):
    """A job in which someone has named speakers, and no voices were compared."""
    segments = timed(LINES, 2.0)
    for segment, speaker in zip(segments, ["Anna", "Anna", "Bert", None], strict=True):
        segment["speaker"] = speaker
    correct(site, shared_lines, segments)
    return shared_lines


def speakers(site, job_id):
    return [segment["speaker"] for segment in stored(site, job_id)]


def panel(page):
    return page.get_by_role("region", name="Speakers")


def names(page):
    return panel(page).locator(".speaker-name")


def chip(page, name):
    return panel(page).get_by_role("button", name=f"{name} ", description=f"Rename {name}")


def replaced(labels, **others):
    return [others.get(label, label) for label in labels]


def test_a_speaker_is_renamed_everywhere(page, site, found):
    job, labels = found
    rows = open_job(page, job)
    expect(names(page)).to_have_text(["S1", "S2", "S3"])
    assert (
        len(
            set(
                panel(page)
                .locator(".swatch")
                .evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
            )
        )
        == 3
    )
    rows.first.dblclick(position={"x": 300, "y": 40})
    page.keyboard.press("End")
    page.keyboard.type(" Really.")  # not saved yet
    page.keyboard.press("Enter")
    chip(page, "S2").press("Enter")
    field = page.get_by_role("combobox", name="Rename S2")
    expect(field).to_be_focused()
    page.keyboard.type("Anna Berger-Hohenstein")  # over the old name
    cut = "() => document.activeElement.scrollWidth - document.activeElement.clientWidth"
    assert page.evaluate(cut) <= 0
    page.keyboard.press("Control+a")
    page.keyboard.type("Anna Berger")
    page.keyboard.press("Enter")
    expect(chip(page, "Anna Berger")).to_be_focused()
    expect(page.locator("[role=status]", has_text="S2: now Anna Berger")).to_have_count(1)
    assert speakers(site, job) == replaced(labels, S2="Anna Berger")
    assert stored(site, job)[0]["text"].endswith(" Really.")
    headings = page.locator(".segment-speaker").all_inner_texts()
    assert "Anna Berger" in headings
    assert "S2" not in headings
    chip(page, "S1").click()
    page.keyboard.type("Nobody")
    page.keyboard.press("Escape")
    expect(names(page)).to_have_text(["S1", "Anna Berger", "S3"])


def test_a_rename_goes_on_top_of_what_others_have_saved(page, site, found):
    job, labels = found
    rows = open_job(page, job)
    segments = stored(site, job)
    theirs = [{key: part[key] for key in ("id", "start", "end", "text", "speaker")} for part in segments]
    correct(site, job, [theirs[0] | {"text": "From elsewhere."}, *theirs[1:]])
    page.faults.expect("status of 412")
    chip(page, "S3").click()
    page.keyboard.type("Cem")
    page.keyboard.press("Enter")
    expect(chip(page, "Cem")).to_be_visible()
    expect(rows.first).to_contain_text("From elsewhere.")
    assert stored(site, job)[0]["text"] == "From elsewhere."
    assert speakers(site, job) == replaced(labels, S3="Cem")


def test_two_speakers_become_one_and_two_again(page, site, found):
    job, labels = found
    open_job(page, job)
    panel(page).get_by_role("button", name="Join speakers").click()
    for name in ("S1", "S3"):
        panel(page).get_by_role("checkbox", name=name).check()
    panel(page).get_by_role("button", name="Join as S1").click()
    expect(names(page)).to_have_text(["S1", "S2"])
    expect(chip(page, "S1")).to_be_focused()
    assert speakers(site, job) == replaced(labels, S3="S1")
    page.keyboard.press("Control+z")
    expect(names(page)).to_have_text(["S1", "S2", "S3"])
    save(page)
    assert speakers(site, job) == labels


def test_speakers_are_found_again_and_undone_ones_are_nobodys_choice(page, site, found):
    job, labels = found
    open_job(page, job)
    again = panel(page).get_by_role("button", name="Find speakers again")
    again.press("Enter")
    expect(page.get_by_label("Number of speakers")).to_be_focused()
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(names(page)).to_have_text(["S1", "S2"])
    expect(page.get_by_text("2 speakers").first).to_be_visible()
    expect(again).to_be_focused()
    two = speakers(site, job)
    assert len(set(two)) == 2
    page.keyboard.press("Control+z")
    expect(names(page)).to_have_count(3)
    save(page)
    assert speakers(site, job) == labels
    again.click()
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(names(page)).to_have_count(2)
    assert speakers(site, job) == two
    again.click()
    page.keyboard.press("Enter")  # automatically
    expect(names(page)).to_have_count(3)
    assert speakers(site, job) == labels


def test_a_segment_gets_another_speaker(page, site, lines):
    rows = open_job(page, lines)
    rows.nth(2).focus()
    page.keyboard.press("1")
    expect(rows.nth(2)).to_be_focused()
    expect(names(page)).to_have_text(["Anna"])
    expect(panel(page).locator("small")).to_have_text("75%")
    rows.nth(3).hover()
    rows.nth(3).get_by_role("button", name="More actions").click()
    page.get_by_role("menuitemcheckbox", name="Anna").click()
    expect(rows.nth(3)).to_be_focused()
    page.keyboard.press("s")
    expect(page.get_by_label("Speaker", exact=True)).to_be_focused()
    page.keyboard.type("Carla")
    page.keyboard.press("Enter")
    save(page)
    assert speakers(site, lines) == ["Anna", "Anna", "Anna", "Carla"]


def test_selected_segments_get_a_speaker_together(page, site, lines):
    rows = open_job(page, lines)
    rows.nth(1).focus()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    expect(page.locator(".selection-tools")).to_contain_text("3 segments selected")
    page.keyboard.press("s")
    expect(page.get_by_role("combobox", name="Speaker")).to_be_focused()
    page.keyboard.type("Carla")
    page.keyboard.press("Enter")
    expect(page.locator(".selection-tools")).to_have_count(0)
    expect(rows.nth(3)).to_be_focused()
    save(page)
    assert speakers(site, lines) == ["Anna", "Carla", "Carla", "Carla"]
    page.keyboard.press("Control+z")
    expect(names(page)).to_have_text(["Anna", "Bert"])

    rows.nth(0).click(position={"x": 500, "y": 12})
    rows.nth(2).click(position={"x": 500, "y": 12}, modifiers=["Shift"])
    expect(page.locator(".selection-tools")).to_contain_text("3 segments selected")
    page.keyboard.press("Escape")
    expect(page.locator(".selection-tools")).to_have_count(0)

    ends = [rows.nth(place).locator("span.segment-text span").last.bounding_box() for place in (0, 1)]
    page.mouse.move(ends[0]["x"] + 2, ends[0]["y"] + 8)  # text of two segments is dragged over
    page.mouse.down()
    page.mouse.move(ends[1]["x"] + 20, ends[1]["y"] + 8, steps=4)
    page.mouse.up()
    expect(page.locator(".selection-tools")).to_contain_text("Selected words")
    rows.nth(1).hover()
    rows.nth(1).get_by_role("button", name="More actions").click()
    page.get_by_role("menuitemcheckbox", name="Bert").click()
    save(page)
    assert spoken(site, lines)[:3] == [("One bird", "Anna"), ("sings.", "Bert"), (LINES[1], "Bert")]
    page.keyboard.press("Control+z")
    save(page)
    assert speakers(site, lines) == ["Anna", "Anna", "Bert", None]


def test_words_in_the_text_get_a_speaker(new_page, site, lines):
    """A drag from the first letter of a sentence, which begins beside the one before it."""
    page = new_page(site, layout="text", viewport={"width": 1440, "height": 900})
    second = open_job(page, lines).nth(1)
    boxes = [second.locator(".segment-text > span").nth(word).bounding_box() for word in (0, 2)]
    page.mouse.move(boxes[0]["x"] + 2, boxes[0]["y"] + 12)
    page.mouse.down()
    page.mouse.move(boxes[1]["x"] + 9, boxes[1]["y"] + 12, steps=4)
    page.mouse.up()
    tools = page.locator(".selection-tools")
    expect(tools).to_contain_text("Selected words")
    tops = "all => all.map(one => Math.round(one.getBoundingClientRect().bottom))"
    assert max(tools.locator("> *").evaluate_all(tops)) <= tools.bounding_box()["y"] + 40  # one line
    page.keyboard.press("s")
    expect(page.get_by_role("combobox", name="Speaker")).to_be_focused()
    page.keyboard.type("Carla")
    page.keyboard.press("Enter")
    save(page)
    assert spoken(site, lines)[:3] == [(LINES[0], "Anna"), ("Two birds fly", "Carla"), ("high.", "Anna")]


def test_a_name_in_the_text_is_a_menu(page, site, lines):
    rows = open_job(page, lines)

    def choose(name, *items):
        page.get_by_role("button", name=f"Speaker: {name}").first.click()
        for item in items:
            page.get_by_role("menuitem", name=item).click()

    choose("Anna", "This part is by", "Bert")  # two segments in a row
    expect(names(page)).to_have_text(["Bert"])
    page.locator(".toast", has_text="2 segments are now by Bert.").get_by_role("button", name="Undo").click()
    choose("Anna", "From here on it is", "Someone else")
    expect(page.get_by_role("combobox", name="Speaker")).to_be_focused()
    page.keyboard.type("Carla")
    page.keyboard.press("Enter")
    expect(rows.first).to_be_focused()
    choose("Carla", "Rename Carla")
    page.keyboard.type("Carla Berger")
    page.keyboard.press("Enter")
    expect(page.locator(".segment-speaker")).to_have_text(["Carla Berger", "Bert"])
    assert speakers(site, lines) == ["Carla Berger", "Carla Berger", "Bert", None]
    choose("Bert", "Rename Bert")
    page.keyboard.press("Escape")
    expect(rows.nth(2)).to_be_focused()
    choose("Bert", "Hear the voice")
    video = page.locator("video")
    expect(rows.nth(2)).to_have_attribute("data-playing", "")
    expect(rows.nth(0)).to_have_attribute("data-playing", "")  # and it goes back to where it was
    assert video.evaluate("media => media.paused")


def test_speakers_are_found_in_a_job_that_was_made_without(page, site, shared_lines):
    restore_original(site, shared_lines)  # without speakers that other tests chose
    correct(site, shared_lines, timed(LINES, 2.0))
    rows = open_job(page, shared_lines)
    panel(page).get_by_role("button", name="Find speakers").click()
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    expect(names(page)).to_have_text(["S1"])
    assert speakers(site, shared_lines) == ["S1"] * len(LINES)
    restore_original(site, shared_lines)
    without = site.job(shared_lines) | {"audio_expires_at": None}
    page.route(re.compile(f"/v1/jobs/{shared_lines}$"), lambda route: route.fulfill(json=without))
    page.reload()
    rows.first.wait_for()
    expect(panel(page)).to_have_count(0)  # the recording is gone


def test_words_of_another_speaker_are_marked_in_the_text(page, site, found):
    """As the service answers after it has found them again: the text stays one segment."""
    job, _ = found
    answer = document(site, job).json()
    first = answer["segments"][0]
    assert len(first["words"]) > 2
    for word in first["words"][1:]:
        word["speaker"] = "S9"
    etag = document(site, job).headers["etag"]
    page.route(re.compile("/segments$"), lambda route: route.fulfill(json=answer, headers={"ETag": etag}))
    rows = open_job(page, job)
    text = rows.first.locator("span.segment-text")
    expect(text).to_have_text(first["text"])  # without the mark
    assert text.locator("[data-turn]").evaluate_all("all => all.map(one => one.dataset.turn)") == ["S9"]
    expect(names(page).nth(1)).to_have_text("S9")


# What is wider than the window.
WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => `${one.tagName}.${one.className}`)"""


def test_the_panel_is_accessible_on_a_phone(page, found, axe):
    page.set_viewport_size({"width": 360, "height": 740})
    rows = open_job(page, found[0])
    page.get_by_role("heading", level=1).get_by_role("button").click()
    rows.nth(1).focus()
    page.keyboard.press("Shift+ArrowDown")
    for mode in ("Join speakers", "Find speakers again"):
        panel(page).get_by_role("button", name=mode).click()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert axe(page) == []
        assert page.evaluate(WIDER) == []
        page.keyboard.press("Escape")
        expect(panel(page).get_by_role("button", name=mode)).to_be_focused()
