"""The slots of a dispatcher follow the nodes of a cluster, and what the fleet says of its nodes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common.errors import AmbiguousNode, NotReady, UnknownNode
from app.engines.cluster.cluster_fleet import ClusterFleet
from app.engines.cluster.cluster_node import ClusterNode
from app.pool.cluster.node_places import Place, worker_places
from app.pool.cluster.ray_messages import RayNode
from app.pool.dispatcher import Dispatcher
from tests.cluster.fake_bridge import FakeBridge
from tests.engines.fake_slot import new_catalogue
from tests.event_loop import let_tasks_run
from tests.pool.fake_slots import FakeSlot
from workers.messages import LoadOptions

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

ONE, TWO, THREE = (RayNode(name, f"node {name}", "127.0.0.1", cpus=2) for name in "abc")


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

    def places(self, nodes: Sequence[RayNode]) -> list[Place]:
        return worker_places(nodes, "cpu", 1.0, None)

    def new_node(self, node: RayNode, connected: asyncio.Event) -> ClusterNode:
        return ClusterNode(self._bridge, node, self._catalogue, connected)

    def new_slot(self, index: int, place: Place, node: ClusterNode) -> PlacedSlot:
        return PlacedSlot(index, place, node)


class Cluster:
    """A fleet with its bridge and its dispatcher."""

    def __init__(self) -> None:
        self.bridge = FakeBridge()
        self.dispatcher = Dispatcher[str, str]("worker", [], waits_for_slots=True)
        self.fleet = ClusterFleet(self.bridge)
        self.answers: list[asyncio.Task[Any]] = []

    async def start(self) -> None:
        await self.fleet.start()
        self.dispatcher.start()
        self.fleet.serve(self.dispatcher, Source(self.bridge))  # type: ignore[arg-type]

    async def stop(self) -> None:
        await self.fleet.stop_serving()
        await self.dispatcher.stop()
        await self.fleet.stop()
        for answer in self.answers:
            answer.cancel()

    async def nodes(self, *nodes: RayNode, draining: Sequence[RayNode] = ()) -> None:
        self.bridge.list_nodes(nodes, draining)
        await let_tasks_run()

    def slots(self) -> dict[int, tuple[str, int]]:
        """The node and the place of each slot, by its number."""
        return {slot.index: (slot.place.node.id, slot.place.ordinal) for slot in self.dispatcher.slots}  # type: ignore[attr-defined]

    def states(self) -> list[str]:
        return [slot.status.state for slot in self.dispatcher.slots]

    async def keep_busy(self) -> None:
        """Give each slot a batch that does not end before `end`."""
        for slot in self.dispatcher.slots:
            slot.unblocked.clear()  # type: ignore[attr-defined]
            task = asyncio.create_task(self.dispatcher.submit("job", "clip", affinity=slot.index))
            self.answers.append(task)
        await let_tasks_run()

    async def end(self, number: int) -> None:
        """End the batch of a slot."""
        [slot] = [slot for slot in self.dispatcher.slots if slot.index == number]
        slot.unblocked.set()  # type: ignore[attr-defined]
        await let_tasks_run()

    def row(self, node: RayNode) -> tuple[object, list[int]]:
        """The state of a node, and the numbers of its workers."""
        row = self.fleet.row(self.fleet.find(node.id), {s.index: s.status for s in self.dispatcher.slots})
        workers: list[dict[str, Any]] = row["workers"]  # type: ignore[assignment]
        is_draining = row["state"] == "draining"
        assert all((worker["state"] == "draining") == is_draining for worker in workers)
        return row["state"], [worker["slot"] for worker in workers]


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
    await cluster.nodes(RayNode("f", "front end", "127.0.0.1"))
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


async def test_a_node_drains_and_gets_no_new_workers(cluster: Cluster) -> None:
    await cluster.nodes(ONE, TWO)
    await cluster.keep_busy()
    assert cluster.row(ONE) == ("ready", [0, 1])
    for _ in range(2):
        cluster.fleet.drain("a")
        assert cluster.fleet.is_draining("a")
        assert cluster.row(ONE) == ("draining", [0, 1]), "at once"
        await let_tasks_run()
    assert cluster.states() == ["draining", "draining", "busy", "busy"]
    await cluster.end(0)
    assert cluster.row(ONE) == ("draining", [1])
    await cluster.end(1)
    await cluster.nodes(ONE, TWO)
    assert cluster.row(ONE) == ("drained", [])
    assert cluster.slots() == {2: ("b", 0), 3: ("b", 1)}
    assert cluster.row(TWO) == ("ready", [2, 3])


async def test_a_node_that_joins_again_has_workers(cluster: Cluster) -> None:
    await cluster.nodes(ONE, TWO)
    cluster.fleet.drain("b")
    await let_tasks_run()
    again = RayNode("d", TWO.name, TWO.address, cpus=2)
    await cluster.nodes(ONE, again)
    assert cluster.row(again) == ("ready", [2, 3])


async def test_a_node_that_is_used_again_gets_workers_once_the_old_ones_have_ended(cluster: Cluster) -> None:
    await cluster.nodes(ONE, TWO)
    await cluster.keep_busy()
    cluster.fleet.drain("b")
    await let_tasks_run()
    old = cluster.dispatcher.slots[2:]
    cluster.fleet.undrain("b")
    await let_tasks_run()
    assert cluster.dispatcher.slots[2:] == old
    for number in (2, 3):
        await cluster.end(number)
    assert cluster.row(TWO) == ("ready", [2, 3])
    assert not set(old) & set(cluster.dispatcher.slots)


async def test_a_node_that_ray_drains_is_drained(cluster: Cluster) -> None:
    await cluster.nodes(ONE, TWO)
    await cluster.keep_busy()
    await cluster.nodes(ONE, TWO, draining=[TWO])
    assert cluster.row(TWO) == ("draining", [2, 3])
    cluster.fleet.undrain("b")
    await let_tasks_run()
    assert cluster.row(TWO) == ("draining", [2, 3]), "Ray goes on"
    for number in (2, 3):
        await cluster.end(number)
    assert cluster.row(TWO) == ("drained", [])


async def test_a_node_lost_while_it_drains_takes_no_slot_of_another(cluster: Cluster) -> None:
    """Its slots have ended, and their processes not yet: other slots may have their numbers."""
    await cluster.nodes(ONE)
    ended = asyncio.Event()
    for slot in cluster.dispatcher.slots:
        slot.close = ended.wait  # type: ignore[assignment, method-assign]
    cluster.fleet.drain("a")
    await let_tasks_run()
    await cluster.nodes(ONE, THREE)
    before = cluster.row(THREE)
    await cluster.nodes(THREE)
    after, slots = cluster.row(THREE), cluster.slots()
    ended.set()
    assert before == after == ("ready", [0, 1])
    assert slots == {0: ("c", 0), 1: ("c", 1)}


async def test_a_node_is_found_by_its_id_or_name(cluster: Cluster) -> None:
    await cluster.nodes(ONE, TWO)
    assert cluster.fleet.find("b").node is cluster.fleet.find("node b").node is TWO
    with pytest.raises(UnknownNode, match="Its nodes: node a, node b"):
        cluster.fleet.find("node c")
    await cluster.nodes(ONE, TWO, RayNode("d", "node b", "10.0.0.3"))
    with pytest.raises(AmbiguousNode, match="b, d"):
        cluster.fleet.find("node b")


async def test_before_the_nodes_are_known_nobody_can_say_that_one_is_missing() -> None:
    fleet = ClusterFleet(FakeBridge())
    with pytest.raises(NotReady, match="looked up"):
        fleet.find("cpu-1")
    fleet.bridge.fault = None  # connected, while the service looks for its model
    with pytest.raises(NotReady, match="looked up"):
        fleet.find("cpu-1")


async def test_the_device_is_known_once_a_node_has_one() -> None:
    bridge = FakeBridge()
    fleet = ClusterFleet(bridge)
    await fleet.start()
    assert await fleet.usable_device("cuda") == "cuda"
    found = asyncio.create_task(fleet.usable_device("auto"))
    bridge.list_nodes([RayNode("f", "front end", "127.0.0.1")])
    await let_tasks_run()
    assert not found.done()
    assert fleet.fault is not None
    assert "no node of the Ray cluster has a place" in fleet.fault
    bridge.list_nodes([RayNode("g", "gpu", "127.0.0.1", gpus=1, cpus=8), ONE])
    assert await found == "cuda"
    assert fleet.fault is None


@settings(max_examples=30)
@given(st.lists(st.sets(st.sampled_from([ONE, TWO, THREE]) | st.none(), max_size=4), max_size=8))
def test_the_slots_are_those_of_the_last_list_of_nodes(lists: list[set[RayNode | None]]) -> None:
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
