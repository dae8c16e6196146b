"""Which slots a cluster's fleet drains, and what it says of its nodes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from app.engines.cluster.bridge import Bridge
from app.engines.cluster.fleet import ClusterFleet
from app.engines.cluster.messages import Node
from app.engines.cluster.node import ClusterNode
from app.engines.cluster.nodes import Place, worker_places
from app.errors import AmbiguousNode, NotReady, UnknownNode
from app.scheduling.tasks import SlotStatus

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

FIRST, SECOND = Node("ab12", "cpu-1", "10.0.0.1", cpus=2), Node("cd34", "cpu-2", "10.0.0.2", cpus=1)


class FakeSlots:
    """A dispatcher whose slots end when a test says so."""

    def __init__(self) -> None:
        self.numbers: dict[int, str] = {}  # the nodes of the slots that it serves
        self.draining: dict[int, asyncio.Event] = {}

    @property
    def free_index(self) -> int:
        return next(number for number in range(100) if number not in self.numbers)

    def add_slot(self, slot: tuple[int, str]) -> None:
        assert slot[0] not in self.numbers
        self.numbers[slot[0]] = slot[1]

    async def remove_slot(self, index: int) -> None:
        del self.numbers[index]
        self.draining.pop(index, asyncio.Event()).set()

    async def drain_slot(self, index: int) -> None:
        self.draining[index] = asyncio.Event()
        await self.draining[index].wait()
        self.numbers.pop(index, None)

    def end(self, number: int) -> None:
        self.draining.pop(number).set()


class Source:
    """Makes slots that are only a number and a node."""

    def places(self, nodes: Sequence[Node]) -> list[Place]:
        return worker_places(nodes, "cpu", 1.0, None)

    def new_node(self, node: Node, connected: asyncio.Event) -> ClusterNode:
        return ClusterNode(cast(Any, None), node, cast(Any, None), connected)

    def new_slot(self, index: int, place: Place, node: ClusterNode) -> Any:
        return index, place.node.name


class Cluster:
    """A fleet with a bridge that is not started."""

    def __init__(self) -> None:
        self.bridge = Bridge("10.0.0.1:6379")
        self.fleet = ClusterFleet(self.bridge)
        self.slots = FakeSlots()
        self.bridge.on_nodes = self.fleet._changed.set
        self.fleet.serve(self.slots, Source())

    def list_nodes(self, *nodes: Node, draining: Sequence[Node] = ()) -> None:
        self.bridge.nodes, self.bridge.fault = nodes, None
        self.bridge.draining = frozenset(node.id for node in draining)
        self.bridge.on_nodes()

    def row(self, node: Node) -> tuple[object, list[int]]:
        """The state of a node, and the numbers of its workers."""
        statuses = {number: SlotStatus("busy") for number in self.slots.numbers}
        row = self.fleet.row(self.fleet.find(node.id), statuses)
        workers = cast(list[dict[str, Any]], row["workers"])
        assert {worker["state"] for worker in workers} <= {
            "draining" if row["state"] == "draining" else "busy"
        }
        return row["state"], [worker["slot"] for worker in workers]


@pytest.fixture
async def cluster() -> Any:
    made = Cluster()
    made.list_nodes(FIRST, SECOND)
    await until(lambda: len(made.slots.numbers) == 3)
    yield made
    await made.fleet.stop()


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def settle() -> None:
    """Let everything happen that happens without an event from outside."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_node_drains_and_gets_no_new_workers(cluster: Cluster) -> None:
    assert cluster.row(FIRST) == ("ready", [0, 1])
    for _ in range(2):
        cluster.fleet.drain(FIRST.id)
        assert cluster.row(FIRST) == ("draining", [0, 1]), "at once"
        await settle()
    assert set(cluster.slots.draining) == {0, 1}
    cluster.slots.end(0)
    await settle()
    assert cluster.row(FIRST) == ("draining", [1])
    cluster.slots.end(1)
    await settle()
    cluster.list_nodes(FIRST, SECOND)
    await settle()
    assert cluster.row(FIRST) == ("drained", [])
    assert cluster.slots.numbers == {2: "cpu-2"}
    assert cluster.row(SECOND) == ("ready", [2])


async def test_a_node_that_joins_again_has_workers(cluster: Cluster) -> None:
    cluster.fleet.drain(SECOND.id)
    await settle()
    cluster.slots.end(2)
    again = Node("ef56", SECOND.name, SECOND.address, cpus=1)
    cluster.list_nodes(FIRST, again)
    await settle()
    assert cluster.row(again) == ("ready", [2])


async def test_a_node_that_is_used_again_gets_workers_once_the_old_ones_have_ended(cluster: Cluster) -> None:
    cluster.fleet.drain(SECOND.id)
    await settle()
    cluster.fleet.undrain(SECOND.id)
    await settle()
    cluster.slots.end(2)
    await until(lambda: cluster.slots.numbers == {0: "cpu-1", 1: "cpu-1", 2: "cpu-2"})
    assert cluster.row(SECOND) == ("ready", [2])


async def test_a_node_that_ray_drains_is_drained(cluster: Cluster) -> None:
    cluster.list_nodes(FIRST, SECOND, draining=[SECOND])
    await settle()
    assert cluster.row(SECOND) == ("draining", [2])
    assert set(cluster.slots.draining) == {2}
    cluster.fleet.undrain(SECOND.id)
    await settle()
    assert cluster.row(SECOND) == ("draining", [2]), "Ray goes on"
    cluster.slots.end(2)
    await settle()
    assert cluster.row(SECOND) == ("drained", [])


async def test_a_node_lost_while_it_drains_takes_no_slot_of_another(cluster: Cluster) -> None:
    """Its slot has ended, and its process not yet: another slot may have its number."""
    cluster.fleet.drain(FIRST.id)
    await settle()
    for number in (0, 1):
        del cluster.slots.numbers[number]
    joined = Node("ef56", "cpu-3", "10.0.0.3", cpus=2)
    cluster.list_nodes(FIRST, SECOND, joined)
    await settle()
    assert cluster.row(joined) == ("ready", [0, 1])
    cluster.list_nodes(SECOND, joined)
    await settle()
    assert cluster.row(joined) == ("ready", [0, 1])
    assert cluster.slots.numbers == {0: "cpu-3", 1: "cpu-3", 2: "cpu-2"}


async def test_a_node_is_found_by_its_id_or_name(cluster: Cluster) -> None:
    assert cluster.fleet.find("cd34").node is cluster.fleet.find("cpu-2").node is SECOND
    with pytest.raises(UnknownNode, match="Its nodes: cpu-1, cpu-2"):
        cluster.fleet.find("cpu-3")
    cluster.list_nodes(FIRST, SECOND, Node("ef56", "cpu-2", "10.0.0.3"))
    await settle()
    with pytest.raises(AmbiguousNode, match="cd34, ef56"):
        cluster.fleet.find("cpu-2")


async def test_before_the_nodes_are_known_nobody_can_say_that_one_is_missing() -> None:
    fleet = ClusterFleet(Bridge("10.0.0.1:6379"))
    with pytest.raises(NotReady, match="looked up"):
        fleet.find("cpu-1")
    fleet.bridge.fault = None  # connected, while the service looks for its model
    with pytest.raises(NotReady, match="looked up"):
        fleet.find("cpu-1")
