"""Three services on one SQLite database and one folder: what is begun at one goes on at any other."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fixtures import Commands
from tests.e2e.reading import Talk
from tests.e2e.running import ONE_SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(240)

TUS = {"Tus-Resumable": "1.0.0"}
SLOW = ONE_SIMULATED | {"WHISPER_SIMULATED": "clip_ms=700,batch=1"}


@pytest.fixture(scope="module")
def three(module_commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> list[Server]:
    folder = tmp_path_factory.mktemp("shared")
    started = [
        module_commands.serve(**SLOW, WHISPER_DATA_DIR=folder, WHISPER_FRONT_END=name) for name in "abc"
    ]
    for server in started:
        server.wait_until_ready()
        wait_for(lambda server=server: server.client.get("/health").json()["front_ends"] == 3, 60)
    return started


def events_of(server: Server, job: str) -> Iterator[dict[str, Any]]:
    """The events of a job until its end."""
    with server.client.stream("GET", f"/v1/jobs/{job}/events", timeout=60) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


def test_a_job_is_followed_corrected_and_downloaded_elsewhere(three: list[Server], talk: Talk) -> None:
    first, second, third = three
    job = first.submit(talk.path)["id"]
    events = [*events_of(second, job)]
    assert len(events) > 5, "it was followed while it ran"
    assert third.finished(job)["status"] == "succeeded"
    assert len({server.result(job) for server in three}) == 1
    path = f"/v1/jobs/{job}/segments"
    found = second.client.get(path).raise_for_status()
    document = found.json()["segments"]
    document[0]["text"] = "Corrected."
    body = {
        "segments": [{name: entry[name] for name in ("id", "start", "end", "text")} for entry in document]
    }
    headers = {"If-Match": found.headers["etag"]}
    second.client.put(path, json=body, headers=headers).raise_for_status()
    for server in (first, third):
        wait_for(lambda server=server: "Corrected." in server.result(job), 5)
    stale = third.client.put(path, json=body, headers=headers)
    assert stale.status_code == 412, "of somebody who has not seen the correction"
    sound = third.client.get(f"/v1/jobs/{job}/audio").raise_for_status()
    assert sound.content == talk.path.read_bytes()
    assert first.client.delete(f"/v1/jobs/{job}").is_success
    for server in three:
        wait_for(lambda server=server: server.client.get(f"/v1/jobs/{job}").status_code == 404, 5)


def test_a_running_job_is_cancelled_elsewhere(three: list[Server], talk: Talk) -> None:
    jobs = [three[0].submit(talk.path)["id"] for _ in range(3)]
    wait_for(lambda: any(three[1].job(job)["status"] == "running" for job in jobs))
    for job in jobs:
        assert three[2].client.delete(f"/v1/jobs/{job}").is_success
    for job in jobs:
        wait_for(lambda job=job: three[1].client.get(f"/v1/jobs/{job}").status_code == 404, 20)
    wait_for(lambda: all(not row["working"] for server in three for row in server.workers()), 20)


def test_an_upload_goes_on_elsewhere(three: list[Server], talk: Talk) -> None:
    content = talk.path.read_bytes()
    half = len(content) // 2
    created = three[0].client.post("/v1/uploads", headers={**TUS, "Upload-Length": str(len(content))})
    path = created.raise_for_status().headers["location"].removeprefix(three[0].url)
    for server, part, at in ((three[0], content[:half], 0), (three[1], content[half:], half)):
        headers = {**TUS, "Upload-Offset": str(at), "Content-Type": "application/offset+octet-stream"}
        assert server.client.head(path, headers=TUS).headers["upload-offset"] == str(at)
        assert server.client.patch(path, content=part, headers=headers).status_code == 204
    answer = three[2].client.post("/v1/jobs", json={"upload": path.rpartition("/")[2]})
    assert answer.status_code == 202, answer.text
    assert three[0].finished(answer.json()["id"])["status"] == "succeeded"


@pytest.mark.soak  # a lease lasts half a minute
def test_jobs_of_a_killed_service_go_on_elsewhere(commands: Commands, tmp_path: Path, talk: Talk) -> None:
    servers = [
        commands.ready(**SLOW, WHISPER_DATA_DIR=tmp_path / "shared", WHISPER_FRONT_END=name) for name in "ab"
    ]
    whole = servers[1].submit(talk.path)["id"]
    servers[1].finished(whole)
    expected = servers[1].result(whole)
    jobs = [servers[0].submit(talk.path)["id"] for _ in range(4)]
    wait_for(lambda: any(servers[1].job(job)["status"] == "running" for job in jobs))
    os.kill(servers[0].pid, signal.SIGKILL)
    for job in jobs:
        assert servers[1].finished(job, 150)["status"] == "succeeded"
        assert servers[1].result(job) == expected
