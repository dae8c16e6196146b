"""What the tests of a transcript's page share: transcripts made to measure, and the page that shows them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Locator, Page

from tests.e2e.running import Server

Segment = dict[str, Any]

ONE_WINDOW_S = 24.0  # a part that takes one window, of some segments


def document(site: Server, job_id: str) -> httpx.Response:
    return site.client.get(f"/v1/jobs/{job_id}/segments").raise_for_status()


def stored(site: Server, job_id: str) -> list[Segment]:
    """The segments that the service has."""
    segments: list[Segment] = document(site, job_id).json()["segments"]
    return segments


def texts(site: Server, job_id: str) -> list[str]:
    return [segment["text"] for segment in stored(site, job_id)]


def correct(site: Server, job_id: str, segments: Sequence[Segment]) -> None:
    """Store other segments."""
    _put(site, job_id, {"segments": segments})


def restore(site: Server, job_id: str, revision: int) -> None:
    """Bring a revision back."""
    _put(site, job_id, {"revision": revision})


def _put(site: Server, job_id: str, body: dict[str, Any]) -> None:
    headers = {"If-Match": document(site, job_id).headers["etag"]}
    answer = site.client.put(f"/v1/jobs/{job_id}/segments", json=body, headers=headers)
    assert answer.status_code == 200, answer.text


def timed(lines: Sequence[str], seconds: float) -> list[Segment]:
    """A segment for each line, one after the other, without marks that a test before has made."""
    return [
        {"start": number * seconds, "end": (number + 1) * seconds, "text": line, "marks": []}
        for number, line in enumerate(lines)
    ]


def with_lines(site: Server, recording: Path, lines: Sequence[str], seconds: float = 2.0) -> str:
    """The id of a job whose transcript has these lines. The recording is transcribed as far as they go."""
    end = max(ONE_WINDOW_S, len(lines) * seconds)
    job = site.finished(site.submit(recording, end=end)["id"])
    assert job["status"] == "succeeded", job
    correct(site, job["id"], timed(lines, seconds))
    return str(job["id"])


def open_job(page: Page, job_id: str) -> Locator:
    """The rows of the transcript, when the first one is there."""
    page.goto(f"/#/jobs/{job_id}")
    rows = page.locator(".segment")
    rows.first.wait_for()
    return rows


def row_with(page: Page, text: str) -> Locator:
    return page.locator(".segment", has_text=text)


def save(page: Page) -> None:
    """Store everything now, not a while after the last correction."""
    page.keyboard.press("Control+s")
    page.locator(".save-status[data-state=saved]").wait_for()


def field_text(page: Page) -> str:
    return page.locator("textarea.segment-text").input_value()
