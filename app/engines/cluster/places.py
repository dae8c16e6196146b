"""Which workers the nodes of a cluster can hold. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.engines.cluster.messages import Node

_ROUNDING = 1e-9  # 1 / (1 / 49) is less than 49


@dataclass(frozen=True, slots=True)
class Place:
    """Where one worker can run on a node. Equal places have the same worker."""

    node: Node
    ordinal: int  # among the places of its node, from 0
    device: str  # "cuda", "cpu" or "simulated"


def usable_device(nodes: Sequence[Node], device: str) -> str | None:
    """The device of the workers: for "auto" GPUs if any node has some, else CPUs. None: neither."""
    if device != "auto":
        return device
    if any(node.gpus >= 1 for node in nodes):
        return "cuda"
    return "cpu" if any(node.cpus >= 1 for node in nodes) else None


def worker_places(
    nodes: Sequence[Node], device: str, gpus_per_worker: float, workers_per_cpu_node: int | None
) -> list[Place]:
    """The places of all workers, by node.

    `device`: "cuda" (one for each `gpus_per_worker` of a node's GPUs), "cpu" (one for each CPU of a node, at
    most `workers_per_cpu_node`), "simulated" (as "cpu"), or "auto": GPUs if any node has some, else CPUs.
    No worker has parts of two GPUs.
    """
    device = usable_device(nodes, device) or "cpu"
    workers_per_gpu = math.floor(1 / gpus_per_worker + _ROUNDING)

    def count(node: Node) -> int:
        if device == "cuda":
            return int(node.gpus) * workers_per_gpu
        return int(node.cpus if workers_per_cpu_node is None else min(node.cpus, workers_per_cpu_node))

    return [Place(node, ordinal, device) for node in nodes for ordinal in range(count(node))]
