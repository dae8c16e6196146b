"""The events of the workers of a real service: blocks of work, and workers that are killed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.running import Server

pytestmark = pytest.mark.timeout(120)


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
