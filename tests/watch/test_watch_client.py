"""Requests to a service that is busy, gone, or no service at all."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.errors import InvalidSetting
from app.watch import client as client_module
from app.watch.client import JobClient, KeyTaken, NotRead, Refused

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

Answer = httpx.Response | Exception


def error(status: int, code: str = "", message: str = "No.", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message, "code": code}}, headers=headers)


class Service:
    """Gives the answers of a list, one by one, and keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
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
        http = httpx.AsyncClient(base_url="http://service", transport=httpx.MockTransport(self._answer))
        return JobClient(http, "http://service", self.notices.append)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Service]:
    def make(*answers: Answer) -> Service:
        service = Service(*answers)

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
    assert request.content == CONTENT
    assert dict(request.url.params) == {"language": "de", "filename": "film.mkv"}
    assert request.headers["idempotency-key"] == "key"
    assert request.headers["content-length"] == "700000"


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
    assert service.waits[0] == (10 if getattr(trouble, "status_code", 0) == 429 else 1)
    assert service.waits[-1] == 60
    assert {request.content for request in service.requests} == {CONTENT}


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
