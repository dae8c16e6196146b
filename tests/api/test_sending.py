"""Clients that read slowly, or not at all."""

import asyncio
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from unittest.mock import Mock

import httpx
import pytest
from starlette.responses import Response

from app.api.http import event_streams
from app.server import sending, steady_protocol
from app.server.large_bodies import LARGE_BYTES, PART_BYTES
from app.server.sending import send_in_parts, sendable
from app.settings import Settings
from tests.api.conftest import FORM, FORM_END, form, serve_site
from tests.api.fake_service import TRANSCRIPT, segment
from tests.api.waiting import wait_for
from tests.slow_readers import ask, read_all

KEYS = ("sk-first", "sk-second")
BYTES = 3 << 20
RECORDING = Random(1).randbytes(BYTES)

# What a client may stop to read. Each has some megabytes.
TARGETS = {
    "recording": "/v1/jobs/{job}/audio",
    "copy": "/v1/jobs/{job}/audio?format=flac",
    "span": "/v1/jobs/{job}/audio?format=flac&start=1",
    "segments": "/v1/jobs/{job}/segments",
    "result": "/v1/jobs/{job}/result?format=verbose_json",
    "peaks": "/v1/jobs/{job}/peaks?points=100000",
    "archive": "/v1/jobs/archive?format=verbose_json&ids={job}",
    "documentation": "/docs/assets/swagger-ui-bundle.js",
    "page": "/web/bundle/main.js",
    "pipelined": "/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\nGET /openapi.json",
}


def long_transcript():
    """Its documents are large, also when they are compressed."""
    texts = Random(1)
    segments = [
        segment(texts.randbytes(1000).hex(), 4.0 * number / 1500, 4.0 * (number + 1) / 1500)
        for number in range(1500)
    ]
    return replace(TRANSCRIPT, segments=tuple(segments))


async def encode(source, target, *args, **options):
    await asyncio.to_thread(target.write_bytes, RECORDING)


def long_job(site, key=None):
    """The id of a job whose recording, copies, spans and documents are large."""
    site.service.media.encoder.encode = encode
    site.service.transcript = long_transcript()
    if key:
        site.client.headers["authorization"] = f"Bearer {key}"
    return site.finished(site.submitted(RECORDING))["id"]


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """A site that waits 0.4 s for its readers, and a long job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steady_protocol, "PATIENCE", 1)
        settings = Settings(data_dir=tmp_path_factory.mktemp("site"), send_timeout_s=0.4, _env_file=None)
        with serve_site(settings) as site:
            job = long_job(site)
            site.client.close()
            yield site, job


def places(site):
    """How many places are held."""
    return sum(limiter.held for limiter in vars(site.admission).values())


def has_ended(site):
    state = site.server.server_state
    return not state.tasks and not state.connections


def check_end(site, connection):
    """Check that a client which stops reading is disconnected."""
    assert connection.recv(15) == b"HTTP/1.1 200 OK"
    wait_for(lambda: has_ended(site))
    assert not places(site)


@pytest.fixture
def stalls(monkeypatch):
    """What is logged about clients that stopped reading."""
    log = Mock()
    monkeypatch.setattr(steady_protocol, "log", log)
    return log.info.call_args_list


@pytest.mark.parametrize("name", TARGETS)
def test_a_client_that_stops_reading_is_disconnected(impatient, stalls, name):
    site, job = impatient
    with ask(site.port, TARGETS[name].format(job=job)) as connection:
        check_end(site, connection)
        assert len(read_all(connection)) < BYTES
    [stall] = stalls
    assert stall.kwargs["request_id"].startswith("req_")


def test_a_transcript_that_nobody_reads(impatient, stalls):
    site, _ = impatient
    body = form(model="whisper-1", response_format="verbose_json") + FORM_END
    with ask(site.port, "/v1/audio/transcriptions", "POST", body, **FORM) as connection:
        check_end(site, connection)
    assert len(stalls) == 1


def test_a_heartbeat_that_nobody_reads(impatient, stalls, monkeypatch):
    monkeypatch.setattr(event_streams, "HEARTBEAT_S", 0.001)
    monkeypatch.setattr(event_streams, "HEARTBEAT", f": {'heartbeat ' * 2000}\n\n")
    site, _ = impatient
    with ask(site.port, "/v1/workers/events") as connection:
        check_end(site, connection)
    assert len(stalls) == 1


def test_the_end_of_a_response_that_nobody_reads(impatient, stalls, monkeypatch):
    """The response is complete for the server, and the connection is closed."""
    site, job = impatient
    monkeypatch.setattr(sending, "PART_BYTES", BYTES * 4)
    with ask(site.port, f"/v1/jobs/{job}/segments", connection="close") as connection:
        check_end(site, connection)
    assert len(stalls) == 1


@pytest.mark.parametrize("name", ["segments", "result", "recording", "archive"])
def test_a_slow_client_gets_everything(impatient, stalls, name):
    """It takes three times as long as one may stall."""
    site, job = impatient
    target = TARGETS[name].format(job=job)
    expected = httpx.get(f"{site.url}{target}", trust_env=False).content
    with ask(site.port, target, connection="close") as connection:
        received = bytearray()
        began = time.monotonic()
        while part := connection.recv(len(expected) // 40):
            received += part
            time.sleep(1.5 * len(part) / len(expected))
        assert time.monotonic() - began > 1.2
    body = received.partition(b"\r\n\r\n")[2]
    assert len(body) >= len(expected)
    if name != "archive":  # it comes in chunks
        assert body == expected
    assert not stalls


def test_a_player_may_pause(impatient, stalls, monkeypatch):
    monkeypatch.setattr(steady_protocol, "PATIENCE", 15)
    site, job = impatient
    with ExitStack() as stack:
        player, downloader = (
            stack.enter_context(ask(site.port, TARGETS[name].format(job=job), connection="close"))
            for name in ("recording", "span")
        )
        wait_for(lambda: len(site.server.server_state.tasks) == 1)
        time.sleep(1)
        assert read_all(player).endswith(RECORDING)
        assert not read_all(downloader).endswith(RECORDING)
    assert len(stalls) == 1


def test_links_and_keys_have_places(serve):
    """Of 20, one link may have 2, and a key shares them with all links."""
    site = serve(api_keys=KEYS, max_uploads=20)
    job = long_job(site, KEYS[0])
    links = [
        site.client.post(
            f"/v1/jobs/{job}/links", json={"path": "audio", "format": "flac", "start": 1, "end": end}
        ).json()["path"]
        for end in (2, 3)
    ]
    span = TARGETS["span"].format(job=job)
    with ExitStack() as stack:
        for target, key, most in ((links[0], None, 2), (links[1], None, 2), (span, KEYS[0], 10)):
            for _ in range(most):
                assert stack.enter_context(ask(site.port, target, key=key)).recv(13) == b"HTTP/1.1 200 "
            with ask(site.port, target, key=key, connection="close") as refused:
                answer = read_all(refused)
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b"too_many_downloads" in answer
            assert b"retry-after" in answer
        assert site.admission.sending.held == 14
        assert len(list(site.service.media.folder.copies.iterdir())) == 3, "equal spans share a file"
        statuses = {
            name: site.client.get(TARGETS[name].format(job=job)).status_code
            for name in ("result", "segments", "peaks", "archive", "copy", "recording")
        }
        assert statuses == dict.fromkeys(statuses, 429) | {"copy": 200, "recording": 200}
        assert site.client.get(f"/v1/jobs/{job}/peaks").status_code == 200, "it is small"
        with ask(site.port, span, key=KEYS[1]) as other:
            assert other.recv(13) == b"HTTP/1.1 200 "
    wait_for(lambda: not site.admission.sending.held)
    assert site.client.get(TARGETS["segments"].format(job=job)).status_code == 200


@pytest.mark.anyio
async def test_a_large_body_is_sent_in_parts():
    sent = []

    async def send(message):
        sent.append((len(message["body"]), message["more_body"]))

    body = bytes(2 * PART_BYTES + 1)
    for more in (False, True):
        await send_in_parts(send, {"type": "http.response.body", "body": body, "more_body": more})
        assert sent == [(PART_BYTES, True), (PART_BYTES, True), (1, more)]
        sent.clear()
    await send_in_parts(send, {"type": "http.response.body", "body": b"short", "more_body": False})
    assert sent == [(5, False)]


@pytest.mark.anyio
async def test_only_a_large_body_is_compressed_and_holds_a_place():
    held = []

    @contextmanager
    def place():
        held.append("begin")
        yield
        held.append("end")

    small = Response(bytes(LARGE_BYTES))
    assert await sendable(small, place()) is small
    body = Random(1).randbytes(1000) * 1000
    response = Response(body, status_code=201, media_type="application/json", headers={"etag": '"1"'})
    large = await sendable(response, place())
    assert large.headers == response.headers
    assert held == []
    sent = []

    async def send(message):
        assert held == ["begin"]
        sent.append(message)

    await large({"type": "http", "asgi": {"spec_version": "2.4"}}, None, send)
    assert held == ["begin", "end"]
    assert sent[0] == {"type": "http.response.start", "status": 201, "headers": response.raw_headers}
    assert b"".join(message["body"] for message in sent[1:]) == body
    assert not sent[-1]["more_body"]
