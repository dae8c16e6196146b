"""The service whose workers run on two nodes gives what it gives on one machine."""

from pathlib import Path

import pytest

from tests.cluster.clusters import RayCluster
from tests.cluster.services import (
    BACK_S,
    Disturbed,
    bridge,
    has_ray,
    nodes_of_workers,
    ray_settings,
    restarts,
)
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, Server, wait_for

pytestmark = pytest.mark.timeout(180)

START_S = 120.0


@pytest.fixture(scope="module")
def service(ray_cluster: RayCluster, module_commands: Commands) -> Server:
    """A service with a worker on each of two nodes."""
    server = module_commands.serve(**ray_settings(ray_cluster, WHISPER_CPU_WORKERS=1)).wait_until_up()
    wait_for(lambda: [row["state"] for row in server.workers()] == ["idle"] * 2, START_S)
    return server


def test_transcripts_are_those_of_the_local_engine(service: Server, server: Server) -> None:
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": ["segment", "word"]}
    ours = server.text(DATA / "talk.flac", **fields)
    assert service.text(DATA / "talk.flac", **fields) == ours
    assert len(ours) > 500
    assert {row["node_name"] for row in service.workers() if row["clips"]} == {"node0", "node1"}


def test_only_the_bridge_has_ray(service: Server, server: Server) -> None:
    assert not any(has_ray(process) for process in server.running())
    assert [process.pid for process in service.running() if has_ray(process)] == [bridge(service).pid]


def test_a_node_dies_and_another_one_joins(
    ray_cluster: RayCluster, service: Server, server: Server, one_window_each: Path, ten_minutes: Path
) -> None:
    disturbed = Disturbed(service, one_window_each, server.srt(one_window_each))
    other = service.submit(ten_minutes)["id"]  # there is work whenever the node has joined
    ray_cluster.kill(ray_cluster.node("node1"))
    wait_for(lambda: nodes_of_workers(service) == {"node0": 1}, BACK_S)
    ray_cluster.add("node2")
    wait_for(lambda: any(row["clips"] for row in service.workers() if row["node_name"] == "node2"), BACK_S)
    service.client.delete(f"/v1/jobs/{other}").raise_for_status()
    disturbed.check()
    assert restarts(service) == {}
