"""What each client may see: owners, operators, users of a login proxy, and links that share a transcript."""

import asyncio
import json
import re
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from app.common.owners import unnamed_owner
from app.intake.disk import MARGIN_BYTES
from app.jobs.storage.store import Store
from app.settings import Settings
from tests.api.conftest import RECORDING, Site, serve_site
from tests.api.waiting import wait_for
from tests.intake.disks import SmallDisk
from tests.pages import ROOT
from tests.tables import table

ALICE, BOB, OPERATOR, UNNAMED = "sk-alice", "sk-bob", "sk-operator", "sk-without-name"
KEYS = (f"alice:{ALICE}", f"bob:{BOB}", f"ops:{OPERATOR}:operator", UNNAMED)
METRICS_KEY = "sk-metrics"
USER_HEADER = "X-Forwarded-User"
NONE = "0" * 32  # the id of nothing
MB = 10**6
TUS = {"Tus-Resumable": "1.0.0", "Upload-Length": "9"}
PART = TUS | {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def serve_owners(serve: Any, **settings: Any) -> Site:
    values = {
        "api_keys": KEYS,
        "metrics_key": METRICS_KEY,
        "trusted_user_header": USER_HEADER,
        "operators": ("root@example.org",),
    }
    return serve(**(values | settings))


@pytest.fixture
def owners(serve: Any) -> Site:
    return serve_owners(serve)


def submitted(site: Site, key: str, **fields: str) -> str:
    """The id of a job of an owner that has succeeded."""
    answer = site.submit(headers=bearer(key), **fields)
    assert answer.status_code == 202, answer.text
    job = str(answer.json()["id"])
    wait_for(lambda: seen(site, job, key)["finished_at"])
    return job


def seen(site: Site, job: str, key: str) -> Any:
    return site.client.get(f"/v1/jobs/{job}", headers=bearer(key)).raise_for_status().json()


def shared(site: Site, job: str, key: str = ALICE, **options: Any) -> Any:
    answer = site.client.post(f"/v1/jobs/{job}/shared", json=options, headers=bearer(key))
    assert answer.status_code == 201, answer.text
    return answer.json()


def status(site: Site, method: str, path: str, headers: dict[str, str]) -> int:
    """The status of an answer, whose body may never end."""
    with site.client.stream(method, path, headers=headers) as answer:
        return answer.status_code


ACCESS = ROOT / "docs" / "security.md"
COLUMNS = {
    "the owner": lambda site, job: bearer(ALICE),
    "another owner": lambda site, job: bearer(BOB),
    "operators": lambda site, job: bearer(OPERATOR),
    "a link to read": lambda site, job: bearer(shared(site, job, audio=False)["token"]),
    "a link to correct, with the recording": lambda site, job: bearer(
        shared(site, job, correct=True)["token"]
    ),
    "nobody": lambda site, job: {},
}
# Statuses that say no. All others come from what the request lacks, after it was let in.
REFUSED = {401: "401", 403: "403", 404: "404"}


def access_rows(site: Site) -> list[list[str]]:
    """A row for each route: what each client gets for a job of the owner, or `yes`."""
    document = site.client.get("/openapi.json", headers=bearer(OPERATOR)).json()
    routes = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]
    routes += [("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json")]
    names: dict[str, str] = {}
    rows = []
    for method, path in sorted(routes, key=lambda route: (route[1], route[0])):
        cells = []
        for headers_of in COLUMNS.values():
            if not names or method == "DELETE" or path.endswith("/trash"):
                job = submitted(site, ALICE)
                location = site.client.post("/v1/uploads", headers=bearer(ALICE) | TUS).headers["location"]
                upload = location.rpartition("/")[2]
                names = {"job_id": job, "upload_id": upload, "link_id": shared(site, job)["id"]}
            headers = headers_of(site, names["job_id"]) | (PART if path.startswith("/v1/uploads") else {})
            full = path
            for name in re.findall(r"\{(\w+)", path):
                full = re.sub(rf"\{{{name}[^}}]*\}}", names.get(name, "whisper-1"), full)
            query = f"?ids={names['job_id']}" if path == "/v1/jobs/archive" else ""
            cells.append(REFUSED.get(status(site, method, full + query, headers), "yes"))
        rows.append([f"`{method} {path}`", *cells])
    return rows


def test_every_route_lets_in_whom_the_documentation_names(serve: Any, tmp_path: Path) -> None:
    owners = serve_owners(serve, data_dir=tmp_path)  # in which uploads are left
    made = "\n".join(table(["", *COLUMNS], together(access_rows(owners))))
    text = ACCESS.read_text(encoding="utf-8")
    begin, end = "<!-- access -->\n", "\n<!-- access ends -->"
    written = text.partition(begin)[2].partition(end)[0]
    assert written == made, f"look at what differs; if it is right, {ACCESS.name} must have it:\n{made}"
    assert not any("yes" in row[2] for row in access_rows_with_job(written)), "another owner got in"


def together(rows: list[list[str]]) -> list[list[str]]:
    """One row for all routes that answer the same."""
    routes: dict[tuple[str, ...], list[str]] = {}
    for route, *cells in rows:
        routes.setdefault(tuple(cells), []).append(route)
    return [[", ".join(found), *cells] for cells, found in routes.items()]


def access_rows_with_job(written: str) -> list[list[str]]:
    """The rows of routes that name a job."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in written.splitlines()]
    return [row for row in rows if "{job_id" in row[0]]


def test_ended_links_and_forged_headers_open_nothing(serve: Any) -> None:
    site = serve_owners(serve, trusted_proxies=("10.9.8.7",))
    job = submitted(site, ALICE)
    revoked = shared(site, job)
    site.client.delete(f"/v1/jobs/{job}/shared/{revoked['id']}", headers=bearer(ALICE)).raise_for_status()
    document = site.client.get("/openapi.json", headers=bearer(OPERATOR)).json()
    for path, methods in document["paths"].items():
        if path in ("/health", "/ready"):
            continue
        full = re.sub(r"\{(\w+)(:\w+)?\}", job, path)
        for method in methods:
            for headers in (
                bearer(revoked["token"]),
                bearer("shared_" + "x" * 43),
                {USER_HEADER: "alice"},
                {USER_HEADER.lower(): "root@example.org"},
                {"X-Forwarded-For": "10.9.8.7", USER_HEADER: "alice"},
            ):
                assert (path, status(site, method, full, headers)) == (path, 401)


def test_an_owner_lists_finds_and_archives_its_own_jobs_alone(owners: Site) -> None:
    mine, other = submitted(owners, ALICE), submitted(owners, BOB)
    listed = owners.client.get("/v1/jobs", headers=bearer(ALICE)).json()["data"]
    assert [job["id"] for job in listed] == [mine]
    assert listed[0]["owner"] is None
    word = owners.client.get(f"/v1/jobs/{other}/result?format=txt", headers=bearer(BOB)).text.split()[0]
    for query in (f"ids={mine},{other}", "q=talk", f"q={word}", "owner=alice"):
        data = owners.client.get(f"/v1/jobs?{query}", headers=bearer(ALICE)).json()["data"]
        assert {job["id"] for job in data} <= {mine}
    assert owners.client.get("/v1/jobs?owner=bob", headers=bearer(ALICE)).status_code == 403
    assert owners.client.get(f"/v1/jobs?after={other}", headers=bearer(ALICE)).status_code == 404
    archive = owners.client.get(f"/v1/jobs/archive?ids={mine},{other}", headers=bearer(ALICE))
    assert archive.status_code == 404
    assert other in archive.json()["error"]["message"]
    everything = owners.client.get("/v1/jobs", headers=bearer(OPERATOR)).json()["data"]
    assert {job["id"]: job["owner"] for job in everything} == {mine: "alice", other: "bob"}
    of_bob = owners.client.get("/v1/jobs?owner=bob", headers=bearer(UNNAMED)).json()["data"]
    assert [job["id"] for job in of_bob] == [other]


def test_a_foreign_job_is_answered_as_one_that_does_not_exist(owners: Site) -> None:
    job = submitted(owners, ALICE)
    seen(owners, job, ALICE)  # cached
    answers = {job_id: owners.client.get(f"/v1/jobs/{job_id}", headers=bearer(BOB)) for job_id in (job, NONE)}
    texts = {job_id: answer.text.replace(job_id, "ID") for job_id, answer in answers.items()}
    assert len(set(texts.values())) == 1
    assert {answer.status_code for answer in answers.values()} == {404}


def test_a_user_of_a_login_proxy_owns_jobs_and_may_be_an_operator(owners: Site) -> None:
    user, root = {USER_HEADER: "jane@example.org"}, {USER_HEADER: "root@example.org"}
    job = owners.submit(headers=user).json()["id"]
    me = owners.client.get("/v1/me", headers=user).json()
    assert me == {"owner": "jane@example.org", "operator": False, "shared": None}
    assert status(owners, "GET", f"/v1/jobs/{job}", bearer(ALICE)) == 404
    assert status(owners, "GET", f"/v1/jobs/{job}", root) == 200
    assert status(owners, "GET", "/v1/workers", user) == 403
    # A proxy may send a token of its own; a key is not needed beside the user.
    assert status(owners, "GET", f"/v1/jobs/{job}", user | bearer("a token of the proxy")) == 200
    assert status(owners, "GET", "/v1/me", {USER_HEADER: "x" * 65}) == 403
    assert status(owners, "GET", "/v1/me", {USER_HEADER: ""}) == 401
    # A page that got here by DNS rebinding, in a browser on a trusted machine, could name a user.
    assert status(owners, "GET", "/v1/me", user | {"Host": "page.example"}) == 421
    for name in (b"jane\xff", b"jane\xfe", "jané".encode("latin-1")):  # were one owner, with replacements
        refused = owners.client.get("/v1/me", headers=[(USER_HEADER.encode(), name)])
        assert (refused.status_code, "not UTF-8" in refused.json()["error"]["message"]) == (401, True)
    named = owners.client.get("/v1/me", headers=[(USER_HEADER.encode(), "jané".encode())])
    assert named.json()["owner"] == "jané"
    twice = [(USER_HEADER, "jane@example.org"), (USER_HEADER, "root@example.org")]
    assert owners.client.get("/v1/me", headers=httpx.Headers(twice)).status_code == 401


def test_a_shared_link_opens_one_transcript_as_it_says(owners: Site) -> None:
    job, other = submitted(owners, ALICE), submitted(owners, ALICE)
    reading, correcting = shared(owners, job, audio=False), shared(owners, job, correct=True)
    reader, corrector = bearer(reading["token"]), bearer(correcting["token"])
    assert reading["path"] == f"/#/jobs/{job}?link={reading['token']}"
    me = owners.client.get("/v1/me", headers=reader).json()
    assert (me["operator"], me["shared"]["job"], me["shared"]["correct"]) == (False, job, False)
    assert owners.client.get(f"/v1/jobs/{job}", headers=reader).json()["id"] == job
    assert status(owners, "GET", f"/v1/jobs/{other}", reader) == 403
    answer = owners.client.get(f"/v1/jobs/{job}/segments", headers=reader)
    document, tag = answer.json(), answer.headers["etag"]
    document["segments"][0]["text"] = " Corrected by link."
    body = json.dumps({"segments": document["segments"]})
    headers = {"If-Match": tag, "Content-Type": "application/json"}
    path = f"/v1/jobs/{job}/segments"
    assert owners.client.put(path, content=body, headers=reader | headers).status_code == 403
    corrected = owners.client.put(path, content=body, headers=corrector | headers)
    assert corrected.status_code == 200, corrected.text
    again = owners.client.put(path, content=body, headers=bearer(ALICE) | headers)
    assert again.status_code == 412
    document["segments"][0]["text"] = " Corrected by an operator."
    by_key = {"json": {"segments": document["segments"]}, "headers": bearer(OPERATOR) | {"If-Match": "*"}}
    owners.client.put(path, **by_key).raise_for_status()

    def makers(headers: dict[str, str]) -> list[tuple[str | None, str | None, bool]]:
        listed = owners.client.get(f"/v1/jobs/{job}/revisions", headers=headers).json()["data"]
        return [(each["owner"], each["link"], each["by_link"]) for each in listed]

    assert makers(bearer(ALICE)) == [
        ("ops", None, False), (None, correcting["id"], True), (None, None, False),
    ]  # fmt: skip
    assert makers(corrector) == [(None, None, is_by_link) for is_by_link in (False, True, False)]


SHARED_FIELDS = """
    id object status created_at finished_at expires_at audio_expires_at
    title duration language languages speakers revision progress failed_spans warnings
"""
HIDDEN = {"prompt": "hidden-prompt", "hotwords": "hidden-words", "tags": "hidden-tag", "notes": "hidden-note"}


@pytest.mark.parametrize("may_correct", [False, True])
def test_a_shared_link_gets_a_short_list_of_fields(owners: Site, may_correct: bool) -> None:
    file = ("hidden-name.wav", RECORDING)
    answer = owners.client.post("/v1/jobs", data=HIDDEN, files={"file": file}, headers=bearer(ALICE))
    job = answer.json()["id"]
    wait_for(lambda: seen(owners, job, ALICE)["finished_at"])
    path, reader = f"/v1/jobs/{job}", bearer(shared(owners, job, correct=may_correct)["token"])
    document = owners.client.get(path, headers=reader).json()
    assert set(document) == set(SHARED_FIELDS.split())
    links = [
        owners.client.post(f"{path}/links", json=body, headers=reader).json()["path"]
        for body in ({"path": "audio"}, {"path": "audio", "format": "ogg"}, {"path": "result"})
    ]
    queries = (
        "/result?format=md",
        "/result?format=vtt",
        "/result?format=verbose_json",
        "/segments",
        "/cues",
        "/audio",
    )
    for part in ("", *queries, *links):
        full = part if part in links else path + part
        answer = owners.client.get(full, headers={} if part in links else reader).raise_for_status()
        assert b"hidden" not in answer.content, full
        assert "hidden" not in str(answer.headers), full
    assert b"hidden-name" in owners.client.get(f"{path}/result?format=md", headers=bearer(ALICE)).content


def test_what_was_removed_before_a_transcript_was_shared_stays_unseen(owners: Site) -> None:
    job = submitted(owners, ALICE)
    path = f"/v1/jobs/{job}"
    document = owners.client.get(f"{path}/segments", headers=bearer(ALICE)).json()
    document["segments"][0]["text"] = " [redacted]"
    condition = bearer(ALICE) | {"If-Match": "*"}
    body = {"segments": document["segments"]}
    owners.client.put(f"{path}/segments", json=body, headers=condition).raise_for_status()
    reader, corrector = (bearer(shared(owners, job, correct=correct)["token"]) for correct in (False, True))
    for part in (
        "/revisions",
        *(f"/{of}?revision={n}" for of in ("segments", "cues", "result") for n in ("original", 0, 1)),
    ):
        answer = owners.client.get(path + part, headers=reader)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed"), part
        assert status(owners, "GET", path + part, corrector) == 200, part
    wanted = {"path": "result", "revision": "original"}
    assert owners.client.post(f"{path}/links", json=wanted, headers=reader).status_code == 403
    made = owners.client.post(f"{path}/links", json=wanted, headers=corrector).json()["path"]
    assert owners.client.get(made).status_code == 200
    assert "[redacted]" in owners.client.get(f"{path}/result", headers=reader).text


def test_the_maker_of_a_link_may_let_readers_see_earlier_revisions(owners: Site) -> None:
    job = submitted(owners, ALICE)
    link = shared(owners, job, revisions=True)
    assert (link["revisions"], link["correct"]) == (True, False)
    reader = bearer(link["token"])
    assert owners.client.get("/v1/me", headers=reader).json()["shared"]["revisions"] is True
    for part in ("/revisions", "/segments?revision=original", "/result?revision=0"):
        assert status(owners, "GET", f"/v1/jobs/{job}{part}", reader) == 200
    assert status(owners, "PUT", f"/v1/jobs/{job}/segments", reader) == 403
    assert shared(owners, job, correct=True)["revisions"] is True
    assert shared(owners, job)["revisions"] is False


def test_a_user_with_any_name_is_withdrawn_by_that_name_alone(owners: Site) -> None:
    name = "Team A/jané@example.org"
    user = [(USER_HEADER.encode(), name.encode())]
    answer = owners.client.post(
        "/v1/jobs", content=RECORDING, headers=[*user, (b"Content-Type", b"audio/wav")]
    )
    job = answer.raise_for_status().json()["id"]
    wait_for(lambda: seen(owners, job, OPERATOR)["finished_at"])
    made = owners.client.post(f"/v1/jobs/{job}/shared", json={}, headers=user).raise_for_status().json()
    by_operator = shared(owners, job, OPERATOR)
    upload = owners.client.post("/v1/uploads", headers=[*user, *httpx.Headers(TUS).raw])
    others = (name.upper(), "link", "nobody", "jané@example.org", "Team A", "../v1/owners", "%00", "x" * 200)
    for other in (*others, name):
        assert status(owners, "GET", f"/v1/jobs/{job}", bearer(made["token"])) == 200
        path = f"/v1/owners/{quote(other, safe='')}/withdraw"
        assert owners.client.post(path, headers=bearer(ALICE)).status_code == 403
        assert owners.client.post(path, headers=bearer(OPERATOR)).status_code == 204
    assert status(owners, "GET", f"/v1/jobs/{job}", bearer(made["token"])) == 401
    assert owners.client.head(upload.headers["location"], headers=[*user, *httpx.Headers(TUS).raw]).is_error
    assert status(owners, "GET", f"/v1/jobs/{job}", bearer(by_operator["token"])) == 200
    assert owners.client.get("/v1/me", headers=user).json()["owner"] == name


def test_what_goes_on_after_its_request_was_ended_ends_too(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submission is completed although its request is cancelled: its job has no receiver then."""
    site = serve_owners(serve, webhook_secret="whsec_" + "A" * 44, webhook_allow_private=True)
    add, has_begun = Store.add, Event()

    async def add_later(*arguments: Any) -> Any:
        has_begun.set()
        await asyncio.sleep(0.5)
        return await add(*arguments)

    monkeypatch.setattr(Store, "add", add_later)
    submission = ThreadPoolExecutor(1).submit(
        site.submit, headers=bearer(ALICE), webhook_url="http://127.0.0.1:9/"
    )
    assert has_begun.wait(10)
    began = time.monotonic()
    site.client.post("/v1/owners/alice/withdraw", headers=bearer(OPERATOR)).raise_for_status()
    assert time.monotonic() - began < 1.5, "it waits for that alone"
    assert submission.result().status_code == 401
    [job] = site.client.get("/v1/jobs", headers=bearer(ALICE)).json()["data"]
    assert job["webhook_url"] is None


def test_others_have_space_while_one_owner_fills_the_disk(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 MB above the margin, one owner fills 30, the next one three quarters of the rest, …"""
    site = serve_owners(serve, data_dir=tmp_path)
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 40 * MB)
    recording = RECORDING + bytes(MB)

    def fill(key: str) -> int:
        """How many jobs of a megabyte an owner can submit."""
        count = 0
        while (answer := site.submit(recording, headers=bearer(key))).status_code == 202:
            count += 1
        assert answer.status_code == 507
        assert answer.json()["error"]["code"] in ("storage_share_full", "disk_full")  # at the very end
        return count

    held = [fill(key) for key in (ALICE, BOB, OPERATOR)]
    assert held == pytest.approx([28, 6.5, 1.5], rel=0.15, abs=0.6)  # the database has some, too
    assert site.submit(headers=bearer(UNNAMED)).status_code == 202
    oldest = site.client.get("/v1/jobs?limit=100", headers=bearer(ALICE)).json()["data"][-10:]
    for job in oldest:
        site.client.delete(f"/v1/jobs/{job['id']}", headers=bearer(ALICE)).raise_for_status()
    assert fill(ALICE) in range(3, 10)
    assert fill(BOB) >= 1


def test_links_to_the_recording_end_with_the_shared_link_that_made_them(owners: Site) -> None:
    job = submitted(owners, ALICE)
    link = shared(owners, job)
    by_link = bearer(link["token"])
    made = owners.client.post(f"/v1/jobs/{job}/links", json={"path": "audio"}, headers=by_link).json()
    assert status(owners, "GET", made["path"], {}) == 200
    silent = bearer(shared(owners, job, audio=False)["token"])
    refused = owners.client.post(f"/v1/jobs/{job}/links", json={"path": "audio"}, headers=silent)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
    owners.client.delete(f"/v1/jobs/{job}/shared/{link['id']}", headers=bearer(ALICE)).raise_for_status()
    assert status(owners, "GET", made["path"], {}) == 403
    assert status(owners, "GET", f"/v1/jobs/{job}", by_link) == 401


def test_jobs_of_before_belong_to_the_key_that_made_them(tmp_path: Path) -> None:
    def site(*keys: str) -> AbstractContextManager[Site]:
        return serve_site(Settings(data_dir=tmp_path, api_keys=keys, _env_file=None))

    with site(ALICE, BOB) as before:
        first, second = submitted(before, ALICE, language="en"), submitted(before, BOB)
        assert seen(before, first, BOB)["owner"] == unnamed_owner(ALICE.encode())
    with site(f"alice:{ALICE}", "carol:sk-carol", OPERATOR) as after:
        assert status(after, "GET", f"/v1/jobs/{first}", bearer(ALICE)) == 200
        assert status(after, "GET", f"/v1/jobs/{first}", bearer("sk-carol")) == 404
        assert status(after, "GET", f"/v1/jobs/{second}", bearer("sk-carol")) == 404
        owned = {
            job["id"]: job["owner"]
            for job in after.client.get("/v1/jobs", headers=bearer(OPERATOR)).json()["data"]
        }
        assert owned == {first: "alice", second: unnamed_owner(BOB.encode())}


@pytest.mark.soak
def test_the_time_of_a_refusal_does_not_tell_whether_there_is_a_job(owners: Site) -> None:
    """A thousand alternating tries: an observer who compares both groups guesses as by chance."""
    job = submitted(owners, ALICE)
    times: dict[str, list[float]] = {job: [], NONE: []}
    for _ in range(1000):
        for job_id, durations in times.items():
            began = time.perf_counter()
            status(owners, "GET", f"/v1/jobs/{job_id}", bearer(BOB))
            durations.append(time.perf_counter() - began)
    foreign, none = times.values()
    lower = sum(a < b for a in foreign for b in none) / (len(foreign) * len(none))
    print(
        f"medians {statistics.median(foreign) * 1e6:.0f} and {statistics.median(none) * 1e6:.0f} µs, "
        f"{lower:.3f} of all pairs are lower"
    )
    assert 0.45 < lower < 0.55
