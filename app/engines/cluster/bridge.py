"""The server's side of the bridge to Ray."""

from collections.abc import Callable
from typing import Any

from app.engines.cluster.messages import Node


class Bridge:
    """A child process that is Ray's driver. It is replaced when it dies, however often.

    Its methods are those of `driver.Driver`, called by name. Every call raises ProcessLost if the bridge
    dies before it answers, or is not there, and ClusterUnavailable if the cluster must not be used.
    """

    def __init__(self, address: str, *, insecure: bool = False) -> None:
        """`address`: see WHISPER_RAY_ADDRESS; empty: a Ray on this machine."""
        self.nodes: tuple[Node, ...] = ()  # that are alive; none while the bridge is not connected
        self.fault: str | None = "the cluster is being looked up"  # why there is no connection, in one line
        self.on_nodes: Callable[[], None] = lambda: None  # called when `nodes` or `fault` change
        raise NotImplementedError

    async def start(self) -> None:
        """Begin to connect, in the background, again and again."""
        raise NotImplementedError

    async def stop(self) -> None:
        """End the process, and with it all actors."""
        raise NotImplementedError

    async def call(self, method: str, *args: object) -> Any:
        """Call a method of the driver. Raises what it raises."""
        raise NotImplementedError

    def on_event(self, actor: str, callback: Callable[[int], None] | None) -> None:
        """Call `callback` with the number of a process of this actor when it has ended; None: no longer."""
        raise NotImplementedError
