"""Jobs across restarts of the service, and several jobs at once."""

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.e2e.chaos import mixed_recordings
from tests.e2e.fixtures import write_wav
from tests.e2e.running import SIMULATED, Server, wait_for
from tests.e2e.saboteur.sitecustomize import HANGING, POISON
from tests.e2e.test_faults import POISONED_S, with_pattern
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(120)

SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


def events(server: Server, job_id: str, after: int = 0) -> Iterator[tuple[int, str, dict[str, Any]]]:
    headers = {"Last-Event-ID": str(after)} if after else {}
    with server.client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as stream:
        event: dict[str, str] = {}
        for line in stream.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif "data" in event:
                yield int(event["id"]), event["event"], json.loads(event["data"])
                event = {}


def has_transcribed_clips(server: Server, job_id: str) -> bool:
    return bool(server.job(job_id)["progress"]["clips_done"])


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_a_restarted_server_resumes_the_jobs_of_a_killed_one(
    commands, server, sabotage, talk_pcm, tmp_path, database, request
):
    url = request.getfixturevalue("postgresql")() if database == "postgresql" else None
    settings = {"WHISPER_DATABASE_URL": url, "WHISPER_GPUS": "0", "WHISPER_BATCH_SIZE": 1}
    settings |= sabotage.settings
    first = commands.ready(**settings)
    talk = write_wav(tmp_path, with_pattern(talk_pcm, 58, HANGING))  # it cannot end before the kill
    job = first.submit(talk)
    assert job["status"] == "queued"
    seen = []
    for number, kind, state in events(first, job["id"]):
        seen.append((number, kind))
        if kind != "job.segments":
            done_before = state["progress"]["done_s"]
            if state["progress"]["clips_done"] >= 2:
                break
    first.die()
    second = commands.restart(first, **settings)
    resumed = list(events(second, job["id"], after=seen[-1][0]))
    # Events have no gap and no repetition across the restart.
    numbers = [number for number, _ in seen] + [number for number, _, _ in resumed]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [kind for _, kind in seen[:2]] == ["job.queued", "job.running"]
    assert resumed[0][1] == "job.queued"
    assert resumed[-1][1] == "job.succeeded"
    states = [state for _, kind, state in resumed if kind != "job.segments"]
    assert all(state["progress"]["done_s"] >= done_before for state in states)
    assert second.result(job["id"]) == server.srt(talk)
    assert len(list((second.data / "uploads").iterdir())) == 1
    assert not list((second.data / "pcm").iterdir())
    # Each window is decoded once, except those of clips that were in flight at the kill.
    windows = sabotage.decoded()
    undisturbed = second.submit(talk)
    clips = second.finished(undisturbed["id"])["progress"]["clips_total"]
    complete = sabotage.decoded()[len(windows) :]
    assert clips < len(complete), "some clips take several windows"
    assert len(windows) - len(set(windows)) <= 8
    assert set(complete) <= set(windows)
    assert len(set(windows)) <= len(set(complete)) + 3
    for one in (job, undisturbed):
        second.client.delete(f"/v1/jobs/{one['id']}").raise_for_status()
    assert not second.left_files()


@pytest.mark.soak
def test_a_restarted_server_resumes_the_jobs_of_a_stopped_one(commands, server, sabotage, one_window_each):
    settings = {"WHISPER_BATCH_SIZE": 1, **sabotage.settings}
    first = commands.ready(**settings)
    job = first.submit(one_window_each)
    wait_for(lambda: has_transcribed_clips(first, job["id"]))
    os.kill(first.pid, signal.SIGTERM)
    assert first.wait(12) == 0
    assert "Traceback" not in first.stderr
    second = commands.restart(first, **settings)
    assert second.job(job["id"])["progress"]["clips_done"] > 0
    finished = second.finished(job["id"])
    assert finished["status"] == "succeeded"
    windows = sabotage.decoded()
    assert len(windows) == len(set(windows)) == finished["progress"]["clips_total"]  # those in flight, too
    assert second.result(job["id"]) == server.srt(one_window_each)


@pytest.mark.soak
def test_another_model_starts_the_job_anew(commands, sabotage, two_minutes):
    first = commands.ready(**sabotage.settings)
    job = first.submit(two_minutes)
    wait_for(lambda: has_transcribed_clips(first, job["id"]), pause_s=0.005)
    first.die()
    before = set(sabotage.decoded())
    second = commands.restart(first, WHISPER_COMPUTE_TYPE="float32", **sabotage.settings)
    assert second.finished(job["id"])["status"] == "succeeded"
    windows = sabotage.decoded()
    assert all(windows.count(window) == 2 for window in before)


@pytest.mark.soak
def test_a_full_queue_keeps_its_order_over_a_restart(commands, talk_pcm, tmp_path):
    recordings = mixed_recordings(talk_pcm, tmp_path, [40] * 12)
    settings = SIMULATED | {
        "WHISPER_SIMULATED": "clip_ms=300,batch=1",
        "WHISPER_CPU_WORKERS": 1,  # eight jobs run at a time
        "WHISPER_MAX_QUEUED_JOBS": 4,
    }
    first = commands.serve(**settings).wait_until_up()
    submitted = [first.submit(recording)["id"] for recording in list(recordings.values())[:8]]
    wait_for(lambda: all(first.job(job)["status"] != "queued" for job in submitted))
    submitted += [first.submit(recording)["id"] for recording in list(recordings.values())[8:]]
    with recordings["recording0"].open("rb") as content:
        refused = first.client.post("/v1/jobs", files={"file": content})
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
    assert int(refused.headers["retry-after"]) > 0
    first.die()
    second = commands.restart(first, **settings)
    listed = second.client.get("/v1/jobs").json()["data"]
    assert [job["id"] for job in listed] == submitted[::-1]
    jobs = [second.finished(job) for job in submitted]
    assert [job["status"] for job in jobs] == ["succeeded"] * 12
    # Those that had not started yet started in their order.
    started = [job["started_at"] for job in jobs]
    assert started == sorted(started)
    # They took turns, clip by clip: the last one did not wait for all others to end.
    assert max(started) < max(job["finished_at"] for job in jobs)


@pytest.mark.soak
def test_deleting_a_job_does_not_affect_the_others(commands, ten_minutes, two_minutes, two_minutes_srt):
    busy = commands.ready()
    deleted, other = busy.submit(ten_minutes), busy.submit(two_minutes)
    wait_for(lambda: has_transcribed_clips(busy, deleted["id"]))
    following = events(busy, deleted["id"])
    assert next(following)[1] == "job.queued"
    assert busy.client.delete(f"/v1/jobs/{deleted['id']}").status_code == 204
    assert list(following)[-1][1] == "job.cancelled"
    assert busy.client.get(f"/v1/jobs/{deleted['id']}").status_code == 404
    audio_s = sum(row["audio_s"] for row in busy.workers())
    assert busy.finished(other["id"])["status"] == "succeeded"
    assert busy.result(other["id"]) == two_minutes_srt
    wait_for(lambda: all(row["state"] == "idle" for row in busy.workers()))
    # At most one batch of each worker was still in flight.
    limit_s = audio_s + 126 + 2 * 4 * 30
    assert sum(row["audio_s"] for row in busy.workers()) <= limit_s
    assert sum(row["restarts"] for row in busy.workers()) == 0
    assert len(busy.left_files()) == 1  # the other one's recording


def stored_crash_count(server: Server) -> int:
    """The highest crash count of a clip in the database."""
    with sqlite3.connect(server.data / "whisperfleet.db") as database:
        return database.execute("SELECT max(deaths) FROM clips").fetchone()[0] or 0


@pytest.mark.soak
def test_crashes_are_counted_across_restarts(commands, sabotage, talk_pcm, tmp_path):
    """A clip that always crashes its worker fails, however often the server is killed meanwhile."""
    poisoned = write_wav(tmp_path, with_pattern(talk_pcm[: 60 * RATE], POISONED_S, POISON))
    settings = {"WHISPER_GPUS": "0", **sabotage.settings}
    first = commands.ready(**settings)
    job = first.submit(poisoned)
    wait_for(lambda: stored_crash_count(first), pause_s=0.01)
    first.die()
    second = commands.restart(first, **settings)
    assert second.finished(job["id"])["status"] == "failed"
    # Three crashes with only this clip in flight; this server saw the last of them.
    assert second.workers()[0]["restarts"] < 3


class Receiver:
    """Receives webhooks on a loopback port. Refuses the first `refused` of them."""

    def __init__(self, refused: int, address: str = "127.0.0.1") -> None:
        self.messages: list[dict[str, Any]] = []
        self.attempts = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.attempts += 1
                message = Webhook(SECRET).verify(body, dict(self.headers.items()))
                accepted = receiver.attempts > refused
                if accepted:
                    receiver.messages.append(message)
                self.send_response(204 if accepted else 500)
                self.end_headers()

            def log_message(self, *arguments: object) -> None: ...

        self._server = HTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.soak
def test_webhooks_survive_a_restart(commands, shorts):
    settings = SIMULATED | {"WHISPER_WEBHOOK_SECRET": SECRET, "WHISPER_WEBHOOK_ALLOW_PRIVATE": 1}
    receiver = Receiver(refused=1)
    try:
        first = commands.ready(**settings)
        job = first.submit(shorts[0], webhook_url=receiver.url)
        wait_for(lambda: receiver.attempts == 1)
        first.die()
        second = commands.restart(first, **settings)
        wait_for(lambda: receiver.messages, 15)
        [message] = receiver.messages
        assert message["type"] == "job.succeeded"
        state = second.job(job["id"])
        assert message["data"] == state
        assert message["timestamp"] == state["finished_at"]
    finally:
        receiver.close()
