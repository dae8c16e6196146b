"""What the server keeps of an actor, without a cluster."""

import asyncio
import pickle
from typing import Any

import pytest

from app.common.errors import ProcessCrashed, ProcessLost
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import ActorSpec
from app.pool.cluster.remote_process import RemoteProcess

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


class AnsweringBridge(Bridge):
    """Starts and ends whatever it is asked to, once it may."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1:6379")
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.actors: list[str] = []

    async def call(self, method: str, *args: Any) -> Any:
        await self.may_answer.wait()
        if method == "start_actor":
            self.actors.append(args[0])
        return {
            "start_actor": "f00d",
            "ask_actor": pickle.dumps((True, 7)),
        }.get(method)

    def lose(self, actor: str) -> None:
        """The driver says that an actor is lost."""
        self._received(None, "actor", [actor, ProcessLost("its node is gone")])  # type: ignore[arg-type]


async def test_of_an_actor_that_is_lost_nothing_is_kept() -> None:
    bridge = AnsweringBridge()
    process = RemoteProcess(bridge, ActorSpec("a", cpus=1), dict)
    errors: list[ProcessCrashed] = []
    for number in range(3):
        process.on_exit = errors.append
        await process.start()
        assert len(bridge.actors) == number + 1
        bridge.lose(bridge.actors[-1])
        assert isinstance(errors[-1], ProcessLost)
        assert process.actor is None
        assert bridge._listeners == {}
        await process.close()
