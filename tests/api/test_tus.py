"""Resumable uploads over HTTP: what tus 1.0 says of requests and answers, and jobs that use an upload."""

import base64
import hashlib
import sqlite3
import time
from contextlib import closing
from email.utils import parsedate_to_datetime

import pytest

from app.common.errors import DatabaseUnavailable
from app.database.connection import FILE_NAME, Database
from tests.api.waiting import wait_for

pytestmark = pytest.mark.timeout(60)

KEYS = ("sk-first", "sk-second")
CONTENT = b"RIFF" + bytes(range(256)) * 40
TUS = {"Tus-Resumable": "1.0.0"}
PART = TUS | {"Content-Type": "application/offset+octet-stream"}


def b64(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def create(site, size=len(CONTENT), content=None, **headers):
    sent = (PART if content is not None else TUS) | {"Upload-Length": str(size)}
    return site.client.post("/v1/uploads", content=content, headers=sent | named(headers))


def named(headers):
    return {name.replace("_", "-"): value for name, value in headers.items()}


def created(site, size=len(CONTENT), content=None, **headers):
    """The path of a new upload."""
    answer = create(site, size, content, **headers)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


def patch(site, path, offset, content, **headers):
    return site.client.patch(
        path, content=content, headers=PART | {"Upload-Offset": str(offset)} | named(headers)
    )


def offset(site, path, **headers):
    answer = site.client.head(path, headers=TUS | named(headers))
    assert answer.status_code == 200, answer.headers
    return int(answer.headers["upload-offset"])


def submit(site, path, headers=None, **fields):
    return site.client.post("/v1/jobs", json={"upload": path.rpartition("/")[2]} | fields, headers=headers)


def refused(answer, status, code=None):
    assert answer.status_code == status, answer.text
    assert answer.headers.get("tus-resumable") == (None if "/v1/jobs" in str(answer.url) else "1.0.0")
    if answer.request.method != "HEAD":
        error = answer.json()["error"]
        assert error["message"]
        if code is not None:
            assert error["code"] == code
    return answer


def database(site):
    return closing(sqlite3.connect(site.service.settings.data_dir / FILE_NAME))


@pytest.fixture
def site(site):
    """The site of this module. Uploads that a test leaves are deleted."""
    yield site
    wait_for(lambda: not site.server.server_state.tasks)
    with database(site) as connection:
        rows = connection.execute("SELECT id FROM uploads").fetchall()
        connection.execute("UPDATE uploads SET expires_at = expires_at + 999999")
        connection.commit()
    for (upload_id,) in rows:
        site.client.delete(f"/v1/uploads/{upload_id}", headers=TUS).raise_for_status()


# The protocol


def test_options(site):
    answer = site.client.options("/v1/uploads")
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["tus-resumable"] == answer.headers["tus-version"] == "1.0.0"
    assert answer.headers["tus-max-size"] == "4096000000"
    assert answer.headers["tus-extension"] == "creation,creation-with-upload,termination,expiration"


def test_an_upload_in_three_parts(site):
    metadata = f"filename {b64('../talks/Grüße.wav')},is_private,type {b64('audio/wav')}"
    answer = create(site, Upload_Metadata=metadata)
    assert (answer.status_code, answer.content) == (201, b"")
    path = answer.headers["location"]
    assert path.startswith("/v1/uploads/")
    assert answer.headers["upload-offset"] == "0"
    left_s = parsedate_to_datetime(answer.headers["upload-expires"]).timestamp() - time.time()
    assert left_s <= 600, "no bytes have come"
    for start, end in ((0, 1), (1, 5000), (5000, len(CONTENT))):
        answer = site.client.head(path, headers=TUS)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["upload-offset"] == str(start)
        assert answer.headers["upload-length"] == str(len(CONTENT))
        assert answer.headers["upload-metadata"] == metadata
        assert answer.headers["cache-control"] == "no-store"
        answer = patch(site, path, start, CONTENT[start:end])
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["upload-offset"] == str(end)
        left_s = parsedate_to_datetime(answer.headers["upload-expires"]).timestamp() - time.time()
        assert 86400 - 60 < left_s <= 86400
        assert answer.headers["tus-resumable"] == "1.0.0"
    job = submit(site, path)
    assert job.status_code == 202, job.text
    assert job.json()["filename"] == "Grüße.wav"
    assert site.finished(job.json()["id"])["status"] == "succeeded"
    [call] = site.service.calls
    assert call.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert [file.name for file in site.uploads] == [path.rpartition("/")[2]]


def test_a_creation_with_the_first_part(site):
    answer = create(site, content=CONTENT[:100])
    assert (answer.status_code, answer.headers["upload-offset"]) == (201, "100")
    path = answer.headers["location"]
    assert offset(site, path) == 100
    assert patch(site, path, 100, CONTENT[100:]).headers["upload-offset"] == str(len(CONTENT))


def test_an_empty_part_changes_nothing(site):
    path = created(site, content=CONTENT[:100])
    assert patch(site, path, 100, b"").headers["upload-offset"] == "100"
    assert patch(site, path, 100, CONTENT[100:]).status_code == 204
    assert patch(site, path, len(CONTENT), b"").headers["upload-offset"] == str(len(CONTENT))


def test_a_part_without_content_length(site):
    path = created(site)
    halves = (half for half in (CONTENT[:5000], CONTENT[5000:]))
    assert patch(site, path, 0, halves).headers["upload-offset"] == str(len(CONTENT))


@pytest.mark.parametrize("version", [None, "0.2.2", "1.0.1"])
@pytest.mark.parametrize("method", ["POST", "HEAD", "PATCH", "DELETE"])
def test_another_version_of_the_protocol(site, version, method):
    path = created(site)
    headers = PART | {"Upload-Length": "5", "Upload-Offset": "0"}
    headers = headers | {"Tus-Resumable": version} if version else {"Upload-Offset": "0"}
    answer = site.client.request(method, "/v1/uploads" if method == "POST" else path, headers=headers)
    refused(answer, 412, "unsupported_tus_version")
    assert answer.headers["tus-version"] == "1.0.0"
    assert offset(site, path) == 0


CREATIONS = {
    "no length": ({}, 400, None),
    "a length that is none": ({"Upload-Length": "many"}, 400, None),
    "a negative length": ({"Upload-Length": "-1"}, 400, None),
    "a deferred length": ({"Upload-Defer-Length": "1"}, 400, None),
    "an empty file": ({"Upload-Length": "0"}, 400, "empty_file"),
    "a large file": ({"Upload-Length": "4096000001"}, 413, "file_too_large"),
    "a file of any size": ({"Upload-Length": "9" * 40}, 413, "file_too_large"),
    "a value that is not base64": ({"Upload-Length": "5", "Upload-Metadata": "filename talk.wav"}, 400, None),
    "an empty key": ({"Upload-Length": "5", "Upload-Metadata": "a YQ==,,b YQ=="}, 400, None),
    "a key twice": ({"Upload-Length": "5", "Upload-Metadata": "a YQ==,a YQ=="}, 400, None),
    "long metadata": ({"Upload-Length": "5", "Upload-Metadata": f"a {'AAAA' * 1100}"}, 400, None),
    "a part of another upload": ({"Upload-Length": "5", "Upload-Concat": "partial"}, 400, None),
}


@pytest.mark.parametrize("case", CREATIONS)
def test_refused_creations(site, case):
    headers, status, code = CREATIONS[case]
    refused(site.client.post("/v1/uploads", headers=TUS | headers), status, code)
    with database(site) as connection:
        assert connection.execute("SELECT count(*) FROM uploads").fetchone() == (0,)


PARTS = {
    "another content type": ({"Content-Type": "application/octet-stream"}, 415, "unsupported_content_type"),
    "no offset": ({"Upload-Offset": None}, 400, None),
    "an offset that is none": ({"Upload-Offset": "x"}, 400, None),
    "a negative offset": ({"Upload-Offset": "-1"}, 400, None),
    "an offset before the end": ({"Upload-Offset": "99"}, 409, "upload_offset_mismatch"),
    "an offset behind the end": ({"Upload-Offset": "101"}, 409, "upload_offset_mismatch"),
    "a checksum": ({"Upload-Checksum": f"sha1 {b64(hashlib.sha1(CONTENT[100:]).digest())}"}, 400, None),
}


@pytest.mark.parametrize("case", PARTS)
def test_refused_parts(site, case):
    headers, status, code = PARTS[case]
    path = created(site, content=CONTENT[:100])
    headers = PART | {"Upload-Offset": "100"} | headers
    headers = {name: value for name, value in headers.items() if value is not None}
    refused(site.client.patch(path, content=CONTENT[100:], headers=headers), status, code)
    assert offset(site, path) == 100
    assert patch(site, path, 100, CONTENT[100:]).status_code == 204


@pytest.mark.parametrize("declared", [True, False])
def test_a_part_beyond_the_declared_length(site, declared):
    path = created(site, 100)
    content = bytes(101)
    answer = patch(site, path, 0, content if declared else (half for half in (content[:60], content[60:])))
    refused(answer, 413, "upload_too_long")
    assert offset(site, path) in ((0,) if declared else (0, 60)), "the server may join two chunks"


def test_a_creation_whose_part_is_refused_leaves_nothing(site):
    checksum = f"sha1 {b64(hashlib.sha1(CONTENT).digest())}"
    answer = refused(create(site, content=CONTENT, Upload_Checksum=checksum), 400)
    assert answer.json()["error"]["param"] == "Upload-Checksum"
    refused(create(site, 5, content=CONTENT), 413, "upload_too_long")
    headers = TUS | {"Upload-Length": "5", "Content-Type": "audio/wav"}
    refused(site.client.post("/v1/uploads", content=b"RIFF", headers=headers), 415)
    with database(site) as connection:
        assert connection.execute("SELECT count(*) FROM uploads").fetchone() == (0,)
    assert not site.uploads


def test_termination(site):
    path = created(site, content=CONTENT[:100])
    answer = site.client.delete(path, headers=TUS)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["tus-resumable"] == "1.0.0"
    assert not site.uploads
    for answer in (site.client.head(path, headers=TUS), patch(site, path, 100, b"x")):
        refused(answer, 404)
    refused(site.client.delete(path, headers=TUS), 404, "upload_not_found")
    refused(submit(site, path), 404, "upload_not_found")


@pytest.mark.parametrize("name", ["0" * 32, "x", "..%2Fjobs", "%00", "0" * 999])
def test_unknown_uploads(site, name):
    for method in ("HEAD", "PATCH", "DELETE"):
        headers = PART | {"Upload-Offset": "0"}
        refused(site.client.request(method, f"/v1/uploads/{name}", headers=headers), 404)


def test_expired_uploads(site):
    path = created(site, content=CONTENT)
    with database(site) as connection:
        connection.execute("UPDATE uploads SET expires_at = ?", (time.time() - 1,))
        connection.commit()
    for answer in (
        site.client.head(path, headers=TUS),
        patch(site, path, 0, b"x"),
        site.client.delete(path, headers=TUS),
        submit(site, path),
    ):
        refused(answer, 410, "upload_expired")


@pytest.mark.parametrize(("method", "status"), [("GET", 405), ("PUT", 405)])
def test_other_methods(site, method, status):
    path = created(site)
    for where in ("/v1/uploads", path):
        refused(site.client.request(method, where, headers=TUS), status)
    refused(site.client.get(f"{path}/x", headers=TUS), 404)


def test_a_method_in_a_header(site):
    path = created(site)
    headers = PART | {"Upload-Offset": "0", "X-HTTP-Method-Override": "patch"}
    assert site.client.post(path, content=CONTENT, headers=headers).status_code == 204
    assert site.client.post(path, headers=TUS | {"X-HTTP-Method-Override": "DELETE"}).status_code == 204
    refused(site.client.post(path, headers=TUS | {"X-HTTP-Method-Override": "GET"}), 405)


# Cut connections


SENT = {"tus_resumable": "1.0.0", "content_type": PART["Content-Type"]}


def begin(site, path, at, declared, content, **headers):
    """A connection that has sent the beginning of a part."""
    return site.begin(f"PATCH {path}", content, length=declared, upload_offset=at, **SENT, **headers)


BIG = bytes(range(256)) * 20_000  # several buffers


def has_begun(site, size=1):
    return any(path.stat().st_size >= size for path in site.uploads)


def test_a_cut_connection_keeps_what_arrived(site):
    path = created(site, len(BIG))
    with begin(site, path, 0, len(BIG), BIG[:3_000_000]):
        wait_for(lambda: has_begun(site))
    wait_for(lambda: not site.server.server_state.tasks)  # a HEAD ends a running PATCH
    assert offset(site, path) == 3_000_000
    assert patch(site, path, 3_000_000, BIG[3_000_000:]).status_code == 204
    job = submit(site, path).json()["id"]
    assert site.finished(job)["status"] == "succeeded"
    assert site.service.calls[0].sha256 == hashlib.sha256(BIG).hexdigest()


@pytest.mark.parametrize("request_", ["HEAD", "PATCH", "DELETE"])
def test_a_dead_connection_is_not_waited_for(site, request_):
    """The stall time-out is a minute. The next request ends the old one at once, and its bytes stay."""
    path = created(site, len(BIG))
    with begin(site, path, 0, len(BIG), BIG[:2_500_000]) as dead:
        wait_for(lambda: has_begun(site, 2 << 20))
        start = time.monotonic()
        if request_ == "DELETE":
            assert site.client.delete(path, headers=TUS).status_code == 204
            assert not site.uploads
        else:
            if request_ == "HEAD":
                at = offset(site, path)
            else:
                error = refused(patch(site, path, 0, b"x"), 409).json()["error"]
                at = offset(site, path)
                assert str(at) in error["message"]
            assert 2 << 20 <= at <= 2_500_000
            assert patch(site, path, at, BIG[at:]).status_code == 204
            site.finished(submit(site, path).json()["id"])
            assert site.service.calls[0].sha256 == hashlib.sha256(BIG).hexdigest()
        assert time.monotonic() - start < 20
        assert b" 409 " in dead.recv(100)


def test_a_cut_creation_leaves_nothing(site):
    start = {"length": len(BIG), "upload_length": len(BIG)}
    with site.begin("POST /v1/uploads", BIG[:3_000_000], **start, **SENT):
        wait_for(lambda: has_begun(site))
    wait_for(lambda: not site.uploads)
    with database(site) as connection:
        assert connection.execute("SELECT count(*) FROM uploads").fetchone() == (0,)


def test_a_stalled_part_keeps_what_arrived(serve, tmp_path):
    site = serve(upload_stall_s=0.3, data_dir=tmp_path)
    path = created(site, len(BIG))
    with begin(site, path, 0, len(BIG), BIG[:3_000_000]) as connection:
        answer = b""
        while b"upload_stalled" not in answer:
            answer += connection.recv(4096)
        assert answer.startswith(b"HTTP/1.1 409"), "clients go on after a 409, and give up after a 400"
        assert b"tus-resumable: 1.0.0" in answer
        assert b"for 0.3 s. Ask for the upload's offset, and go on from there." in answer
    assert offset(site, path) == 3_000_000


def test_no_body_is_requested_for_a_part_that_is_refused(site):
    path = created(site)
    for at, status in ((5, b"409"), (0, b"413")):
        with begin(site, path, at, 1_000_000, b"", expect="100-continue") as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 " + status)


# Jobs


def test_options_of_a_job_beside_its_upload(site):
    path = created(site, content=CONTENT, Upload_Metadata=f"filename {b64('talk.wav')}")
    job = submit(site, path, language="de", filename="../another.wav").json()
    assert (job["filename"], job["options"]["language"], job["url"]) == ("another.wav", "de", None)


def test_urls_need_not_be_allowed(site):
    assert not site.service.settings.allow_urls
    assert submit(site, created(site, content=CONTENT)).status_code == 202


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "url"),
        ({"url": "https://talks.example/a.mp3", "upload": "0" * 32}, "upload"),
        ({"upload": ""}, "url"),
        ({"upload": 5}, "upload"),
        ({"upload": None}, "upload"),
        ({"upload": "x" * 65}, "upload"),
    ],
)
def test_bodies_that_name_no_recording(site, body, param):
    answer = refused(site.client.post("/v1/jobs", json=body), 400)
    assert answer.json()["error"]["param"] == param


def test_an_incomplete_upload(site):
    path = created(site, content=CONTENT[:-30])
    answer = refused(submit(site, path), 409, "upload_incomplete")
    assert "30 of" in answer.json()["error"]["message"]
    assert answer.json()["error"]["param"] == "upload"
    assert patch(site, path, len(CONTENT) - 30, CONTENT[-30:]).status_code == 204
    assert submit(site, path).status_code == 202


def test_an_upload_is_used_once(site):
    path = created(site, content=CONTENT)
    job = submit(site, path).json()["id"]
    answer = refused(submit(site, path), 409, "upload_used")
    assert job in answer.json()["error"]["message"]
    refused(patch(site, path, len(CONTENT), b""), 409, "upload_used")
    assert offset(site, path) == len(CONTENT)
    assert site.client.delete(path, headers=TUS).status_code == 204
    assert site.finished(job)["status"] == "succeeded"
    assert site.client.get(f"/v1/jobs/{job}/audio").content == CONTENT


def test_an_upload_and_a_form_are_the_same_request(site):
    """A fingerprint is that of the content, however it came."""
    path = created(site, content=CONTENT, Upload_Metadata=f"filename {b64('talk.wav')}")
    key = {"Idempotency-Key": "k"}
    assert submit(site, path, key).json()["id"] == site.submit(CONTENT, headers=key).json()["id"]


@pytest.mark.parametrize(
    ("fields", "status"), [({"beam_size": 0}, 400), ({"model": "nope"}, 404), ({"webhook_url": "x"}, 400)]
)
def test_a_refused_submission_leaves_the_upload(site, fields, status):
    path = created(site, content=CONTENT)
    refused(submit(site, path, **fields), status)
    assert submit(site, path).status_code == 202


def test_a_full_queue_leaves_the_upload(serve):
    site = serve(max_queued_jobs=1)
    site.service.paused = True
    paths = [created(site, content=CONTENT) for _ in range(site.service.fleet.jobs_at_once + 2)]
    answers = [submit(site, path) for path in paths]
    assert [answer.status_code for answer in answers[:-1]] == [202] * (len(paths) - 1)
    refused(answers[-1], 429, "queue_full")
    site.client.delete(f"/v1/jobs/{answers[0].json()['id']}")
    assert submit(site, paths[-1]).status_code == 202


# Keys, limits, space, pages


def test_parts_hold_a_place_for_uploads(serve, tmp_path):
    site = serve(max_uploads=1, data_dir=tmp_path)
    first, second = created(site, len(BIG)), created(site)
    with begin(site, first, 0, len(BIG), BIG[:2_500_000]):
        wait_for(lambda: has_begun(site, 2 << 20))
        refused(patch(site, second, 0, CONTENT), 429, "too_many_uploads")
        refused(create(site, content=CONTENT), 429, "too_many_uploads")
        assert site.submit().status_code == 429
        assert create(site).status_code == 201, "it sends nothing yet"
        at = int(site.client.head(first, headers=TUS).headers["upload-offset"])
        assert patch(site, first, at, BIG[at:]).status_code == 204, "it takes over the place of its own"
    assert patch(site, second, 0, CONTENT).status_code == 204


def test_the_database_is_unavailable(site, monkeypatch):
    path = created(site, content=CONTENT)

    def gone(database):
        raise DatabaseUnavailable("The service's database does not answer; try again later.")

    with monkeypatch.context() as lost:
        for access in ("read", "write"):
            lost.setattr(Database, access, gone)
        for answer in (
            create(site),
            site.client.head(path, headers=TUS),
            patch(site, path, 0, b""),
            site.client.delete(path, headers=TUS),
        ):
            refused(answer, 503, "database_unavailable")
    assert submit(site, path).status_code == 202


def test_pages_of_other_origins(serve, tmp_path):
    site = serve(cors_origins=("https://editor.example",), data_dir=tmp_path)
    origin = {"Origin": "https://editor.example"}
    answer = create(site, **origin)
    exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
    for name in ("location", "upload-offset", "upload-length", "upload-expires", "upload-metadata"):
        assert name in exposed
    for name in ("resumable", "version", "extension", "max-size"):
        assert f"tus-{name}" in exposed
    asked = {"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "upload-offset"}
    answer = site.client.options(answer.headers["location"], headers=origin | asked)
    assert answer.status_code == 200
    assert "PATCH" in answer.headers["access-control-allow-methods"]
    assert site.client.options("/v1/uploads", headers=origin).status_code == 204
