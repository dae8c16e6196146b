"""Ray's driver: the bridge's process. It starts actors, passes calls on, and follows the nodes."""

import asyncio
import os
import pickle
import socket
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar

from app.engines.cluster import authentication
from app.engines.cluster.actor import WorkerActor, run_task
from app.engines.cluster.frames import Connection, pickled
from app.engines.cluster.messages import ActorEvent, ActorSpec, Node, NodeList
from app.errors import ClusterUnavailable, ProcessLost
from workers import log_lines, runtime
from workers.log_lines import LogFormat

R = TypeVar("R")

NODES_EVERY_S = 2.0
_RESOURCES_S = 60.0  # that an actor waits for its GPU or its core
_START_S = 240.0  # for a process to start, and to show its GPU
_CLOSE_S = 20.0
_TASK_S = 1800.0  # for a function on a node, which may download a model
_LOOPBACK = ("127.0.0.1:", "localhost:", "[::1]:")
_LARGE = 100_000  # bytes; from here on Ray copies a call into its object store, which may wait for space


def main(sock: socket.socket, form: LogFormat | None) -> None:
    """The bridge's process, until the server ends or closes its end of the socket."""
    log_lines.initialise(form, runtime.follow_parent)
    asyncio.run(_serve(sock, form))


async def _serve(sock: socket.socket, form: LogFormat | None) -> None:
    connection = Connection(sock)
    try:
        environment, address, insecure = await connection.receive()
        os.environ.clear()
        os.environ.update(environment)
        fault = _connect(address, insecure=insecure)
        if fault is None:
            await Driver(connection, form).serve()
        else:
            connection.send(("fault", fault))
            await connection.flush()
    except EOFError:
        pass
    finally:
        connection.close()


def _connect(address: str, *, insecure: bool) -> ClusterUnavailable | ProcessLost | None:
    """Connect in this thread, as Ray wants it. Nothing else happens meanwhile. Why it failed, if it did."""
    try:
        connect(address, insecure=insecure)
    except (ClusterUnavailable, ProcessLost) as error:
        return error
    except Exception as error:  # Ray has no class of its own for most
        return ProcessLost(f"the Ray cluster cannot be used: {_one_line(error)}")
    return None


def connect(address: str, *, insecure: bool) -> None:
    """Connect this process with a cluster, or with a new Ray on this machine alone if `address` is empty.

    Raises ClusterUnavailable if the cluster must not be used, and ProcessLost if it cannot be reached.
    """
    authentication.set_environment(os.environ, is_local=not address, insecure=insecure)
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "error")
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "namespace": "whisperfleet"}
    if not address:
        import ray

        ray.init("local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        return
    if address.startswith(_LOOPBACK):
        # Else Ray looks for the head at another address of this machine. It reads this when it is imported.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    authentication.check_cluster(address, insecure=insecure)
    import ray

    try:
        ray.init(address, **quiet)
    except RuntimeError as error:
        text = _one_line(error)
        if "Version mismatch" in text:
            raise ClusterUnavailable(
                f"{text}: install the same versions of Python and Ray on all machines"
            ) from None
        if "resolve node to connect to" in text:
            raise ProcessLost(
                f"this machine is no node of the Ray cluster: run `ray start --address={address} "
                "--num-cpus=0 --num-gpus=0` here"
            ) from None
        raise


class Driver:
    """Answers the server's calls, each in a task of its own, and sends it events."""

    def __init__(self, connection: Connection, form: LogFormat | None) -> None:
        import ray

        self._connection = connection
        self._form = form
        self._actors: dict[str, Any] = {}  # Ray's handles
        self._names: dict[str, str] = {}  # of nodes
        self._tasks: set[asyncio.Task[None]] = set()
        self._new_actor: Any = ray.remote(WorkerActor)
        self._run_task: Any = ray.remote(run_task)

    async def serve(self) -> None:
        """Answer until the server has gone. Raises EOFError then."""
        self._spawn(self._follow_nodes())
        while True:
            number, method, args = await self._connection.receive()
            self._spawn(self._answer(number, method, args))

    async def start_actor(self, spec: ActorSpec) -> str:
        """Start an actor on its node: Ray's id of it, in hex.

        Raises ClusterUnavailable if it gets no resources within `_RESOURCES_S`.
        """
        actor = self._new_actor.options(
            num_cpus=spec.cpus,
            num_gpus=spec.gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=_pinned(spec.node_id),
        ).remote(spec, self._names.get(spec.node_id, spec.node_id), self._form)
        try:
            await _lost_if_ray_fails(actor.ready.remote(), _RESOURCES_S)
        except TimeoutError:
            _kill(actor)
            raise ClusterUnavailable(await asyncio.to_thread(self._missing_resources, spec)) from None
        except BaseException:
            _kill(actor)
            raise
        name: str = actor._actor_id.hex()
        self._actors[name] = actor
        self._spawn(self._watch(name, actor))
        return name

    async def start_process(self, actor: str, number: int, call: list[bytes]) -> bytes:
        """Start a process of an actor: see `WorkerActor.start_process`."""
        return await self._pass_on(actor, "start_process", number, call, _START_S)

    async def call_process(
        self, actor: str, number: int, call: list[bytes], deadline_s: float | None
    ) -> bytes:
        """Call a process of an actor: see `WorkerActor.call_process`."""
        return await self._pass_on(actor, "call_process", number, call, deadline_s)

    async def close_process(self, actor: str, number: int) -> None:
        """End a process of an actor. Never fails: one whose actor is gone has ended."""
        if actor in self._actors:
            with suppress(ProcessLost, TimeoutError):
                await _lost_if_ray_fails(self._actors[actor].close_process.remote(number), _CLOSE_S)

    async def close_actor(self, actor: str) -> None:
        """End an actor and its processes. Never fails."""
        handle = self._actors.pop(actor, None)
        if handle is not None:
            with suppress(ProcessLost, TimeoutError):
                await _lost_if_ray_fails(handle.close.remote(), _CLOSE_S)
            _kill(handle)

    async def run_on_node(self, node_id: str, function: Any, *args: Any) -> Any:
        """Run a function on a node, in a new process without GPU. Raises what it raises, and ProcessLost."""
        import ray

        task = self._run_task.options(num_cpus=0, max_retries=0, scheduling_strategy=_pinned(node_id)).remote(
            b"".join(pickled((function, *args)))
        )
        try:
            is_result, value = pickle.loads(await _lost_if_ray_fails(task, _TASK_S))
        except TimeoutError:
            ray.cancel(task, force=True)
            raise ProcessLost(f"node {self._name(node_id)} did not answer within {_TASK_S:.0f} s") from None
        if not is_result:
            raise value
        return value

    async def _pass_on(
        self, actor: str, method: str, number: int, call: list[bytes], deadline_s: float | None
    ) -> bytes:
        handle = self._actors.get(actor)
        if handle is None:
            raise ProcessLost("the actor of this process has ended")
        remote = getattr(handle, method).remote
        data = b"".join(call)
        ref = await asyncio.to_thread(remote, number, data) if len(data) > _LARGE else remote(number, data)
        try:
            return bytes(await _lost_if_ray_fails(ref, deadline_s))
        except TimeoutError:
            raise ProcessLost(f"the node did not answer within {deadline_s:.0f} s") from None

    async def _answer(self, number: int, method: str, args: tuple[Any, ...]) -> None:
        try:
            result = await getattr(self, method)(*args)
            message = ("answer", number, True, result)
        except Exception as error:
            message = ("answer", number, False, error)
        try:
            self._connection.send(message)
        except Exception as error:  # it cannot be pickled, or is too large
            fault = RuntimeError(f"the answer of {method} cannot be sent: {_one_line(error)}")
            self._connection.send(("answer", number, False, fault))

    async def _watch(self, name: str, actor: Any) -> None:
        """Tell the server when a process of an actor ends, and when the actor does."""
        while True:
            try:
                number, reason = await _lost_if_ray_fails(actor.next_exit.remote(), None)
            except ProcessLost as error:
                if self._actors.pop(name, None) is not None:
                    self._connection.send(("actor", name, ActorEvent(None, error.message)))
                return
            self._connection.send(("actor", name, ActorEvent(number, reason)))

    async def _follow_nodes(self) -> None:
        """Send the list of nodes every two seconds, also as a sign of life."""
        listing: asyncio.Future[NodeList] | None = None
        nodes: NodeList | None = None
        while True:
            # While the head is away, a listing may wait for it. It is the only one then.
            if listing is None:
                listing = asyncio.ensure_future(asyncio.to_thread(_list_nodes))
            await asyncio.wait([listing], timeout=NODES_EVERY_S)
            if listing.done():
                with suppress(Exception):  # the head is away: the nodes stay as they were
                    nodes = listing.result()
                    self._names = {node.id: node.name for node in nodes.alive}
                listing = None
                await asyncio.sleep(NODES_EVERY_S if nodes is not None else 0.1)
            self._connection.send(("nodes", nodes))

    def _name(self, node_id: str) -> str:
        return self._names.get(node_id, node_id)

    def _missing_resources(self, spec: ActorSpec) -> str:
        """Which resources an actor did not get, in one line."""
        wanted = f"{spec.gpus:g} GPU" if spec.gpus else f"{spec.cpus:g} CPU"
        kind = "GPU" if spec.gpus else "CPU"
        free, holders = _usage(spec.node_id, kind)
        held = f"; held by {', '.join(holders)}" if holders else ""
        return (
            f"node {self._name(spec.node_id)} has not given a worker {wanted} within {_RESOURCES_S:.0f} s: "
            f"{free:g} {kind} free{held}. End the other programs on it, or start it with more"
        )

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _lost_if_ray_fails(answer: Awaitable[R], deadline_s: float | None) -> R:
    """Raises ProcessLost for every error that Ray raises, and TimeoutError."""
    from ray.exceptions import RayError

    try:
        async with asyncio.timeout(deadline_s):
            return await answer
    except RayError as error:
        raise ProcessLost(f"{type(error).__name__}: {_one_line(error)}") from None


def _pinned(node_id: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id, soft=False)


def _kill(actor: Any) -> None:
    import ray

    with suppress(Exception):  # it has ended, or the head is away
        ray.kill(actor, no_restart=True)


def _list_nodes() -> NodeList:
    import ray
    from ray._private.state import state

    nodes = [
        Node(
            id=row["NodeID"],
            name=row["NodeName"],
            address=row["NodeManagerAddress"],
            gpus=row["Resources"].get("GPU", 0.0),
            cpus=row["Resources"].get("CPU", 0.0),
        )
        for row in ray.nodes()  # type: ignore[no-untyped-call]
        if row["Alive"]
    ]
    # `ray start --block` that got SIGTERM, `ray drain-node` and the autoscaler have Ray drain a node.
    draining = frozenset(state.get_draining_nodes())
    return NodeList(tuple(sorted(nodes, key=lambda node: (node.name, node.id))), draining)


def _usage(node_id: str, kind: str) -> tuple[float, list[str]]:
    return 0.0, []


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
