"""Requests to a service that is busy, gone, or no service at all; its address, and what its answers say."""

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from app.client import service as client_module
from app.client.answers import KeyTaken, NotNow, NotRead, Refused, error_code, error_message, retry_after_s
from app.client.jobs import JobClient
from app.client.service import COMMAND, WATCH, Patience, connect, service_url
from app.common.errors import InvalidInput, InvalidSetting, WhisperfleetError
from tests.cases import read_cases

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

Answer = httpx.Response | Exception


def error(status: int, code: str = "", message: str = "No.", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message, "code": code}}, headers=headers)


class Service:
    """Gives the answers of a list, one by one, and keeps the requests."""

    def __init__(self, *answers: Answer, patience: Patience = WATCH) -> None:
        self.patience = patience
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.notices: list[str] = []
        self.waits: list[float] = []
        self.while_waiting: Callable[[], Awaitable[object]] | None = None

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def client(self) -> JobClient:
        http = connect("service", None, self.patience, httpx.MockTransport(self._answer))
        return JobClient(http, self.patience, "http://service", self.notices.append)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Service]:
    def make(*answers: Answer, patience: Patience = WATCH) -> Service:
        service = Service(*answers, patience=patience)

        async def sleep(seconds: float) -> None:
            service.waits.append(seconds)
            if service.while_waiting is not None:
                await service.while_waiting()

        monkeypatch.setattr(client_module.asyncio, "sleep", sleep)
        return service

    return make


JOB = httpx.Response(202, json={"id": "1", "status": "queued"})
CONTENT = os.urandom(700_000)
GONE = httpx.ConnectError("Connection refused")


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.mkv"
    path.write_bytes(CONTENT)
    return path


async def submit(service: Service, film: Path) -> dict[str, Any]:
    with film.open("rb") as file:
        return await service.client.submit(file, "film.mkv", {"language": "de"}, "key")


async def test_the_request_of_a_job(serve: Callable[..., Service], film: Path) -> None:
    service = serve(JOB)
    assert (await submit(service, film))["id"] == "1"
    [request] = service.requests
    before, _, after = request.content.partition(CONTENT)
    assert b'name="language"\r\n\r\nde\r\n' in before, "the service sees it before the recording"
    assert b'name="file"; filename="film.mkv"\r\n' in before
    assert after.startswith(b"\r\n--")
    assert request.headers["idempotency-key"] == "key"
    assert int(request.headers["content-length"]) == len(request.content)


@pytest.mark.parametrize(
    "trouble",
    [
        error(429, "queue_full", **{"retry-after": "10"}),
        error(503, "not_ready"),
        error(507, "disk_full"),
        httpx.Response(502, text="<html>Bad Gateway</html>"),
        httpx.Response(404, text="<html>nginx</html>"),
        httpx.Response(200, text="<html>Log in to the network</html>"),
        error(401),
        GONE,
        httpx.RemoteProtocolError("Server disconnected"),
    ],
    ids=lambda trouble: str(getattr(trouble, "status_code", type(trouble).__name__)),
)
async def test_trouble_is_waited_out_and_said_once(
    serve: Callable[..., Service], film: Path, trouble: Answer
) -> None:
    service = serve(*[trouble] * 8, JOB)
    assert (await submit(service, film))["id"] == "1"
    assert len(service.notices) == 2
    assert service.notices[0].startswith("waiting for http://service: ")
    assert service.notices[1] == "http://service takes requests again"
    assert service.waits[0] == pytest.approx(
        11 if getattr(trouble, "status_code", 0) == 429 else 0.55, rel=0.1
    )
    assert 30 <= service.waits[-1] <= 60
    assert all(CONTENT in request.content for request in service.requests)
    assert {request.headers["idempotency-key"] for request in service.requests} == {"key"}


async def test_a_service_that_takes_no_jobs_may_answer_other_requests(
    serve: Callable[..., Service], film: Path
) -> None:
    job = httpx.Response(200, json={"id": "1", "status": "running"})
    service = serve(error(429), job, error(429), job, JOB)
    client = service.client
    service.while_waiting = lambda: client.job("1")
    with film.open("rb") as file:
        await client.submit(file, "film.mkv", {}, "key")
    assert len(service.notices) == 2


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([error(400, "broken_file")], Refused),
        ([error(413, "too_large")], Refused),
        ([error(409, "idempotency_key_reused")], KeyTaken),
        ([error(500)] * 3, Refused),
    ],
)
async def test_refusals(
    serve: Callable[..., Service], film: Path, answers: list[Answer], expected: type[Exception]
) -> None:
    service = serve(*answers)
    with pytest.raises(expected, match=r"No\."):
        await submit(service, film)
    assert service.answers == []


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([httpx.ReadTimeout("")] * 60, "http://service cannot be reached: ReadTimeout"),
        ([error(503, message="Restarts.")] * 60, "Restarts."),
        ([error(500)] * 3, "No."),
        ([error(507, message="Its disk is full.")] * 3, "Its disk is full."),
        ([error(404)], "No."),
        ([error(401)], "No. Give the key with --api-key or WHISPER_API_KEY."),
        (
            [httpx.Response(301, headers={"location": "https://host/"})],
            "http://service sends to https://host/",
        ),
        (
            [httpx.Response(200, text="<html>Log in to the network</html>")],
            "answered 200 with something else",
        ),
    ],
)
async def test_a_command_gives_up(
    serve: Callable[..., Service],
    film: Path,
    answers: list[Answer],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the end of its patience, or at once where waiting does not help."""
    service = serve(*answers, patience=COMMAND)
    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=lambda: sum(service.waits)))
    with pytest.raises(WhisperfleetError, match=re.escape(expected)):
        await submit(service, film)
    assert (600 < sum(service.waits) < 640) if service.answers else len(service.requests) == len(answers)


async def test_a_command_does_not_wait_for_another_month_and_a_watch_does(
    serve: Callable[..., Service],
) -> None:
    service = serve(error(429, "insufficient_quota", "Used up."), patience=COMMAND)
    with pytest.raises(Refused, match=r"Used up\."):
        await service.client.job("9b2e")
    service = serve(*[error(429, "insufficient_quota")] * 3, JOB)
    assert await service.client.job("9b2e") == JOB.json()


async def test_a_command_waits_for_a_full_queue(serve: Callable[..., Service], film: Path) -> None:
    service = serve(*[error(429)] * 20, JOB, patience=replace(COMMAND, give_up_s=0.0))
    assert (await submit(service, film))["id"] == "1"
    impatient = serve(error(503), error(503), patience=replace(COMMAND, give_up_s=0.0))
    with pytest.raises(NotNow):
        await submit(impatient, film)


async def test_a_job_is_asked_for_until_the_service_answers(serve: Callable[..., Service]) -> None:
    job = httpx.Response(200, json={"id": "1", "status": "succeeded"})
    service = serve(
        GONE, error(503), job, error(503), GONE, httpx.Response(200, content=b"1\n"), patience=COMMAND
    )
    client = service.client
    assert [found async for found in client.follow("1")] == [job.json()]
    assert await client.result("1", "srt") == b"1\n"


@pytest.mark.parametrize("patience", [WATCH, COMMAND])
async def test_faults_say_nothing_about_a_recording_that_is_not_sent(
    serve: Callable[..., Service], patience: Patience
) -> None:
    service = serve(*[error(500)] * 3, patience=patience)
    with pytest.raises(NotNow, match=r"No\."):
        await service.client.job("1")
    assert service.answers == []


async def test_a_submission_waits_for_what_the_service_lacks(
    serve: Callable[..., Service], film: Path
) -> None:
    lacking = error(400, "speaker_model_unavailable")
    assert (await submit(serve(lacking, lacking, JOB), film))["id"] == "1"
    with pytest.raises(Refused):
        await submit(serve(lacking, patience=COMMAND), film)


async def test_a_job_that_is_gone(serve: Callable[..., Service]) -> None:
    gone = error(404, "job_not_found")
    service = serve(gone, gone, gone)
    client = service.client
    assert await client.job("1") is None
    assert await client.result("1", "srt") is None
    await client.delete("1")
    assert service.notices == []


async def test_a_file_that_becomes_shorter(serve: Callable[..., Service], film: Path) -> None:
    service = serve(error(400, "broken_file"))
    with film.open("rb") as file:
        read = file.read

        def cut(size: int) -> bytes:
            os.truncate(film, 300_000)
            return read(size)

        class File:
            fileno = file.fileno
            seek = file.seek
            read = staticmethod(cut)

        with pytest.raises(NotRead, match="shorter"):
            await service.client.submit(File(), "film.mkv", {}, "key")  # type: ignore[arg-type]


async def test_detection_sends_the_file_as_a_form(serve: Callable[..., Service], film: Path) -> None:
    service = serve(httpx.Response(200, json={"language_code": "de"}))
    with film.open("rb") as file:
        assert await service.client.detect_language(file, 'a "film".mkv') == "de"
    [request] = service.requests
    assert CONTENT in request.content
    assert int(request.headers["content-length"]) == len(request.content)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (error(401, message="The key is wrong."), "The key is wrong."),
        (error(404), "not a whisperfleet service"),
        (httpx.Response(301, headers={"location": "/login"}), "not a whisperfleet service"),
        (httpx.Response(200, text="<html>Another service</html>"), "not a whisperfleet service"),
    ],
)
async def test_something_else_answers(serve: Callable[..., Service], answer: Answer, named: str) -> None:
    with pytest.raises(InvalidSetting, match=named):
        await serve(answer).client.check()


@pytest.mark.parametrize("answer", [GONE, httpx.Response(200, json={"data": []}), error(503)])
async def test_a_service_that_may_start_later(serve: Callable[..., Service], answer: Answer) -> None:
    service = serve(answer)
    await service.client.check()
    assert len(service.notices) == (answer is GONE), "whoever mistyped the address sees it at once"


@pytest.mark.parametrize(("server", "url"), read_cases("addresses")["services"])
async def test_addresses_as_users_have_them(server: str, url: str) -> None:
    assert str(service_url(server)) == url


@pytest.mark.parametrize("server", ["", "ftp://host", "http://", "http://host:port", "http://[::1"])
async def test_what_is_no_address(server: str) -> None:
    with pytest.raises(InvalidInput, match="is no address"):
        service_url(server)


@pytest.mark.parametrize(
    ("answer", "message", "code"),
    [
        (httpx.Response(400, json={"error": {"message": "No.", "code": "not_audio"}}), "No.", "not_audio"),
        (httpx.Response(502, text="<html>"), "the server answered 502 Bad Gateway", ""),
        (httpx.Response(500, json={"error": "broken"}), "the server answered 500 Internal Server Error", ""),
        (httpx.Response(500, json=["error"]), "the server answered 500 Internal Server Error", ""),
    ],
)
async def test_errors_of_services_and_proxies(answer: httpx.Response, message: str, code: str) -> None:
    assert (error_message(answer), error_code(answer)) == (message, code)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("86400", 60.0), ("tomorrow", 0.0), ("-1", 0.0)])
async def test_how_long_to_wait(header: str, seconds: float) -> None:
    assert retry_after_s(httpx.Response(429, headers={"retry-after": header})) == seconds


@pytest.mark.parametrize("key", ["sk-sécret", "sk-secret\n"])
async def test_a_key_that_is_none_is_not_shown(key: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        connect("host", key, COMMAND)
    assert "cret" not in refusal.value.message
