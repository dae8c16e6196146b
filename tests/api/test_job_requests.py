"""Jobs: handed in as a form, as a bare body or as an address, looked up, listed and deleted."""

import hashlib
import re
from datetime import datetime

import pytest

from app.errors import ClipFailed
from app.options import Options
from tests.api.fake_service import OTHER_MODEL
from tests.api.waiting import wait_for

CONTENT = bytes(range(256)) * 40
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

# Whatever somebody may write where the id of a job belongs.
ODD_IDS = [
    "0" * 32,
    "f" * 33,
    "F" * 32,
    "x",
    "%00",
    "0" * 31 + "%00",
    "a" * 5000,
    "%ff%fe",
    "' OR 1=1 --",
    "..",
    "null",
    "0" * 31 + "\N{ARABIC-INDIC DIGIT ONE}",
]


def post(site, content, kind, query="", **headers):
    return site.client.post(f"/v1/jobs{query}", content=content, headers={"content-type": kind} | headers)


def test_a_job_is_accepted_and_done(site):
    answer = site.submit(CONTENT, language="de", max_lines="1")
    assert (answer.status_code, answer.headers["content-type"]) == (202, "application/json")
    accepted = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{accepted['id']}"
    assert accepted["status"] == "queued"
    job = site.finished(accepted["id"])
    assert (job["status"], job["error"], job["failed_spans"]) == ("succeeded", None, [])
    assert site.client.get(answer.headers["location"]).json() == job
    # Word times, whatever was asked for: the result may be wanted in any format.
    [call] = site.service.calls
    assert call.sha256 == call.upload.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert call.options == Options(language="de", max_lines=1, word_timestamps=True)
    assert job["options"] == Options(language="de", max_lines=1).model_dump()
    assert [path.name for path in site.left_files] == [call.upload.path.name], "decoded audio always goes"


def test_the_shape_of_a_job(site):
    site.service.paused = True
    accepted = site.submit(CONTENT).json()
    assert accepted.keys() == {
        "id", "object", "status", "created_at", "started_at", "finished_at", "filename", "url", "duration",
        "language", "model", "options", "progress", "error", "failed_spans", "webhook_url",
    }  # fmt: skip
    assert (accepted["object"], accepted["filename"], accepted["model"]) == ("job", "talk.wav", "tiny")
    assert accepted["progress"] == {
        "stage": "queued", "done_s": 0, "total_s": None, "clips_done": 0, "clips_total": None,
        "realtime_factor": None,
    }  # fmt: skip
    wait_for(lambda: site.job(accepted["id"])["progress"]["done_s"])
    running = site.job(accepted["id"])
    assert running["status"] == "running"
    assert running["finished_at"] is running["duration"] is running["language"] is None
    factor = running["progress"].pop("realtime_factor")
    assert factor > 0
    assert running["progress"] == {
        "stage": "transcribing", "done_s": 2.1, "total_s": 4.2, "clips_done": 1, "clips_total": 2,
    }  # fmt: skip
    site.service.paused = False
    done = site.finished(accepted["id"])
    assert done["progress"].pop("realtime_factor") > 0
    assert done["progress"] == {
        "stage": "done", "done_s": 4.2, "total_s": 4.2, "clips_done": 2, "clips_total": 2,
    }  # fmt: skip
    assert (done["duration"], done["language"]) == (4.2, "en")
    times = [done[name] for name in ("created_at", "started_at", "finished_at")]
    assert all(RFC_3339.fullmatch(time) for time in [accepted["created_at"], *times])
    assert sorted(times, key=datetime.fromisoformat) == times


@pytest.mark.parametrize("kind", ["audio/flac", "video/mp4", "application/octet-stream", "AUDIO/X-odd; a=b"])
def test_the_body_is_the_recording(site, kind):
    answer = post(site, CONTENT, kind, "?filename=%C3%BC%2Fa.flac&language=de&model=whisper-1&beam_size=3")
    assert answer.status_code == 202
    job = site.finished(answer.json()["id"])
    assert (job["status"], job["filename"], job["model"]) == ("succeeded", "a.flac", "tiny")
    assert (job["options"]["language"], job["options"]["beam_size"]) == ("de", 3)
    assert site.service.calls[0].sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_a_body_of_unknown_length(site):
    pieces = [CONTENT[at : at + 100] for at in range(0, len(CONTENT), 100)]
    answer = post(site, (piece for piece in pieces), "audio/wav")
    site.finished(answer.json()["id"])
    assert answer.json()["filename"] is None
    assert site.service.calls[0].sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_fields_of_a_form_go_before_those_of_the_query(site):
    files = {"file": ("talk.wav", CONTENT)}
    answer = site.client.post(
        "/v1/jobs?language=de&max_lines=1", data={"language": "fr", "max_lines": " "}, files=files
    )
    assert (answer.json()["options"]["language"], answer.json()["options"]["max_lines"]) == ("fr", 1)


@pytest.mark.parametrize("name", ["\x00", "a\x00b\x1b.wav", "/etc/", "C:\\x\\"])
def test_names_are_for_people(site, name):
    files = {"file": (None, CONTENT, "audio/wav")}
    answer = site.client.post("/v1/jobs", data={"filename": name}, files=files)
    assert answer.json()["filename"] in (None, "ab.wav")
    assert site.finished(answer.json()["id"])["status"] == "succeeded"


@pytest.mark.parametrize("kind", ["audio/wav", "video/mp4", "application/octet-stream"])
def test_an_empty_body(site, kind):
    answer = post(site, b"", kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "empty_file")
    assert not site.left_files


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "audio", "application/x-www-form-urlencoded", "image/png"]
)
def test_other_bodies_are_refused(site, kind):
    answer = post(site, CONTENT, kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_content_type")
    assert not site.left_files


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"url": "https://talks.example/a.mp3"}', "url"),
        (b'{"url": "file:///etc/passwd", "language": "de"}', "url"),
        (b"{}", "url"),
        (b'{"url": " "}', "url"),
        (b'{"url": 5}', "url"),
        (b'{"url": "https://talks.example", "beam_size": 99}', "beam_size"),
        (b'{"url": "https://talks.example", "max_cps": NaN}', "max_cps"),
        (b'{"url": "https://talks.example", "language": {}}', "language"),
        (b'{"url": "https://talks.example", "language": 7}', "language"),
        (b'{"url": "https://talks.example", "prompt": []}', "prompt"),
        (b'{"url": "https://talks.example", "model": null}', "model"),
        (b'["https://talks.example/a.mp3"]', None),
        (b'"\\ud800"', None),
        (b"\xff", None),
        (b"[" * 30_000, None),
        (b"", None),
    ],
)
def test_an_address_where_none_are_taken(site, body, param):
    answer = post(site, body, "application/json")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_a_document_that_is_too_large(site):
    answer = post(site, b'{"url": "' + b"x" * 70_000 + b'"}', "application/json")
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("fields", "param", "status"),
    [
        ({"language": "klingon"}, "language", 400),
        ({"beam_size": "0"}, "beam_size", 400),
        ({"model": "gpt-4"}, "model", 404),
        ({"model": OTHER_MODEL, "task": "translate"}, "model", 400),
        ({"filename": "x" * 256}, "filename", 400),
        ({"webhook_url": "https://hooks.example/"}, "webhook_url", 400),
    ],
)
def test_bad_fields_in_a_form_and_in_a_query(site, fields, param, status):
    for answer in (
        site.submit(CONTENT, **fields),
        site.client.post("/v1/jobs", params=fields, content=CONTENT, headers={"content-type": "audio/wav"}),
    ):
        assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
    assert not site.left_files
    assert site.client.get("/v1/jobs").json()["data"] == []


def test_a_webhook_needs_a_secret(site):
    answer = site.submit(CONTENT, webhook_url="https://hooks.example/")
    assert answer.json()["error"]["code"] == "webhooks_not_configured"
    assert "WHISPER_WEBHOOK_SECRET" in answer.json()["error"]["message"]


def test_a_form_without_a_file(site):
    answer = site.client.post("/v1/jobs", data={"language": "de"}, files={"other": b"x"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")


def test_a_job_that_fails_says_why(site):
    site.service.error = ClipFailed("The span from 3.00 s to 9.00 s could not be transcribed.")
    job = site.finished(site.submitted())
    assert job["status"] == "failed"
    assert job["error"]["message"] == site.service.error.message
    assert job["started_at"] <= job["finished_at"]
    assert job["duration"] is None


def test_an_unexpected_failure_tells_no_secrets(site):
    site.service.error = RuntimeError("secret")
    job = site.finished(site.submitted())
    assert (job["status"], "secret" in str(job)) == ("failed", False)


# Lists


def listed(site, **query):
    return site.client.get("/v1/jobs", params=query).raise_for_status().json()


def test_an_empty_list(site):
    assert listed(site) == {"object": "list", "data": [], "has_more": False}


def test_pages_show_each_job_once_the_newest_first(site):
    jobs = [site.submitted() for _ in range(5)]
    for job in jobs:
        site.finished(job)
    seen, after = [], {}
    for length, has_more in ((2, True), (2, True), (1, False)):
        page = listed(site, limit=2, **after)
        assert (len(page["data"]), page["has_more"]) == (length, has_more)
        seen += [job["id"] for job in page["data"]]
        after = {"after": seen[-1]}
    assert seen == jobs[::-1]
    assert listed(site, limit=5)["has_more"] is False
    assert listed(site)["data"][0] == site.job(jobs[-1])
    assert listed(site, after=jobs[0]) == {"object": "list", "data": [], "has_more": False}


def test_jobs_by_status(site):
    site.service.error = ClipFailed("It failed.")
    failed = site.finished(site.submitted())["id"]
    site.service.error, site.service.paused = None, True
    running = [site.submitted() for _ in range(site.service.jobs_at_once)]
    queued = [site.submitted() for _ in range(2)]
    wait_for(lambda: len(listed(site, status="running")["data"]) == len(running))
    by_status = {
        status: [job["id"] for job in listed(site, status=status)["data"]]
        for status in ("queued", "running", "succeeded", "failed", "cancelled")
    }
    assert by_status == {
        "queued": queued[::-1],
        "running": running[::-1],
        "succeeded": [],
        "failed": [failed],
        "cancelled": [],
    }


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 101},
        {"limit": -1},
        {"limit": "many"},
        {"limit": "9" * 5000},
        {"status": "done"},
        {"status": "QUEUED"},
    ],
)
def test_bad_lists(site, query):
    answer = site.client.get("/v1/jobs", params=query)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, next(iter(query)))


@pytest.mark.parametrize("after", [*ODD_IDS, "deleted"])
def test_a_page_after_no_job(site, after):
    if after == "deleted":
        after = site.submitted()
        site.client.delete(f"/v1/jobs/{after}")
    answer = site.client.get("/v1/jobs", params={"after": after})
    assert answer.status_code == 404
    assert (answer.json()["error"]["param"], answer.json()["error"]["code"]) == ("after", "job_not_found")


@pytest.mark.parametrize("limit", [1, 100])
def test_the_ends_of_what_a_list_may_be(site, limit):
    site.submitted()
    assert len(listed(site, limit=limit)["data"]) == 1


@pytest.mark.parametrize("path", ["", "/events", "/result", "/audio"])
def test_no_such_job(site, path):
    for odd in ODD_IDS:
        answer = site.client.get(f"/v1/jobs/{odd}{path}")
        assert answer.status_code == 404, odd
        assert answer.json()["error"]["type"] == "invalid_request_error"
        if path == "":
            assert site.client.delete(f"/v1/jobs/{odd}").status_code == 404, odd


# Deletion


@pytest.mark.parametrize("status", ["queued", "running", "succeeded", "failed"])
def test_nothing_is_left_of_a_deleted_job(site, status):
    others = []
    if status == "failed":
        site.service.error = ClipFailed("It failed.")
    if status in ("queued", "running"):
        site.service.paused = True
    if status == "queued":
        others = [site.submitted() for _ in range(site.service.jobs_at_once)]
        wait_for(lambda: len(listed(site, status="running")["data"]) == len(others))
    job = site.submitted(CONTENT)
    if status == "running":
        assert site.service.started.wait(5)
    elif status != "queued":
        site.finished(job)
    wait_for(lambda: site.job(job)["status"] == status)
    answer = site.client.delete(f"/v1/jobs/{job}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert len(site.left_files) == 2 * len(others), "each of the others has its upload and its PCM"
    assert site.service.cancelled.is_set() is (status == "running")
    for path in ("", "/events", "/result", "/audio"):
        assert site.client.get(f"/v1/jobs/{job}{path}").status_code == 404
    assert site.client.delete(f"/v1/jobs/{job}").status_code == 404
    assert [entry["id"] for entry in listed(site)["data"]] == others[::-1]
    site.service.paused = False
    assert [site.finished(other)["status"] for other in others] == ["succeeded"] * len(others)


def test_a_deleted_job_gives_its_place_to_the_next(site):
    site.service.paused = True
    running = [site.submitted() for _ in range(site.service.jobs_at_once)]
    waiting = site.submitted()
    wait_for(lambda: len(listed(site, status="running")["data"]) == len(running))
    assert site.job(waiting)["status"] == "queued"
    site.client.delete(f"/v1/jobs/{running[0]}")
    wait_for(lambda: site.job(waiting)["status"] == "running")
