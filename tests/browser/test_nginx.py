"""The service behind nginx, as the documentation configures it: with TLS, below a path."""

import json
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.test_intake import drop
from tests.e2e.fixtures import Commands, without_jobs
from tests.e2e.running import ANSWER_S, DATA, ONE_SIMULATED, Server, free_port, wait_for
from tests.nginx import MISSING, REQUIRED, find_nginx, running_nginx

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(find_nginx() is None and not REQUIRED, reason=MISSING),
]

ROOT = "/whisper"
TALK = DATA / "talk.flac"
ELSEWHERE = "127.0.0.2"  # also this machine, and no trusted proxy


@dataclass(frozen=True)
class Front:
    """The service as clients of nginx see it."""

    service: Server
    url: str  # ends with the root path and a slash
    client: httpx.Client

    def at(self, path: str) -> httpx.URL:
        """The address of a path as the service gives it."""
        return httpx.URL(self.url).join(path)


@pytest.fixture(scope="module")
def front(module_commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    service = module_commands.ready(
        **ONE_SIMULATED,
        WHISPER_SIMULATED="batch=1,fixed_ms=300,clip_ms=1",
        WHISPER_ROOT_PATH=ROOT,
        WHISPER_MAX_UPLOAD_MB=16,
        WHISPER_LOG_FORMAT="json",
    )
    port = free_port()
    url = f"https://127.0.0.1:{port}{ROOT}/"
    with (
        running_nginx(tmp_path_factory.mktemp("front") / "nginx", port, service.port),
        client(url) as connected,
    ):
        wait_for(lambda: answers(connected))
        yield Front(service, url, connected)


def client(url: str, address: str = "127.0.0.1") -> httpx.Client:
    transport = httpx.HTTPTransport(verify=unverified(), local_address=address)
    return httpx.Client(base_url=url, transport=transport, timeout=ANSWER_S, trust_env=False)


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def answers(connected: httpx.Client) -> bool:
    try:
        return connected.get("health").status_code == 200
    except httpx.TransportError:
        return False


def test_a_job_from_its_location_to_its_result(front: Front) -> None:
    with TALK.open("rb") as recording:
        submitted = front.client.post("v1/jobs", files={"file": ("talk.flac", recording)})
    assert submitted.status_code == 202, submitted.text
    location = submitted.headers["location"]
    assert location == f"{ROOT}/v1/jobs/{submitted.json()['id']}"
    with front.client.stream("GET", front.at(f"{location}/events")) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines)
        early = front.service.job(submitted.json()["id"])
        assert early["status"] in ("queued", "running"), "nginx would hold back the events until the end"
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert events[-1]["status"] == "succeeded"
    assert front.client.get(front.at(f"{location}/result?format=srt")).text.startswith("1\n00:00:")
    link = front.client.post(front.at(f"{location}/links"), json={"path": "audio"}).json()["path"]
    part = front.client.get(front.at(link), headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"fLaC")


def test_what_arrives_before_a_cut_is_kept(front: Front) -> None:
    def recordings_size() -> int:
        return sum(path.stat().st_size for path in (front.service.data / "uploads").iterdir())

    tus = {"Tus-Resumable": "1.0.0"}
    created = front.client.post("v1/uploads", headers=tus | {"Upload-Length": "4000000"})
    before = recordings_size()
    address = front.at(created.headers["location"])
    head = (
        f"PATCH {address.path} HTTP/1.1\r\nHost: {address.netloc.decode()}\r\nTus-Resumable: 1.0.0\r\n"
        "Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 4000000\r\n\r\n"
    )
    with (
        socket.create_connection((address.host, address.port)) as plain,
        unverified().wrap_socket(plain) as connection,
    ):
        connection.sendall(head.encode() + bytes(3_000_000))
        # Not by HEAD, which ends the request that writes.
        wait_for(lambda: recordings_size() > before + 10**6)
    assert int(front.client.head(address, headers=tus).headers["upload-offset"]) > 10**6
    assert front.client.delete(address, headers=tus).status_code == 204


def test_a_file_that_is_too_large_is_refused_by_the_service(front: Front) -> None:
    answer = front.client.post("v1/jobs", files={"file": ("long.wav", bytes(17_000_000))})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"], "nginx's own answer would be HTML"


def test_the_log_names_the_client_and_not_what_it_claims(front: Front) -> None:
    with client(front.url, ELSEWHERE) as stranger:
        stranger.get("v1/nowhere", headers={"X-Forwarded-For": "203.0.113.9"})

    def logged() -> list[dict[str, object]]:
        lines = map(json.loads, (front.service.stdout + front.service.stderr).splitlines())
        return [line for line in lines if line.get("path") == f"{ROOT}/v1/nowhere"]

    [line] = wait_for(logged)
    assert line["client"] == ELSEWHERE


def test_addresses_without_the_path_lead_nowhere_else(front: Front) -> None:
    assert front.client.get(front.url.removesuffix("/")).headers["location"].endswith(f"{ROOT}/")
    assert front.client.get(front.at("/v1/jobs")).status_code == 404, (
        "nginx knows only what lies below the path"
    )


@pytest.mark.timeout(180)
def test_the_page_uploads_and_follows_a_recording(new_page, front: Front) -> None:
    without_jobs(front.service)
    page = new_page(front, ignore_https_errors=True)
    page.goto("")
    drop(page, TALK)
    row = page.locator(".job-row", has_text=TALK.name)
    expect(row.locator("[data-status=succeeded]")).to_be_visible(timeout=60_000)
    row.get_by_role("link").first.click()
    expect(page.locator(".segment").first).to_be_visible()
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".segment[data-playing]")).to_have_count(1)
    page.goto("docs")
    page.get_by_text("/v1/audio/transcriptions").first.click()
    page.get_by_role("button", name="Try it out").first.wait_for()  # nothing of it is forbidden
    assert re.search(rf"{ROOT}$", page.locator(".servers select option").first.get_attribute("value") or "")
