"""The pictures of the page in README and docs: `make screenshots` writes them to `docs/images/`."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.chromium import ARGUMENTS, MISSING, find_chromium
from tests.e2e.fixtures import Commands, write_wav
from tests.e2e.running import DATA, SIMULATED, Server, wait_for
from tests.media_files import RATE, read_pcm

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 375, "height": 760}
SLOW_UPLOAD = {"offline": False, "latency": 20, "downloadThroughput": -1, "uploadThroughput": 1 << 20}
LANES = SIMULATED | {
    "WHISPER_CPU_WORKERS": 8,
    "WHISPER_SIMULATED": "batch=4,fixed_ms=700,clip_ms=500,poisoned_for_good=6",
}


def main() -> None:
    path = find_chromium()
    if path is None:
        raise SystemExit(f"{MISSING}.")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        with served(Path(folder) / "demo") as server:
            draw_transcripts(browser, server, Path(folder))
        with served(Path(folder) / "lanes", **LANES) as server:
            draw_fleet(browser, server, Path(folder))
        browser.close()


@contextmanager
def served(folder: Path, **settings: Any) -> Iterator[Server]:
    folder.mkdir()
    commands = Commands(folder)
    try:
        yield commands.ready(**settings) if not settings else commands.serve(**settings).wait_until_up()
    finally:
        commands.end()


@contextmanager
def opened(browser: Browser, server: Server, **options: Any) -> Iterator[Page]:
    context = browser.new_context(
        base_url=server.url,
        **{"viewport": WIDE, "device_scale_factor": 1.5, "color_scheme": "light"} | options,
    )
    context.set_default_timeout(60_000)
    try:
        yield context.new_page()
    finally:
        context.close()


def shoot(page: Page, name: str) -> None:
    page.wait_for_timeout(700)  # until transitions and the waveform have ended
    page.screenshot(path=IMAGES / f"{name}.png")


def draw_transcripts(browser: Browser, server: Server, folder: Path) -> None:
    talks = {name: folder / f"{name}.flac" for name in ("lecture", "vortrag", "charla")}
    for talk, source in zip(talks.values(), ("talk", "talk_de", "talk_es"), strict=True):
        talk.write_bytes((DATA / f"{source}.flac").read_bytes())
    long = write_wav(folder, np.resize(read_pcm(DATA / "talk.flac"), 1200 * RATE)).rename(
        folder / "seminar.wav"
    )
    with opened(browser, server) as page:
        page.goto("/")
        expect(page.get_by_role("button", name="Choose files")).to_be_visible()
        shoot(page, "empty")
        page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW_UPLOAD)
        page.locator("input[type=file]").first.set_input_files([str(long), *map(str, talks.values())])
        page.wait_for_timeout(5000)
        shoot(page, "uploading")
    jobs = [submitted(server, path) for path in talks.values()]
    for job in jobs:
        finished(server, job)
    running = submitted(server, long)
    with opened(browser, server) as page:
        page.goto(f"/#/jobs/{running}")
        expect(page.locator(".waveform")).to_have_attribute("data-state", "ready", timeout=60_000)
        wait_for(lambda: server.job(running)["progress"]["done_s"] > 300, 120)
        shoot(page, "running")
    lecture = f"/#/jobs/{jobs[0]}"
    for name, options in {
        "transcript": {},
        "dark": {"color_scheme": "dark"},
        "phone": {"viewport": PHONE, "device_scale_factor": 2, "is_mobile": True, "has_touch": True},
    }.items():
        with opened(browser, server, **options) as page:
            page.goto(lecture)
            page.get_by_role("button", name="Play", exact=True).first.click()
            page.wait_for_timeout(2500)
            shoot(page, name)
    with opened(browser, server) as page:
        page.goto(lecture)
        page.locator(".segment-text > span").nth(6).dblclick()
        expect(page.get_by_role("textbox").first).to_be_visible()
        shoot(page, "correcting")
        page.get_by_role("button", name="Subtitles").click()
        page.get_by_label("Subtitle style").select_option("bbc")  # the strictest one
        page.locator(".cue").first.focus()
        page.keyboard.press("e")
        expect(page.locator(".cue-problems button").first).to_be_visible()
        shoot(page, "subtitles")
        page.goto("/")
        expect(page.get_by_role("link", name="lecture.flac").first).to_be_visible()
        shoot(page, "transcripts")


def draw_fleet(browser: Browser, server: Server, folder: Path) -> None:
    talk = read_pcm(DATA / "talk.flac")
    jobs = []
    for number, minutes in enumerate((60, 45, 30, 20, 15)):
        path = write_wav(folder, np.resize(talk, minutes * 60 * RATE)).rename(
            folder / f"lecture {number + 1}.wav"
        )
        jobs.append(submitted(server, path))
    with opened(browser, server) as page:
        page.goto("/#/fleet")
        page.wait_for_timeout(35_000)
        shoot(page, "fleet")
    for job in jobs:
        server.client.delete(f"/v1/jobs/{job}").raise_for_status()


def submitted(server: Server, path: Path) -> str:
    return str(server.submit(path)["id"])


def finished(server: Server, job: str) -> None:
    assert server.finished(job)["status"] == "succeeded"


if __name__ == "__main__":
    main()
