"""The slots of a dispatcher follow the nodes of a cluster."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engines.cluster.fleet import ClusterFleet
from app.engines.cluster.messages import Node
from app.engines.cluster.node import ClusterNode
from app.engines.cluster.nodes import Place, worker_places
from app.scheduling.dispatcher import Dispatcher
from tests.cluster.fake_bridge import FakeBridge
from tests.engines.fake_slot import new_catalogue
from tests.event_loop import let_tasks_run
from tests.scheduling.fake_slots import FakeSlot
from workers.messages import LoadOptions

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

ONE, TWO, THREE = (Node(name, f"node {name}", "127.0.0.1", cpus=2) for name in "abc")


class PlacedSlot(FakeSlot):
    """A slot that starts once its node may have workers."""

    def __init__(self, index: int, place: Place, node: ClusterNode) -> None:
        super().__init__(index)
        self.place = place
        self.node = node

    async def start(self) -> None:
        await self.node.check()
        await super().start()


class Source:
    """Makes slots without processes, two on each node."""

    def __init__(self, bridge: FakeBridge) -> None:
        self._bridge = bridge
        self._catalogue = new_catalogue()
        simulated = LoadOptions("main", "", "cpu", "int8", 1)
        self._catalogue.options["main"] = simulated

    def places(self, nodes: Sequence[Node]) -> list[Place]:
        return worker_places(nodes, "cpu", 1.0, None)

    def new_node(self, node: Node, connected: asyncio.Event) -> ClusterNode:
        return ClusterNode(self._bridge, node, self._catalogue, connected)

    def new_slot(self, index: int, place: Place, node: ClusterNode) -> PlacedSlot:
        return PlacedSlot(index, place, node)


class Cluster:
    """A fleet with its bridge and its dispatcher."""

    def __init__(self) -> None:
        self.bridge = FakeBridge()
        self.dispatcher = Dispatcher[str, str]("worker", [], waits_for_slots=True)
        self.fleet = ClusterFleet(self.bridge)

    async def start(self) -> None:
        await self.fleet.start()
        self.dispatcher.start()
        self.fleet.serve(self.dispatcher, Source(self.bridge))  # type: ignore[arg-type]

    async def stop(self) -> None:
        await self.fleet.stop_serving()
        await self.dispatcher.stop()
        await self.fleet.stop()

    async def nodes(self, *nodes: Node) -> None:
        self.bridge.list_nodes(nodes)
        await let_tasks_run()

    def slots(self) -> dict[int, tuple[str, int]]:
        """The node and the place of each slot, by its number."""
        return {slot.index: (slot.place.node.id, slot.place.ordinal) for slot in self.dispatcher.slots}  # type: ignore[attr-defined]

    def states(self) -> list[str]:
        return [slot.status.state for slot in self.dispatcher.slots]


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster()
    await cluster.start()
    yield cluster
    await cluster.stop()


async def test_slots_come_and_go_with_their_nodes_and_the_others_stay(cluster: Cluster) -> None:
    await cluster.nodes(ONE)
    assert cluster.slots() == {0: ("a", 0), 1: ("a", 1)}
    await cluster.nodes(ONE, TWO)
    assert cluster.slots() == {0: ("a", 0), 1: ("a", 1), 2: ("b", 0), 3: ("b", 1)}
    kept = cluster.dispatcher.slots[2:]
    await cluster.nodes(TWO)
    assert cluster.slots() == {2: ("b", 0), 3: ("b", 1)}
    assert cluster.dispatcher.slots == kept
    await cluster.nodes(TWO, THREE)
    assert cluster.slots() == {0: ("c", 0), 1: ("c", 1), 2: ("b", 0), 3: ("b", 1)}
    assert cluster.states() == ["idle"] * 4


async def test_a_task_goes_on_another_node_when_its_own_is_lost(cluster: Cluster) -> None:
    await cluster.nodes(ONE)
    for slot in cluster.dispatcher.slots:
        assert isinstance(slot, FakeSlot)
        slot.unblocked.clear()
    answer = asyncio.create_task(cluster.dispatcher.submit("job", "clip"))
    await let_tasks_run()
    await cluster.nodes()
    assert (cluster.slots(), answer.done()) == ({}, False)
    await cluster.nodes(TWO)
    assert (await answer).result == "CLIP"
    assert (await answer).crash_count == 0


async def test_slots_stay_while_the_bridge_is_away(cluster: Cluster) -> None:
    await cluster.nodes(ONE)
    before = cluster.dispatcher.slots
    cluster.bridge.disconnect("the head is gone")
    await let_tasks_run()
    assert cluster.dispatcher.slots == before
    assert cluster.fleet.fault == "the head is gone"
    await cluster.nodes(ONE)
    assert (cluster.dispatcher.slots, cluster.fleet.fault) == (before, None)


async def test_a_slot_starts_only_when_the_bridge_is_back(cluster: Cluster) -> None:
    await cluster.nodes(ONE)
    cluster.bridge.disconnect("the head is gone")
    await let_tasks_run()
    [first, second] = cluster.dispatcher.slots
    first.needs_restart.set()  # its process was lost
    await let_tasks_run()
    assert (first.status.state, second.status.state) == ("restarting", "idle")
    await cluster.nodes(ONE)
    assert cluster.states() == ["idle", "idle"]


async def test_a_cluster_without_a_place_says_so(cluster: Cluster) -> None:
    assert cluster.fleet.fault == "the cluster is being looked up"
    await cluster.nodes(Node("f", "front end", "127.0.0.1"))
    assert cluster.fleet.fault is not None
    assert "no node of the Ray cluster has a place for a worker" in cluster.fleet.fault


async def test_a_cluster_whose_nodes_are_all_drained_says_so(cluster: Cluster) -> None:
    await cluster.nodes(ONE)
    cluster.fleet.drain(ONE.id)
    await let_tasks_run()
    assert not cluster.slots()
    assert cluster.fleet.fault is not None
    assert cluster.fleet.fault.startswith(
        f"the nodes of the Ray cluster are drained ({ONE.name}): start others"
    )
    cluster.fleet.undrain(ONE.id)
    await let_tasks_run()
    assert cluster.fleet.fault is None


async def test_a_node_that_drains_gets_no_slots_until_it_is_used_again(cluster: Cluster) -> None:
    await cluster.nodes(ONE, TWO)
    cluster.dispatcher.slots[0].unblocked.clear()  # type: ignore[attr-defined]
    answer = asyncio.create_task(cluster.dispatcher.submit("job", "clip"))
    await let_tasks_run()
    cluster.fleet.drain("a")
    await cluster.nodes(ONE, TWO, THREE)
    assert cluster.fleet.is_draining("a")
    assert sorted(cluster.slots().values()) == [("a", 0), ("b", 0), ("b", 1), ("c", 0), ("c", 1)]
    assert cluster.states()[0] == "draining"
    cluster.dispatcher.slots[0].unblocked.set()  # type: ignore[attr-defined]
    assert (await answer).result == "CLIP"
    await let_tasks_run()
    assert "a" not in {node for node, _ in cluster.slots().values()}
    cluster.fleet.undrain("a")
    await let_tasks_run()
    assert sorted(cluster.slots().values()).count(("a", 0)) == 1
    assert len(cluster.slots()) == 6


async def test_the_device_is_known_once_a_node_has_one() -> None:
    bridge = FakeBridge()
    fleet = ClusterFleet(bridge)
    await fleet.start()
    assert await fleet.usable_device("cuda") == "cuda"
    found = asyncio.create_task(fleet.usable_device("auto"))
    bridge.list_nodes([Node("f", "front end", "127.0.0.1")])
    await let_tasks_run()
    assert not found.done()
    assert fleet.fault is not None
    assert "no node of the Ray cluster has a place" in fleet.fault
    bridge.list_nodes([Node("g", "gpu", "127.0.0.1", gpus=1, cpus=8), ONE])
    assert await found == "cuda"
    assert fleet.fault is None


@settings(max_examples=30)
@given(st.lists(st.sets(st.sampled_from([ONE, TWO, THREE]) | st.none(), max_size=4), max_size=8))
def test_the_slots_are_those_of_the_last_list_of_nodes(lists: list[set[Node | None]]) -> None:
    async def follow() -> None:
        cluster = Cluster()
        await cluster.start()
        for listed in lists:
            nodes = [node for node in listed if node is not None]
            if None in listed:
                cluster.bridge.disconnect("away")
                await let_tasks_run()
            await cluster.nodes(*nodes)
            expected = {(node.id, ordinal) for node in nodes for ordinal in (0, 1)}
            assert set(cluster.slots().values()) == expected
            assert len(cluster.slots()) == len(expected)
            assert max(cluster.slots(), default=0) < 6
        await cluster.stop()

    asyncio.run(follow())
