"""Which workers the nodes of a cluster can hold."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.pool.cluster.node_places import Place, usable_device, worker_places
from app.pool.cluster.ray_messages import RayNode

GPU_NODE = RayNode("a", "one", "10.0.0.1", gpus=2, cpus=16)
CPU_NODE = RayNode("b", "two", "10.0.0.2", cpus=4)
FRONT_END = RayNode("c", "front end", "10.0.0.3")

nodes = st.lists(
    st.builds(
        RayNode,
        id=st.uuids().map(str),
        name=st.just("node"),
        address=st.just("10.0.0.1"),
        gpus=st.floats(0, 16),
        cpus=st.floats(0, 256),
    ),
    unique_by=lambda node: node.id,
    max_size=8,
)
parts = st.one_of(st.integers(1, 64).map(lambda workers: 1 / workers), st.floats(0.01, 1))


def per_node(places: list) -> dict[str, int]:  # type: ignore[type-arg]
    return dict(Counter(place.node.id for place in places))


def test_each_gpu_has_a_worker() -> None:
    places = worker_places([GPU_NODE, CPU_NODE, FRONT_END], "cuda", 1.0, None)
    assert places == [Place(GPU_NODE, 0), Place(GPU_NODE, 1)]


def test_workers_that_take_a_part_share_a_gpu_but_none_spans_two() -> None:
    assert per_node(worker_places([GPU_NODE], "cuda", 0.5, None)) == {"a": 4}
    assert per_node(worker_places([GPU_NODE], "cuda", 0.4, None)) == {"a": 4}
    assert per_node(worker_places([GPU_NODE], "cuda", 0.6, None)) == {"a": 2}


def test_each_cpu_has_a_worker_up_to_the_limit() -> None:
    both = [GPU_NODE, CPU_NODE, FRONT_END]
    assert per_node(worker_places(both, "cpu", 1.0, None)) == {"a": 16, "b": 4}
    assert per_node(worker_places(both, "cpu", 1.0, 6)) == {"a": 6, "b": 4}


def test_without_a_choice_there_are_workers_on_gpus_if_any_node_has_some() -> None:
    assert usable_device([GPU_NODE, CPU_NODE], "auto") == "cuda"
    assert usable_device([CPU_NODE, FRONT_END], "auto") == "cpu"
    assert usable_device([FRONT_END], "auto") is None


def test_simulated_workers_are_where_those_on_cpus_would_be() -> None:
    assert per_node(worker_places([GPU_NODE, CPU_NODE], "simulated", 1.0, 3)) == {"a": 3, "b": 3}


@given(nodes, st.sampled_from(["cuda", "cpu", "simulated"]), parts, st.none() | st.integers(1, 32))
def test_no_node_holds_more_workers_than_it_has_resources(
    nodes: list[RayNode], device: str, gpus_per_worker: float, limit: int | None
) -> None:
    places = worker_places(nodes, device, gpus_per_worker, limit)
    assert len(set(places)) == len(places)
    counts = per_node(places)
    for node in nodes:
        own = [place.ordinal for place in places if place.node == node]
        assert own == list(range(counts.get(node.id, 0)))
        if own and device == "cuda":
            assert len(own) * gpus_per_worker <= int(node.gpus) * (1 + 1e-6)
        elif own:
            assert len(own) <= (node.cpus if limit is None else min(node.cpus, limit))


@given(nodes, nodes, st.sampled_from(["cuda", "cpu", "simulated"]), parts)
def test_a_node_that_joins_or_leaves_changes_nothing_on_the_others(
    some: list[RayNode], others: list[RayNode], device: str, gpus_per_worker: float
) -> None:
    alone = worker_places(some, device, gpus_per_worker, None)
    together = worker_places([*others, *some], device, gpus_per_worker, None)
    assert [place for place in together if place.node in some] == alone


@given(st.integers(1, 10_000))
def test_as_many_workers_share_a_gpu_as_its_parts_say(workers: int) -> None:
    node = RayNode("a", "one", "10.0.0.1", gpus=1)
    assert len(worker_places([node], "cuda", 1 / workers, None)) == workers
