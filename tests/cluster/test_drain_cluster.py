"""Nodes of a real cluster are drained in mid-file: nothing is transcribed twice, and nothing is lost."""

import threading
from typing import Any

import pytest

from app.commands.drain import run_drain
from tests.cluster.clusters import RayCluster
from tests.cluster.services import blocks, nodes_of_workers, ray_settings
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, Server, wait_for

pytestmark = pytest.mark.timeout(120)

TALK = DATA / "talk.flac"
# Two clips of the talk keep a worker busy for seconds, so a drain finds batches in flight.
SLOW = "fixed_ms=10,clip_ms=1500,token_ms=0,batch=1"


@pytest.fixture(scope="module")
def server(ray_cluster: RayCluster, module_commands: Commands) -> Server:
    return module_commands.ready(**ray_settings(ray_cluster, WHISPER_SIMULATED=SLOW))


@pytest.fixture(scope="module")
def expected(server: Server) -> str:
    """The transcript without a disturbance."""
    return server.result(server.finished(server.submit(TALK)["id"])["id"])


class Draining:
    """Jobs that keep all workers busy while a node is drained."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.last_block = max((block["id"] for block in blocks(server)), default=0)
        self.jobs = [server.submit(TALK)["id"] for _ in range(2)]
        wait_for(lambda: all(row["state"] == "busy" for row in server.workers()))

    def check(self, expected: str) -> None:
        """The jobs succeed, and no clip of them was sent twice."""
        for job in self.jobs:
            assert self.server.finished(job)["status"] == "succeeded"
            assert self.server.result(job) == expected
        new = [block for block in blocks(self.server) if block["id"] > self.last_block]
        assert {block["outcome"] for block in new} == {"ok"}
        assert sum(block["clips"] for block in new) == sum(
            self.server.job(job)["progress"]["clips_total"] for job in self.jobs
        )
        assert not any(row["restarts"] for row in self.server.workers())


def node(server: Server, name: str) -> dict[str, Any] | None:
    rows = server.client.get("/v1/nodes").raise_for_status().json()["data"]
    return next((row for row in rows if row["name"] == name), None)


@pytest.mark.soak
def test_a_node_is_drained_in_mid_file_and_used_again(
    server: Server, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nodes_of_workers(server) == {"node0": 2, "node1": 2}
    draining = Draining(server)
    assert run_drain("node1", server.url, None, timeout_s=60, undo=False) == 0
    assert "node node1 still has workers: " in capsys.readouterr().err
    assert nodes_of_workers(server) == {"node0": 2}
    draining.check(expected)
    assert node(server, "node1") == {**(node(server, "node1") or {}), "state": "drained", "workers": []}
    assert run_drain("node1", server.url, None, timeout_s=60, undo=False) == 0, "once more"
    assert run_drain("node1", server.url, None, timeout_s=60, undo=True) == 0
    wait_for(lambda: nodes_of_workers(server) == {"node0": 2, "node1": 2})
    server.wait_until_ready()


@pytest.mark.soak
def test_a_node_that_ray_drains_ends_by_itself_when_its_workers_have(
    ray_cluster: RayCluster, server: Server, expected: str
) -> None:
    """As `ray start --block` does when it gets SIGTERM."""
    draining = Draining(server)
    leaving = ray_cluster.node("node1")
    signalled = threading.Thread(target=leaving._drain_node_before_shutdown, daemon=True)
    signalled.start()
    # It may be gone before anybody looks.
    wait_for(lambda: (node(server, "node1") or {"state": "drained"})["state"] in ("draining", "drained"))
    states = {row["state"] for row in server.workers() if row["node_name"] == "node1"}
    assert states <= {"draining"}
    draining.check(expected)
    signalled.join(30)
    assert not signalled.is_alive()
    assert ray_cluster.raylet(leaving).wait(10) == 0
    wait_for(lambda: node(server, "node1") is None)
    assert nodes_of_workers(server) == {"node0": 2}
