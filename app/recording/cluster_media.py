"""Media workers on CPUs of a Ray cluster, whose nodes come and go."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from app.common.concurrency import BackgroundTasks, end_tasks
from app.engines.cluster import node_checks
from app.media.pool import MediaPool
from app.media.worker_slot import INITIALIZER
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import ActorSpec, RayNode
from app.pool.cluster.remote_process import RemoteProcess

log = structlog.get_logger(__name__)

_PERIOD_S = 2.0  # between two looks at the nodes
_CHECK_S = 60.0  # for a node to say its versions
_RETRY_S = 30.0  # after which one that did not is asked again
# With other versions, a node's samples or probabilities may differ from those of this machine.
_PACKAGES = ("whisperfleet", "ray", "av", "numpy", "onnxruntime", "silero-vad")


@dataclass(slots=True)
class ClusterMedia:
    """Keeps `count` media workers on the nodes that are alive; fewer if these have fewer free CPUs.

    While the bridge is away there are none, and the workers of this machine do their work.
    """

    media: MediaPool
    bridge: Bridge
    count: int
    is_draining: Callable[[str], bool]  # whether the node with an id gets no more workers
    _workers: dict[int, str] = field(default_factory=dict)  # by number: the id of its node
    _checks: dict[str, asyncio.Task[bool]] = field(default_factory=dict)  # by id of a node: may it have any
    _following: asyncio.Task[None] | None = None
    _leaving: BackgroundTasks = field(default_factory=BackgroundTasks)

    def start(self, reserved_cpus: Callable[[RayNode], int]) -> None:
        """Add and remove workers from now on. `reserved_cpus`: how many of a node they leave free."""
        self._following = asyncio.create_task(self._follow(reserved_cpus), name="cluster-media")

    async def stop(self) -> None:
        """Leave the workers as they are, for the pool to end them."""
        await end_tasks(*self._leaving, *self._checks.values(), self._following)

    async def _follow(self, reserved_cpus: Callable[[RayNode], int]) -> None:
        while True:
            try:
                self._reconcile(reserved_cpus)
            except Exception:  # the next look may do better
                log.exception("media workers on the cluster not changed")
            await asyncio.sleep(_PERIOD_S)

    def _reconcile(self, reserved_cpus: Callable[[RayNode], int]) -> None:
        """Remove, drain and add workers as the nodes need it."""
        alive = {node.id for node in self.bridge.nodes}
        for number, node_id in list(self._workers.items()):
            if node_id not in alive:
                self._leave(number, self.media.dispatcher.remove_slot(number))
            elif self.is_draining(node_id):
                self._leave(number, self.media.dispatcher.drain_slot(number))
        for node_id in self._checks.keys() - alive:
            self._checks.pop(node_id).cancel()
        nodes = [node for node in self.bridge.nodes if self._may_work(node)]
        reserved = {node.id: reserved_cpus(node) for node in nodes}
        while len(self._workers) < self.count:
            node = least_used(nodes, Counter(self._workers.values()) + Counter(reserved))
            if node is None:
                return
            process = RemoteProcess(self.bridge, ActorSpec(node.id, cpus=1), *INITIALIZER)
            self._workers[self.media.add_remote(process)] = node.id

    def _may_work(self, node: RayNode) -> bool:
        """Whether a node may have workers, as far as is known."""
        if node.cpus < 1 or self.is_draining(node.id):
            return False
        if node.id not in self._checks:
            self._checks[node.id] = asyncio.create_task(self._check(node))
        check = self._checks[node.id]
        return check.done() and check.result()

    async def _check(self, node: RayNode) -> bool:
        """Whether a node has the versions of this machine. If it does not say, it is asked again."""
        try:
            async with asyncio.timeout(_CHECK_S):
                theirs = await self.bridge.call("run_on_node", node.id, node_checks.versions, _PACKAGES)
        except Exception as error:
            log.warning("a node did not say its versions", node=node.name, error=repr(error))
            await asyncio.sleep(_RETRY_S)
            self._checks.pop(node.id, None)
            return False
        fault = node_checks.other_versions(node_checks.versions(_PACKAGES), theirs)
        if fault is not None:
            log.error("a node gets no media workers", node=node.name, reason=fault)
        return fault is None

    def _leave(self, number: int, leaving: Coroutine[None, None, None]) -> None:
        del self._workers[number]
        self._leaving.spawn(leaving)


def least_used(nodes: Sequence[RayNode], used: Mapping[str, int]) -> RayNode | None:
    """The node with the most free CPUs; None if none has one left. Pure.

    `used`: how many CPUs of each node are in use or reserved, by its id.
    """
    left = [(node.cpus - used.get(node.id, 0), node) for node in nodes]
    free, node = max(left, key=lambda each: each[0], default=(0.0, None))
    return node if free >= 1 else None
