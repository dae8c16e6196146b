"""Jobs end with the same results whatever is killed meanwhile: processes of the service, and nodes."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.cluster.clusters import NAMES, RayCluster, new_cluster
from tests.cluster.services import bridge, ray_settings
from tests.e2e.chaos import Chaos, mixed_recordings
from tests.e2e.fixtures import Commands
from tests.e2e.running import Server
from tests.e2e.sabotage import Sabotage
from tests.media_files import Pcm

KINDS = ("node", "actor", "worker", "bridge", "server")


@pytest.fixture
def watched_cluster(sabotage: Sabotage) -> Iterator[RayCluster]:
    """A cluster whose workers note what they decode."""
    with new_cluster(**{name: str(value) for name, value in sabotage.settings.items()}) as cluster:
        yield cluster


class ClusterChaos(Chaos):
    """A service on a cluster. A node that is killed is started again."""

    def __init__(
        self, cluster: RayCluster, commands: Commands, folder: Path, sabotage: Sabotage, seed: int
    ) -> None:
        self._cluster = cluster
        super().__init__(commands, folder, sabotage, seed, pause_s=(1, 8))

    def _start(self) -> Server:
        settings = ray_settings(self._cluster, **self._sabotage.settings)
        return self._commands.serve(folder=self._folder / "chaos", **settings).wait_until_up()

    def _kill_one(self, kind: str) -> bool:
        pids = [row["pid"] for row in self.server.workers() if row["pid"]]
        if not pids:
            return False  # the workers have not come back from the kill before
        try:
            if kind == "node":
                self._cluster.kill(self._cluster.node(self._random.choice(NAMES)))
                self._cluster.mend()
            elif kind == "bridge":
                bridge(self.server).kill()
            else:
                worker = psutil.Process(self._random.choice(pids))
                (worker.parent() if kind == "actor" else worker).kill()
        except (psutil.NoSuchProcess, ValueError):
            return False
        return True


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_twenty_jobs_survive_ten_kills(
    watched_cluster: RayCluster, commands: Commands, sabotage: Sabotage, talk_pcm: Pcm, tmp_path: Path
) -> None:
    lengths = random.Random(0)
    recordings = mixed_recordings(talk_pcm, tmp_path, [lengths.uniform(10, 200) for _ in range(20)])
    chaos = ClusterChaos(watched_cluster, commands, tmp_path, sabotage, seed=2)
    kills = [*KINDS, *KINDS]
    random.Random(3).shuffle(kills)
    results = chaos.run(recordings, kills)
    print(chaos.report)
    assert chaos.report.kills == dict.fromkeys(KINDS, 2)
    assert chaos.report.transcribed_again == []
    assert chaos.left() == []
    local = commands.ready()
    with ThreadPoolExecutor(4) as clients:
        assert results == dict(zip(recordings, clients.map(local.srt, recordings.values()), strict=True))
