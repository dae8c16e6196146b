"""A node of the cluster, as the slots on it see it: whether it may have workers, and where its models are."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.common.errors import ClusterUnavailable, ModelUnavailable, ProcessLost
from app.common.known_errors import explain
from app.engines.catalogue import ModelCatalogue
from app.engines.cluster import node_checks
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import FoundModel, RayNode

R = TypeVar("R")

_RECHECK_S = 10.0  # the slots of a node share what a check has found for so long


class ClusterNode:
    """A node that is alive. Its slots start only if its versions and models are those of the front end."""

    def __init__(
        self, bridge: Bridge, node: RayNode, catalogue: ModelCatalogue, connected: asyncio.Event
    ) -> None:
        """`connected`: set while the bridge knows which nodes there are."""
        self.node = node
        self._bridge = bridge
        self._catalogue = catalogue
        self._connected = connected
        self._is_checked = False
        self._models: dict[str, FoundModel] = {}
        self._lock = asyncio.Lock()  # one check at a time, whatever the number of slots
        self._fault: tuple[float, str] | None = None  # until when it counts, and what it is

    @property
    def fault(self) -> str | None:
        """Why the node is left out, in one line, as of the last check."""
        return None if self._fault is None else self._fault[1]

    async def check(self) -> None:
        """Check the versions of the node, and find the default model there. Does nothing once both are fine.

        Waits while the bridge is away. Raises ClusterUnavailable with one line if the node must be left out,
        and ProcessLost if it, or the bridge, is gone.
        """
        await self._connected.wait()
        now = asyncio.get_running_loop().time
        async with self._lock:
            if self._is_checked:
                return
            if self._fault is None or self._fault[0] <= now():
                fault = await self._find_fault()
                self._fault = None if fault is None else (now() + _RECHECK_S, fault)
            if self._fault is not None:
                raise ClusterUnavailable(f"node {self.node.name} is left out: {self._fault[1]}")
            self._is_checked = True

    async def find(self, model: str) -> None:
        """Find the files of a model on the node, which downloads them if it must.

        Raises ModelUnavailable if it cannot, or if its files are others than the front end's, and
        ProcessLost.
        """
        folder = self._catalogue.options[model].path
        if model in self._models or not folder:  # simulated workers need none
            return
        found = await self._call(node_checks.find_model, model)
        ours = await asyncio.to_thread(node_checks.found_model, Path(folder))
        if fault := node_checks.other_files(model, ours, found):
            raise ModelUnavailable(fault)
        self._models[model] = found

    def path(self, model: str) -> str:
        """The folder of a model on the node; empty before `find`."""
        return self._models[model].path if model in self._models else ""

    async def _find_fault(self) -> str | None:
        """Why the node must be left out, in one line. Raises ProcessLost if it, or the bridge, is gone."""
        try:
            report = await self._call(node_checks.inspect)
            default = self._catalogue.default
            if fault := node_checks.fault_of(report, self._catalogue.options[default]):
                return fault
            await self.find(default)
        except ProcessLost:
            raise
        except Exception as error:  # whatever its driver, its disk or its packages make of it
            return explain(error)
        return None

    async def _call(self, function: Callable[..., R], *args: object) -> R:
        answer: R = await self._bridge.call("run_on_node", self.node.id, function, *args)
        return answer
