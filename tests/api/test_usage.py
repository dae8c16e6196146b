"""How much was transcribed over HTTP, and what a budget refuses at each door before the body comes."""

import csv
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from wyoming.audio import AudioStart
from wyoming.client import AsyncTcpClient
from wyoming.error import Error

from app.commands.usage import run_usage
from app.common.errors import InvalidInput
from app.settings import Settings
from tests.api.conftest import FORM, RECORDING, Site, form, serve_site
from tests.api.fake_service import TRANSCRIPT
from tests.api.test_owners import ALICE, BOB, KEYS, OPERATOR, PART, TUS, bearer, seen, status, submitted
from tests.api.test_realtime import refusal
from tests.api.test_streaming import events
from tests.api.waiting import wait_for

pytestmark = pytest.mark.timeout(60)

LENGTH_S = TRANSCRIPT.seconds  # 4.2
LARGE = 1 << 30  # bytes that never come


def used(site: Site, key: str = OPERATOR, **query: str) -> Any:
    return site.client.get("/v1/usage", params=query, headers=bearer(key)).raise_for_status().json()["data"]


def serve_budgets(serve: Any, folder: Path, *lines: str, **settings: Any) -> Site:
    file = folder / "budgets"
    file.write_text("\n".join(lines))
    return serve(data_dir=folder / "data", api_keys=KEYS, budgets_file=file, **settings)  # type: ignore[no-any-return]


def transcribe(site: Site, key: str = ALICE, **fields: str) -> httpx.Response:
    return site.transcribe(headers=bearer(key), **fields)


@pytest.fixture
def poor(serve: Any, tmp_path: Path) -> Site:
    """Alice may have nothing transcribed."""
    return serve_budgets(serve, tmp_path, "alice:0")


def refused(answer: httpx.Response) -> str:
    """The message of a refusal for which no client waits."""
    assert answer.status_code == 429, answer.text
    assert answer.headers["x-should-retry"] == "false"
    assert "retry-after" not in answer.headers
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "insufficient_quota")
    return str(error["message"])


def refused_before_body(site: Site, request: str, body: bytes = b"", **headers: str) -> None:
    """Refused although the body does not come."""
    key = f"Bearer {ALICE}"
    with closing(site.begin(request, body, length=LARGE, authorization=key, **headers)) as connection:
        answer = b""
        while b"insufficient_quota" not in answer:
            received = connection.recv(1 << 16)
            assert received, answer
            answer += received
    assert answer.startswith(b"HTTP/1.1 429 "), answer
    assert b"x-should-retry: false" in answer.lower()


@pytest.mark.parametrize("path", ["/v1/audio/transcriptions", "/v1/audio/translations", "/asr", "/v1/jobs"])
def test_a_form_is_refused_before_its_recording(poor: Site, path: str) -> None:
    name = "audio_file" if path == "/asr" else "file"
    refused_before_body(poor, f"POST {path}", form(name, model="whisper-1"), **FORM)
    assert not poor.left_files


def test_so_are_recordings_as_bodies_and_resumable_uploads(poor: Site) -> None:
    refused_before_body(poor, "POST /v1/jobs", content_type="audio/wav")
    part = {name.lower().replace("-", "_"): value for name, value in PART.items()}
    refused_before_body(poor, "POST /v1/uploads", **part)
    refused_before_body(poor, f"PATCH /v1/uploads/{'0' * 32}", **part)
    upload = poor.client.post("/v1/uploads", headers=bearer(BOB) | TUS)
    assert upload.status_code == 201
    poor.client.delete(upload.headers["location"], headers=bearer(BOB) | TUS).raise_for_status()


def test_so_are_jobs_of_a_url_or_an_earlier_job(serve: Any, tmp_path: Path) -> None:
    site = serve_budgets(serve, tmp_path, "alice:0.08", allow_urls=True)
    job = submitted(site, ALICE)
    refused(site.client.post("/v1/jobs", json={"url": "https://a.invalid/a.mp3"}, headers=bearer(ALICE)))
    refused(site.client.post(f"/v1/jobs/{job}/again", json={}, headers=bearer(ALICE)))
    assert submitted(site, BOB)


def test_live_streams_are_refused_with_the_handshake(poor: Site) -> None:
    for query in ("", "?job=true"):
        with refusal(poor, query, key=ALICE) as (answer, error):
            assert (answer, error["code"]) == (429, "insufficient_quota")
    assert used(poor, by="owner") == []


@pytest.mark.anyio
async def test_wyoming_counts_as_nobody(serve: Any, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    serve_budgets(serve, tmp_path, "*:0", wyoming_port=str(port))
    async with AsyncTcpClient("127.0.0.1", port, read_timeout=10) as client:
        await client.write_event(AudioStart(16_000, 2, 1).event())
        event = await client.read_event()
    assert event is not None
    assert Error.from_event(event).code == "insufficient_quota"


def test_what_needs_no_model_is_free(poor: Site) -> None:
    files = {"file": ("a.wav", RECORDING)}
    assert poor.client.post("/v1/audio/speech/timestamps", files=files, headers=bearer(ALICE)).is_success
    files = {"audio_file": ("a.wav", RECORDING)}
    assert poor.client.post("/detect-language", files=files, headers=bearer(ALICE)).is_success
    assert used(poor) == []


def test_openais_client_does_not_send_it_again(poor: Site) -> None:
    sent: list[httpx.Request] = []
    http = httpx.Client(event_hooks={"request": [sent.append]}, trust_env=False)
    client = openai.OpenAI(api_key=ALICE, base_url=f"{poor.url}/v1", max_retries=3, http_client=http)
    with client, pytest.raises(openai.RateLimitError) as caught:
        client.audio.transcriptions.create(model="whisper-1", file=("a.wav", RECORDING))
    assert (len(sent), caught.value.code) == (1, "insufficient_quota")
    first = datetime.now(UTC).date().replace(day=28) + timedelta(4)
    assert str(first.replace(day=1)) in caught.value.message


def test_two_requests_at_once_cannot_both_take_the_last_seconds(serve: Any, tmp_path: Path) -> None:
    site = serve_budgets(serve, tmp_path, "alice:0.12")  # 7.2 s
    site.service.paused = True
    with ThreadPoolExecutor() as threads:
        first = threads.submit(transcribe, site)
        assert site.service.started.wait(10)
        refused(transcribe(site))
        site.service.paused = False
        assert first.result().status_code == 200
    assert "0.0 of your 0.12 minutes a month are left" in refused(transcribe(site))
    assert used(site, by="owner") == [{"owner": "alice", "jobs": 1, "minutes": 0.07}]


def test_what_failed_is_free_and_the_next_one_may_have_it(serve: Any, tmp_path: Path) -> None:
    site = serve_budgets(serve, tmp_path, "alice:0.08")
    site.service.error = InvalidInput("broken", code="broken_file")
    for _ in range(3):
        assert transcribe(site).status_code == 400
    site.service.error = None
    assert transcribe(site).status_code == 200
    refused(transcribe(site))
    assert transcribe(site, BOB).status_code == 200


def test_a_job_that_is_longer_than_what_is_left_fails_and_says_so(serve: Any, tmp_path: Path) -> None:
    site = serve_budgets(serve, tmp_path, "alice:0.05")  # 3 s
    job = seen(site, submitted(site, ALICE), ALICE)
    assert (job["status"], job["error"]["code"]) == ("failed", "insufficient_quota")
    assert "of your 0.05 minutes a month" in job["error"]["message"]
    answer = site.client.get("/v1/usage", headers=bearer(ALICE)).json()
    assert (answer["data"], answer["left_minutes"]) == ([], 0.05)
    (tmp_path / "budgets").write_text("alice:1")
    site.service.budgets.load()
    again = site.client.post(f"/v1/jobs/{job['id']}/again", json={}, headers=bearer(ALICE))
    assert again.status_code == 202
    wait_for(lambda: seen(site, job["id"], ALICE)["status"] == "succeeded")
    assert used(site, ALICE, by="owner") == [{"owner": "alice", "jobs": 1, "minutes": 0.07}]


def test_owners_see_their_own_and_operators_all(serve: Any) -> None:
    site = serve(api_keys=KEYS, metrics_by_owner=True)
    before = {row["owner"]: row["minutes"] for row in used(site, by="owner")}
    job = submitted(site, ALICE)
    assert transcribe(site).status_code == 200
    assert events(transcribe(site, BOB, stream="true").text)
    site.client.delete(f"/v1/jobs/{job}", headers=bearer(ALICE)).raise_for_status()
    rows = used(site, by="owner")
    grown = {row["owner"]: round(60 * (row["minutes"] - before.get(row["owner"], 0)), 1) for row in rows}
    assert (grown["alice"], grown["bob"]) == (2 * LENGTH_S, LENGTH_S)
    assert [row["owner"] for row in used(site, ALICE)] == ["alice"]
    day = str(datetime.now(UTC).date())
    assert used(site, BOB)[0] | {"jobs": 0, "minutes": 0} == {
        "day": day, "owner": "bob", "model": "tiny", "jobs": 0, "minutes": 0,
    }  # fmt: skip
    assert used(site, to="2020-01-31") == []
    assert status(site, "GET", "/v1/usage", {}) == 401
    metrics = site.client.get("/metrics", headers=bearer(OPERATOR)).text
    assert 'whisperfleet_owner_audio_seconds{owner="bob"}' in metrics
    answer = site.client.get("/v1/usage?format=csv&by=owner,model", headers=bearer(OPERATOR))
    assert answer.headers["content-type"].startswith("text/csv")
    listed = list(csv.DictReader(answer.text.splitlines()))
    assert {row["owner"] for row in listed} == {row["owner"] for row in rows}
    assert list(listed[0]) == ["owner", "model", "jobs", "minutes"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("by=file", "by"),
        ("by=", "by"),
        ("from=now", "from"),
        ("format=xml", "format"),
        ("since=1", "since"),
    ],
)
def test_a_wrong_question_is_refused(site: Site, query: str, param: str) -> None:
    answer = site.client.get(f"/v1/usage?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_the_command_prints_a_table_or_csv(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    site = serve(api_keys=KEYS)
    transcribe(site, BOB).raise_for_status()
    assert run_usage(site.url, BOB, {"by": "owner,model"}, as_csv=False) == 0
    head, row = capsys.readouterr().out.splitlines()[-2:]
    assert head.split() == ["owner", "model", "jobs", "minutes"]
    assert row.split()[:2] == ["bob", "tiny"]
    assert len(head) == len(row)
    assert run_usage(site.url, BOB, {"by": "day", "from": "2020-01-01"}, as_csv=True) == 0
    assert "\nday,jobs,minutes\n20" in f"\n{capsys.readouterr().out}"
    assert run_usage(site.url, BOB, {"by": "name"}, as_csv=True) == 1
    assert "`by`: String should match" in capsys.readouterr().err


def test_a_key_that_gets_a_name_keeps_what_it_has_used(tmp_path: Path) -> None:
    (tmp_path / "budgets").write_text("alice:0.08")

    def site(*keys: str) -> AbstractContextManager[Site]:
        files = {"data_dir": tmp_path, "budgets_file": tmp_path / "budgets"}
        return serve_site(Settings(**files, api_keys=keys, _env_file=None))

    with site(ALICE) as before:
        assert transcribe(before).status_code == 200
        before.client.get("/v1/usage", headers=bearer(ALICE)).raise_for_status()
    with site(f"alice:{ALICE}", OPERATOR) as after:
        refused(transcribe(after))
        assert used(after, by="owner") == [{"owner": "alice", "jobs": 1, "minutes": 0.07}]
