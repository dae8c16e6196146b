"""The service whose workers run on two nodes gives what it gives on one machine."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster.clusters import RayCluster
from tests.cluster.services import bridge, has_ray, nodes_of_workers, ray_settings
from tests.e2e.chaos import mixed_recordings
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, Server, wait_for
from tests.media_files import Pcm

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


@pytest.mark.soak
def test_three_jobs_survive_two_kills_at_once(
    ray_cluster: RayCluster, service: Server, server: Server, talk_pcm: Pcm, tmp_path: Path
) -> None:
    """A node and, on the other one, the worker's process."""
    recordings = mixed_recordings(talk_pcm, tmp_path, (60, 40, 90)).values()
    jobs = [service.submit(recording)["id"] for recording in recordings]
    wait_for(lambda: all(row["state"] == "busy" for row in service.workers()))
    victim = next(row["pid"] for row in service.workers() if row["node_name"] == "node0")
    service.kill(victim)
    ray_cluster.kill(ray_cluster.node("node1"))
    with ThreadPoolExecutor(2) as clients:
        expected = list(clients.map(server.srt, recordings))
    assert [service.finished(job)["status"] for job in jobs] == ["succeeded"] * 3
    assert [service.result(job) for job in jobs] == expected
    assert nodes_of_workers(service) == {"node0": 1}
