"""Titles, notes and tags of jobs."""

import json
from typing import Any

import httpx
import pytest

from tests.api.conftest import Site
from tests.api.waiting import wait_for

MERGE = {"Content-Type": "application/merge-patch+json"}


def patch(site: Site, job: str, changes: Any, **headers: str) -> httpx.Response:
    body = changes if isinstance(changes, bytes) else json.dumps(changes).encode()
    return site.client.patch(f"/v1/jobs/{job}", content=body, headers=MERGE | headers)


def details(job: Any) -> tuple[str | None, str | None, list[str]]:
    return job["title"], job["notes"], job["tags"]


def error(answer: httpx.Response) -> tuple[int, str | None, str | None]:
    fault = answer.json()["error"]
    return answer.status_code, fault["code"], fault["param"]


def tagged(site: Site, *tags: str, **params: str) -> list[str]:
    answer = site.client.get("/v1/jobs", params={"tag": list(tags), **params}).raise_for_status()
    return [job["id"] for job in answer.json()["data"]]


def test_a_merge_patch_changes_what_it_names_and_null_removes(site: Site) -> None:
    job = site.submitted()
    assert details(site.job(job)) == (None, None, [])
    whole = {
        "title": " Weekly\nmeeting\u0007 ",
        "notes": "One\r\ntwo\u0000",
        "tags": ["team", "Budget", "TEAM", ""],
    }
    assert details(patch(site, job, whole).json()) == ("Weekly meeting", "One\ntwo", ["team", "Budget"])
    assert details(patch(site, job, {"notes": None}).json()) == ("Weekly meeting", None, ["team", "Budget"])
    assert details(patch(site, job, {}).json()) == ("Weekly meeting", None, ["team", "Budget"])
    plain = site.client.patch(f"/v1/jobs/{job}", json={"tags": None, "title": " "})
    assert details(plain.json()) == details(site.job(job)) == (None, None, [])


def test_an_etag_holds_while_the_job_goes_on_and_only_then(site: Site) -> None:
    site.service.paused = True
    job = site.submitted()
    tag = site.client.get(f"/v1/jobs/{job}").headers["etag"]
    wait_for(lambda: site.job(job)["status"] == "running")
    site.service.paused = False
    site.finished(job)
    changed = patch(site, job, {"title": "First"}, **{"If-Match": tag})
    assert changed.status_code == 200, changed.text
    assert error(patch(site, job, {"title": "Second"}, **{"If-Match": tag})) == (
        412,
        "details_changed",
        "If-Match",
    )
    assert error(patch(site, job, {"title": "x"}, **{"If-Match": "nonsense"}))[0] == 400
    assert patch(site, job, {"title": "Third"}, **{"If-Match": changed.headers["etag"]}).status_code == 200
    assert patch(site, job, {"title": "Fourth"}, **{"If-Match": "*"}).json()["title"] == "Fourth"


@pytest.mark.parametrize(
    ("changes", "status", "param", "reason"),
    [
        ({"titel": "x"}, 400, "titel", "did you mean `title`"),
        ({"status": "failed"}, 400, "status", "these are: title, notes, tags"),
        ({"title": "x" * 201}, 400, "title", "200"),
        ({"title": 5}, 400, "title", "string"),
        ({"notes": "x" * 5001}, 400, "notes", "5000"),
        ({"tags": [f"{number}" for number in range(21)]}, 400, "tags", "20"),
        ({"tags": ["x" * 51]}, 400, "tags", "50"),
        ({"tags": [None]}, 400, "tags", "string"),
        ({"tags": {"a": 1}}, 400, "tags", "list"),
        (["title"], 400, None, "JSON object"),
        (b"{", 400, None, "valid JSON"),
        (b'{"title": "' + b"x" * 70_000 + b'"}', 413, None, "bytes"),
    ],
)
def test_patches_that_make_no_sense(
    site: Site, changes: Any, status: int, param: str | None, reason: str
) -> None:
    job = site.submitted()
    answer = patch(site, job, changes)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param), answer.text
    assert reason in answer.json()["error"]["message"]
    assert details(site.job(job)) == (None, None, [])


def test_only_json_and_only_jobs_that_exist(site: Site) -> None:
    job = site.submitted()
    assert error(patch(site, job, {}, **{"Content-Type": "text/plain"}))[0] == 415
    assert error(patch(site, "0" * 32, {}))[:2] == (404, "job_not_found")


def test_a_request_may_name_its_job(site: Site) -> None:
    form = site.submit(title="Form", tags=["a,b", "B", "c"], notes="Some\nlines").json()
    assert details(form) == ("Form", "Some\nlines", ["a", "b", "c"])
    query = "/v1/jobs?title=Query&tags=a&tags=%C3%BC"
    raw = site.client.post(query, content=b"RIFF", headers={"content-type": "audio/wav"}).json()
    assert details(raw) == ("Query", None, ["a", "ü"])
    assert details(site.submit(title=" ", tags=",").json()) == (None, None, [])
    assert error(site.submit(tags=",".join(map(str, range(21)))))[2] == "tags"
    key = {"Idempotency-Key": "one"}
    first = site.submit(headers=key, title="A").json()
    assert site.submit(headers=key, title="A").json()["id"] == first["id"]
    assert error(site.submit(headers=key, title="B"))[:2] == (409, "idempotency_key_reused")


def test_jobs_are_filtered_by_tags_and_found_by_what_people_call_them(site: Site) -> None:
    first = site.finished(site.submitted(tags="Straße, team one"))["id"]
    second = site.finished(site.submitted(tags="team one", title="議事録 四月", notes="Überblick"))["id"]
    assert tagged(site, "team one") == tagged(site, "TEAM ONE") == [second, first]
    assert tagged(site, "STRASSE", "team one") == tagged(site, "straße,team one") == [first]
    assert tagged(site, "team") == tagged(site, "strass") == []
    assert tagged(site, "team one", q="四月") == tagged(site, "team one", q="uberblick fox") == [second]
    assert tagged(site, "team one", q="!") == []
    assert tagged(site, "team one", status="failed") == []
    assert tagged(site, q="strasse") == [first]
    patch(site, first, {"tags": ["other"], "title": "Plan"})
    assert (tagged(site, "straße"), tagged(site, "other"), tagged(site, q="plan fox talk")) == (
        [],
        [first],
        [first],
    )


def test_files_are_called_by_the_title(site: Site) -> None:
    job = site.finished(site.submitted())["id"]
    patch(site, job, {"title": "A/B v1.2: \u202eplan"})
    result = site.client.get(f"/v1/jobs/{job}/result?format=srt")
    assert result.headers["content-disposition"] == "inline; filename*=utf-8''A_B%20v1.2_%20_plan.srt"
    audio = site.client.get(f"/v1/jobs/{job}/audio")
    assert "A_B%20v1.2_%20_plan.wav" in audio.headers["content-disposition"]
    archive = site.client.get(f"/v1/jobs/archive?ids={job}")
    assert b"A_B v1.2_ _plan.srt" in archive.content


def test_a_recording_may_get_its_title_from_its_text(site: Site) -> None:
    text = site.finished(site.submitted())["excerpt"]
    named = site.finished(site.submitted(title_from_text="true"))["title"]
    assert named
    assert text.startswith(named.rstrip("…"))
    site.service.paused = True
    job = site.submitted(title_from_text="true")
    patch(site, job, {"title": "Mine"})
    site.service.paused = False
    assert site.finished(job)["title"] == "Mine"
