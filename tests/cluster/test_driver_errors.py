"""What the bridge makes of errors of Ray."""

import asyncio
import threading
from typing import Any

import pytest

from app.engines.cluster import authentication, driver
from app.engines.cluster.driver import Driver, connect
from app.errors import ClusterUnavailable, ProcessLost
from app.known_errors import diagnose

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
        made._calls[7] = asyncio.current_task()  # type: ignore[assignment]
        await made._answer(7, "call_process", ("actor", 0, [bytes(size)], None))
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
            await made.call_process("actor", 0, [bytes(2 * driver._LARGE)], 0.05)
        finally:
            freed.set()

    with pytest.raises(ProcessLost, match="the node did not answer within 0 s"):
        asyncio.run(call())
