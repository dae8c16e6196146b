"""A worker's process on a node of the cluster, as the server sees it."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from app.engines.cluster.bridge import Bridge
from app.engines.cluster.connection import pickled, result_of
from app.engines.cluster.messages import ActorEvent, ActorSpec, StartedProcess
from app.errors import ClusterUnavailable, ProcessCrashed, ProcessLost
from app.telemetry.work import bound_ids
from workers import calls

R = TypeVar("R")

_START_S = 240.0  # for a process to start, and to show its GPU
_MARGIN_S = 30.0  # for an answer to arrive, beyond the deadline that the node itself enforces


class Actor:
    """An actor that starts with the first of its processes, and ends with the last."""

    def __init__(self, bridge: Bridge, spec: ActorSpec) -> None:
        self.name: str | None = None  # by which the driver knows it; None: it does not run
        self.id: str | None = None  # Ray's, in hex
        self.bridge = bridge
        self._spec = spec
        self._processes: dict[int, RemoteProcess] = {}
        self._lock = asyncio.Lock()

    def add(self, process: "RemoteProcess") -> int:
        """The number that a process gets in the actor."""
        number = min(set(range(self._spec.processes)) - set(self._processes))
        self._processes[number] = process
        return number

    async def start(self) -> str:
        """Start the actor if it does not run. Returns its name."""
        async with self._lock:
            if self.name is None:
                name = uuid.uuid4().hex
                self.bridge.on_event(name, self._on_event)
                try:
                    self.id = await self.bridge.call("start_actor", name, self._spec)
                except BaseException:
                    # Also if the caller is cancelled: an actor that nobody knows would keep its GPU.
                    self.bridge.on_event(name, None)
                    self.bridge.post("close_actor", name)
                    raise
                self.name = name
            return self.name

    async def remove(self, number: int) -> None:
        """End a process, and the actor with the last one."""
        self._processes.pop(number, None)
        async with self._lock:
            name = self.name
            if name is None:
                return
            if self._processes:
                await _unless_gone(self.bridge.call("close_process", name, number))
            else:
                self.name = self.id = None
                self.bridge.on_event(name, None)
                await _unless_gone(self.bridge.call("close_actor", name))

    def _on_event(self, event: ActorEvent) -> None:
        if event.process is not None:
            if event.process in self._processes:
                error = ProcessCrashed(event.reason, exit_status=event.exit_status, fault=event.fault)
                self._processes[event.process].ended(error)
            return
        if self.name is not None:
            self.bridge.on_event(self.name, None)
        self.name = self.id = None
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process.ended(ProcessLost(event.reason))


class RemoteProcess:
    """A `WorkerProcess` in an actor: the actor spawns it, watches it and kills it.

    Raises as `ChildProcess` does if the process crashes or hangs: its actor says so. Raises ProcessLost if
    the actor, its node, the bridge or the connection is gone.
    """

    def __init__(self, actor: Actor, initializer: Callable[..., Any], *initargs: object) -> None:
        """`initializer`: runs first in the process; or a class of `WorkerProcess` to make instead.

        A GPU actor puts its CUDA_VISIBLE_DEVICES before `initargs`.
        """
        self.pid: int | None = None
        self.visible_devices: str | None = None
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None
        self._exit_error: ProcessCrashed | None = None
        self._actor = actor
        self._number: int | None = None  # in the actor; None: neither started nor starting
        self._initializer = (initializer, *initargs)

    @property
    def actor(self) -> str | None:
        """Ray's id of the actor, in hex; None while there is none."""
        return self._actor.id if self._number is not None else None

    async def start(self) -> None:
        """Start the actor if necessary, and the process.

        Raises as `ChildProcess.start` does, ClusterUnavailable if the actor gets no resources, and
        DeviceFailed if the process does not see its GPU.
        """
        await self.close()
        self._exit_error = None
        number = self._number = self._actor.add(self)
        name = await self._actor.start()
        process = pickled(self._initializer)
        answer = await self._actor.bridge.call("ask_actor", name, "start_process", number, process, _START_S)
        started: StartedProcess = result_of(answer)
        self.pid, self.visible_devices = started.pid, started.visible_devices

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        """Run `function(*args)` in the process: see `ChildProcess.call`."""
        name, number = self._actor.name, self._number
        if name is None or number is None:
            raise self._exit_error or ProcessLost("the process has not been started")
        call = pickled((bound_ids(), deadline_s, function, *args))
        margin_s = None if deadline_s is None else deadline_s + _MARGIN_S
        answer = await self._actor.bridge.call("ask_actor", name, "call_process", number, call, margin_s)
        result, parts = result_of(answer)
        calls.current().parts.extend(parts)
        return result  # type: ignore[no-any-return]

    def is_stopped(self) -> bool:
        """False: only its node knows."""
        return False

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
        self._exit_error = error
        self.on_exit(error)


async def _unless_gone(call: Awaitable[Any]) -> None:
    with suppress(ProcessLost, ClusterUnavailable):
        await call
