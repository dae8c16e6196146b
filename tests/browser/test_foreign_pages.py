"""Pages of other sites can neither read, nor change, nor frame anything here, whoever has them open."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.cases import read_cases
from tests.e2e.running import wait_for

pytestmark = pytest.mark.timeout(120)

HOSTS = ["127.0.0.1", "localhost"]  # that the foreign page has; the service is at the first one


class Handler(BaseHTTPRequestHandler):
    """A page without content, at every address."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>foreign</title><body></body>")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def foreign_port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(params=HOSTS)
def foreign(request: pytest.FixtureRequest, page: Any, foreign_port: int) -> Page:
    """An open page of another origin, in a browser that could use the service."""
    opened: Page = page
    opened.faults.expect(".")  # type: ignore[attr-defined]
    opened.goto(f"http://{request.param}:{foreign_port}/")
    assert opened.title() == "foreign"
    return opened


@pytest.fixture(scope="module")
def job(site, shorts):
    return site.finished(site.submit(shorts[0])["id"])["id"]


def job_ids(site) -> list[str]:
    return [job["id"] for job in site.client.get("/v1/jobs", params={"limit": 100}).json()["data"]]


def in_page(page: Page, script: str, *arguments: Any) -> Any:
    """Run the body of an async function with `service` and its other arguments."""
    return page.evaluate(f"async ([service, id]) => {{ {script} }}", list(arguments))


SCRIPTS = read_cases("foreign_pages")


def test_it_cannot_read(foreign, site, job):
    job_path = f"/v1/jobs/{job}"
    streams = ("/v1/workers/events", f"{job_path}/events")
    others = ("/v1/jobs", f"{job_path}/segments", f"{job_path}/result?format=txt", "/openapi.json", "/")
    for way, script in SCRIPTS["read"].items():
        for path in streams if way == "events" else others:
            assert in_page(foreign, f"const path = {path!r}; {script}", site.url) is None, (way, path)


def sent(method: str, path: str, headers: str, body: str, mode: str = "no-cors") -> str:
    return f"""
        const options = {{ method: "{method}", mode: "{mode}", headers: {headers}, body: {body} }};
        options.signal = AbortSignal.timeout(5000);
        await fetch(service + {path}, options).catch(() => null);"""


RAW = "new Uint8Array(20000)"
WRITE: dict[str, str] = {
    "form": SCRIPTS["form"].replace("$enctype", "multipart/form-data"),
    "form as text": SCRIPTS["form"].replace("$enctype", "text/plain"),
    "form as fields": SCRIPTS["form"].replace("$enctype", "application/x-www-form-urlencoded"),
    "multipart": sent("POST", "'/v1/jobs'", "{}", SCRIPTS["form_data"]),
    "text": sent("POST", "'/v1/jobs'", "{}", "'{\"url\": \"http://127.0.0.1/a.mp3\"}'"),
    "raw": sent("POST", "'/v1/jobs?filename=a.wav'", "{'Content-Type': 'audio/wav'}", RAW, "cors"),
    "raw without a type": sent("POST", "'/v1/jobs?filename=a.wav'", "{}", RAW),
    "upload": sent("POST", "'/v1/uploads'", "{'Upload-Length': 9, 'Tus-Resumable': '1.0.0'}", "null", "cors"),
    "beacon": "navigator.sendBeacon(service + '/v1/jobs', new Blob(['x'], { type: 'text/plain' })); "
    "await new Promise((resolve) => setTimeout(resolve, 500));",
    "delete": sent("DELETE", "`/v1/jobs/${id}`", "{}", "null", "cors"),
    "correct": sent(
        "PUT", "`/v1/jobs/${id}/segments`", "{'If-Match': '*'}", "JSON.stringify({segments: []})", "cors"
    ),
    "cancel all links": sent("DELETE", "'/v1/links'", "{}", "null", "cors"),
}  # fmt: skip


def test_it_cannot_write(foreign, site, job):
    def state() -> object:
        return job_ids(site), site.result(job, "txt"), sorted((site.data / "uploads").iterdir())

    before = state()
    for way, script in WRITE.items():
        in_page(foreign, script, site.url, job)
        assert state() == before, way


def test_it_cannot_frame_the_page(foreign, site):
    for path in ("/", "/docs"):
        in_page(foreign, SCRIPTS["frame"], site.url, path)
    # Chromium shows a page of its own instead of what may not be framed.
    assert len(foreign.frames) == 3
    wait_for(lambda: all(frame.url.startswith("chrome-error:") for frame in foreign.frames[1:]))


def test_an_opener_has_no_hold_on_the_page(foreign, site):
    with foreign.context.expect_page() as opened:
        in_page(foreign, "window.victim = open(service + '/', 'victim');", site.url, "")
    page = opened.value
    expect(page.get_by_role("main")).to_be_visible()
    assert page.evaluate("window.opener") is None
    assert in_page(foreign, "return window.victim.closed;", site.url, "")  # as it seems to the foreign page
    in_page(
        foreign, "window.victim.location = 'about:blank'; window.victim.postMessage('x', '*');", site.url, ""
    )
    foreign.wait_for_timeout(300)
    assert page.url == f"{site.url}/"


def test_the_same_requests_of_the_page_itself_work(page, site, job):
    """Else the tests above would show nothing."""
    page.goto("/")
    page.get_by_role("main").wait_for()
    read: Callable[[str], Any] = partial(in_page, page)
    text = read(f"const path = '/v1/jobs'; {SCRIPTS['read']['fetch']}", site.url, job)
    assert job in text
    before = len(job_ids(site))
    read(sent("POST", "'/v1/jobs'", "{}", SCRIPTS["form_data"], "cors"), site.url, job)
    assert len(job_ids(site)) == before + 1
    read(WRITE["delete"], site.url, job)
    assert job not in job_ids(site)
