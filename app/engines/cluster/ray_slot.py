"""A slot whose worker runs on a node of the cluster."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog

from app.engines.catalogue import ModelCatalogue
from app.engines.cluster.cluster_node import ClusterNode
from app.engines.plan import Plan
from app.engines.simulated import SimulatedWorker
from app.engines.slot import SlotLimits, WhisperSlot
from app.engines.window_request import WindowRequest
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.node_places import Place, worker_places
from app.pool.cluster.ray_messages import ActorSpec, RayNode
from app.pool.cluster.remote_process import RemoteProcess
from workers import runtime
from workers.messages import LoadOptions, Window

log = structlog.get_logger(__name__)


class RaySlot(WhisperSlot):
    """A worker in an actor. It differs from a local slot in its process, and in where its models are."""

    _process: RemoteProcess

    def __init__(
        self,
        index: int,
        catalogue: ModelCatalogue,
        limits: SlotLimits,
        process: RemoteProcess,
        node: ClusterNode,
    ) -> None:
        super().__init__(index, catalogue, limits, process)
        self.node_name = node.node.name
        self._reading = asyncio.Lock()  # so batches are sent in their order
        self._node = node

    def row(self) -> dict[str, object]:
        """The slot as `GET /v1/workers` shows it."""
        return super().row() | {"node": self._node.node.id, "actor": self._process.actor}

    async def _spawn(self) -> None:
        await self._node.check()
        await super()._spawn()

    async def _windows(self, payloads: Sequence[WindowRequest]) -> Sequence[Window]:
        """The windows with their audio: nodes have other disks. Raises OSError if it cannot be read."""
        async with self._reading:
            windows = await super()._windows(payloads)
            return await asyncio.to_thread(lambda: [window.read() for window in windows])

    async def _load(self, model: str) -> None:
        await self._node.find(model)
        await super()._load(model)

    def _load_options(self, model: str) -> LoadOptions:
        return replace(super()._load_options(model), path=self._node.path(model))


class RaySlots:
    """Makes the slots of a cluster."""

    def __init__(self, bridge: Bridge, catalogue: ModelCatalogue, plan: Plan) -> None:
        """`plan`: one for a cluster."""
        assert plan.cluster is not None
        self.bridge = bridge
        self.catalogue = catalogue
        self._plan = plan
        self._cluster = plan.cluster

    def places(self, nodes: Sequence[RayNode]) -> list[Place]:
        """Where workers can run on these nodes."""
        cluster, device = self._cluster, self._plan.devices.device
        return worker_places(nodes, device, cluster.gpus_per_worker, cluster.workers_per_cpu_node)

    def reserved_cpus(self, node: RayNode) -> int:
        """How many CPUs of a node its workers take, once all of them run."""
        return len(self.places([node])) if self._plan.devices.device == "cpu" else 0

    def new_node(self, node: RayNode, connected: asyncio.Event) -> ClusterNode:
        """A node that has joined. `connected`: see `ClusterNode`."""
        if self._plan.devices.device == "cpu" and node.gpus >= 1:
            log.warning(
                "the GPUs of a node are not used: workers run on CPUs",
                node=node.name,
                remedy="set WHISPER_DEVICE=cuda, and start the service again",
            )
        return ClusterNode(self.bridge, node, self.catalogue, connected)

    def new_slot(self, index: int, place: Place, node: ClusterNode) -> RaySlot:
        """A slot for a place on the node."""
        process = self._new_process(index, place.node.id)
        return RaySlot(index, self.catalogue, self._plan.limits, process, node)

    def _new_process(self, index: int, node_id: str) -> RemoteProcess:
        if self._plan.simulation is not None:
            # It needs no CPU: its workers compute nothing.
            spec = ActorSpec(node_id)
            return RemoteProcess(self.bridge, spec, SimulatedWorker, index, "", self._plan.simulation)
        if self._plan.devices.device == "cuda":
            spec = ActorSpec(node_id, gpus=self._cluster.gpus_per_worker)
            return RemoteProcess(self.bridge, spec, runtime.initialise, self._plan.niceness)
        spec = ActorSpec(node_id, cpus=1)
        return RemoteProcess(self.bridge, spec, runtime.initialise, "", self._plan.niceness)
