"""The client of `whisperfleet transcribe --server`, with a service that fails as real ones do."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.client import jobs, service
from app.commands import remote
from app.commands.arguments import find_recordings
from app.commands.progress import Board
from app.commands.remote import Remote
from app.common.errors import UnsuitableFormat, WhisperfleetError
from app.common.options import Options
from app.transcript.terms import Term

KEY = "sk-secret"
JOB = "0123abcd"
CONTENT = b"RIFF" * 200_000
VERBOSE = {"task": "transcribe", "language": "english", "duration": 2.0, "text": "Cats."}
VERBOSE |= {"segments": [{"id": 0, "start": 0.0, "end": 2.0, "text": " Cats."}]}

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

Reply = httpx.Response | Exception | Callable[[httpx.Request], Awaitable[httpx.Response]]


def job(status: str, error: str | None = None) -> httpx.Response:
    done = 2.0 if status == "succeeded" else 1.0
    document = {
        "id": JOB,
        "status": status,
        "duration": 2.0,
        "progress": {"done_s": done, "total_s": 2.0},
        "error": {"message": error} if error else None,
    }
    return httpx.Response(202 if status == "queued" else 200, json=document)


def refused(status: int, message: str = "no", code: str = "", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message, "code": code}}, headers=headers)


@dataclass
class FakeServer(httpx.AsyncBaseTransport):
    """Answers each kind of request with the replies of a list; the last one is repeated."""

    replies: dict[str, list[Reply]] = field(default_factory=dict)
    seen: list[httpx.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        kind = f"{request.method} {request.url.path.removeprefix('/whisper/v1').replace(JOB, 'ID')}"
        replies = self.replies[kind]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if callable(reply):
            return await reply(request)
        self.bodies.append(await request.aread())
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)

    def asked(self, method: str) -> list[str]:
        return [request.url.path for request in self.seen if request.method == method]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.setattr(service, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(service, "_LONGEST_PAUSE_S", 0.002)
    monkeypatch.setattr(jobs, "_POLL_S", (0.001, 0.002))
    return FakeServer(
        {
            "GET /workers": [httpx.Response(200, json={"data": [{}] * 3})],
            "POST /jobs": [job("queued")],
            "GET /jobs/ID": [job("running"), job("succeeded")],
            "GET /jobs/ID/result": [httpx.Response(200, content=b"1\n")],
            "DELETE /jobs/ID": [httpx.Response(204)],
        }
    )


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "cat.wav"
    path.write_bytes(CONTENT)
    return path


async def transcribe(
    server: FakeServer, recording: Path, chosen: str = "srt", output: Path | None = None, **options: Any
) -> bytes:
    given = Options.model_validate(options)
    service = Remote("https://host.example/whisper/", KEY, given, chosen, None, server)
    with Board([recording]) as board:
        async with service:
            return await service.transcribe((recording, output), board.begin(recording))


async def test_a_recording_becomes_a_job_and_nothing_stays(server: FakeServer, recording: Path) -> None:
    result = await transcribe(server, recording, "ttml", language="en", word_level=True, fps=25)
    assert result == b"1\n"
    [submission] = [request for request in server.seen if request.method == "POST"]
    assert submission.headers["authorization"] == f"Bearer {KEY}"
    form = server.bodies[0]
    for name, value in (("language", "en"), ("word_level", "true"), ("fps", "25.0")):
        assert f'name="{name}"\r\n\r\n{value}\r\n'.encode() in form
    assert CONTENT in form
    assert b'filename="cat.wav"' in form
    assert server.seen[-2].url.params["format"] == "ttml"
    assert server.asked("DELETE") == [f"/whisper/v1/jobs/{JOB}"]


async def test_names_and_terms_go_with_the_job(server: FakeServer, recording: Path) -> None:
    terms = (Term("a", ("b",)),)
    service = Remote("https://host.example/whisper/", KEY, Options(), "srt", None, server, terms=terms)
    with Board([recording]) as board:
        async with service:
            await service.transcribe((recording, None), board.begin(recording))
    assert b'name="terms"\r\n\r\n{"data":[{"write":"a","for":["b"]}]}\r\n' in server.bodies[0]


async def test_a_file_that_grows_while_it_is_sent(server: FakeServer, recording: Path) -> None:
    async def grows(request: httpx.Request) -> httpx.Response:
        await request.aread()
        with recording.open("ab") as file:
            file.write(CONTENT)
        return job("queued")

    server.replies["POST /jobs"] = [grows]
    with pytest.raises(WhisperfleetError, match="the file has changed while it was sent"):
        await transcribe(server, recording)
    assert server.asked("DELETE") == [f"/whisper/v1/jobs/{JOB}"]


@pytest.mark.parametrize(
    ("kind", "reply", "named"),
    [
        ("POST /jobs", refused(400, "The model cannot translate."), "The model cannot translate."),
        ("POST /jobs", refused(413, "Too large."), "Too large."),
        ("POST /jobs", httpx.Response(418, content=b"<html>"), "answered 418"),
        ("GET /jobs/ID", job("failed", "It has no sound."), "It has no sound."),
        ("GET /jobs/ID", job("cancelled"), "its job is cancelled"),
        ("GET /jobs/ID", httpx.Response(200, content=b"<html>"), "answered 200 with something else"),
        ("GET /jobs/ID", refused(404, code="job_not_found"), "was deleted on the service"),
        ("GET /jobs/ID/result", refused(409, "Not done."), "Not done."),
    ],
)
async def test_a_file_that_fails(
    server: FakeServer, recording: Path, kind: str, reply: httpx.Response, named: str
) -> None:
    server.replies[kind] = [reply]
    with pytest.raises(WhisperfleetError, match=named):
        await transcribe(server, recording)
    assert bool(server.asked("DELETE")) is (kind != "POST /jobs")


async def test_json_has_the_segments(server: FakeServer, recording: Path) -> None:
    server.replies["GET /jobs/ID/result"] = [httpx.Response(200, json=VERBOSE)]
    document = json.loads(await transcribe(server, recording, "json"))
    assert (document["language"], document["duration"]) == ("en", 2.0)
    assert document["segments"] == [{"start": 0.0, "end": 2.0, "text": "Cats."}]


async def test_a_transcript_that_the_format_cannot_hold(server: FakeServer, recording: Path) -> None:
    server.replies["GET /jobs/ID/result"] = [
        refused(400, "SCC has no character '猫'."),
        httpx.Response(200, json=VERBOSE),
    ]
    with pytest.raises(
        UnsuitableFormat, match=r"no character '猫'\. The transcript is stored in .*out\.json"
    ):
        await transcribe(server, recording, "scc", recording.with_name("out.scc"))
    assert json.loads(recording.with_name("out.json").read_text())["text"].strip() == "Cats."


async def interrupt(
    server: FakeServer, recording: Path, kind: str, reply: Reply, reached: asyncio.Event
) -> None:
    """Transcribe a recording, and cancel that once a reply has come so far."""
    server.replies[kind] = [reply]
    work = asyncio.create_task(transcribe(server, recording))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_ctrl_c_deletes_a_running_job(server: FakeServer, recording: Path) -> None:
    followed = asyncio.Event()

    async def running(request: httpx.Request) -> httpx.Response:
        followed.set()
        return job("running")

    await interrupt(server, recording, "GET /jobs/ID", running, followed)
    assert server.asked("DELETE") == [f"/whisper/v1/jobs/{JOB}"]


async def test_ctrl_c_while_a_submission_is_answered(server: FakeServer, recording: Path) -> None:
    received, answered = asyncio.Event(), asyncio.Event()

    async def slow(request: httpx.Request) -> httpx.Response:
        await request.aread()
        received.set()
        asyncio.get_running_loop().call_later(0.05, answered.set)
        await answered.wait()
        return job("queued")

    await interrupt(server, recording, "POST /jobs", slow, received)
    assert server.asked("DELETE") == [f"/whisper/v1/jobs/{JOB}"]


async def test_ctrl_c_and_no_answer(
    server: FakeServer, recording: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(remote, "_CLEANUP_S", 0.05)
    received = asyncio.Event()

    async def never(request: httpx.Request) -> httpx.Response:
        await request.aread()
        received.set()
        await asyncio.Event().wait()
        raise AssertionError

    await interrupt(server, recording, "POST /jobs", never, received)
    assert "cat.wav: the service may still have its job" in capfd.readouterr().err


async def test_ctrl_c_during_an_upload(
    server: FakeServer, recording: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begun = asyncio.Event()

    async def half(request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        parts: AsyncIterator[bytes] = aiter(request.stream)
        while len(await anext(parts)) < 60_000:
            pass  # the fields
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    await interrupt(server, recording, "POST /jobs", half, begun)
    assert server.asked("DELETE") == []
    assert "may still have" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (refused(401, "The key is wrong."), "The key is wrong. Give the key with --api-key"),
        (httpx.Response(301, headers={"location": "https://host/"}), "sends to https://host/"),
        (httpx.Response(404, content=b"<html>"), "there is no whisperfleet at .*: the server answered 404"),
        (httpx.Response(200, json={"models": []}), "there is no whisperfleet at"),
        (refused(421, "Host not allowed."), "Host not allowed"),
        (httpx.ConnectError("Connection refused"), "cannot be reached: Connection refused"),
    ],
)
async def test_a_first_look_at_the_service(server: FakeServer, answer: Reply, named: str) -> None:
    server.replies["GET /workers"] = [answer]
    address = "https://user:password@host.example/whisper/v1"
    async with Remote(address, KEY, Options(), "srt", None, server) as service:
        with pytest.raises(WhisperfleetError, match=named) as raised:
            await service.jobs_at_once()
    assert KEY not in str(raised.value)
    assert "password" not in str(raised.value)


@pytest.mark.parametrize(("workers", "jobs"), [(0, 8), (1, 8), (8, 16), (100, 64)])
async def test_all_workers_are_kept_busy(server: FakeServer, workers: int, jobs: int) -> None:
    server.replies["GET /workers"] = [httpx.Response(200, json={"data": [{}] * workers})]
    async with Remote("host/whisper", KEY, Options(), "srt", None, server) as service:
        assert await service.jobs_at_once() == jobs


async def test_a_job_that_cannot_be_deleted(
    server: FakeServer, recording: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.replies["DELETE /jobs/ID"] = [httpx.ConnectError("Connection refused")]
    assert await transcribe(server, recording) == b"1\n"
    assert f"cat.wav: the service may still have its job {JOB}" in capfd.readouterr().err


async def test_a_name_that_is_not_text(server: FakeServer, tmp_path: Path) -> None:
    """As old disks have it, in another encoding than this system's."""
    recording = tmp_path / os.fsdecode(b"caf\xe9 \x1b[2J.wav")
    recording.write_bytes(CONTENT)
    assert await transcribe(server, recording) == b"1\n"
    assert 'filename="caf� �[2J.wav"'.encode() in server.bodies[0]


async def test_a_job_that_stays_is_found_again_and_one_that_failed_is_submitted_anew(
    server: FakeServer, recording: Path
) -> None:
    server.replies["POST /jobs"] = [job("queued"), job("failed", "no"), job("queued")]

    async def keep(**fields: str) -> None:
        service = Remote("https://host.example/whisper/", KEY, Options(), "srt", None, server, fields)
        with Board([recording]) as board:
            async with service:
                await service.transcribe((recording, None), board.begin(recording))

    await keep(tags="a,b", title="T")
    assert server.asked("DELETE") == []
    assert b'name="tags"\r\n\r\na,b\r\n' in server.bodies[0]
    await keep(tags="a,b", title="T")
    assert server.asked("DELETE") == [f"/whisper/v1/jobs/{JOB}"]
    await keep(tags="other")
    keys = [request.headers["idempotency-key"] for request in server.seen if request.method == "POST"]
    assert keys[0] == keys[1] == keys[2] != keys[3]


async def test_a_url_is_downloaded_by_the_service(server: FakeServer, tmp_path: Path) -> None:
    url = "https://media.example/watch?v=a%2Fb"
    [recording] = find_recordings([url])
    assert recording.path == Path("media.example/watch_v=a%2Fb")
    options = Options(language="en", word_level=True)
    service = Remote("https://host.example/whisper/", KEY, options, "srt", None, server, None, [recording])
    with Board([recording.path]) as board:
        async with service:
            result = await service.transcribe((recording.path, None), board.begin(recording.path))
    assert result == b"1\n"
    assert json.loads(server.bodies[0]) == {
        "url": url, "language": "en", "word_level": "true", "model": "whisper-1"
    }  # fmt: skip
    assert server.asked("DELETE") == [f"/whisper/v1/jobs/{JOB}"]


async def test_a_job_that_stays_has_its_folder_as_a_tag(server: FakeServer, tmp_path: Path) -> None:
    for place in ("", "2024, spring", "/".join(["deep"] * 12)):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "cat.wav").write_bytes(CONTENT)
    recordings = find_recordings([tmp_path])
    service = Remote("host/whisper", KEY, Options(), "srt", None, server, {"tags": "a"}, recordings)
    with Board([one.path for one in recordings]) as board:
        async with service:
            for one in recordings:
                await service.transcribe((one.path, None), board.begin(one.path))
    tags = [
        body.split(b'name="tags"\r\n\r\n')[1].split(b"\r\n")[0].decode()
        for body in server.bodies
        if b"RIFF" in body
    ]
    assert {"a", "a,2024_ spring/", f"a,{'/'.join(['deep'] * 12)[-49:]}/"} == set(tags)
