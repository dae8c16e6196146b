"""The events of the workers of a real service: blocks of work, and workers that are killed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.fixtures import Commands
from tests.e2e.running import ONE_SIMULATED, SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(120)

EIGHT = SIMULATED | {"WHISPER_GPUS": "a,b,c,d,e,f,g,h"}


class Fleet:
    """The fleet as a client knows it that follows the events."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.rows: dict[int, dict[str, Any]] = {}
        self.blocks: list[dict[str, Any]] = []
        self.queue: dict[str, Any] = {}
        self.states: list[tuple[int, str, str | None]] = []  # slot, state and error of each row that came
        self.advance()

    def advance(self) -> None:
        """Take the next event."""
        name, data = "", None
        while data is None:
            field, _, value = next(self._lines).partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data = json.loads(value)
        assert (
            set(data)
            == {
                "fleet": {"time", "workers", "queue", "blocks"},
                "workers": {"time", "workers", "removed"},
                "block": {"time", "blocks"},
                "queue": {"time", "queue"},
            }[name]
        )
        assert not data.get("removed"), "workers of this machine stay"
        for row in data.get("workers", []):
            self.rows[row["slot"]] = row
            self.states.append((row["slot"], row["state"], row["error"]))
        self.blocks += data.get("blocks", [])
        self.queue = data.get("queue", self.queue)

    def clips(self, job: str) -> int:
        """The clips of a job or request in the blocks so far."""
        return sum(part["clips"] for block in self.blocks for part in block["jobs"] if part["job"] == job)


@contextmanager
def following(server: Server) -> Iterator[Fleet]:
    with server.client.stream("GET", "/v1/workers/events") as response:
        yield Fleet(response.iter_lines())


def test_blocks_of_a_job_and_of_a_request(server, talk, shorts):
    with following(server) as fleet:
        before = len(fleet.blocks)
        job = server.finished(server.submit(talk.path)["id"])
        while fleet.clips(job["id"]) < job["progress"]["clips_total"]:
            fleet.advance()
        server.srt(shorts[0])
        while not (requests := [b for b in fleet.blocks[before:] if b["jobs"][0]["kind"] == "request"]):
            fleet.advance()
    new = fleet.blocks[before:]
    assert requests[0]["jobs"][0]["job"].startswith("request-")
    assert "short" not in json.dumps(new), "the name of a recording is nobody else's business"
    assert [block["id"] for block in new] == sorted({block["id"] for block in new})
    assert {block["outcome"] for block in new} == {"ok"}
    for slot in fleet.rows:
        lane = [block for block in new if block["slot"] == slot]
        assert all(block["start"] < block["end"] for block in lane)
        assert all(a["end"] <= b["start"] for a, b in pairwise(lane)), "blocks overlap"
    assert sum(block["audio_s"] for block in new) > 0.5 * job["duration"]
    with following(server) as fleet:
        assert [block["id"] for block in fleet.blocks[-len(new) :]] == [block["id"] for block in new]
        assert [row["gpu"] for row in fleet.rows.values()] == [None, None]


@pytest.fixture(scope="module")
def with_kills(module_commands: Commands) -> Server:
    """A server whose workers are killed."""
    return module_commands.ready()


@pytest.mark.soak
def test_a_killed_worker_restarts_and_says_why(with_kills, two_minutes):
    server = with_kills.wait_until_ready()
    with following(server) as fleet:
        job = server.submit(two_minutes)["id"]
        while not (busy := [row for row in fleet.rows.values() if row["working"]]):
            fleet.advance()
        victim = busy[0]
        assert [(part["job"], part["kind"]) for part in victim["working"]] == [(job, "job")]
        with server.killed(victim["pid"]):  # a state that lasts less than half a second may be skipped
            while fleet.rows[victim["slot"]]["state"] != "restarting":
                fleet.advance()
        row = fleet.rows[victim["slot"]]
        assert f"process {victim['pid']} was killed by signal 9 (SIGKILL)" in row["error"]
        assert row["restarts"] == victim["restarts"] + 1
        while fleet.rows[victim["slot"]]["state"] not in ("idle", "busy"):
            fleet.advance()
        row = fleet.rows[victim["slot"]]
        assert (row["error"], row["pid"] == victim["pid"]) == (None, False)
        assert server.finished(job)["status"] == "succeeded"
        while fleet.queue != {"clips": 0, "oldest_s": 0.0, "jobs": 0, "streams": 0} or any(
            row["working"] for row in fleet.rows.values()
        ):
            fleet.advance()
        # It may have been between two batches.
        assert {block["outcome"] for block in fleet.blocks} <= {"ok", "requeued"}


@pytest.mark.soak
def test_eight_simulated_lanes(commands, ten_minutes):
    server = commands.ready(**EIGHT, WHISPER_SIMULATED="speed=0.3,batch=2,crash=0.1,seed=1")
    with following(server) as fleet:
        jobs = [server.submit(ten_minutes)["id"] for _ in range(2)]
        for job in jobs:
            assert server.finished(job)["status"] == "succeeded"
        total = server.job(jobs[0])["progress"]["clips_total"]
        while min(map(fleet.clips, jobs)) < total:
            fleet.advance()
    assert {block["slot"] for block in fleet.blocks} == set(range(8))
    assert {"ok", "requeued"} <= {block["outcome"] for block in fleet.blocks}


@pytest.fixture(scope="module")
def slow(module_commands: Commands) -> Server:
    return module_commands.ready(**ONE_SIMULATED, WHISPER_SIMULATED="speed=0.05,batch=1")


def test_the_queue_behind_a_slow_worker(slow, two_minutes):
    with following(slow) as fleet:
        assert fleet.queue == {"clips": 0, "oldest_s": 0.0, "jobs": 0, "streams": 0}
        slow.submit(two_minutes)
        while not (fleet.queue["clips"] and fleet.queue["oldest_s"]):
            fleet.advance()


def test_a_stopping_server_ends_the_stream(slow):
    with slow.client.stream("GET", "/v1/workers/events") as response:
        lines = response.iter_lines()
        assert next(lines) == "event: fleet"
        slow.process.terminate()
        wait_for(lambda: next(lines, None) is None)
    assert slow.wait(10) == 0
