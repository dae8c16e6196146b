"""The nodes of a cluster: as users name them and see them, and the workers that they can hold. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.common.errors import AmbiguousNode, UnknownNode
from app.pool.cluster.ray_messages import RayNode

NO_CLUSTER = (
    "This service has no nodes: its workers are on one machine. Nodes are those of a Ray cluster "
    "(WHISPER_ENGINE=ray)."
)
_MAX_SHOWN_CHARS = 100
_ROUNDING = 1e-9  # 1 / (1 / 49) is less than 49


def find_node(nodes: Sequence[RayNode], wanted: str) -> RayNode:
    """The node with this id or name.

    Raises UnknownNode, which lists the nodes that are there, and AmbiguousNode if several have the name.
    """
    for node in nodes:
        if node.id == wanted:
            return node
    named = [node for node in nodes if node.name == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(node.id for node in named)
        raise AmbiguousNode(f"{len(named)} nodes have the name {wanted!r}: name one by its id, {ids}.")
    there = ", ".join(sorted({node.name for node in nodes})) or "none"
    raise UnknownNode(
        f"The cluster has no node with the id or the name {wanted[:_MAX_SHOWN_CHARS]!r}. Its nodes: {there}."
    )


def node_row(
    node: RayNode, workers: Mapping[int, str], *, drains: bool, fault: str | None = None
) -> dict[str, object]:
    """A node as `GET /v1/nodes` shows it.

    `workers`: the states of its slots, by number. `drains`: it gets no more of them. `fault`: why it cannot
    have any.
    """
    state = "ready" if fault is None else "unusable"
    if drains:
        state = "draining" if workers else "drained"
    return {
        "object": "node",
        "id": node.id,
        "name": node.name,
        "address": node.address,
        "state": state,
        "fault": fault,
        "workers": [{"slot": slot, "state": workers[slot]} for slot in sorted(workers)],
    }


@dataclass(frozen=True, slots=True)
class Place:
    """Where one worker can run on a node. Equal places have the same worker."""

    node: RayNode
    ordinal: int  # among the places of its node, from 0


def usable_device(nodes: Sequence[RayNode], device: str) -> str | None:
    """The device of the workers: for "auto" GPUs if any node has some, else CPUs. None: neither."""
    if device != "auto":
        return device
    if any(node.gpus >= 1 for node in nodes):
        return "cuda"
    return "cpu" if any(node.cpus >= 1 for node in nodes) else None


def worker_places(
    nodes: Sequence[RayNode], device: str, gpus_per_worker: float, workers_per_cpu_node: int | None
) -> list[Place]:
    """The places of all workers, by node.

    `device`: "cuda" (one for each `gpus_per_worker` of a node's GPUs), "cpu" (one for each CPU of a node, at
    most `workers_per_cpu_node`), or "simulated" (as "cpu"). No worker has parts of two GPUs.
    """
    workers_per_gpu = math.floor(1 / gpus_per_worker + _ROUNDING)

    def count(node: RayNode) -> int:
        if device == "cuda":
            return int(node.gpus) * workers_per_gpu
        return int(node.cpus if workers_per_cpu_node is None else min(node.cpus, workers_per_cpu_node))

    return [Place(node, ordinal) for node in nodes for ordinal in range(count(node))]
