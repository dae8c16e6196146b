"""The trash over HTTP: what answers 404 meanwhile, for whom, and what comes back."""

from contextlib import suppress

import httpx
import pytest

from tests.api.conftest import Serve, Site
from tests.api.test_owners import ALICE, BOB, OPERATOR, bearer, seen, serve_owners, shared, status, submitted
from tests.api.waiting import wait_for


@pytest.fixture
def owners(serve: Serve) -> Site:
    return serve_owners(serve)


def of(site: Site, job: str, action: str, key: str = ALICE) -> httpx.Response:
    return site.client.post(f"/v1/jobs/{job}/{action}", headers=bearer(key))


def listed(site: Site, query: str = "", key: str = ALICE) -> list[str]:
    answer = site.client.get(f"/v1/jobs?{query}", headers=bearer(key)).raise_for_status()
    return [job["id"] for job in answer.json()["data"]]


def test_a_job_in_the_trash_is_gone_from_everything_but_the_trash(owners: Site) -> None:
    job, path = submitted(owners, ALICE, tags="Team"), "/v1/jobs/{}"
    before = seen(owners, job, ALICE)
    links = [shared(owners, job), shared(owners, job, correct=True)]
    signed = [
        owners.client.post(f"/v1/jobs/{job}/links", json=body, headers=bearer(key)).json()["path"]
        for body in ({"path": "audio"}, {"path": "result"})
        for key in (ALICE, links[0]["token"])
    ]
    parts = ("", "/events", "/segments", "/result", "/audio", "/peaks", "/revisions", "/shared")
    trashed = of(owners, job, "trash").raise_for_status().json()
    assert trashed["trashed_at"] is not None
    assert trashed["expires_at"] == trashed["audio_expires_at"] > trashed["trashed_at"]
    for part in parts:
        assert status(owners, "GET", path.format(job) + part, bearer(ALICE)) == 404, part
    for key in (link["token"] for link in links):
        assert status(owners, "GET", path.format(job), bearer(key)) == 404
        assert status(owners, "GET", f"{path.format(job)}/segments", bearer(key)) == 404
    assert {owners.client.get(each).status_code for each in signed} == {404}
    for method, part in (("PATCH", ""), ("POST", "/again"), ("PUT", "/segments"), ("POST", "/shared")):
        headers = bearer(ALICE) | {"If-Match": "*", "Content-Type": "application/json"}
        answer = owners.client.request(method, path.format(job) + part, content=b"{}", headers=headers)
        assert answer.status_code == 404, part
    assert owners.client.get(f"/v1/jobs/archive?ids={job}", headers=bearer(ALICE)).status_code == 404
    for query in ("", "q=talk", "tag=team", f"ids={job}", "status=succeeded"):
        assert listed(owners, query) == listed(owners, query, OPERATOR) == []
    for query in ("", "&q=talk", "&tag=team", "&status=succeeded"):
        assert listed(owners, f"trash=true{query}") == [job]
    assert listed(owners, f"trash=true&after={job}") == []

    assert of(owners, job, "restore").raise_for_status().json()["trashed_at"] is None
    assert {owners.client.get(each).status_code for each in signed} == {200}
    assert seen(owners, job, links[0]["token"])["id"] == job
    after = seen(owners, job, ALICE)
    assert {name for name in after if after[name] != before[name]} <= {"expires_at", "audio_expires_at"}
    assert (listed(owners), listed(owners, "trash=true")) == ([job], [])


def test_others_neither_see_nor_touch_it(owners: Site) -> None:
    job = submitted(owners, ALICE)
    link = shared(owners, job, correct=True)["token"]
    for action in ("trash", "restore"):
        assert of(owners, job, action, BOB).status_code == 404
        assert of(owners, job, action, link).status_code == 403
        assert status(owners, "POST", f"/v1/jobs/{job}/{action}", {}) == 401
    of(owners, job, "trash", OPERATOR).raise_for_status()
    assert listed(owners, "trash=true", BOB) == []
    assert listed(owners, "trash=true", OPERATOR) == [job]
    for action in ("trash", "restore"):
        assert of(owners, job, action, BOB).status_code == 404
    assert status(owners, "DELETE", f"/v1/jobs/{job}", bearer(BOB)) == 404
    assert status(owners, "DELETE", f"/v1/jobs/{job}", bearer(ALICE)) == 204
    assert of(owners, job, "restore").status_code == 404
    assert not owners.left_files


def test_a_job_that_runs_is_cancelled_and_goes_on_after_its_return(site: Site) -> None:
    site.service.paused = True
    job = site.submitted()
    wait_for(lambda: site.job(job)["status"] == "running")
    with site.client.stream("GET", f"/v1/jobs/{job}/events") as stream:
        events = stream.iter_lines()
        assert next(events) == "id: 1"
        answer = site.client.post(f"/v1/jobs/{job}/trash").raise_for_status().json()
        assert (answer["status"], answer["trashed_at"] is None) == ("cancelled", False)
        with suppress(StopIteration):
            assert "event: job.cancelled" in [*events]
    assert not [*site.service.media.folder.pcm.iterdir()]
    site.service.paused = False
    assert site.client.post(f"/v1/jobs/{job}/restore").json()["status"] in ("queued", "running")
    assert site.finished(job)["status"] == "succeeded"


def test_without_a_trash_the_answer_names_the_setting(serve: Serve) -> None:
    site = serve(trash_ttl_s=0)
    job = site.submitted()
    answer = site.client.post(f"/v1/jobs/{job}/trash")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "no_trash")
    assert "WHISPER_TRASH_TTL_S" in answer.json()["error"]["message"]
    assert site.finished(job)["status"] == "succeeded"
