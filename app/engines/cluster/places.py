"""Which workers the nodes of a cluster can hold. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.engines.cluster.messages import Node


@dataclass(frozen=True, slots=True)
class Place:
    """Where one worker can run on a node. Equal places have the same worker."""

    node: Node
    ordinal: int  # among the places of its node, from 0
    device: str  # "cuda", "cpu" or "simulated"


def worker_places(
    nodes: Sequence[Node], device: str, gpus_per_worker: float, workers_per_cpu_node: int | None
) -> list[Place]:
    """The places of all workers, by node.

    `device`: "cuda" (one for each `gpus_per_worker` of a node's GPUs), "cpu" (one for each CPU of a node, at
    most `workers_per_cpu_node`), "simulated" (as "cpu"), or "auto": GPUs if any node has some, else CPUs.
    """
    raise NotImplementedError
