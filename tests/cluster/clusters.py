"""A Ray cluster on this machine: a head without resources, and nodes that come and go."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}


class RayCluster:
    """A head, and nodes of two CPUs each, all on the loopback."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.nodes: list[Any] = []
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "node_name": "head",
                "temp_dir": str(folder / "ray"),
                **_COMMON,
            },
        )
        self.address: str = self.cluster.address

    def add(self, name: str, *, cpus: int = 2, gpus: int = 0) -> Any:
        """Add a node. GPUs may be made up."""
        node = self.cluster.add_node(num_cpus=cpus, num_gpus=gpus, node_name=name, **_COMMON)
        self.nodes.append(node)
        return node

    def kill(self, node: Any) -> None:
        """Kill all processes of a node, as a power cut would."""
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)

    @staticmethod
    def raylet_pid(node: Any) -> int:
        """The process to stop and to continue, for a node that the others do not reach."""
        [raylet] = node.all_processes["raylet"]
        return int(raylet.process.pid)

    def stop(self) -> None:
        """End all of it."""
        self.cluster.shutdown()


_COMMON = {
    "node_ip_address": "127.0.0.1",
    "include_dashboard": False,
    "object_store_memory": 100 << 20,
}


@contextmanager
def new_cluster(nodes: int = 2, *, token: str | None = None) -> Iterator[RayCluster]:
    """A cluster that asks for a token, with nodes `node0`, `node1`, …; the environment has the token.

    `token`: "" for a cluster without authentication.
    """
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir=os.environ.get("TMPDIR", "/tmp")))
    environment = dict(os.environ)
    token = secrets.token_hex(16) if token is None else token
    os.environ |= {
        "RAY_AUTH_MODE": "token" if token else "disabled",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
        "OTEL_SDK_DISABLED": "true",
        "RAY_TMPDIR": str(folder),
        **_HEALTH,
    }
    (folder / "ray").mkdir()
    cluster = None
    try:
        cluster = RayCluster(folder)
        for number in range(nodes):
            cluster.add(f"node{number}")
        yield cluster
    finally:
        if cluster is not None:
            cluster.stop()
        os.environ.clear()
        os.environ.update(environment)
        shutil.rmtree(folder, ignore_errors=True)
