"""A worker's process on a node of the cluster, as the server sees it."""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from app.common.errors import ClusterUnavailable, ProcessCrashed, ProcessLost
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.message_socket import pickled, result_of
from app.pool.cluster.ray_messages import ActorSpec
from app.telemetry.work import bound_ids
from workers import calls

R = TypeVar("R")

_START_S = 240.0  # for a process to start, and to show its GPU
_MARGIN_S = 30.0  # for an answer to arrive, beyond the deadline that the node itself enforces


class RemoteProcess:
    """A `WorkerProcess` in an actor of its own, which spawns it, watches it and kills it.

    Raises as `ChildProcess` does if the process crashes or hangs: its actor says so. Raises ProcessLost if
    the actor, its node, the bridge or the connection is gone.
    """

    def __init__(
        self, bridge: Bridge, spec: ActorSpec, initializer: Callable[..., Any], *initargs: object
    ) -> None:
        """`initializer`: runs first in the process; or a class of `WorkerProcess` to make instead.

        A GPU actor puts its CUDA_VISIBLE_DEVICES before `initargs`.
        """
        self.pid: int | None = None
        self.actor: str | None = None  # Ray's id of the actor, in hex; None while there is none
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None
        self._exit_error: ProcessCrashed | None = None
        self._bridge = bridge
        self._spec = spec
        self._name: str | None = None  # by which the driver knows the actor; None: it does not run
        self._initializer = (initializer, *initargs)
        self._lock = asyncio.Lock()  # an actor starts or ends, not both

    async def start(self) -> None:
        """Start a new actor, and the process in it.

        Raises as `ChildProcess.start` does, ClusterUnavailable if the actor gets no resources, and
        DeviceFailed if the process does not see its GPU.
        """
        await self.close()
        self._exit_error = None
        name = await self._start_actor()
        process = pickled(self._initializer)
        answer = await self._bridge.call("ask_actor", name, "start_process", process, _START_S)
        self.pid = result_of(answer)

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        """Run `function(*args)` in the process: see `ChildProcess.call`."""
        if self._name is None:
            raise self._exit_error or ProcessLost("the process has not been started")
        call = pickled((bound_ids(), deadline_s, function, *args))
        margin_s = None if deadline_s is None else deadline_s + _MARGIN_S
        answer = await self._bridge.call("ask_actor", self._name, "call_process", call, margin_s)
        result, parts = result_of(answer)
        calls.current().parts.extend(parts)
        return result  # type: ignore[no-any-return]

    def is_stopped(self) -> bool:
        """False: only its node knows."""
        return False

    async def close(self) -> None:
        """Kill the process and wait until it has ended, if its node still answers."""
        self.actor = None
        async with self._lock:
            name, self._name = self._name, None
            if name is not None:
                self._bridge.on_exit(name, None)
                with suppress(ProcessLost, ClusterUnavailable):
                    await self._bridge.call("close_actor", name)
        self.pid = None

    async def _start_actor(self) -> str:
        """The name of a new actor."""
        async with self._lock:
            name = uuid.uuid4().hex
            self._bridge.on_exit(name, self._ended)
            try:
                self.actor = await self._bridge.call("start_actor", name, self._spec)
            except BaseException:
                # Also if the caller is cancelled: an actor that nobody knows would keep its GPU.
                self._bridge.on_exit(name, None)
                self._bridge.post("close_actor", name)
                raise
            self._name = name
            return name

    def _ended(self, error: ProcessCrashed) -> None:
        """The process has crashed, or is lost with its actor."""
        if isinstance(error, ProcessLost):
            if self._name is not None:
                self._bridge.on_exit(self._name, None)
            self._name = self.actor = None
        self._exit_error = error
        self.on_exit(error)
