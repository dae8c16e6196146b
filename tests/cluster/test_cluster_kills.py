"""Whatever part of a cluster is lost in mid-file costs time alone. The workers are simulated ones."""

from pathlib import Path

import psutil
import pytest

from tests.cluster.clusters import RayCluster
from tests.cluster.services import BACK_S, Disturbed, nodes_of_workers, ray_settings, wait_until_whole
from tests.e2e.fixtures import Commands
from tests.e2e.running import Server, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

# A clip takes a worker long enough for something to be in flight when a test kills something.
SLOW = "fixed_ms=10,clip_ms=1000,token_ms=0,batch=1"
GIVEN_UP_S = (
    90.0  # most often Ray's driver ends with the node that it is on; if not, after a minute without a head
)


@pytest.fixture(scope="module")
def service(ray_cluster: RayCluster, module_commands: Commands) -> Server:
    return module_commands.ready(**ray_settings(ray_cluster, WHISPER_CPU_WORKERS=1, WHISPER_SIMULATED=SLOW))


@pytest.fixture(scope="module")
def expected(service: Server, two_minutes: Path) -> str:
    """The subtitles of the talk without a disturbance."""
    return service.result(service.finished(service.submit(two_minutes)["id"])["id"])


@pytest.fixture
def disturbed(ray_cluster: RayCluster, service: Server, two_minutes: Path, expected: str) -> Disturbed:
    """A job in mid-file, on two workers."""
    ray_cluster.mend()
    wait_until_whole(service)
    return Disturbed(service, two_minutes, expected)


def test_a_node_that_nobody_reaches_is_lost_and_answers_too_late(
    ray_cluster: RayCluster, service: Server, disturbed: Disturbed
) -> None:
    """A partition: the processes of a node are stopped, and go on later."""
    raylet = psutil.Process(ray_cluster.raylet(ray_cluster.node("node1")).pid)
    actors = [psutil.Process(row["pid"]) for row in service.workers() if row["node_name"] == "node1"]
    for process in [raylet, *actors]:
        process.suspend()
    try:
        wait_for(lambda: nodes_of_workers(service) == {"node0": 1}, BACK_S)
    finally:
        for process in [*actors, raylet]:
            process.resume()
    disturbed.check()
    wait_for(lambda: ray_cluster.raylet(ray_cluster.node("node1")).poll() is not None, BACK_S)


def test_the_head_dies_and_comes_back(ray_cluster: RayCluster, service: Server, disturbed: Disturbed) -> None:
    """It knows no node. They end by themselves, and what keeps them running starts them again."""
    ray_cluster.kill_head()
    wait_for(lambda: service.client.get("/ready").status_code == 503, GIVEN_UP_S)
    for node in [*ray_cluster.nodes]:
        ray_cluster.kill(node)
    ray_cluster.start_head()
    ray_cluster.mend()
    disturbed.check()
    wait_until_whole(service)
