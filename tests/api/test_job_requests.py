"""Jobs: submitted as a form, as a raw body or as a URL; read, listed and deleted."""

import hashlib
import re
from datetime import datetime

import pytest

from app.common.errors import ClipFailed
from app.common.options import Options
from tests.api.fake_service import OTHER_MODEL
from tests.api.waiting import wait_for
from tests.cases import read_cases

REQUESTS = read_cases("requests")

CONTENT = bytes(range(256)) * 40
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

# Values that are not the id of a job.
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


def test_job_is_accepted_and_succeeds(site):
    response = site.submit(CONTENT, language="de", max_lines="1")
    assert (response.status_code, response.headers["content-type"]) == (202, "application/json")
    accepted = response.json()
    assert response.headers["location"] == f"/v1/jobs/{accepted['id']}"
    assert accepted["status"] == "queued"
    job = site.finished(accepted["id"])
    assert (job["status"], job["error"], job["failed_spans"]) == ("succeeded", None, [])
    assert site.client.get(response.headers["location"]).json() == job
    # Always with word times: clients can get the result in any format.
    [call] = site.service.calls
    assert call.sha256 == call.upload.sha256 == hashlib.sha256(CONTENT).hexdigest()
    # And whatever fails of them: the rest must not have to be transcribed again.
    assert call.options == Options(language="de", max_lines=1, word_timestamps=True, allow_partial=True)
    assert job["options"] == Options(language="de", max_lines=1).model_dump()
    assert [path.name for path in site.left_files] == [call.upload.path.name], (
        "decoded audio is always removed"
    )


def test_fields_of_a_job(site):
    site.service.paused = True
    accepted = site.submit(CONTENT).json()
    assert accepted.keys() == {
        "id", "object", "status", "created_at", "started_at", "finished_at", "filename", "url", "duration",
        "language", "languages", "model", "options", "progress", "error", "failed_spans", "warnings",
        "webhook_url", "revision", "expires_at", "audio_expires_at", "trashed_at",
        "audio_tracks", "owner", "excerpt", "speakers", "title", "notes", "tags", "parent",
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
def test_body_is_the_recording(site, kind):
    response = post(site, CONTENT, kind, "?filename=%C3%BC%2Fa.flac&language=de&model=whisper-1&beam_size=3")
    assert response.status_code == 202
    job = site.finished(response.json()["id"])
    assert (job["status"], job["filename"], job["model"]) == ("succeeded", "a.flac", "tiny")
    assert (job["options"]["language"], job["options"]["beam_size"]) == ("de", 3)
    assert site.service.calls[0].sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_body_of_unknown_length(site):
    parts = [CONTENT[at : at + 100] for at in range(0, len(CONTENT), 100)]
    response = post(site, (part for part in parts), "audio/wav")
    site.finished(response.json()["id"])
    assert response.json()["filename"] is None
    assert site.service.calls[0].sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_form_fields_override_query_parameters(site):
    files = {"file": ("talk.wav", CONTENT)}
    response = site.client.post(
        "/v1/jobs?language=de&max_lines=1", data={"language": "fr", "max_lines": " "}, files=files
    )
    assert (response.json()["options"]["language"], response.json()["options"]["max_lines"]) == ("fr", 1)


@pytest.mark.parametrize("name", ["\x00", "a\x00b\x1b.wav", "/etc/", "C:\\x\\"])
def test_filenames_are_cleaned(site, name):
    files = {"file": (None, CONTENT, "audio/wav")}
    response = site.client.post("/v1/jobs", data={"filename": name}, files=files)
    assert response.json()["filename"] in (None, "ab.wav")
    assert site.finished(response.json()["id"])["status"] == "succeeded"


@pytest.mark.parametrize("kind", ["audio/wav", "video/mp4", "application/octet-stream"])
def test_empty_body(site, kind):
    response = post(site, b"", kind)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "empty_file")
    assert not site.left_files


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "audio", "application/x-www-form-urlencoded", "image/png"]
)
def test_other_content_types_are_refused(site, kind):
    response = post(site, CONTENT, kind)
    assert (response.status_code, response.json()["error"]["code"]) == (415, "unsupported_content_type")
    assert not site.left_files


@pytest.mark.parametrize(
    ("body", "param"),
    [
        *REQUESTS["json_bodies"],
        (b'["https://talks.example/a.mp3"]', None),
        (b'"\\ud800"', None),
        (b"\xff", None),
        (b"[" * 30_000, None),
        (b"", None),
    ],
)
def test_bad_json_bodies(site, body, param):
    response = post(site, body, "application/json")
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_json_body_that_is_too_large(site):
    response = post(site, b'{"url": "' + b"x" * 70_000 + b'"}', "application/json")
    assert response.status_code == 413


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
    for response in (
        site.submit(CONTENT, **fields),
        site.client.post("/v1/jobs", params=fields, content=CONTENT, headers={"content-type": "audio/wav"}),
    ):
        assert (response.status_code, response.json()["error"]["param"]) == (status, param)
    assert not site.left_files
    assert site.client.get("/v1/jobs").json()["data"] == []


def test_webhook_needs_a_secret(site):
    response = site.submit(CONTENT, webhook_url="https://hooks.example/")
    assert response.json()["error"]["code"] == "webhooks_not_configured"
    assert "WHISPER_WEBHOOK_SECRET" in response.json()["error"]["message"]


def test_form_without_a_file(site):
    response = site.client.post("/v1/jobs", data={"language": "de"}, files={"other": b"x"})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "file")


def test_failed_job_has_its_error(site):
    site.service.error = ClipFailed("The span from 3.00 s to 9.00 s could not be transcribed.")
    job = site.finished(site.submitted())
    assert job["status"] == "failed"
    assert job["error"]["message"] == site.service.error.message
    assert job["started_at"] <= job["finished_at"]
    assert job["duration"] is None


def test_unexpected_failure_reveals_no_details(site):
    site.service.error = RuntimeError("secret")
    job = site.finished(site.submitted())
    assert (job["status"], "secret" in str(job)) == ("failed", False)


# Lists


def listed(site, **query):
    return site.client.get("/v1/jobs", params=query).raise_for_status().json()


def test_empty_list(site):
    assert listed(site) == {"object": "list", "data": [], "has_more": False}


def test_pages_list_each_job_once_newest_first(site):
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
    assert listed(site)["data"][0] == site.job(jobs[-1]) | {"matches": []}
    assert listed(site, after=jobs[0]) == {"object": "list", "data": [], "has_more": False}


def test_jobs_by_status(site):
    site.service.error = ClipFailed("It failed.")
    failed = site.finished(site.submitted())["id"]
    site.service.error, site.service.paused = None, True
    running = [site.submitted() for _ in range(site.service.fleet.jobs_at_once)]
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
def test_bad_list_parameters(site, query):
    response = site.client.get("/v1/jobs", params=query)
    assert (response.status_code, response.json()["error"]["param"]) == (400, next(iter(query)))


@pytest.mark.parametrize("after", [*ODD_IDS, "deleted"])
def test_page_after_an_unknown_job(site, after):
    if after == "deleted":
        after = site.submitted()
        site.client.delete(f"/v1/jobs/{after}")
    response = site.client.get("/v1/jobs", params={"after": after})
    assert response.status_code == 404
    assert (response.json()["error"]["param"], response.json()["error"]["code"]) == ("after", "job_not_found")


@pytest.mark.parametrize("path", ["", "/events", "/result", "/audio"])
def test_unknown_job(site, path):
    for odd in ODD_IDS:
        response = site.client.get(f"/v1/jobs/{odd}{path}")
        assert response.status_code == 404, odd
        assert response.json()["error"]["type"] == "invalid_request_error"
        if path == "":
            assert site.client.delete(f"/v1/jobs/{odd}").status_code == 404, odd


# Deletion


@pytest.mark.parametrize("status", ["queued", "running", "succeeded", "failed"])
def test_deleted_job_leaves_nothing(site, status):
    others = []
    if status == "failed":
        site.service.error = ClipFailed("It failed.")
    if status in ("queued", "running"):
        site.service.paused = True
    if status == "queued":
        others = [site.submitted() for _ in range(site.service.fleet.jobs_at_once)]
        wait_for(lambda: len(listed(site, status="running")["data"]) == len(others))
    job = site.submitted(CONTENT)
    if status == "running":
        assert site.service.started.wait(5)
    elif status != "queued":
        site.finished(job)
    wait_for(lambda: site.job(job)["status"] == status)
    response = site.client.delete(f"/v1/jobs/{job}")
    assert (response.status_code, response.content) == (204, b"")
    assert len(site.left_files) == 2 * len(others), "each of the others has its upload and its PCM"
    assert site.service.cancelled.is_set() is (status == "running")
    for path in ("", "/events", "/result", "/audio"):
        assert site.client.get(f"/v1/jobs/{job}{path}").status_code == 404
    assert site.client.delete(f"/v1/jobs/{job}").status_code == 404
    assert [entry["id"] for entry in listed(site)["data"]] == others[::-1]
    site.service.paused = False
    assert [site.finished(other)["status"] for other in others] == ["succeeded"] * len(others)
