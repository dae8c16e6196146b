"""Why jobs are refused: API keys, idempotency keys, limits, stalled uploads, a full disk, a lost database."""

import errno
import hashlib
import json
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from app.api.http import receiving
from app.common.errors import DatabaseUnavailable, DiskFull
from app.database.connection import FILE_NAME, Database
from app.intake import file_sink as sinks
from app.intake.disk import MARGIN_BYTES
from tests.api.conftest import FORM, FORM_END, form
from tests.api.fake_service import OTHER_MODEL
from tests.api.waiting import wait_for
from tests.intake.disks import SmallDisk

KEYS = ("sk-first", "sk-second")
CONTENT = bytes(range(256)) * 40

# Content type and body of each way to submit a job.
KINDS = {
    "form": (FORM["content_type"], form() + CONTENT + FORM_END),
    "body": ("audio/wav", CONTENT),
    "url": ("application/json", b'{"url": "https://talks.example/a.mp3"}'),
}


def begin(site, kind, content=b"", **how):
    """A connection on which a submission has begun."""
    return site.begin("POST /v1/jobs", content, content_type=KINDS[kind][0], **how)


def post(site, kind, *, key=None, content=None, **headers):
    sent = {"content-type": KINDS[kind][0]} | headers
    if key is not None:
        sent["authorization"] = f"Bearer {key}"
    return site.client.post("/v1/jobs", content=content or KINDS[kind][1], headers=sent)


def listed(site):
    return site.client.get("/v1/jobs", params={"limit": 100}).raise_for_status().json()["data"]


def until_running(site, count):
    wait_for(lambda: sum(job["status"] == "running" for job in listed(site)) == count)


# Idempotency keys


def test_same_idempotency_key_gives_the_same_job(site):
    first = site.submit(headers={"idempotency-key": "k"}, language="de")
    again = site.submit(headers={"idempotency-key": "k"}, language="de")
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["location"] == first.headers["location"]
    site.finished(first.json()["id"])
    assert site.submit(headers={"idempotency-key": "k"}, language="de").json()["status"] == "succeeded"
    assert len(listed(site)) == len(site.service.calls) == len(site.uploads) == 1


def test_concurrent_requests_with_one_idempotency_key_give_one_job(site):
    barrier = threading.Barrier(8)

    def submit(_):
        barrier.wait(5)
        return site.submit(headers={"idempotency-key": "k"})

    with ThreadPoolExecutor(8) as threads:
        responses = list(threads.map(submit, range(8)))
    assert {response.status_code for response in responses} == {202}
    assert len({response.json()["id"] for response in responses}) == 1
    assert len(listed(site)) == len(site.uploads) == 1


def test_an_option_left_open_or_named_as_such_is_the_same_request(site):
    first = site.submit(headers={"idempotency-key": "k"})
    again = site.submit(headers={"idempotency-key": "k"}, max_line_chars="Auto", fps="", start_offset_s="0")
    assert again.json()["id"] == first.json()["id"]


def test_options_at_their_defaults_are_no_part_of_the_fingerprint(site):
    """A service that gets new options recognises the requests of before."""
    site.submit(headers={"idempotency-key": "k"}, max_lines="1")
    with closing(sqlite3.connect(site.service.settings.data_dir / FILE_NAME)) as database:
        [(fingerprint, sha256)] = database.execute("SELECT fingerprint, sha256 FROM jobs")
    same = {
        "content": sha256, "filename": "talk.wav", "model": "tiny", "options": {"max_lines": 1},
        "webhook_url": None,
    }  # fmt: skip
    assert fingerprint == hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize(
    "other", [{"content": b"RIFF\0other"}, {"language": "fr"}, {"model": OTHER_MODEL}, {"fps": "25"}]
)
def test_idempotency_key_of_another_request_is_refused(site, other):
    job = site.submit(headers={"idempotency-key": "k"}).json()["id"]
    response = site.submit(headers={"idempotency-key": "k"}, **other)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "idempotency_key_reused")
    assert "'k'" in response.json()["error"]["message"]
    site.finished(job)
    assert [job["id"] for job in listed(site)] == [job]
    assert len(site.uploads) == 1


def test_idempotency_keys_belong_to_an_api_key(serve):
    site = serve(api_keys=KEYS)
    ids = [
        site.submit(headers={"authorization": authorization, "idempotency-key": "k"}).json()["id"]
        for authorization in ("Bearer sk-first", "Bearer sk-second", "bearer   sk-first")
    ]
    assert ids[0] == ids[2] != ids[1]


def test_idempotency_key_lengths(site):
    assert site.submit(headers={"idempotency-key": "k" * 255}).status_code == 202
    response = site.submit(headers={"idempotency-key": "k" * 256})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "idempotency-key")
    unkeyed = [site.submit(headers={"idempotency-key": ""}).json()["id"] for _ in range(2)]
    assert len(set(unkeyed)) == 2


# Limits


@pytest.fixture
def busy(serve):
    """A site that runs as many jobs as it can. Its queue takes two more."""
    site = serve(max_queued_jobs=2)
    site.service.paused = True
    for _ in range(site.service.fleet.jobs_at_once):
        site.submitted()
    until_running(site, site.service.fleet.jobs_at_once)
    return site


@pytest.fixture
def full(busy):
    """A site whose queue is full; the last of its jobs has the idempotency key "k"."""
    busy.submitted()
    assert busy.submit(headers={"idempotency-key": "k"}).status_code == 202
    return busy


@pytest.mark.parametrize("kind", KINDS)
def test_full_queue(full, kind):
    before = set(full.left_files)
    response = post(full, kind)
    assert (response.status_code, response.json()["error"]["code"]) == (429, "queue_full")
    assert response.json()["error"]["type"] == "rate_limit_error"
    assert int(response.headers["retry-after"]) > 0
    assert set(full.left_files) == before


def test_full_queue_accepts_known_idempotency_keys(full):
    again = full.submit(headers={"idempotency-key": "k"})
    assert again.status_code == 202
    assert again.json()["id"] == listed(full)[0]["id"]
    assert full.submit(headers={"idempotency-key": "other"}).status_code == 429


def test_deleting_a_job_frees_its_place_in_the_queue(full):
    full.client.delete(f"/v1/jobs/{listed(full)[0]['id']}").raise_for_status()
    assert full.submit().status_code == 202
    assert full.submit().status_code == 429


def test_concurrent_requests_do_not_overfill_the_queue(busy):
    with ThreadPoolExecutor(12) as threads:
        statuses = sorted(
            response.status_code for response in threads.map(lambda _: busy.submit(), range(12))
        )
    assert statuses == [202] * 2 + [429] * 10
    assert len(busy.uploads) == busy.service.fleet.jobs_at_once + 2


def test_limit_of_jobs_per_api_key(serve):
    site = serve(api_keys=KEYS, max_jobs_per_key=2)
    site.service.paused = True
    first, second = ({"authorization": f"Bearer {key}"} for key in KEYS)
    jobs = [site.submit(headers=first).json()["id"] for _ in range(2)]
    spelled = {"authorization": "bearer  sk-first"}
    for headers in (first, spelled):
        response = site.submit(headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (429, "queue_full")
        assert "WHISPER_MAX_JOBS_PER_KEY" in response.json()["error"]["message"]
    assert site.submit(headers=second).status_code == 202
    site.client.delete(f"/v1/jobs/{jobs[0]}", headers=first).raise_for_status()
    assert site.submit(headers=first).status_code == 202


@pytest.mark.parametrize("kind", ["form", "body"])
@pytest.mark.parametrize("declared", [True, False])
def test_upload_that_is_too_large(serve, kind, declared):
    site = serve(max_upload_mb=1)
    start, end = (form(), FORM_END) if kind == "form" else (b"", b"")
    content = start + bytes(4_000_000) + end
    parts = (content[at : at + 100_000] for at in range(0, len(content), 100_000))
    response = post(site, kind, content=content if declared else parts)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "file_too_large")
    assert not site.left_files


def test_upload_just_under_the_limit(serve):
    assert post(serve(max_upload_mb=1), "body", content=bytes(1_000_000)).status_code == 202


# Stalled uploads


@pytest.fixture
def impatient(serve):
    return serve(upload_stall_s=0.3)


def received(connection):
    """All data until the response is complete."""
    response = b""
    while b'"upload_stalled"' not in response:
        part = connection.recv(4096)
        assert part, response
        response += part
    return response


def test_upload_that_trickles(impatient):
    with begin(impatient, "body", length=9_000_000) as connection:
        stop = threading.Event()

        def trickle():
            while not stop.wait(0.02):
                connection.sendall(b"x" * 10)

        with ThreadPoolExecutor(1) as thread:
            trickling = thread.submit(trickle)
            try:
                assert received(connection).startswith(b"HTTP/1.1 400")
            finally:
                stop.set()
            trickling.result()
    assert not impatient.left_files


def test_slow_but_steady_upload(impatient, monkeypatch):
    """The upload takes longer than the stall timeout, but no pause does."""
    monkeypatch.setattr(receiving, "STEADY_BYTES", 50)

    def slowly():
        for _ in range(10):
            time.sleep(0.05)
            yield b"x" * 100

    response = post(impatient, "body", content=slowly())
    assert response.status_code == 202


# Full disks and a lost database


@pytest.mark.parametrize("kind", ["form", "body"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk(site, monkeypatch, kind, number):
    write = sinks.FileSink._write

    def fill(sink):
        write(sink)
        raise OSError(number, "No space left on device")

    monkeypatch.setattr(sinks.FileSink, "_write", fill)
    response = post(site, kind)
    assert (response.status_code, response.json()["error"]["code"]) == (507, "disk_full")
    assert not site.left_files
    assert listed(site) == []
    monkeypatch.undo()
    assert post(site, kind).status_code == 202


@pytest.fixture
def nearly_full(site, monkeypatch):
    """A site with a megabyte of space above the margin."""
    SmallDisk(monkeypatch, site.service.settings.data_dir, MARGIN_BYTES + 1_000_000)
    return site


def test_below_the_margin_the_database_does_not_grow(site, monkeypatch):
    job = site.finished(site.submitted())["id"]
    segments = site.client.get(f"/v1/jobs/{job}/segments").json()["segments"]
    disk = SmallDisk(monkeypatch, site.service.settings.data_dir, MARGIN_BYTES - 100_000)
    requests = {
        f"PUT /v1/jobs/{job}/segments": {"segments": [segments[0] | {"speaker": "S1"}]},
        f"POST /v1/jobs/{job}/speakers": {"names": {"S1": "Ann"}},
        f"PATCH /v1/jobs/{job}": {"title": "Talk"},
        f"POST /v1/jobs/{job}/again": {},
    }

    def statuses():
        for request, body in requests.items():
            method, path = request.split()
            response = site.client.request(method, path, json=body, headers={"if-match": "*"})
            yield response.status_code if response.is_success else response.json()["error"]["code"]

    assert list(statuses()) == ["disk_full"] * 4
    assert site.client.get("/v1/jobs").json()["data"][0] == site.job(job) | {"matches": []}
    assert (site.job(job)["revision"], site.job(job)["title"]) == (0, None)
    disk.add(10_000_000)
    assert list(statuses()) == [200, 200, 200, 202]


@pytest.mark.parametrize("kind", ["form", "body"])
def test_upload_without_space_is_refused_before_it_is_read(nearly_full, kind):
    with begin(nearly_full, kind, length=2_000_000, expect="100-continue") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 507"), "the body was requested"
    with begin(nearly_full, kind, b"RIFF", length=2_000_000) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 507")
    response = post(nearly_full, kind, content=bytes(2_000_000))
    assert (response.status_code, response.json()["error"]["code"]) == (507, "disk_full")
    assert not nearly_full.left_files
    assert post(nearly_full, kind).status_code == 202


def test_upload_that_is_too_large_for_service_and_disk(nearly_full):
    """Space would not help."""
    with begin(nearly_full, "body", length=9_000_000_000, expect="100-continue") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


REQUESTS = {
    "submit a form": ("POST", ""),
    "submit a body": ("POST", ""),
    "list": ("GET", ""),
    "get": ("GET", "/{job}"),
    "follow": ("GET", "/{job}/events"),
    "result": ("GET", "/{job}/result"),
    "audio": ("GET", "/{job}/audio"),
    "delete": ("DELETE", "/{job}"),
}


def send(site, request, job):
    method, path = REQUESTS[request]
    if method == "POST":
        return post(site, request.rpartition(" ")[2])
    return site.client.request(method, f"/v1/jobs{path.format(job=job)}")


@pytest.mark.parametrize("request_", REQUESTS)
def test_database_is_unavailable(site, monkeypatch, request_):
    job = site.finished(site.submitted())["id"]
    before = set(site.left_files)

    def gone(database):
        raise DatabaseUnavailable("The service's database does not response; try again later.")

    for access in ("read", "write"):
        monkeypatch.setattr(Database, access, gone)
    # Recently requested jobs are in memory.
    response = send(site, request_, "0" * 32 if request_ in ("get", "audio") else job)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "database_unavailable")
    assert response.headers["retry-after"]
    monkeypatch.undo()
    assert set(site.left_files) == before
    assert [entry["id"] for entry in listed(site)] == [job]


@pytest.mark.parametrize("request_", ["submit a form", "submit a body", "delete"])
def test_disk_of_the_database_is_full(site, monkeypatch, request_):
    job = site.finished(site.submitted())["id"]
    before = set(site.left_files)

    def full(database):
        raise DiskFull("The disk of the service's database is full; try again later.")

    monkeypatch.setattr(Database, "write", full)
    response = send(site, request_, job)
    assert (response.status_code, response.json()["error"]["code"]) == (507, "disk_full")
    for path in ("", "/result", "/events"):
        assert site.client.get(f"/v1/jobs/{job}{path}").status_code == 200, "reading must still work"
    monkeypatch.undo()
    if request_ != "delete":
        assert set(site.left_files) == before
    assert [entry["id"] for entry in listed(site)] == [job]
