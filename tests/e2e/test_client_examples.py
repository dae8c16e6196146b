"""The programs of docs/clients.md and examples/, run as they are, with nothing but what the page names."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from standardwebhooks import Webhook

from tests.e2e.documentation import Block, section
from tests.e2e.environments import python_with
from tests.e2e.reading import read_srt
from tests.e2e.running import SIMULATED, free_port, wait_for
from tests.media_files import encode

pytestmark = pytest.mark.timeout(90)

ROOT = Path(__file__).parents[2]
GUIDE = "docs/clients.md"
EXAMPLES = {"Jobs": "transcribe_job", "Webhooks": "webhook_receiver"}  # by their section
NODE = shutil.which("node", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
LANGUAGES = ("Python", "Node") if NODE else ("Python",)


def program(containing: str) -> Block:
    """The one Python program of the page that has a text."""
    [found] = [block for block in section(GUIDE, "Python", ("python",)) if containing in block.text]
    return found


def example(heading: str, suffix: str) -> Path:
    return ROOT / "examples" / f"{EXAMPLES[heading]}.{suffix}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, talk_pcm):
    made = tmp_path_factory.mktemp("clients")
    (made / "talk.mp3").write_bytes(encode(talk_pcm[: 20 * 16_000], "mp3", "libmp3lame"))
    return made


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Callable[[Block], Path]:
    """The Python of an environment for a program."""
    made: dict[tuple[str, ...], Path] = {}

    def find(block: Block) -> Path:
        if block.packages not in made:
            made[block.packages] = python_with(block.packages, tmp_path_factory.mktemp("environment"))
        return made[block.packages]

    return find


@pytest.fixture
def example_of(python) -> Callable[[str, str], list[str]]:
    """The command that runs the example of a section."""

    def find(heading: str, language: str) -> list[str]:
        if language == "Node":
            return [str(NODE), str(example(heading, "mjs"))]
        return [str(python(section(GUIDE, heading)[-1])), str(example(heading, "py"))]

    return find


def environment(**variables: str) -> dict[str, str]:
    others = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "pythonpath")
    return {name: value for name, value in os.environ.items() if name.lower() not in others} | variables


def run(block: Block, python, folder: Path, server) -> str:
    done = subprocess.run(
        [python(block), "-c", block.text.replace("http://localhost:8000", server.url)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_subtitles_with_the_openai_package(folder, server, python):
    wanted = server.srt(folder / "talk.mp3", profile="netflix", hotwords="Reykjavík")
    assert run(program("max_retries"), python, folder, server) == wanted + "\n"
    assert read_srt(wanted)


def test_words_a_stream_and_who_says_what_with_the_openai_package(folder, server, python):
    lines = run(program("stream=True"), python, folder, server).splitlines()
    text = server.text(folder / "talk.mp3").strip()
    words = [line for line in lines if re.fullmatch(r" *\d+\.\d\d +\d+\.\d\d \S+", line)]
    assert [line.split()[-1] for line in words] == text.split()
    streamed, *said = lines[len(words) :]
    assert streamed == text
    assert all(re.fullmatch(r" *\d+\.\d\d [A-C]: \S.*", line) for line in said), said
    assert " A: " in said[0]
    assert " ".join(line.partition(": ")[2] for line in said).split() == text.split()


def test_jobs_survive_a_service_that_is_late_and_killed(commands, folder, example_of, tmp_path):
    """The programs start before the service, which is killed once while it transcribes."""
    port = free_port()
    clients = [
        subprocess.Popen(
            [*example_of("Jobs", language), folder / "talk.mp3", f"{language}.srt", "en"],
            cwd=tmp_path,
            env=environment(WHISPERFLEET=f"http://127.0.0.1:{port}"),
            stderr=subprocess.PIPE,
            text=True,
        )
        for language in LANGUAGES
    ]
    settings = SIMULATED | {"WHISPER_CPU_WORKERS": 1, "folder": tmp_path / "service", "port": port}
    server = commands.serve(**settings, WHISPER_SIMULATED="fixed_ms=3000").wait_until_up()
    jobs = wait_for(
        lambda: (
            len(running := server.client.get("/v1/jobs?status=running").json()["data"]) == len(LANGUAGES)
            and running
        )
    )
    server.signal(signal.SIGKILL)
    server.process.wait(10)
    again = commands.serve(**settings).wait_until_up()
    logs = [client.communicate(timeout=60)[1] for client in clients]
    assert [client.returncode for client in clients] == [0] * len(clients), logs
    assert all("waiting" in log for log in logs)
    expected = {again.result(job["id"]) for job in jobs}
    assert {(tmp_path / f"{language}.srt").read_text() for language in LANGUAGES} == expected
    assert len(again.client.get("/v1/jobs").json()["data"]) == len(LANGUAGES)


def test_a_job_is_submitted_again_while_the_service_is_full_or_restarts(folder, monkeypatch):
    """The same functions against answers that a real service gives rarely."""
    names: dict = {"__name__": "transcribe_job"}
    exec(compile(example("Jobs", "py").read_text(), "transcribe_job.py", "exec"), names)
    pauses: list[float] = []
    monkeypatch.setattr(names["time"], "sleep", pauses.append)
    job = {"id": "1", "status": "succeeded", "progress": {"done_s": 20.0, "total_s": None}, "error": None}
    answers = iter(
        [
            httpx.Response(429, headers={"Retry-After": "7"}),
            httpx.ConnectError("refused"),
            httpx.Response(502),
            httpx.Response(503),
            httpx.Response(202, json=job | {"status": "queued"}),
            httpx.ReadError("reset"),
            httpx.Response(200, json=job),
            httpx.Response(400, json={"error": {"message": "The recording is empty."}}),
        ]
    )
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.headers.get("Idempotency-Key"), len(request.read())))
        if isinstance(response := next(answers), Exception):
            raise response
        return response

    with httpx.Client(base_url="http://service", transport=httpx.MockTransport(answer)) as client:
        assert names["transcribe"](client, folder / "talk.mp3", language="en") == job
        with pytest.raises(SystemExit, match="The recording is empty"):
            names["transcribe"](client, folder / "talk.mp3")
    assert pauses == [7, 2, 5, 10, 1, 1]
    size = (folder / "talk.mp3").stat().st_size
    assert {content for _, content in asked[:5]} == {size}, "each attempt sends the whole recording"
    assert len({key for key, _ in asked[:5]}) == 1
    assert asked[-1][0] not in {None, asked[0][0]}


def test_receivers_of_webhooks_believe_the_service_only(commands, folder, example_of, tmp_path):
    secret = "whsec_" + base64.b64encode(bytes(24)).decode()
    server = commands.serve(
        **SIMULATED,
        WHISPER_CPU_WORKERS=1,
        WHISPER_WEBHOOK_SECRET=secret,
        WHISPER_WEBHOOK_ALLOW_PRIVATE=1,
        folder=tmp_path / "service",
    )
    for language in LANGUAGES:
        port = free_port()
        receiver = subprocess.Popen(
            [*example_of("Webhooks", language), str(port)],
            cwd=tmp_path,
            env=environment(WHISPER_WEBHOOK_SECRET=secret),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            url = f"http://127.0.0.1:{port}/"
            forged = {"type": "job.succeeded", "data": {"id": "1", "filename": "forged"}}
            answer = wait_for(lambda url=url, forged=forged: posted(url, forged))
            assert answer.status_code == 400
            body = json.dumps(forged)
            for headers in forged_signatures(secret, body):
                answer = httpx.post(url, content=body, headers=headers, trust_env=False)
                assert answer.status_code == 400, headers
            job = server.wait_until_up().submit(folder / "talk.mp3", webhook_url=url)
            assert receiver.stdout.readline() == f"job.succeeded {job['id']} talk.mp3\n"
        finally:
            receiver.kill()
            receiver.communicate()


def forged_signatures(secret: str, body: str) -> Iterator[dict[str, str]]:
    """The headers of webhooks that are not the service's: of another secret, of long ago, broken ones."""
    now = datetime.now(UTC)
    other = "whsec_" + base64.b64encode(bytes(range(24))).decode()
    for key, sent in (
        (other, now),
        (secret, now - timedelta(minutes=10)),
        (secret, now + timedelta(minutes=10)),
    ):
        yield {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(sent.timestamp())),
            "webhook-signature": Webhook(key).sign("msg_1", sent, body),
        }
    for signature in ("", "v1", "v1,", "v1,AAAA", "v2,x v1,=", ","):
        yield {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signature,
        }
    yield {"webhook-id": "msg_1", "webhook-timestamp": "soon", "webhook-signature": "v1,AAAA"}


def posted(url: str, body: dict) -> httpx.Response | None:
    """The answer, once somebody listens."""
    try:
        return httpx.post(url, json=body, trust_env=False)
    except httpx.ConnectError:
        return None
