"""A bridge without a cluster."""

from collections.abc import Callable, Sequence
from typing import Any

from app.common.errors import ProcessLost
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import RayNode


class FakeBridge(Bridge):
    """Its nodes are those that a test sets. What runs on a node runs here, or is what `answers` returns."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1:6379")
        self.calls: list[tuple[str, Callable[..., Any]]] = []  # node and function
        self.answers: dict[tuple[str, Callable[..., Any]], Callable[..., Any]] = {}

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def call(self, method: str, *args: Any) -> Any:
        assert method == "run_on_node"
        node_id, function, *rest = args
        self.calls.append((node_id, function))
        if self.fault is not None or node_id not in {node.id for node in self.nodes}:
            raise ProcessLost(self.fault or "the node is gone")
        return self.answers.get((node_id, function), function)(*rest)

    def list_nodes(self, nodes: Sequence[RayNode], draining: Sequence[RayNode] = ()) -> None:
        """These nodes are alive from now on; Ray drains some of them."""
        self.nodes, self.fault = tuple(nodes), None
        self.draining = frozenset(node.id for node in draining)
        self.on_nodes()

    def disconnect(self, fault: str) -> None:
        """The bridge has died."""
        self.nodes, self.fault = (), fault
        self.on_nodes()
