"""Limits of requests, uploads and event streams: held before the body is read, released on every path."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from app.api.http import receiving
from app.common.errors import ClipFailed
from tests.api.conftest import FORM, FORM_END, form
from tests.api.fake_service import OTHER_MODEL
from tests.api.waiting import wait_for

KEYS = ("sk-first", "sk-second")
# The name of the file's field at each path for recordings, and the fields before the file.
PATHS = {
    "/v1/audio/transcriptions": ("file", {"model": "whisper-1"}),
    "/v1/audio/translations": ("file", {"model": "whisper-1"}),
    "/v1/audio/speech/timestamps": ("file", {}),
    "/asr": ("audio_file", {}),
    "/detect-language": ("audio_file", {}),
    "/v1/jobs": ("file", {}),
}
REQUESTS = [path for path in PATHS if path != "/v1/jobs"]


def start_of_body(path):
    field, fields = PATHS[path]
    return form(field, **fields)


def announce(site, path, length, **headers):
    """A connection on which the head of an upload was sent."""
    return site.begin(f"POST {path}", length=length, **FORM, **headers)


def begin(site, path, **headers):
    """A connection on which an upload has begun; its file is not on disk before it has a mebibyte."""
    before = len(site.uploads)
    content = start_of_body(path) + bytes(2_000_000)
    connection = site.begin(f"POST {path}", content, length=9_000_000, **FORM, **headers)
    wait_for(lambda: len(site.uploads) > before)
    return connection


def post(site, path, *, key=None, **data):
    field, fields = PATHS[path]
    headers = {"authorization": f"Bearer {key}"} if key else {}
    files = {field: ("a.wav", b"RIFF\0")}
    return site.client.post(path, data=fields | data, files=files, headers=headers)


def error(response):
    return response.status_code, response.json()["error"]["code"]


def check_refusal(response, code, setting):
    assert error(response) == (429, code)
    assert setting in response.json()["error"]["message"]
    assert int(response.headers["retry-after"]) > 0


def answer(connection):
    """All of an error's response. Its body may come after its head."""
    response = b""
    while not response.endswith(b"}}"):
        part = connection.recv(4096)
        assert part, response
        response += part
    return response


def until_idle(site):
    """Wait until no request is open."""
    wait_for(lambda: not site.server.server_state.tasks)


@pytest.fixture
def full(serve):
    """A site whose queue for requests is full; the file of each is on disk."""
    site = serve(max_queued_jobs=1)
    site.service.paused = True
    with ThreadPoolExecutor(8) as threads:
        count = site.service.fleet.jobs_at_once + 1
        requests = [threads.submit(site.transcribe) for _ in range(count)]
        wait_for(lambda: len(site.service.calls) == count)
        yield site
        site.service.paused = False
        assert [request.result().status_code for request in requests] == [200] * count


# The queue of requests


@pytest.mark.parametrize("path", REQUESTS)
def test_full_queue_is_reported_before_the_body_is_read(full, path):
    with announce(full, path, 4_000_000_000) as connection:
        assert answer(connection).startswith(b"HTTP/1.1 429")
    with announce(full, path, 4_000_000_000, expect="100-continue") as connection:
        assert answer(connection).startswith(b"HTTP/1.1 429"), "the body was requested"
    check_refusal(post(full, path), "queue_full", "WHISPER_MAX_QUEUED_JOBS")
    assert len(full.service.calls) == len(full.uploads) == full.service.fleet.jobs_at_once + 1


def test_the_connection_closes_after_a_refusal_and_others_work(full):
    with full.begin("POST /asr", start_of_body("/asr"), length=1_000_000, **FORM) as connection:
        response = answer(connection)
        assert b"connection: close" in response.lower()
    assert full.client.get("/health").status_code == 200


@pytest.mark.parametrize("path", REQUESTS)
def test_an_upload_holds_a_place_in_the_queue(serve, path):
    """Two requests of which one is uploaded are as many as two that are transcribed."""
    site = serve(max_queued_jobs=1)
    count = site.service.fleet.jobs_at_once + 1
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(begin(site, path))
        check_refusal(post(site, path), "queue_full", "WHISPER_MAX_QUEUED_JOBS")
    wait_for(lambda: post(site, path).status_code == 200)


@pytest.fixture
def tiny(serve):
    """A site with places for two requests and one upload."""
    return serve(max_queued_jobs=1, max_uploads=1, upload_stall_s=0.5)


def test_places_are_released_after_every_outcome(tiny, monkeypatch):
    """More times than there are places."""
    for _ in range(tiny.service.fleet.jobs_at_once + 3):
        assert tiny.transcribe().status_code == 200
        assert tiny.transcribe(stream="true").status_code == 200
        assert tiny.transcribe(language="nowhere").status_code == 400
        assert tiny.transcribe(model="nothing").status_code == 404
        assert post(tiny, "/asr").status_code == 200
        assert post(tiny, "/detect-language").status_code == 200
        assert tiny.client.post("/asr", content=b"x").status_code == 415
    tiny.service.error = ClipFailed("It failed.")
    for _ in range(tiny.service.fleet.jobs_at_once + 3):
        assert tiny.transcribe().status_code == 500
        assert tiny.transcribe(stream="true").status_code == 500
    tiny.service.error = RuntimeError("unexpected")
    for _ in range(tiny.service.fleet.jobs_at_once + 3):
        assert tiny.transcribe().status_code == 500
    tiny.service.error = None
    assert tiny.transcribe().status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_disconnect_and_a_stall_release_places(tiny, path):
    for _ in range(tiny.service.fleet.jobs_at_once + 2):
        begin(tiny, path).close()
        until_idle(tiny)
        assert not tiny.uploads
    with begin(tiny, path) as connection:
        assert b"upload_stalled" in answer(connection)
    until_idle(tiny)
    assert not tiny.uploads
    assert post(tiny, path).status_code in (200, 202)


def test_a_disconnected_stream_releases_its_place(serve):
    site = serve(max_event_streams=1)
    site.service.paused = True
    for _ in range(3):
        body = form(model="whisper-1", stream="true") + FORM_END
        with site.begin("POST /v1/audio/transcriptions", body, **FORM):
            assert site.service.started.wait(5)
        assert site.service.cancelled.wait(5)
        until_idle(site)
        site.service.started.clear()
        site.service.cancelled.clear()


# Uploads


@pytest.mark.parametrize("path", PATHS)
def test_limit_of_uploads(serve, path):
    site = serve(max_uploads=2)
    with ExitStack() as stack:
        for other in ("/asr", "/v1/jobs"):
            stack.enter_context(begin(site, other))
        with announce(site, path, 4_000_000_000, expect="100-continue") as connection:
            assert answer(connection).startswith(b"HTTP/1.1 429"), "the body was requested"
        check_refusal(post(site, path), "too_many_uploads", "WHISPER_MAX_UPLOADS")
        assert len(site.uploads) == 2
    wait_for(lambda: post(site, path).status_code in (200, 202))


def test_limit_of_uploads_counts_raw_bodies(serve):
    site = serve(max_uploads=1)
    with site.begin("POST /v1/jobs", bytes(2_000_000), length=9_000_000, content_type="audio/wav"):
        wait_for(lambda: site.uploads)
        raw = site.client.post("/v1/jobs", content=b"RIFF\0", headers={"content-type": "audio/wav"})
        check_refusal(raw, "too_many_uploads", "WHISPER_MAX_UPLOADS")
        check_refusal(site.transcribe(), "too_many_uploads", "WHISPER_MAX_UPLOADS")


def test_a_request_that_is_transcribed_is_no_upload(serve):
    site = serve(max_uploads=1)
    site.service.paused = True
    with ThreadPoolExecutor(1) as threads:
        request = threads.submit(site.transcribe)
        assert site.service.started.wait(5)
        assert site.submit().status_code == 202
        site.service.paused = False
        assert request.result().status_code == 200


def test_keys_share_the_uploads(serve):
    site = serve(api_keys=KEYS, max_uploads=4)
    first, second = KEYS
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(begin(site, "/asr", authorization="Bearer sk-first"))
        check_refusal(post(site, "/asr", key=first), "too_many_uploads", "WHISPER_MAX_UPLOADS")
        assert post(site, "/asr", key=second).status_code == 200, "a first one is never refused"
        stack.enter_context(begin(site, "/v1/jobs", authorization="Bearer sk-second"))
        check_refusal(post(site, "/asr", key=second), "too_many_uploads", "WHISPER_MAX_UPLOADS")
        refused = post(site, "/asr", key=first)
        check_refusal(refused, "too_many_uploads", "WHISPER_MAX_UPLOADS")
        assert "one API key may have 2 while others" in refused.json()["error"]["message"]
    wait_for(lambda: post(site, "/asr", key=first).status_code == 200)


def test_a_key_that_is_alone_has_all_corrections(serve):
    site = serve(api_keys=KEYS, max_uploads=20)
    site.client.headers["authorization"] = f"Bearer {KEYS[0]}"
    job = site.finished(site.submitted())["id"]
    path = f"/v1/jobs/{job}/segments"
    etag = site.client.get(path).headers["etag"]
    head = {"content_type": "application/json", "if_match": etag, "length": 1000}
    with ExitStack() as stack:
        for count in (1, 2):
            request = site.begin(f"PUT {path}", b"{", **head, authorization="Bearer sk-first")
            stack.enter_context(request)
            wait_for(lambda count=count: site.admission.corrections.held == count)
        for key, status in zip(KEYS, (429, 400), strict=True):
            headers = {"authorization": f"Bearer {key}", "if-match": etag}
            assert site.client.put(path, json={}, headers=headers).status_code == status


@pytest.mark.parametrize("path", ["/asr", "/v1/jobs"])
def test_an_upload_that_is_steady_and_never_ends(serve, monkeypatch, path):
    """It sends enough bytes in each stall timeout, and would hold its place for days."""
    monkeypatch.setattr(receiving, "STEADY_BYTES", 10)
    monkeypatch.setattr(receiving, "MAX_UPLOAD_S", 1.0)
    site = serve(max_uploads=1, upload_stall_s=30)
    body = start_of_body(path)
    with (
        site.begin(f"POST {path}", body, length=9_000_000, **FORM) as connection,
        ThreadPoolExecutor(1) as threads,
    ):
        stop = threading.Event()

        def drip():
            while not stop.wait(0.02):
                connection.sendall(b"x" * 20)

        dripping = threads.submit(drip)
        try:
            response = answer(connection)
        finally:
            stop.set()
        dripping.result()
    assert response.startswith(b"HTTP/1.1 400")
    assert b"upload_too_slow" in response
    wait_for(lambda: not site.uploads)
    assert post(site, path).status_code in (200, 202)


# Event streams


@pytest.fixture
def follow():
    """Opens a stream of a job's events and waits for the first."""
    with ExitStack() as stack:
        iterators = []  # httpx closes a response whose iterator is gone

        def start(site, job, key=None):
            headers = {"authorization": f"Bearer {key}"} if key else {}
            response = stack.enter_context(
                site.client.stream("GET", f"/v1/jobs/{job}/events", headers=headers)
            )
            if response.status_code == 200:
                iterators.append(response.iter_lines())
                next(iterators[-1])
            else:
                response.read()
            return response

        yield start


def test_limit_of_event_streams(serve, follow):
    site = serve(max_event_streams=2)
    site.service.paused = True
    job = site.submitted()
    streams = [follow(site, job) for _ in range(2)]
    check_refusal(follow(site, job), "too_many_event_streams", "WHISPER_MAX_EVENT_STREAMS")
    check_refusal(site.transcribe(stream="true"), "too_many_event_streams", "WHISPER_MAX_EVENT_STREAMS")
    streams[0].close()
    wait_for(lambda: follow(site, job).status_code == 200)
    site.service.paused = False
    site.finished(job)
    wait_for(lambda: follow(site, job).status_code == 200)


def test_a_stream_is_refused_before_the_file_is_read(serve, follow):
    site = serve(max_event_streams=1)
    site.service.paused = True
    follow(site, site.submitted())
    before = set(site.uploads)
    body = form(model="whisper-1", stream="true")
    with site.begin("POST /v1/audio/transcriptions", body, length=4_000_000_000, **FORM) as connection:
        assert b"too_many_event_streams" in answer(connection)
    assert set(site.uploads) == before


@pytest.mark.parametrize(
    ("path", "fields"), [("/v1/jobs", {"task": "translate"}), ("/v1/audio/translations", {})]
)
def test_a_model_that_cannot_translate_is_refused_before_the_file_is_read(site, path, fields):
    body = form(model=OTHER_MODEL, **fields)
    with site.begin(f"POST {path}", body, length=4_000_000_000, **FORM) as connection:
        assert b"cannot translate" in answer(connection)
    assert not site.uploads


def test_a_stream_of_a_transcription_holds_a_place(serve, follow):
    site = serve(max_event_streams=1)
    job = site.finished(site.submitted())["id"]
    site.service.started.clear()
    site.service.paused = True
    with ThreadPoolExecutor(1) as threads:
        streamed = threads.submit(site.transcribe, stream="true")
        assert site.service.started.wait(5)
        wait_for(lambda: follow(site, job).status_code == 429)
        assert error(follow(site, job)) == (429, "too_many_event_streams")
        site.service.paused = False
        assert streamed.result().status_code == 200
    wait_for(lambda: follow(site, job).status_code == 200)
