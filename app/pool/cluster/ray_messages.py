"""What the server, the bridge's process and the nodes exchange: frozen dataclasses, stdlib only."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node of the cluster that is alive, as Ray lists it."""

    id: str  # Ray's, in hex; a node that joins again gets another one
    name: str  # of `ray start --node-name`; by default its address
    address: str
    gpus: float = 0.0  # that Ray manages, used or not
    cpus: float = 0.0


@dataclass(frozen=True, slots=True)
class RayNodes:
    """The nodes of the cluster, as Ray lists them."""

    alive: tuple[RayNode, ...]
    draining: frozenset[str] = frozenset()  # ids of those that Ray drains: they will end


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a node says of itself."""

    versions: Mapping[str, str]  # of whisperfleet, python, ray, ctranslate2, faster-whisper and torch
    clock: float  # Unix seconds
    driver: str | None = None  # version of NVIDIA's driver; None: there is none
    gpus: tuple[str, ...] = ()  # their names
    torch_cuda: str | None = None  # for which torch is built; None: for CPUs alone


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model's files on a node."""

    path: str
    files: Mapping[str, int] = field(default_factory=dict)  # name and size in bytes: equal on all nodes


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """An actor: where it runs, and what Ray reserves for it."""

    node_id: str
    gpus: float = 0.0  # 0: none, and the actor's process sees none
    cpus: float = 0.0
    wait_s: float = 60.0  # that it may wait for its GPUs and CPUs
