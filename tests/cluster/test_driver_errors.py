"""What the bridge makes of errors of Ray."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from app.common.errors import ClusterUnavailable, ProcessLost
from app.common.known_errors import diagnose
from app.pool.cluster import authentication, driver
from app.pool.cluster.driver import Driver, connect
from app.pool.cluster.message_socket import MessageSocket
from app.pool.cluster.ray_messages import ActorSpec, RayNodes

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

ADDRESS = "10.0.0.1:6379"


@pytest.fixture
def init_fails(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let `ray.init` fail as it does: with an error, and perhaps its cause."""
    import ray

    monkeypatch.setattr(authentication, "set_environment", lambda *args, **options: None)
    monkeypatch.setattr(authentication, "check_cluster", lambda *args, **options: None)

    def fail(error: Exception, cause: Exception | None) -> None:
        def init(*args: object, **options: object) -> None:
            raise error from cause

        monkeypatch.setattr(ray, "init", init)

    return fail


@pytest.mark.parametrize(
    ("error", "cause", "kind", "message", "anchor"),
    [
        (
            ConnectionError(f"Failed to connect to Ray cluster at {ADDRESS}"),
            RuntimeError(
                "No node info found matching attributes: '' when trying to resolve node to connect to."
            ),
            ProcessLost,
            f"this machine is no node of the Ray cluster: run `ray start --address={ADDRESS} --num-cpus=0",
            "no-node-on-this-machine",
        ),
        (
            RuntimeError(
                "Version mismatch: The cluster was started with:\n    Ray: 2.59.0\n    Python: 3.11.7"
            ),
            None,
            ClusterUnavailable,
            "Version mismatch: The cluster was started with: Ray: 2.59.0 Python: 3.11.7: install the same",
            "other-versions-of-ray",
        ),
        (
            ConnectionError(f"Failed to connect to Ray cluster at {ADDRESS}"),
            RuntimeError("Timed out\nwaiting for file"),
            ProcessLost,
            f"the Ray cluster at {ADDRESS} cannot be used: Timed out waiting for file",
            "cluster-away",
        ),
    ],
)
def test_a_connection_that_fails_says_why_in_one_line(
    init_fails: Any,
    error: Exception,
    cause: Exception | None,
    kind: type[Exception],
    message: str,
    anchor: str,
) -> None:
    init_fails(error, cause)
    with pytest.raises(kind) as raised:
        connect(ADDRESS, insecure=False)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
    known = diagnose(str(raised.value))
    assert known is not None
    assert known.anchor == anchor


class Sent:
    """The driver's end of the connection."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def send(self, message: Any) -> None:
        self.messages.append(message)


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The actors that the driver has killed."""
    handles: list[Any] = []
    monkeypatch.setattr(driver, "_kill", handles.append)
    return handles


class FailingActor:
    """A handle of an actor, and what creates it. Its methods raise an error, as awaiting them does."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def options(self, **options: object) -> Any:
        return self

    def __getattr__(self, method: str) -> Any:
        return self

    def remote(self, *args: object) -> Any:
        return self if args else self._raise()

    async def _raise(self) -> None:
        raise self._error


class FullStore:
    """A handle of an actor whose calls find no space."""

    class call_process:
        @staticmethod
        def remote(*args: object) -> None:
            from ray.exceptions import ObjectStoreFullError

            raise ObjectStoreFullError("Failed to put object in object store")


@pytest.mark.parametrize("size", [10, 2 * driver._LARGE])
def test_a_call_that_ray_cannot_send_is_lost_and_not_at_fault(size: int) -> None:
    async def call() -> Any:
        sent = Sent()
        made = Driver(sent, None)  # type: ignore[arg-type]
        made._actors["actor"] = FullStore()
        await made._answer(7, "ask_actor", ("actor", "call_process", [bytes(size)], None))
        return sent.messages

    [(kind, number, is_result, error)] = asyncio.run(call())
    assert (kind, number, is_result) == ("answer", 7, False)
    assert isinstance(error, ProcessLost)
    assert error.message.startswith("ObjectStoreFullError: Failed to put object")
    assert (found := diagnose(error.message)) is not None
    assert found.anchor == "object-store-full"


def test_a_call_that_waits_for_space_in_the_store_is_lost_at_its_deadline() -> None:
    freed = threading.Event()

    class FillingStore:
        class call_process:
            @staticmethod
            def remote(*args: object) -> None:
                freed.wait(30)

    async def call() -> None:
        made = Driver(Sent(), None)  # type: ignore[arg-type]
        made._actors["actor"] = FillingStore()
        try:
            await made.ask_actor("actor", "call_process", [bytes(2 * driver._LARGE)], 0.05)
        finally:
            freed.set()

    with pytest.raises(ProcessLost, match="the node did not answer within 0 s"):
        asyncio.run(call())


async def test_an_actor_that_is_out_of_reach_is_killed_and_keeps_no_gpu(killed: list[Any]) -> None:
    from ray.exceptions import ActorUnavailableError

    sent = Sent()
    made = Driver(sent, None)  # type: ignore[arg-type]
    actor = made._actors["actor"] = FailingActor(ActorUnavailableError("no connection", None))
    await made._watch("actor", actor)
    assert killed == [actor]
    [(kind, name, error)] = sent.messages
    assert (kind, name, type(error)) == ("actor", "actor", ProcessLost)


async def test_an_actor_without_resources_is_killed_although_nobody_knows_what_holds_them(
    killed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError

    made = Driver(Sent(), None)  # type: ignore[arg-type]
    made._new_actor = FailingActor(TimeoutError())
    monkeypatch.setattr(driver, "_usage", fail)
    with pytest.raises(ZeroDivisionError):
        await made.start_actor("actor", ActorSpec("0" * 56, cpus=1))
    assert killed == [made._new_actor]


async def test_a_node_without_whisperfleet_is_refused_and_not_lost() -> None:
    from ray.exceptions import RayTaskError

    words = (
        "The remote function failed to import on the worker. …:\n\nModuleNotFoundError: No module named 'app'"
    )
    error = RayTaskError("run_task", f"Traceback …\nRuntimeError: {words}", RuntimeError(words))
    with pytest.raises(
        ClusterUnavailable, match=r"imported there: ModuleNotFoundError: No module named 'app'\."
    ):
        await driver._lost_if_ray_fails(FailingActor(error)._raise(), None)


class Unreadable(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


async def test_an_error_that_the_server_cannot_read_arrives_as_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*args: object) -> None:
        raise Unreadable(code=7)

    sent = Sent()
    made = Driver(sent, None)  # type: ignore[arg-type]
    monkeypatch.setattr(made, "close_actor", fail)
    await made._answer(7, "close_actor", ("actor",))
    [(_, _, is_result, error)] = sent.messages
    assert (is_result, repr(error)) == (False, repr(RuntimeError("Unreadable: code 7")))


async def test_a_call_that_is_cancelled_before_it_begins_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "_list_nodes", lambda: RayNodes(()))
    left, right = map(MessageSocket, socket.socketpair())
    made = Driver(right, None)
    left.send((7, "close_actor", ("actor",)))
    left.send((7, None, ()))
    left.send((8, "close_actor", ("actor",)))
    await left.flush()
    serving = asyncio.create_task(made.serve())
    while (answer := await left.receive())[0] == "nodes":
        pass
    assert answer == ("answer", 8, True, None)
    assert made._calls == {}
    for task in [serving, *made._tasks]:
        task.cancel()
    left.close()
    right.close()
