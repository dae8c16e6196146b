"""Which clusters the service uses, and what it says of those that it does not."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from app.common.errors import ClusterUnavailable, ProcessLost
from app.pool.cluster.authentication import check_cluster, set_environment
from app.pool.cluster.bridge import Bridge
from tests.cluster.clusters import RayCluster, new_cluster, until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@asynccontextmanager
async def connecting(address: str, *, insecure: bool = False) -> AsyncIterator[Bridge]:
    bridge = Bridge(address, insecure=insecure)
    looking = bridge.fault
    await bridge.start()
    await until(lambda: bridge.fault != looking, bridge)
    yield bridge
    await bridge.stop()


@pytest.mark.soak
async def test_a_wrong_token_is_refused_in_one_line(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    async with connecting(ray_cluster.address) as bridge:
        assert bridge.fault is not None
        assert bridge.fault.startswith(f"the Ray cluster at {ray_cluster.address} refuses the token of this")
        assert "RAY_AUTH_TOKEN_PATH" in bridge.fault
        assert "\n" not in bridge.fault
        assert "0000" not in bridge.fault
        with pytest.raises(ClusterUnavailable, match="refuses the token"):
            await bridge.call("start_actor")
        assert bridge.nodes == ()


async def test_the_token_may_be_in_a_file(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(os.environ["RAY_AUTH_TOKEN"])
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
    async with connecting(ray_cluster.address) as bridge:
        assert (bridge.fault, [node.name for node in bridge.nodes]) == (None, ["head", "node0", "node1"])


@pytest.mark.server
async def test_a_cluster_without_tokens_is_refused_unless_the_settings_accept_it() -> None:
    with new_cluster(0, has_token=False) as cluster:
        os.environ["RAY_AUTH_TOKEN"] = "1" * 32
        async with connecting(cluster.address) as bridge:
            assert bridge.fault is not None
            assert "asks for no token: whoever reaches its ports can run any program" in bridge.fault
            assert "WHISPER_RAY_INSECURE=1" in bridge.fault
            with pytest.raises(ClusterUnavailable):
                await bridge.call("start_actor")
        async with connecting(cluster.address, insecure=True) as bridge:
            assert (bridge.fault, len(bridge.nodes)) == (None, 1)


def test_without_a_token_no_cluster_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    with pytest.raises(ClusterUnavailable, match="there is no token for the Ray cluster at"):
        check_cluster("127.0.0.1:1", insecure=False)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(" \n")
    with pytest.raises(ClusterUnavailable, match="there is no token"):
        check_cluster("127.0.0.1:1", insecure=False)
    (tmp_path / ".ray" / "auth_token").write_text("token")
    with pytest.raises(ProcessLost, match=r"no Ray cluster answers at 127\.0\.0\.1:1 "):
        check_cluster("127.0.0.1:1", insecure=False)


def test_a_ray_of_this_machine_alone_has_a_token_of_its_own() -> None:
    environments = [{"RAY_AUTH_TOKEN": "theirs", "RAY_AUTH_MODE": "disabled"} for _ in range(2)]
    for environment in environments:
        set_environment(environment, "", insecure=True)
        assert environment["RAY_AUTH_MODE"] == "token"
        assert len(environment["RAY_AUTH_TOKEN"]) == 64
        assert environment["RAY_USAGE_STATS_ENABLED"] == "0"
        assert environment["OTEL_SDK_DISABLED"] == "true"
    assert environments[0] != environments[1]


@pytest.mark.soak
async def test_a_ray_of_this_machine_alone_starts_and_ends_with_the_bridge(ray_cluster: RayCluster) -> None:
    async with connecting("") as bridge:
        assert bridge.fault is None
        [node] = bridge.nodes
        assert node.address == "127.0.0.1"
        processes = psutil.Process(bridge.pid).children(recursive=True)
        servers = [process for process in processes if process.name() in ("gcs_server", "raylet")]
        assert len(servers) == 2
        open_to_all = [
            connection.laddr
            for process in processes
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr.ip in ("0.0.0.0", "::")
        ]
        assert open_to_all == []
        psutil.Process(bridge.pid).kill()
        await until(lambda: bridge.fault is not None, bridge)
        assert psutil.wait_procs(servers, timeout=30)[1] == []
        for agent in psutil.wait_procs(processes, timeout=0)[1]:
            agent.kill()  # it ends by itself when it has looked for its servers for a minute
