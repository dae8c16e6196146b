"""A server that can open no file: requests that need one are refused for a while."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.running import DATA, Server

RECORDING = DATA / "short00.flac"
TUS = {"Tus-Resumable": "1.0.0"}
PART = TUS | {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
OF_JOBS = (
    "result?format=srt",
    "result?format=docx",
    "audio",
    "audio?format=flac",
    "audio?format=ogg&start=1",
)


@contextmanager
def no_descriptor_left(pid: int) -> Iterator[None]:
    """Let a process open nothing: it would get the lowest number that is free."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
    lowest = min(set(range(len(used) + 1)) - used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def answers(server: Server, job: str, upload: str) -> dict[str, httpx.Response]:
    """The answers to requests that need a file, on a connection that is open already."""
    client, recording = server.client, RECORDING.read_bytes()
    files = {"file": (RECORDING.name, recording)}
    path = "/v1/audio/transcriptions"
    return {
        "request": client.post(path, data={"model": "whisper-1"}, files=files),
        "stream": client.post(path, data={"model": "whisper-1", "stream": "true"}, files=files),
        "speech": client.post("/v1/audio/speech/timestamps", files=files),
        "asr": client.post("/asr", files={"audio_file": (RECORDING.name, recording)}),
        "job": client.post("/v1/jobs", files=files),
        "upload": client.patch(upload, headers=PART, content=recording),
        **{of_job: client.get(f"/v1/jobs/{job}/{of_job}") for of_job in OF_JOBS},
    }


def test_requests_that_need_a_file_are_refused_until_there_is_a_descriptor(commands) -> None:
    server = commands.ready()
    job = server.submit(RECORDING)["id"]
    server.finished(job)
    size = {"Upload-Length": str(RECORDING.stat().st_size)}
    upload = server.client.post("/v1/uploads", headers=TUS | size).headers["location"]
    with no_descriptor_left(server.pid):
        refused = answers(server, job, upload)
        assert server.client.get("/v1/jobs").status_code == 200
    found = {
        name: (answer.status_code, answer.json()["error"]["code"], answer.headers["retry-after"])
        for name, answer in refused.items()
    }
    assert found == dict.fromkeys(refused, (503, "too_many_files", "5"))
    assert "Traceback" not in server.stderr
    assert {answer.status_code // 100 for answer in answers(server, job, upload).values()} == {2}
