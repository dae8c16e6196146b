"""Keeps the slots of a dispatcher equal to the places for workers on a cluster whose nodes come and go."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from app.common.concurrency import BackgroundTasks, Wakeup, end_tasks
from app.common.errors import NotReady
from app.engines.cluster.cluster_node import ClusterNode
from app.engines.cluster.ray_slot import RaySlots
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.node_places import Place, find_node, node_row, usable_device
from app.pool.cluster.ray_messages import RayNode
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import SlotStatus

log = structlog.get_logger(__name__)


class ClusterFleet:
    """The slots on the nodes that are alive.

    While the bridge is away nobody knows the nodes, so the slots stay: their processes are lost, and start
    again when the cluster answers.
    """

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._nodes: dict[str, ClusterNode] = {}  # that are alive, by id
        self._numbers: dict[Place, int] = {}  # of the slots
        self._draining: set[str] = set()  # ids of nodes that get no more slots, besides those that Ray drains
        self._ending: set[Place] = set()  # whose slots are draining
        self._lacks_device = False  # whether no node has one yet that workers could use
        self._connected = asyncio.Event()
        self._changed = Wakeup()
        self._follow: asyncio.Task[None] | None = None
        self._leaving = BackgroundTasks()

    async def start(self) -> None:
        """Begin to connect with the cluster."""
        self.bridge.on_nodes = self._changed.set
        await self.bridge.start()

    async def usable_device(self, device: str) -> str:
        """As `node_places.usable_device`, of the nodes. Waits for one that has a device; before `serve`."""
        while (found := usable_device(self.bridge.nodes, device)) is None:
            self._lacks_device = True
            await self._changed.wait()
        self._lacks_device = False
        return found

    def serve(self, slots: Dispatcher[Any, Any], source: RaySlots) -> None:
        """Add, drain and remove slots as nodes come and go, from now on."""
        self._changed.set()
        self._follow = asyncio.create_task(self._follow_nodes(slots, source), name="cluster-fleet")

    async def stop_serving(self) -> None:
        """Leave the slots as they are, for the dispatcher to end them."""
        await end_tasks(*self._leaving, self._follow)

    async def stop(self) -> None:
        """Disconnect from the cluster. The slots must have ended."""
        await self.stop_serving()
        await self.bridge.stop()

    @property
    def fault(self) -> str | None:
        """Why there are no slots that could start, in one line; None if there are some."""
        if self.bridge.fault is not None:
            return self.bridge.fault
        if self._numbers or not (self._connected.is_set() or self._lacks_device):
            return None
        drained = [node.node.name for node in self.nodes if self.is_draining(node.node.id)]
        if drained:
            return (
                f"the nodes of the Ray cluster are drained ({', '.join(drained)}): start others, or use "
                "these again with `whisperfleet drain NODE --undo`"
            )
        return "no node of the Ray cluster has a place for a worker: start one with `ray start --address=…`"

    @property
    def nodes(self) -> list[ClusterNode]:
        """The nodes that are alive, as far as is known."""
        return list(self._nodes.values())

    def find(self, wanted: str) -> ClusterNode:
        """The node with this id or name. Raises as `find_node`, and NotReady until the nodes are known."""
        if not self._nodes and not self._connected.is_set():
            raise NotReady(self.bridge.fault or "the nodes of the Ray cluster are being looked up")
        return self._nodes[find_node([node.node for node in self.nodes], wanted).id]

    def row(self, node: ClusterNode, statuses: Mapping[int, SlotStatus]) -> dict[str, object]:
        """A node as `GET /v1/nodes` shows it. `statuses`: of all slots, by number."""
        drains = self.is_draining(node.node.id)
        # A slot that drains counts until its process has ended. Another one may have its number before that.
        workers = {
            number: "draining" if drains else statuses[number].state
            for place, number in self._numbers.items()
            if place.node.id == node.node.id and (drains or number in statuses)
        }
        return node_row(node.node, workers, drains=drains, fault=node.fault)

    def drain(self, node_id: str) -> None:
        """Let the workers of a node finish their batches and end. It gets no others."""
        self._draining.add(node_id)
        self._changed.set()

    def undrain(self, node_id: str) -> None:
        """Let a node have workers again, when those that are draining have ended."""
        self._draining.discard(node_id)
        self._changed.set()

    def is_draining(self, node_id: str) -> bool:
        """Whether a node gets no more workers."""
        return node_id in self._draining or node_id in self.bridge.draining

    async def _follow_nodes(self, slots: Dispatcher[Any, Any], source: RaySlots) -> None:
        while True:
            await self._changed.wait()
            if self.bridge.fault is not None:
                self._connected.clear()
                continue
            try:
                await self._reconcile(self.bridge.nodes, slots, source)
            except Exception:  # the next change may do better
                log.exception("slots not changed")
            self._connected.set()

    async def _reconcile(
        self, nodes: Sequence[RayNode], slots: Dispatcher[Any, Any], source: RaySlots
    ) -> None:
        """Remove, drain and add slots as the nodes need it."""
        alive = {node.id for node in nodes}
        for node_id in self._nodes.keys() - alive:
            has_workers = any(place.node.id == node_id for place in self._numbers)
            name = self._nodes.pop(node_id).node.name
            if has_workers:
                log.warning("node lost", node=name, node_id=node_id)
            else:  # perhaps it has been drained
                log.info("node has left", node=name, node_id=node_id)
        self._draining &= alive
        places = source.places(nodes)
        for place in self._numbers.keys() - set(places):
            number = self._numbers.pop(place)
            if place not in self._ending:  # else another slot may have its number; it ends with its process
                self._leaving.spawn(slots.remove_slot(number))
        for place, number in self._numbers.items():
            if self.is_draining(place.node.id) and place not in self._ending:
                self._leaving.spawn(self._drain(slots, place, number))
        await asyncio.sleep(0)  # the numbers of the slots that are removed are free then
        for node in nodes:
            if node.id not in self._nodes:
                count = sum(place.node == node for place in places)
                log.info("node joined", node=node.name, node_id=node.id, workers=count)
                self._nodes[node.id] = source.new_node(node, self._connected)
        for place in places:
            if place not in self._numbers and not self.is_draining(place.node.id):
                number = self._numbers[place] = slots.free_index
                slots.add_slot(source.new_slot(number, place, self._nodes[place.node.id]))

    async def _drain(self, slots: Dispatcher[Any, Any], place: Place, number: int) -> None:
        self._ending.add(place)
        log.info("worker drains", slot=number, node=place.node.name)
        await slots.drain_slot(number)
        self._ending.discard(place)
        self._numbers.pop(place, None)
        self._changed.set()  # the node may be used again meanwhile
