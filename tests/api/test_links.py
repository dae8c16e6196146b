"""`POST /v1/jobs/{id}/links`: what a link gives without a key, and what it does not."""

import re
import time
from datetime import datetime
from urllib.parse import parse_qsl

import httpx
import pytest

from app.common.owners import unnamed_owner
from app.intake import limits
from app.jobs.storage.service_clock import ServiceClock
from app.telemetry.work import current_work
from tests.cases import read_cases

REQUESTS = read_cases("requests")

KEY = "sk-links"
JOB = "f" * 32  # of no job
HOURS = 3600.0


@pytest.fixture
def locked(serve):
    """A site with a key, which its client sends."""
    site = serve(api_keys=(KEY,))
    site.client.headers["authorization"] = f"Bearer {KEY}"
    return site


@pytest.fixture
def job(locked):
    return locked.finished(locked.submitted())["id"]


@pytest.fixture
def stranger(locked):
    """A client without a key."""
    with httpx.Client(base_url=locked.url, timeout=15, trust_env=False) as client:
        yield client


def asked(site, job, **body):
    return site.client.post(f"/v1/jobs/{job}/links", json=body)


def link(site, job, **body):
    """The path of a new link."""
    response = asked(site, job, **body)
    assert response.status_code == 201, response.text
    return response.json()["path"]


def error(response):
    detail = response.json()["error"]
    return response.status_code, detail["code"]


REFUSED = (403, "link_refused")


@pytest.mark.parametrize(("body", "query"), [*REQUESTS["links"], ({"path": "audio", "format": None}, {})])
def test_a_link_gives_what_its_query_gives_with_a_key(locked, stranger, job, body, query):
    before = time.time()
    response = asked(locked, job, **body)
    assert response.status_code == 201
    path, _, signed = response.json()["path"].partition("?")
    assert path == f"/v1/jobs/{job}/{body['path']}"
    *parameters, (name, expires), (last, _) = parse_qsl(signed)
    assert (dict(parameters), name, last) == (query, "expires", "signature")
    assert before + 12 * HOURS - 1 <= int(expires) <= time.time() + 12 * HOURS
    assert datetime.fromisoformat(response.json()["expires_at"]).timestamp() == int(expires)

    with_key = locked.client.get(path, params=query)
    by_link = stranger.get(response.json()["path"])
    assert by_link.status_code == with_key.status_code == 200
    assert by_link.content == with_key.content
    assert by_link.headers["content-type"] == with_key.headers["content-type"]
    assert stranger.get(path, params=query).status_code == 401, "it was the signature that counted"


def test_a_player_seeks_by_link(locked, stranger, job):
    audio = link(locked, job, path="audio", format="flac")
    whole = stranger.get(audio)
    assert whole.headers["accept-ranges"] == "bytes"
    for asked_for, content in (("bytes=0-", whole.content), ("bytes=5-9", whole.content[5:10])):
        part = stranger.get(audio, headers={"range": asked_for, "if-range": whole.headers["etag"]})
        assert (part.status_code, part.content) == (206, content)
    assert stranger.get(audio, headers={"range": "bytes=9999-"}).status_code == 416


def test_links_are_kept_private(locked, stranger, job):
    for body in ({"path": "audio"}, {"path": "audio", "format": "flac"}, {"path": "result"}):
        headers = stranger.get(link(locked, job, **body)).headers
        assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "private")
        assert "referrer-policy" not in locked.client.get(f"/v1/jobs/{job}/{body['path']}").headers


@pytest.mark.parametrize(
    ("body", "param"),
    [*REQUESTS["bad_links"], ({"path": None}, "path"), ({"path": "result", "revision": 2**31}, "revision")],
)
def test_bad_fields_are_named(locked, job, body, param):
    response = asked(locked, job, **body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert f"`{param}`" in response.json()["error"]["message"]


def test_other_bodies(locked, job):
    path = f"/v1/jobs/{job}/links"
    assert error(locked.client.post(path, data={"path": "audio"})) == (415, "unsupported_content_type")
    large = locked.client.post(path, json={"path": "audio", "format": "x" * 100_000})
    assert error(large) == (413, "too_large")
    charset = {"content-type": "Application/JSON; charset=utf-8"}
    assert locked.client.post(path, content=b'{"path": "audio"}', headers=charset).status_code == 201


def test_the_body_is_read_last(locked, job):
    path, large = f"/v1/jobs/{job}/links", b" " * 100_000
    assert error(locked.client.post(path, content=large)) == (415, "unsupported_content_type")
    unknown = locked.client.post(f"/v1/jobs/{JOB}/links", content=large)
    assert error(unknown) == (404, "job_not_found")


@pytest.mark.parametrize("job_id", [JOB, "x", JOB.upper()])
def test_unknown_jobs(locked, job_id):
    response = locked.client.post(f"/v1/jobs/{job_id}/links", json={"path": "audio"})
    assert response.status_code == 404


def test_an_expired_link(locked, stranger, job, monkeypatch):
    audio = link(locked, job, path="audio")
    now = ServiceClock.__call__
    monkeypatch.setattr(ServiceClock, "__call__", lambda clock: now(clock) + 12 * HOURS - 60)
    assert stranger.get(audio).status_code == 200
    monkeypatch.setattr(ServiceClock, "__call__", lambda clock: now(clock) + 12 * HOURS + 60)
    refused = stranger.get(audio)
    assert error(refused) == REFUSED
    assert refused.json()["error"]["message"].startswith("This link has expired. Ask for a new link: `POST ")


def test_an_altered_link(locked, stranger, job):
    """`test_signatures.py` alters links in all other ways."""
    other = locked.submitted()
    query = {"path": "audio", "format": "flac", "start": 1, "end": 2}
    path, _, signed = link(locked, job, **query).partition("?")
    assert stranger.get(f"{path}?{signed}").status_code == 200
    for changed in (signed.replace("flac", "ogg"), signed[:-1], signed + "&x=1", "signature"):
        assert error(stranger.get(f"{path}?{changed}")) == REFUSED, changed
    for unlike in (path.replace(job, other), path.replace("audio", "result"), path + "/", "/" + path):
        assert error(stranger.get(f"{unlike}?{signed}")) == REFUSED
    message = stranger.get(f"{path}?{signed}A").json()["error"]["message"]
    assert message.startswith("This link is not valid")
    assert "Ask for a new link" in message


def test_no_other_path_and_method(locked, stranger, job):
    path, _, signed = link(locked, job, path="audio").partition("?")
    for other in ("", "/events", "/segments", "/revisions", "/peaks", "/links", "/audio/x"):
        assert error(stranger.get(f"/v1/jobs/{job}{other}?{signed}")) == REFUSED
    for other in ("/v1/jobs", "/v1/jobs/archive", "/v1/workers", "/v1/models", "/docs", "/nowhere"):
        assert error(stranger.get(f"{other}?{signed}")) == REFUSED
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert error(stranger.request(method, f"{path}?{signed}")) == REFUSED
        assert error(stranger.request(method, f"/v1/jobs/{job}?{signed}")) == REFUSED
    assert stranger.head(f"{path}?{signed}").status_code == 403
    assert error(stranger.delete(f"/v1/links?{signed}")) == REFUSED
    assert locked.job(job)["status"] == "succeeded"
    assert stranger.get(f"/health?{signed}").status_code == 200


def test_a_refusal_comes_before_the_body_is_read(locked, stranger, job):
    signed = link(locked, job, path="audio").partition("?")[2]
    form = {"files": {"file": ("talk.wav", bytes(1_000_000))}}
    assert error(stranger.post(f"/v1/jobs?{signed}", **form)) == REFUSED
    assert len(locked.uploads) == 1


def test_with_a_key_the_key_decides(locked, stranger, job):
    audio = link(locked, job, path="audio")
    wrong = {"authorization": "Bearer sk-wrong"}
    assert error(stranger.get(audio, headers=wrong)) == (401, "invalid_api_key")
    assert stranger.get(audio, headers={"authorization": ""}).status_code == 401
    path = audio.partition("?")[0]
    assert locked.client.get(f"{path}?expires=1&signature=x").status_code == 200


def test_the_link_of_a_deleted_job(locked, stranger):
    job = locked.finished(locked.submitted())["id"]
    audio, result = link(locked, job, path="audio"), link(locked, job, path="result")
    locked.client.delete(f"/v1/jobs/{job}").raise_for_status()
    for path in (audio, result):
        assert error(stranger.get(path)) == (404, "job_not_found")


def test_the_link_of_a_job_that_is_not_done(locked, stranger):
    locked.service.paused = True
    job = locked.submitted()
    result, audio = link(locked, job, path="result"), link(locked, job, path="audio")
    assert error(stranger.get(result)) == (409, "job_not_done")
    assert stranger.get(audio).status_code == 200
    locked.service.paused = False
    locked.finished(job)
    assert stranger.get(result).status_code == 200


def test_withdrawn_links(locked, stranger, job):
    before = [link(locked, job, path=path) for path in ("audio", "result")]
    assert [stranger.get(path).status_code for path in before] == [200, 200]
    assert locked.client.delete("/v1/links").status_code == 204
    for path in before:
        assert error(stranger.get(path)) == REFUSED
    assert stranger.get(link(locked, job, path="audio")).status_code == 200
    assert locked.client.delete("/v1/links").status_code == 204, "also when no links were given out"


def test_links_without_keys(site):
    job = site.finished(site.submitted())["id"]
    audio = link(site, job, path="audio")
    assert site.client.get(audio).status_code == 200
    altered = re.sub("expires=[0-9]+", "expires=1", audio)
    assert site.client.get(altered).status_code == 200, "everything passes"
    assert site.client.get("/v1/models?signature=x").status_code == 200


def test_all_links_are_one_owner_and_each_is_known(locked, stranger, job, monkeypatch):
    seen = []
    hold = limits.Limiter.hold

    def held(limiter, client):
        seen.append((client.owner, client.link, current_work().owner))
        return hold(limiter, client)

    monkeypatch.setattr(limits.Limiter, "hold", held)
    links = [link(locked, job, path="audio", format=form) for form in ("flac", "ogg")]
    for path in links:
        assert stranger.get(path).status_code == 200
    assert locked.client.get(f"/v1/jobs/{job}/audio?format=ogg").status_code == 200
    owner = unnamed_owner(KEY.encode())
    signatures = [path.rpartition("signature=")[2] for path in links]
    each_once = list(dict.fromkeys(seen))  # a place to make the answer, and one to send it
    assert each_once == [*(("link", signature, "link") for signature in signatures), (owner, "", owner)]
