"""Jobs across restarts of the service, and several jobs at once."""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.fixtures import write_wav
from tests.e2e.running import Server, wait_for
from tests.e2e.saboteur.sitecustomize import HANGING, POISON
from tests.e2e.test_faults import POISONED_S, with_pattern
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(120)


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
