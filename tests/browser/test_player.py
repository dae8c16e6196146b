"""The player of a job's recording, in a real browser with real sound."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Request, Route, expect

from app.common.errors import NOT_KEPT
from tests.browser.conftest import NewPage
from tests.e2e.reading import Talk
from tests.e2e.running import KEY, Server, wait_for
from tests.media_files import RATE, Pcm, encode, read_pcm

pytestmark = pytest.mark.timeout(120)

# Whoever decodes a recording in the tab needs one of these.
COUNT_DECODING = """
window.decoded = 0;
for (const name of ["AudioContext", "OfflineAudioContext"]) {
  globalThis[name] = class extends globalThis[name] {
    constructor(...inputs) { super(...inputs); window.decoded += 1; }
  };
}
"""


@pytest.fixture(scope="module")
def pcm(talk: Talk) -> Pcm:
    return read_pcm(talk.path)[: 12 * RATE]


@pytest.fixture(scope="module")
def job_id(site: Server, talk: Talk) -> str:
    """A talk of a minute, transcribed."""
    return done(site, talk.path)


@pytest.fixture(scope="module")
def film_job(site: Server, pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The beginning of it, as a film."""
    film = encode(pcm, "webm", "libopus", rate=48000, video="libvpx")
    return done(site, written(tmp_path_factory.mktemp("films"), "film.webm", film))


def done(server: Server, path: Path, **fields: Any) -> str:
    job = server.finished(server.submit(path, **fields)["id"])
    assert job["status"] == "succeeded", job["error"]
    return str(job["id"])


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def wait_until(page: Page, function: str, argument: Any = None) -> None:
    """Playwright's own `wait_for_function` evaluates text, which the content policy forbids."""
    wait_for(lambda: page.evaluate(function, argument), pause_s=0.1)


def ten_minutes_of(path: Path) -> bytes:
    """Too much for a browser to have all of it at once, most of it silence: it is transcribed at once."""
    pcm = read_pcm(path)[: 10 * RATE]
    silence = np.zeros(590 * RATE, np.int16)
    return encode(np.concatenate([pcm, silence]), "wav", "pcm_s16le", rate=44100)


class Player:
    """The player on a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.place = page.get_by_label("Position")
        self.waveform = page.locator(".waveform")

    def open(self, job_id: str) -> "Player":
        self.page.goto(f"/#/jobs/{job_id}")
        self.wait("media?.readyState > 0")
        expect(self.waveform).to_have_attribute("data-state", "ready")
        return self

    def get(self, expression: str) -> Any:
        """What an expression of the media element `media` gives."""
        return self.page.evaluate(
            f"() => {{ const media = document.querySelector('video'); return {expression}; }}"
        )

    def wait(self, condition: str) -> None:
        wait_until(
            self.page, f"() => {{ const media = document.querySelector('video'); return {condition}; }}"
        )

    def play(self) -> None:
        self.page.get_by_role("button", name="Play", exact=True).click()
        began = self.get("media.currentTime")
        self.wait(f"!media.paused && media.currentTime > {began} + 0.2")

    def pause(self) -> None:
        self.page.get_by_role("button", name="Pause", exact=True).click()
        self.wait("media.paused")


@pytest.fixture
def player(page: Page, job_id: str) -> Player:
    return Player(page).open(job_id)


def test_sound_plays_and_nothing_is_decoded_in_the_tab(page: Page, job_id: str) -> None:
    page.add_init_script(COUNT_DECODING)
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))
    player = Player(page).open(job_id)
    player.play()
    page.get_by_role("button", name="More for the player").click()
    page.get_by_role("menuitem", name="Zoom in on the waveform").click()
    fetched = [request.resource_type for request in requests if "/audio" in request.url]
    assert set(fetched) == {"media"}
    assert len([request for request in requests if "/peaks" in request.url]) == 1
    assert page.evaluate("window.decoded") == 0


def test_the_waveform_and_its_slider_go_there(player: Player) -> None:
    box = player.waveform.bounding_box()
    assert box
    player.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    half = player.get("media.duration / 2")
    assert player.get("media.currentTime") == pytest.approx(half, abs=0.5)
    expect(player.place).to_have_attribute("aria-valuetext", "0:31 of 1:02")
    player.place.focus()
    player.page.keyboard.press("Home")
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowRight"):
        player.page.keyboard.press(key)
    expect(player.place).to_have_attribute("aria-valuetext", "0:11 of 1:02")
    player.page.keyboard.press("End")
    player.wait("media.currentTime > 61")


def test_speed_volume_and_position_are_remembered(player: Player) -> None:
    page = player.page
    page.get_by_label("Speed").select_option("1.5")
    page.get_by_label("Volume").fill("0.5")
    player.place.fill("30")
    player.play()
    player.pause()
    left_at = player.get("media.currentTime")
    page.reload()
    player.wait("media?.readyState > 0")
    assert player.get("media.currentTime") == pytest.approx(left_at, abs=0.1)
    assert player.get("media.paused")
    player.play()
    assert player.get("[media.playbackRate, media.volume]") == [1.5, 0.5]


def test_keys(player: Player) -> None:
    player.place.fill("20")
    player.play()
    keyboard = player.page.keyboard
    keyboard.press("k")
    player.wait("media.paused")
    player.place.fill("20")
    player.page.locator("body").click(position={"x": 5, "y": 300})
    keyboard.press("ArrowRight")
    player.wait("Math.abs(media.currentTime - 25) < 0.1")
    keyboard.press("Shift+ArrowLeft")
    player.wait("Math.abs(media.currentTime - 24) < 0.1")
    keyboard.press(">")
    player.wait("media.playbackRate === 1.25")
    keyboard.press("<")
    player.wait("media.playbackRate === 1")
    keyboard.press("m")
    player.wait("media.muted")
    keyboard.press(" ")
    player.wait("!media.paused")
    keyboard.press(" ")
    player.wait("media.paused")
    more = player.page.get_by_role("button", name="More for the player")
    more.click()
    keyboard.press("Escape")
    expect(more).to_be_focused()
    button = player.page.get_by_role("button", name="Repeat this segment")
    button.focus()
    keyboard.press(" ")  # presses the button that has the focus
    expect(button).to_have_attribute("aria-pressed", "true")
    assert player.get("media.paused")


def test_a_film_shows_its_picture_with_captions(page: Page, site: Server, film_job: str) -> None:
    player = Player(page).open(film_job)
    expect(page.locator("video")).to_be_visible()
    assert player.get("media.videoWidth") > 0
    first = site.client.get(f"/v1/jobs/{film_job}/segments").json()["segments"][0]
    player.wait("[...media.textTracks].some((track) => track.mode === 'showing' && track.cues?.length > 3)")
    player.place.fill(str(int(first["start"]) + 1))
    showing = "[...media.textTracks].find((track) => track.mode === 'showing')"
    player.wait(f"{showing}?.activeCues?.length > 0")
    assert player.get(f"{showing}.activeCues[0].getCueAsHTML().textContent").split()[0] in first["text"]
    player.play()
    page.keyboard.press("c")
    player.wait(f"!{showing}")
    expect(page.get_by_role("button", name="Captions")).to_have_attribute("aria-pressed", "false")


def test_captions_come_from_the_page_where_the_service_gives_none(page: Page, film_job: str) -> None:
    page.route("**/result?*", lambda route: route.fulfill(status=503, body=""))
    page.faults.expect("status of 503")  # type: ignore[attr-defined]
    player = Player(page).open(film_job)
    player.wait("[...media.textTracks].some((track) => track.mode === 'showing' && track.cues?.length > 3)")


def test_the_controls_of_a_film_stay_in_the_player(page: Page, film_job: str) -> None:
    Player(page).open(film_job)
    expect(page.locator("video")).to_be_visible()
    for width in (375, 700, 1000, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        outside = page.evaluate(
            """() => {
            const { right } = document.querySelector(".player").getBoundingClientRect();
            const controls = [...document.querySelectorAll(".player-controls :is(button, input, select)")];
            return controls.filter((control) => control.getBoundingClientRect().right > right - 4).length;
        }"""
        )
        assert outside == 0, width
        page.get_by_role("button", name="More for the player").click()
        for name in ("Captions", "Repeat this segment"):
            expect(page.get_by_role("menuitemcheckbox", name=name)).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("menuitem", name="Full screen")).to_be_in_viewport(ratio=1)
        page.keyboard.press("Escape")


def test_a_click_on_the_full_screen_plays_and_another_one_pauses(page: Page, film_job: str) -> None:
    player = Player(page).open(film_job)
    page.get_by_role("button", name="Full screen").click()
    player.wait("document.fullscreenElement === media")
    page.locator("video").click()
    player.wait("!media.paused && media.currentTime > 0.2")
    page.wait_for_timeout(600)  # not a double click
    page.locator("video").click()
    player.wait("media.paused")


def test_what_the_browser_cannot_play_is_played_as_a_copy(
    page: Page, site: Server, pcm: Pcm, tmp_path: Path
) -> None:
    recording = written(tmp_path, "recording.aiff", encode(pcm, "aiff", "pcm_s16be"))
    player = Player(page).open(done(site, recording))
    player.wait("media.src.endsWith('format=ogg')")
    player.play()
    expect(page.get_by_text("The sound is being prepared")).to_have_count(0)


def test_a_recording_without_a_length_can_be_sought_in(
    page: Page, site: Server, pcm: Pcm, tmp_path: Path
) -> None:
    """As browsers record a microphone."""
    live = encode(pcm, "webm", "libopus", rate=48000, options={"live": "1"})
    player = Player(page).open(done(site, written(tmp_path, "microphone.webm", live)))
    player.wait("Number.isFinite(media.duration)")
    player.place.fill("5")
    player.play()
    assert 5 < player.get("media.currentTime") < 11


def test_with_keys_it_plays_by_links_and_renews_them(
    locked: Server, new_page: NewPage, talk: Talk, tmp_path: Path
) -> None:
    job_id = done(locked, written(tmp_path, "long.wav", ten_minutes_of(talk.path)))
    page = new_page(locked)
    page.add_init_script(f"localStorage.setItem('whisperfleet.key', JSON.stringify('{KEY}'))")
    made: list[str] = []

    def withdraw_the_first(route: Route) -> None:
        response = route.fetch()
        made.append(locked.url + response.json()["path"])
        if len(made) == 1:
            locked.client.delete("/v1/links").raise_for_status()
        route.fulfill(response=response)

    page.route("**/links", withdraw_the_first)
    page.faults.expect("status of 403")  # type: ignore[attr-defined]
    player = Player(page).open(job_id)
    player.play()
    assert len(made) == 2
    assert player.get("media.src") == made[1]
    assert KEY not in made[1]
    locked.client.delete("/v1/links").raise_for_status()  # as after twelve hours
    player.place.fill("550")
    player.wait("!media.paused && media.currentTime > 550.2")
    assert player.get("media.src") == made[2]


def test_without_the_recording_it_says_why(page: Page, job_id: str) -> None:
    error = {"message": NOT_KEPT, "code": "audio_not_kept"}
    page.route("**/audio", lambda route: route.fulfill(status=404, json={"error": error}))
    page.faults.expect("status of 404")  # type: ignore[attr-defined]
    page.goto(f"/#/jobs/{job_id}")
    expect(
        page.get_by_text("The service no longer has the recording. Text and waveform stay.")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_disabled()
    expect(page.locator(".waveform")).to_have_attribute("data-state", "ready")


def test_a_recording_that_is_none_is_asked_for_nothing_but_itself(
    page: Page, site: Server, tmp_path: Path
) -> None:
    """Neither its waveform nor a copy: each would be an error in the console."""
    broken = written(tmp_path, "broken.mp3", b"This is a text, and no recording. " * 100)
    failed = site.finished(site.submit(broken)["id"])
    assert failed["status"] == "failed"
    page.goto(f"/#/jobs/{failed['id']}")
    expect(page.get_by_text("This browser can play neither")).to_be_visible()
    expect(page.locator(".waveform")).to_have_attribute("data-state", "missing")
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"status": "running", "stage": "downloading"}, "The recording is being downloaded."),
        ({"status": "failed", "stage": "done"}, "The recording was not downloaded"),
    ],
)
def test_a_recording_that_is_not_downloaded_is_not_asked_for(
    page: Page, job_id: str, state: dict[str, str], why: str
) -> None:
    def of_a_url(route: Route) -> None:
        job = route.fetch().json()
        progress = {**job["progress"], "stage": state["stage"], "total_s": None}
        source = {
            "url": "http://127.0.0.1/talk.mp3",
            "filename": None,
            "duration": None,
            "audio_tracks": None,
        }
        route.fulfill(json={**job, **source, "status": state["status"], "progress": progress})

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route(f"**/v1/jobs/{job_id}", of_a_url)
    page.route("**/events", lambda route: None)  # nothing happens
    page.goto(f"/#/jobs/{job_id}")
    expect(page.get_by_text(why)).to_be_visible()
    assert not [url for url in asked if "/audio" in url or "/peaks" in url]


def test_the_waveform_comes_when_the_recording_is_decoded(page: Page, job_id: str) -> None:
    asked = []

    def answer(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            return route.continue_()
        error = {"message": "The recording is not decoded yet.", "code": "audio_not_decoded"}
        return route.fulfill(status=409, json={"error": error})

    page.route("**/peaks?*", answer)
    page.faults.expect("status of 409")  # type: ignore[attr-defined]
    page.goto(f"/#/jobs/{job_id}")
    waveform = page.locator(".waveform")
    expect(waveform).to_have_attribute("data-state", "waiting")
    height = waveform.bounding_box()
    expect(waveform).to_have_attribute("data-state", "ready")
    assert waveform.bounding_box() == height


def test_the_done_part_is_coloured_while_the_job_runs(
    paced: Server, new_page: NewPage, three_minutes: Path
) -> None:
    page = new_page(paced)
    page.goto("/")
    page.get_by_role("main").wait_for()
    job_id = paced.submit(three_minutes)["id"]
    player = Player(page).open(job_id)
    veil = "() => document.querySelector('.waveform-veil')?.getBoundingClientRect().left ?? 0"
    assert paced.job(job_id)["status"] == "running"
    first = player.page.evaluate(veil)
    assert first > 0
    wait_until(player.page, f"(first) => ({veil})() > first", first)
    paced.finished(job_id)
    wait_until(player.page, f"() => ({veil})() === 0")


def test_the_edited_segment_is_dragged_and_repeated_as_it_is_now(player: Player) -> None:
    page = player.page
    row = page.locator(".segment").nth(3)
    row.focus()
    page.keyboard.press("Enter")
    ends = page.get_by_label("End")
    before = ends.input_value()
    box = page.locator(".waveform-edge[data-side=end]").bounding_box()
    assert box
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0] - 12, at[1], steps=4)
    page.mouse.up()
    expect(ends).not_to_have_value(before)
    assert player.get("media.currentTime") == 0  # dragging is no click
    row.get_by_role("button", name="Play from").click()
    page.get_by_role("button", name="Repeat this segment").click()
    player.wait("!media.paused")
    minutes, seconds = row.get_by_label("Start").input_value().split(":")
    start = int(minutes) * 60 + float(seconds)
    ends.fill(f"{start + 0.5:.2f}")
    page.keyboard.press("Tab")
    player.wait(f"media.currentTime < {start + 0.5}")
    furthest = page.evaluate(
        """async () => {
        const [media, until] = [document.querySelector("video"), performance.now() + 2000];
        let furthest = 0;
        while (performance.now() < until) {
            await new Promise((resolve) => setTimeout(resolve, 20));
            furthest = Math.max(furthest, media.currentTime);
        }
        return furthest;
    }"""
    )
    assert start < furthest < start + 1  # the segment was longer
    row.get_by_label("Start").fill("0:01")
    page.keyboard.press("Escape")  # leaves the field as it was
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()


def test_the_waveform_has_the_colours_of_the_theme(page: Page, job_id: str) -> None:
    page.emulate_media(color_scheme="light")
    Player(page).open(job_id)
    colours = """() => {
        const canvas = document.querySelector(".waveform canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const solid = data.findIndex((value, index) => index % 4 === 3 && value === 255);
        return [...data.slice(solid - 3, solid)].join();
    }"""
    light = page.evaluate(colours)
    page.emulate_media(color_scheme="dark")
    wait_until(page, f"(light) => ({colours})() !== light", light)


def test_it_stays_in_view(page: Page, job_id: str) -> None:
    page.set_viewport_size({"width": 375, "height": 400})
    Player(page).open(job_id)
    page.evaluate(
        "document.querySelector('main').append(Object.assign(document.createElement('div'), { id: 'tall' }))"
    )
    page.evaluate("document.getElementById('tall').style.height = '3000px'")
    page.evaluate("scrollTo(0, 1500)")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_in_viewport()
    box = page.locator(".player").bounding_box()
    assert box
    assert box["height"] < 120


@pytest.mark.soak
def test_a_film_whose_sound_the_browser_cannot_play_is_heard(
    page: Page, site: Server, pcm: Pcm, tmp_path: Path
) -> None:
    """The sound alone is better than the pictures alone."""
    film = encode(pcm[: 6 * RATE], "matroska", "ac3", rate=48000, video="libvpx")
    player = Player(page).open(done(site, written(tmp_path, "film.mkv", film)))
    expect(page.locator("video")).to_be_visible()
    player.play()
    player.wait("media.src.endsWith('format=ogg') && !media.paused && media.currentTime > 1")
