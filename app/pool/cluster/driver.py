"""Ray's driver: the bridge's process. It starts actors, passes calls on, and follows the nodes."""

import asyncio
import os
import re
import socket
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from app.common.concurrency import BackgroundTasks
from app.common.errors import ClusterUnavailable, ProcessLost
from app.common.known_errors import last_line
from app.pool.cluster import authentication
from app.pool.cluster.actor import WorkerActor, run_task
from app.pool.cluster.message_socket import MessageSocket, pickled, result_of
from app.pool.cluster.ray_messages import ActorSpec, RayNode, RayNodes
from workers import runtime
from workers.calls import one_line, readable
from workers.log_lines import LogFormat

R = TypeVar("R")

NODES_EVERY_S = 2.0
_CLOSE_S = 20.0
_TASK_S = 1800.0  # for a function on a node, which may download a model
_NOT_IMPORTED = "failed to import on the worker"  # Ray's words
_LARGE = 100_000  # bytes; from here on Ray copies a call into its object store, which may wait for space


def main(sock: socket.socket) -> None:
    """The bridge's process, until the server ends or closes its end of the socket."""
    runtime.follow_parent()
    # Ray prints lines of many kinds. Its log files have them, and the server gets all that matters.
    for descriptor in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    asyncio.run(_serve(sock))


async def _serve(sock: socket.socket) -> None:
    connection = MessageSocket(sock)
    try:
        environment, address, insecure, form = await connection.receive()
        os.environ.clear()
        os.environ.update(environment)
        try:
            connect(address, insecure=insecure)  # in this thread, as Ray wants it
        except (ClusterUnavailable, ProcessLost):
            raise
        except Exception as error:  # Ray has no class of its own for most
            raise ProcessLost(f"the Ray cluster cannot be used: {one_line(error)}") from error
        await Driver(connection, form).serve()
    except EOFError:
        pass  # the server has gone
    except Exception as error:
        is_known = isinstance(error, (ClusterUnavailable, ProcessLost))
        fault = error if is_known else ProcessLost(f"the bridge to Ray failed: {error!r}")
        connection.send(("fault", fault))
        await connection.flush()
    finally:
        connection.close()


def connect(address: str, *, insecure: bool) -> None:
    """Connect this process with a cluster, or with a new Ray on this machine alone if `address` is empty.

    Raises ClusterUnavailable if the cluster must not be used, and ProcessLost if it cannot be reached.
    """
    authentication.set_environment(os.environ, address, insecure=insecure)
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "namespace": "whisperfleet"}
    if not address:
        import ray

        ray.init("local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        return
    authentication.check_cluster(address, insecure=insecure)
    import ray

    try:
        ray.init(address, **quiet)
    except (ConnectionError, RuntimeError) as error:
        text = one_line(error.__cause__ or error)  # a ConnectionError of Ray says no more than the address
        if "Version mismatch" in text:
            raise ClusterUnavailable(
                f"{text}: install the same versions of Python and Ray on all machines"
            ) from None
        if "resolve node to connect to" in text:
            raise ProcessLost(
                f"this machine is no node of the Ray cluster: run `ray start --address={address} "
                "--num-cpus=0 --num-gpus=0` here"
            ) from None
        raise ProcessLost(f"the Ray cluster at {address} cannot be used: {text}") from None


class Driver:
    """Answers the server's calls, each in a task of its own, and sends it events."""

    def __init__(self, connection: MessageSocket, form: LogFormat | None) -> None:
        import ray

        self._connection = connection
        self._form = form
        self._actors: dict[str, Any] = {}  # Ray's handles
        self._ready: set[str] = set()  # those that have started
        self._names: dict[str, str] = {}  # of nodes
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._tasks = BackgroundTasks()
        self._new_actor: Any = ray.remote(WorkerActor)
        self._run_task: Any = ray.remote(run_task)

    async def serve(self) -> None:
        """Answer until the server has gone. Raises EOFError then."""
        self._tasks.spawn(self._follow_nodes())
        while True:
            number, method, args = await self._connection.receive()
            if method is not None:
                task = self._calls[number] = self._tasks.spawn(self._answer(number, method, args))
                # Not by the task itself: one that is cancelled before it begins does nothing.
                task.add_done_callback(partial(self._calls.pop, number))
            elif number in self._calls:
                self._calls[number].cancel()

    async def start_actor(self, name: str, spec: ActorSpec) -> str:
        """Start an actor on its node: Ray's id of it, in hex. The other methods know it by `name`.

        Raises ClusterUnavailable if it gets no resources within `spec.wait_s`.
        """
        actor = self._actors[name] = self._new_actor.options(
            num_cpus=spec.cpus,
            num_gpus=spec.gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=_pinned(spec.node_id),
        ).remote(spec, self._name(spec.node_id), self._form)
        try:
            await _lost_if_ray_fails(actor.ready.remote(), spec.wait_s)
        except BaseException as error:
            self._actors.pop(name, None)
            try:
                if not isinstance(error, TimeoutError):
                    raise
                reason = await asyncio.to_thread(self._missing_resources, spec)
            finally:
                _kill(actor)
            raise ClusterUnavailable(reason) from None
        self._ready.add(name)
        self._tasks.spawn(self._watch(name, actor))
        return str(actor._actor_id.hex())

    async def ask_actor(self, actor: str, method: str, call: list[bytes], deadline_s: float | None) -> bytes:
        """Start or call the process of an actor: see these methods of `WorkerActor`."""
        handle = self._actors.get(actor)
        if handle is None:
            raise ProcessLost("the actor of this process has ended")
        remote = getattr(handle, method).remote
        data = b"".join(call)
        try:
            async with asyncio.timeout(deadline_s):
                is_large = len(data) > _LARGE
                ref = await asyncio.to_thread(remote, data) if is_large else remote(data)
                return bytes(await _lost_if_ray_fails(ref, None))
        except TimeoutError:
            raise ProcessLost(f"the node did not answer within {deadline_s:.0f} s") from None

    async def close_actor(self, actor: str) -> None:
        """End an actor and its process, also one that is starting. Never fails."""
        handle = self._actors.pop(actor, None)
        if handle is None:
            return
        try:
            if actor in self._ready:
                self._ready.remove(actor)
                with suppress(ProcessLost, TimeoutError):
                    await _lost_if_ray_fails(handle.close.remote(), _CLOSE_S)
        finally:
            _kill(handle)

    async def run_on_node(self, node_id: str, function: Any, *args: Any) -> Any:
        """Run a function on a node, in a new process without GPU. Raises what it raises, and ProcessLost."""
        import ray

        task = self._run_task.options(num_cpus=0, max_retries=0, scheduling_strategy=_pinned(node_id)).remote(
            b"".join(pickled((function, *args)))
        )
        try:
            answer = await _lost_if_ray_fails(task, _TASK_S)
        except TimeoutError:
            raise ProcessLost(f"node {self._name(node_id)} did not answer within {_TASK_S:.0f} s") from None
        finally:
            with suppress(Exception):  # it has ended
                ray.cancel(task, force=True)
        return result_of(answer)

    async def _answer(self, number: int, method: str, args: tuple[Any, ...]) -> None:
        try:
            message = ("answer", number, True, await getattr(self, method)(*args))
        except Exception as error:
            message = ("answer", number, False, _without_ray(error))
        try:
            self._connection.send(message)
        except Exception as error:  # it cannot be pickled, or is too large
            fault = RuntimeError(f"the answer of {method} cannot be sent: {one_line(error)}")
            self._connection.send(("answer", number, False, fault))

    async def _watch(self, name: str, actor: Any) -> None:
        """Tell the server when the process of an actor ends, and when the actor does."""
        while True:
            try:
                crash = await _lost_if_ray_fails(actor.next_exit.remote(), None)
            except ProcessLost as error:
                if self._actors.pop(name, None) is not None:
                    self._ready.discard(name)
                    _kill(actor)  # perhaps only the connection to it is lost: it would keep its GPU
                    self._connection.send(("actor", name, error))
                return
            self._connection.send(("actor", name, crash))

    async def _follow_nodes(self) -> None:
        """Send the list of nodes every two seconds, also as a sign of life."""
        listing: asyncio.Future[RayNodes] | None = None
        nodes: RayNodes | None = None
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
            self._connection.send(("nodes", nodes, listing is not None))
            if listing is None:
                await asyncio.sleep(NODES_EVERY_S)

    def _name(self, node_id: str) -> str:
        return self._names.get(node_id, node_id)

    def _missing_resources(self, spec: ActorSpec) -> str:
        """Which resources an actor did not get, in one line."""
        wanted = f"{spec.gpus:g} GPU" if spec.gpus else f"{spec.cpus:g} CPU"
        kind = "GPU" if spec.gpus else "CPU"
        free, holders = _usage(spec.node_id, kind)
        held = f"; held by {', '.join(holders)}" if holders else ""
        return (
            f"node {self._name(spec.node_id)} has not given a worker {wanted} within {spec.wait_s:.0f} s: "
            f"{free:g} {kind} free{held}. End the other programs on it, or start it with more"
        )


async def _lost_if_ray_fails(answer: Awaitable[R], deadline_s: float | None) -> R:
    """Raises ProcessLost for every error that Ray raises, and TimeoutError.

    Raises ClusterUnavailable if the node lacks the code: it answers, and will not do better.
    """
    from ray.exceptions import RayError, RayTaskError

    try:
        async with asyncio.timeout(deadline_s):
            return await answer
    except RayError as error:
        if isinstance(error, RayTaskError) and _NOT_IMPORTED in str(error):
            raise ClusterUnavailable(
                f"whisperfleet cannot be imported there: {last_line(error)}. Install it for the Python of "
                "`ray start`"
            ) from None
        raise ProcessLost(_reason(error)) from None


def _without_ray(error: Exception) -> Exception:
    """The error as the server can read it. A call that Ray cannot send, for a full store, is lost."""
    from ray.exceptions import RayError

    if isinstance(error, RayError):
        return ProcessLost(_reason(error))
    return readable(error)  # another one would end the bridge, and all calls with it


def _pinned(node_id: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id, soft=False)


def _kill(actor: Any) -> None:
    import ray

    with suppress(Exception):  # it has ended, or the head is away
        ray.kill(actor, no_restart=True)


def _list_nodes() -> RayNodes:
    import ray
    from ray._private.state import state

    nodes = [
        RayNode(
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
    return RayNodes(tuple(sorted(nodes, key=lambda node: (node.name, node.id))), draining)


def _usage(node_id: str, kind: str) -> tuple[float, list[str]]:
    """How much of a node's GPUs or CPUs is free, and the actors that hold the rest."""
    from ray._private import state

    available: dict[str, dict[str, float]] = state.available_resources_per_node()  # type: ignore[no-untyped-call]
    free = available.get(node_id, {}).get(kind, 0.0)
    rows = state.actors().values()
    holders = Counter(
        f"{row['ActorClassName']} of job {row['JobID']}"
        for row in rows
        if row["State"] == "ALIVE" and row["Address"]["NodeID"] == node_id
    )
    return free, [f"{count} {name}" for name, count in holders.items()]


def _reason(error: Exception) -> str:
    """Why Ray has lost something, without the pages of advice."""
    text = one_line(error)
    found = re.search(r"The actor (is dead|died) because [^.]*", text)
    return f"{type(error).__name__}: {found[0] if found else text}"
