"""A Ray cluster on this machine: a head without resources, and nodes that come and go."""

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from app.pool.cluster.bridge import Bridge
from tests.e2e import forked  # noqa: F401 - says what the fork server imports

NAMES = ("node0", "node1")
# The same for all clusters of a process: Ray reads it once.
_TOKEN = secrets.token_hex(16)
_COMMON = {
    "node_ip_address": "127.0.0.1",
    "include_dashboard": False,
    "include_log_monitor": False,
    "object_store_memory": 100 << 20,
}
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "OTEL_SDK_DISABLED": "true",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}


class RayCluster:
    """A head, and nodes of two CPUs each, all on the loopback."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        from ray.cluster_utils import Cluster

        self.environment = dict(environment)  # of whoever uses the cluster
        self.nodes: list[Any] = []
        self._head_args = {
            "num_cpus": 0,
            "node_name": "head",
            "temp_dir": str(folder / "ray"),
            "no_monitor": True,
            **_COMMON,
        }
        self.cluster = Cluster(initialize_head=True, head_node_args=self._head_args)
        self.address: str = self.cluster.address

    def add(self, name: str, *, cpus: int = 2, gpus: int = 0) -> Any:
        """Add a node. GPUs may be made up."""
        node = self.cluster.add_node(num_cpus=cpus, num_gpus=gpus, node_name=name, **_COMMON)
        node.name = name
        self.nodes.append(node)
        return node

    def kill(self, node: Any) -> None:
        """Kill all processes of a node, as a power cut would."""
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)

    def kill_head(self) -> None:
        """Kill all processes of the head. What it knows is lost with it: a new head knows no node."""
        self.cluster.remove_node(self.cluster.head_node, allow_graceful=False)

    def start_head(self) -> None:
        """Start a head at the address of the one before."""
        port = int(self.address.rpartition(":")[2])
        self.cluster.add_node(gcs_server_port=port, **self._head_args)

    def mend(self) -> None:
        """Have the head and the nodes `NAMES` run, and no others."""
        if self.cluster.head_node is None:
            self.start_head()
        for node in [*self.nodes]:
            if node.name not in NAMES or self.raylet(node).poll() is not None:
                self.kill(node)
        for name in NAMES:
            if all(node.name != name for node in self.nodes):
                self.add(name)

    def node(self, name: str) -> Any:
        """The node with this name."""
        [found] = [node for node in self.nodes if node.name == name]
        return found

    @staticmethod
    def raylet(node: Any) -> Any:
        """The process to stop and to continue, for a node that the others do not reach."""
        [raylet] = node.all_processes["raylet"]
        return raylet.process

    def stop(self) -> None:
        """End all of it."""
        self.cluster.shutdown()


async def until(condition: Callable[[], bool], bridge: Bridge) -> None:
    """Wait until something is true that depends on what a bridge says of its cluster."""
    while not condition():
        changed = asyncio.Event()
        bridge.on_nodes = changed.set
        await changed.wait()


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Have these variables in the environment, and restore it in the end."""
    forkserver.ensure_running()  # that of `tests.e2e.forked`: what is forked from it would have them, too
    before = dict(os.environ)
    os.environ |= values
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def running_cluster(nodes: int = 2, *, has_token: bool = True, **others: str) -> Iterator[RayCluster]:
    """A cluster with nodes `node0`, `node1`, …, for those that have its `environment`.

    `has_token`: whether it asks for one. `others`: variables for its processes.
    """
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir=os.environ.get("TMPDIR", "/tmp")))
    token = (
        {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _TOKEN} if has_token else {"RAY_AUTH_MODE": "disabled"}
    )
    values = _ENVIRONMENT | token | {"RAY_TMPDIR": str(folder)} | others
    (folder / "ray").mkdir()
    cluster = None
    try:
        with environment(values):
            cluster = RayCluster(folder, values)
            for number in range(nodes):
                cluster.add(f"node{number}")
        yield cluster
    finally:
        if cluster is not None:
            with environment(values):
                cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_cluster(nodes: int = 2, *, has_token: bool = True, **others: str) -> Iterator[RayCluster]:
    """The same, with its variables in the environment."""
    with running_cluster(nodes, has_token=has_token, **others) as cluster, environment(cluster.environment):
        yield cluster
