"""A worker's process on a node of the cluster, as the server sees it."""

import asyncio
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from app.engines.cluster.bridge import Bridge
from app.engines.cluster.frames import pickled
from app.engines.cluster.messages import ActorEvent, ActorSpec, StartedProcess
from app.errors import ClusterUnavailable, ProcessCrashed, ProcessLost
from app.work import bound_ids
from workers.messages import Part

R = TypeVar("R")

_MARGIN_S = 30.0  # for an answer to arrive, beyond the deadline that the node itself enforces


class Actor:
    """An actor that starts with the first of its processes, and ends with the last."""

    def __init__(self, bridge: Bridge, spec: ActorSpec) -> None:
        self.bridge = bridge
        self.spec = spec
        self.id: str | None = None  # Ray's, in hex; None while there is none
        self._processes: dict[int, RemoteProcess] = {}
        self._lock = asyncio.Lock()

    async def add(self, process: "RemoteProcess") -> int:
        """Start the actor if it does not run. Returns the number of the process in it."""
        async with self._lock:
            if self.id is None:
                self.id = await self.bridge.call("start_actor", self.spec)
                self.bridge.on_event(self.id, self._on_event)
            number = min(set(range(self.spec.processes)) - set(self._processes))
            self._processes[number] = process
            return number

    async def remove(self, number: int) -> None:
        """End a process, and the actor with the last one."""
        async with self._lock:
            self._processes.pop(number, None)
            actor = self.id
            if actor is None:
                return
            if self._processes:
                await _gone_is_fine(self.bridge.call("close_process", actor, number))
            else:
                self.id = None
                self.bridge.on_event(actor, None)
                await _gone_is_fine(self.bridge.call("close_actor", actor))

    def _on_event(self, event: ActorEvent) -> None:
        if event.process is not None:
            if event.process in self._processes:
                self._processes[event.process].ended(ProcessCrashed(event.reason))
            return
        self.id = None
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process.ended(ProcessLost(event.reason))


class RemoteProcess:
    """A `WorkerProcess` in an actor: the actor spawns it, watches it and kills it.

    Raises as `ChildProcess` does if the process crashes or hangs: its actor says so. Raises ProcessLost if
    the actor, its node, the bridge or the connection is gone.
    """

    def __init__(
        self,
        bridge: Bridge,
        spec: ActorSpec,
        initializer: Callable[..., Any],
        *initargs: object,
        actor: Actor | None = None,
    ) -> None:
        """`initializer`: runs first in the process; or a class of `WorkerProcess` to make instead.

        A GPU actor puts its CUDA_VISIBLE_DEVICES before `initargs`. `actor`: one for several processes.
        """
        self.pid: int | None = None
        self.visible_devices: str | None = None
        self.parts: tuple[Part, ...] = ()
        self.on_exit: Callable[[], None] = lambda: None
        self.exit_error: ProcessCrashed | None = None
        self._actor = actor or Actor(bridge, spec)
        self._bridge = bridge
        self._number: int | None = None
        self._call = (initializer, *initargs)

    @property
    def actor(self) -> str | None:
        """Ray's id of the actor, in hex; None while there is none."""
        return self._actor.id if self._number is not None else None

    async def start(self) -> None:
        """Start the actor if necessary, and the process.

        Raises as `ChildProcess.start` does, ClusterUnavailable if the actor gets no resources, and
        DeviceFailed if the process does not see its GPU.
        """
        self.exit_error = None
        self._number = await self._actor.add(self)
        started: StartedProcess = _result(
            await self._bridge.call("start_process", self.actor, self._number, pickled(self._call))
        )
        self.pid, self.visible_devices = started.pid, started.visible_devices

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        """Run `function(*args)` in the process: see `ChildProcess.call`."""
        self.parts = ()
        if self._number is None or self._actor.id is None:
            raise self.exit_error or ProcessLost("the process has not been started")
        call = pickled((bound_ids(), deadline_s, function, *args))
        margin_s = None if deadline_s is None else deadline_s + _MARGIN_S
        answer = await self._bridge.call("call_process", self._actor.id, self._number, call, margin_s)
        result, self.parts = _result(answer)
        return result  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Kill the process and wait until it has ended, if its node still answers."""
        number, self._number = self._number, None
        if number is not None:
            await self._actor.remove(number)
        self.pid = self.visible_devices = None

    def ended(self, error: ProcessCrashed) -> None:
        """The process has crashed, or is lost with its actor."""
        if isinstance(error, ProcessLost):
            self._number = None
        self.exit_error = error
        self.on_exit()


def _result(answer: bytes) -> Any:
    """The result in an answer of an actor. Raises the error in it."""
    is_result, value = pickle.loads(answer)
    if not is_result:
        raise value
    return value


async def _gone_is_fine(call: Any) -> None:
    with suppress(ProcessLost, ClusterUnavailable):
        await call
