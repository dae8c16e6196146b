"""Settings that fit some clusters only."""

from pathlib import Path

import pytest

from app.common.errors import NotReady
from app.common.options import Options
from app.engines.cluster.cluster_fleet import ClusterFleet
from app.engines.plan import make_plan
from app.pool.cluster.ray_messages import RayNode
from app.recording.service import TranscriptionService
from app.settings import load_settings
from tests.cluster.fake_bridge import FakeBridge

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


async def test_an_alias_of_a_model_that_the_cluster_does_not_run_is_named(tmp_path: Path) -> None:
    settings = load_settings(
        data_dir=tmp_path,
        engine="ray",
        ray_address="127.0.0.1:6379",
        model="auto",  # another one on CPUs
        model_aliases="best=large-v3-turbo",
        _env_file=None,
    )
    service = TranscriptionService(settings, make_plan(settings))
    bridge = FakeBridge()
    service.fleet.cluster = ClusterFleet(bridge)
    bridge.list_nodes([RayNode("a", "node a", "127.0.0.1", cpus=2)])
    await service.fleet._start_workers()
    reason = service.fleet.readiness()
    assert reason is not None
    assert reason.startswith("WHISPER_MODEL_ALIASES=best=large-v3-turbo: ")
    with pytest.raises(NotReady, match="WHISPER_MODEL_ALIASES"):
        await service.fleet.ready("best", Options())
