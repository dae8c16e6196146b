"""A worker's process on a node of the cluster, as the server sees it."""

from collections.abc import Callable
from typing import TypeVar

from app.engines.cluster.bridge import Bridge
from app.engines.cluster.messages import ActorSpec
from workers.messages import Part

R = TypeVar("R")


class RemoteProcess:
    """A `WorkerProcess` in an actor of its own: the actor spawns it, watches it and kills it.

    Raises as `ChildProcess` does if the process crashes or hangs: its actor says so. Raises ProcessLost if
    the actor, its node, the bridge or the connection is gone.
    """

    def __init__(
        self, bridge: Bridge, spec: ActorSpec, initializer: Callable[..., None], *initargs: object
    ) -> None:
        """`initializer`: runs first in the process. A GPU actor puts its CUDA_VISIBLE_DEVICES before `initargs`."""
        self.pid: int | None = None
        self.visible_devices: str | None = None
        self.actor: str | None = None  # Ray's id, in hex; None while there is none
        self.parts: tuple[Part, ...] = ()
        self.on_exit: Callable[[], None] = lambda: None
        raise NotImplementedError

    async def start(self) -> None:
        raise NotImplementedError

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError
