"""The server's side of the bridge to Ray."""

import asyncio
import itertools
import multiprocessing
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import Any

import structlog

from app.common.concurrency import end_tasks
from app.common.errors import ClusterUnavailable, ProcessCrashed, ProcessLost
from app.pool.child_environment import hide_secrets
from app.pool.cluster import driver
from app.pool.cluster.message_socket import MessageSocket
from app.pool.cluster.ray_messages import RayNode, RayNodes
from app.telemetry import logs

_FIRST_PAUSE_S = 1.0
_MAX_PAUSE_S = 30.0
_CONNECT_S = 240.0  # from the start of the process to its first list of nodes
_SILENCE_S = 60.0  # without any message, after which the process counts as hung; it sends one every 2 s
_HEAD_AWAY = "the head of the Ray cluster has not answered for a while: see whether its machine runs"
_ENDED = "the bridge to Ray has ended, and starts again: if it ends often, see whether Ray runs here"
_END_S = 5.0  # for the process to end by itself

log = structlog.get_logger(__name__)


class Bridge:
    """A child process that is Ray's driver. It is replaced when it dies, however often.

    Its methods are those of `driver.Driver`, called by name. Every call raises ProcessLost if the bridge
    dies before it answers, or is not there, and ClusterUnavailable if the cluster must not be used.
    """

    def __init__(self, address: str, *, insecure: bool = False) -> None:
        """`address`: see WHISPER_RAY_ADDRESS; empty: a Ray on this machine."""
        self.nodes: tuple[RayNode, ...] = ()  # that are alive; none while the bridge is not connected
        self.draining: frozenset[str] = frozenset()  # ids of those that Ray drains: they will end
        self.fault: str | None = "the cluster is being looked up"  # why there is no connection, in one line
        self.on_nodes: Callable[[], None] = lambda: None  # called when any of these change
        self.pid: int | None = None
        self._address = address
        self._insecure = insecure
        self._refused = False
        self._is_head_away = False
        self._connection: MessageSocket | None = None
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()
        self._listeners: dict[str, Callable[[ProcessCrashed], None]] = {}
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to connect, in the background, again and again."""
        self._running = asyncio.create_task(self._run_forever())

    async def stop(self) -> None:
        """End the process, and with it all actors."""
        running, self._running = self._running, None
        await end_tasks(running)

    async def call(self, method: str, *args: object) -> Any:
        """Call a method of the driver. Raises what it raises. Cancelling the caller cancels the method."""
        connection = self._connection
        if connection is None:
            fault = self.fault or "the bridge to Ray is starting"
            raise ClusterUnavailable(fault) if self._refused else ProcessLost(fault)
        number = next(self._numbers)
        answer = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            connection.send((number, method, args))
            return await answer
        except asyncio.CancelledError:
            connection.send((number, None, ()))
            raise
        finally:
            del self._calls[number]

    def post(self, method: str, *args: object) -> None:
        """Call a method of the driver without waiting for it, if there is a driver."""
        if self._connection is not None:
            self._connection.send((next(self._numbers), method, args))

    def on_exit(self, actor: str, callback: Callable[[ProcessCrashed], None] | None) -> None:
        """Call `callback` when the process of this actor has ended by itself; None: no longer.

        It gets ProcessLost if the actor has ended, and otherwise ProcessCrashed.
        """
        if callback is None:
            self._listeners.pop(actor, None)
        else:
            self._listeners[actor] = callback

    async def _run_forever(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            began = asyncio.get_running_loop().time()
            fault = _ENDED
            try:
                await self._run_once()
            except (ClusterUnavailable, ProcessLost) as error:
                self._refused = isinstance(error, ClusterUnavailable)
                fault = error.message
            except TimeoutError:
                fault = "the bridge to Ray did not answer, and was killed"
            except Exception as error:
                log.exception("the bridge to Ray failed")
                fault = f"the bridge to Ray failed: {error!r}"
            finally:
                self._disconnected(fault)
            if asyncio.get_running_loop().time() - began > _MAX_PAUSE_S:
                pause_s = _FIRST_PAUSE_S  # it has worked for a while
            log.warning("no connection with Ray", reason=fault, again_in_s=pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    async def _run_once(self) -> None:
        """Start the process and read what it sends until it ends. Raises why there is no connection."""
        process, connection = self._spawn()
        try:
            deadline_s = _CONNECT_S
            while True:  # until the process ends
                async with asyncio.timeout(deadline_s):
                    kind, *rest = await connection.receive()
                deadline_s = _SILENCE_S
                self._received(connection, kind, rest)
        except EOFError:
            raise ProcessLost(_HEAD_AWAY if self._is_head_away else _ENDED) from None
        finally:
            self._connection = self.pid = None
            connection.close()
            await _end(process)

    def _spawn(self) -> tuple[BaseProcess, MessageSocket]:
        ours, its = socket.socketpair()
        hide_secrets()  # Ray's token goes through the socket: no process can read it in the environment
        process = multiprocessing.get_context("spawn").Process(
            target=driver.main, args=(its,), name="ray-bridge", daemon=True
        )
        with its:
            process.start()
        self.pid = process.pid
        connection = MessageSocket(ours)
        form = logs.child_format and replace(logs.child_format, colors=False)
        connection.send((dict(os.environ), self._address, self._insecure, form))
        return process, connection

    def _received(self, connection: MessageSocket, kind: str, rest: list[Any]) -> None:
        if kind == "answer":
            number, is_result, value = rest
            answer = self._calls.get(number)
            if answer is None or answer.done():
                return  # nobody waits any more
            if is_result:
                answer.set_result(value)
            else:
                answer.set_exception(value)
        elif kind == "nodes":
            nodes, self._is_head_away = rest
            self._set_nodes(connection, nodes)
        elif kind == "actor":
            actor, error = rest
            if actor in self._listeners:
                self._listeners[actor](error)
        elif kind == "fault":
            raise rest[0]

    def _set_nodes(self, connection: MessageSocket, nodes: RayNodes | None) -> None:
        if nodes is None:
            return  # none were listed yet
        if self._connection is None:
            log.info("connected with Ray", nodes=len(nodes.alive), pid=self.pid)
            self._connection, self._refused = connection, False
        elif nodes == RayNodes(self.nodes, self.draining):
            return
        self.nodes, self.draining, self.fault = nodes.alive, nodes.draining, None
        self.on_nodes()

    def _disconnected(self, fault: str) -> None:
        self.nodes, self.fault = (), fault
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(ProcessLost(fault))
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener(ProcessLost(fault))
        self.on_nodes()


async def _end(process: BaseProcess) -> None:
    """Wait until the process has ended. Its end of the socket is closed: it ends by itself, or is killed."""
    try:
        await asyncio.to_thread(process.join, _END_S)
    finally:  # also if the server stops meanwhile: it would wait for a process that hangs
        process.kill()
        await asyncio.to_thread(process.join, _END_S)
