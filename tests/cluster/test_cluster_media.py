"""How many media workers the nodes of a cluster get: with made-up nodes, and on a real cluster."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.common.errors import ProcessLost
from app.engines.catalogue import ModelCatalogue
from app.engines.cluster import node_checks
from app.engines.cluster.ray_slot import RaySlots
from app.engines.plan import make_plan
from app.intake.disk import DiskSpace
from app.intake.uploads import Upload
from app.media.pool import MediaPool
from app.media.remote_slot import RemoteMediaSlot
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import RayNode
from app.recording import cluster_media
from app.recording.cluster_media import ClusterMedia, least_used
from app.settings import load_settings
from tests.cluster.clusters import RayCluster
from tests.cluster.fake_bridge import FakeBridge
from tests.event_loop import let_tasks_run, until
from tests.media_files import RATE, encode, read_pcm, talk
from workers.media import tasks
from workers.media.tasks import DecodeRequest

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

DATA = Path(__file__).parents[1] / "data"


def node(name: str, cpus: float = 4) -> RayNode:
    return RayNode(id=name, name=name, address=name, cpus=cpus)


def test_the_least_used_node_is_next() -> None:
    nodes = [node("head", 0), node("small", 2), node("large", 4), node("half", 0.5)]
    workers: Counter[str] = Counter()
    while (found := least_used(nodes, workers)) is not None:
        workers[found.id] += 1
    assert workers == {"small": 2, "large": 4}
    assert least_used([], {}) is None


class MadeUpPool:
    """A `MediaPool` that notes its workers."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.removed: list[int] = []
        self.drained: list[int] = []
        self.dispatcher = self

    def add_remote(self, process: object) -> int:
        number = next(number for number in range(1, 99) if number not in self.numbers)
        self.numbers.add(number)
        return number

    async def remove_slot(self, number: int) -> None:
        self.numbers.remove(number)
        self.removed.append(number)

    async def drain_slot(self, number: int) -> None:
        self.numbers.remove(number)
        self.drained.append(number)


class World:
    """A cluster whose nodes a test changes, with five media workers at most."""

    def __init__(self) -> None:
        self.bridge = FakeBridge()
        self.pool = MadeUpPool()
        self.draining: set[str] = set()
        self.reserved: dict[str, int] = {}  # CPUs for Whisper workers, by node
        self.media = ClusterMedia(
            self.pool,  # type: ignore[arg-type]
            self.bridge,
            5,
            self.draining.__contains__,
        )

    async def workers(self, *nodes: RayNode) -> dict[str, int]:
        """How many there are on each node, once these are the nodes that are alive."""
        self.bridge.list_nodes(nodes)
        for _ in range(2):  # the nodes are asked for their versions first
            self.media._reconcile(lambda node: self.reserved.get(node.id, 0))
            await let_tasks_run()
        assert self.pool.numbers == set(self.media._workers)
        return dict(Counter(self.media._workers.values()))


async def test_workers_come_and_go_with_the_nodes() -> None:
    world = World()
    assert await world.workers() == {}
    assert await world.workers(node("a", 2), node("head", 0)) == {"a": 2}
    assert await world.workers(node("a", 2), node("b")) == {"a": 2, "b": 3}
    assert await world.workers(node("a", 2), node("b"), node("c")) == {"a": 2, "b": 3}, "those stay"
    assert await world.workers(node("a", 2), node("c")) == {"a": 2, "c": 3}
    assert await world.workers() == {}, "the bridge is away"
    assert await world.workers(node("c")) == {"c": 4}
    assert not world.pool.drained


async def test_the_workers_of_a_draining_node_finish_and_go_elsewhere() -> None:
    world = World()
    await world.workers(node("a"))
    world.draining.add("a")
    assert await world.workers(node("a"), node("b", 2)) == {"b": 2}
    assert (len(world.pool.drained), world.pool.removed) == (4, [])
    world.draining.clear()
    assert await world.workers(node("a"), node("b", 2)) == {"b": 2, "a": 3}


async def test_the_cpus_of_whisper_workers_stay_free() -> None:
    world = World()
    world.reserved = {"a": 2, "b": 1}
    assert await world.workers(node("a", 2), node("b", 2)) == {"b": 1}
    assert await world.workers(node("a", 2), node("b", 2), node("gpu")) == {"b": 1, "gpu": 4}


@pytest.mark.parametrize(
    ("device", "simulation", "reserved"),
    [("cpu", "", 3), ("cuda", "", 0), ("auto", "clip_ms=1", 0)],
)
def test_only_workers_on_cpus_take_cpus(device: str, simulation: str, reserved: int) -> None:
    bridge, catalogue = FakeBridge(), ModelCatalogue("demo", idle_s=0.0)
    plan = make_plan(load_settings(engine="ray", device=device, simulated=simulation, cpu_workers=3))
    slots = RaySlots(bridge, catalogue, plan)
    assert slots.reserved_cpus(replace(node("a"), gpus=2)) == reserved


async def test_a_node_with_another_decoder_gets_none() -> None:
    world = World()
    others = {"av": "1.0"}
    world.bridge.answers["a", node_checks.versions] = lambda names: node_checks.versions(names) | others
    assert await world.workers(node("a"), node("b", 2)) == {"b": 2}


async def test_a_node_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(names: Sequence[str]) -> None:
        raise ProcessLost("the node has gone")

    monkeypatch.setattr(cluster_media, "_RETRY_S", 0)
    world = World()
    world.bridge.answers["a", node_checks.versions] = silent
    assert await world.workers(node("a"), node("b", 2)) == {"b": 2}
    world.bridge.answers.clear()
    assert await world.workers(node("a"), node("b", 2)) == {"b": 2, "a": 3}


@asynccontextmanager
async def media_on(cluster: RayCluster) -> AsyncIterator[tuple[MediaPool, ClusterMedia]]:
    """A pool without workers of its own, and with one on each of two nodes."""
    bridge = Bridge(cluster.address)
    pool = MediaPool(0, DiskSpace(Path()))
    media = ClusterMedia(pool, bridge, 2, lambda node_id: False)
    pool.start()
    await bridge.start()
    media.start(lambda node: 0)
    try:
        yield pool, media
    finally:
        await media.stop()
        await pool.stop()
        await bridge.stop()


@pytest.mark.soak
async def test_a_node_dies_in_mid_file(
    ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is decoded and found is that of this machine, and the workers see no credentials."""
    for name in ("FIRST_STEP_SAMPLES", "STEP_SAMPLES"):
        monkeypatch.setattr(f"app.media.pool.{name}", 10 * RATE)
    monkeypatch.setattr(cluster_media, "_PERIOD_S", 0.2)
    recording, pcm = tmp_path / "upload", tmp_path / "pcm"
    recording.write_bytes(encode(talk(60, read_pcm(DATA / "talk.flac")), "mp3", "mp3"))
    upload = Upload(recording, "talk.mp3", 0, "")
    async with media_on(ray_cluster) as (pool, media):
        await until(lambda: pool.worker_count == 2)
        decoder: int | None = None
        async with aclosing(pool.decode("job", upload, pcm)) as steps:
            async for _ in steps:
                if decoder is not None:
                    continue
                [slot] = [slot for slot in pool.dispatcher.slots if slot.status.batches]
                assert isinstance(slot, RemoteMediaSlot)
                assert await slot._process.call(os.getenv, "RAY_AUTH_TOKEN") is None
                assert os.getenv("RAY_AUTH_TOKEN")
                decoder = slot.index
                [victim] = [n for n in ray_cluster.nodes if n.node_id == media._workers[decoder]]
                ray_cluster.kill(victim)
        found = await pool.speech_probabilities("job", pcm, 0, 1875)
    expected = tmp_path / "expected"
    expected.touch()
    tasks.decode("job", DecodeRequest(str(recording), (str(expected),)), 10**9)
    assert pcm.read_bytes() == expected.read_bytes()
    assert found.tobytes() == tasks.speech_probabilities(str(expected), 0, 1875)
