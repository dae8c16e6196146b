"""The workers of the sibling processes, which clients see as those of one fleet."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.api.operation.fleet_state import Row
from app.engines.ledger import BatchLedger
from app.server.siblings import Siblings


@dataclass(slots=True)
class OtherFleets:
    """As they were when `refresh` was called last. Their blocks are entered in the ledger of this process."""

    _siblings: Siblings
    _ledger: BatchLedger
    workers: list[Row] = field(default_factory=list)
    queues: list[dict[str, Any]] = field(default_factory=list)
    _since: dict[str, str] = field(default_factory=dict)  # by process: the blocks that are entered
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def refresh(self) -> None:
        """Ask them. Those that do not answer have no workers."""
        if not self._siblings.others:
            return
        async with self._refreshing:  # or blocks could be entered twice
            names = self._siblings.others
            fleets = dict(zip(names, await asyncio.gather(*map(self._ask, names)), strict=True))
            self.workers = [
                {**row, "front_end": name}
                for name, fleet in fleets.items()
                for row in fleet.get("workers", ())
            ]
            self.queues = [fleet["queue"] for fleet in fleets.values() if fleet]

    async def _ask(self, name: str) -> dict[str, Any]:
        """The answer of a process; empty if there is none."""
        try:
            answer = await self._siblings.ask(name, "/workers", {"since": self._since.get(name, "")})
        except httpx.HTTPError:
            return {}
        fleet: dict[str, Any] = answer.json()
        self._since[name] = fleet["since"]
        for block in fleet["blocks"]:
            self._ledger.enter_public(block)
        return fleet

    def beside(self, own: Sequence[Row]) -> Sequence[Row]:
        """The workers of all processes, by slot, each with the name of its process; `own`: of this one."""
        if not self._siblings.others:
            return own
        labelled = [{**row, "front_end": self._siblings.name} for row in own]
        return sorted([*labelled, *self.workers], key=lambda row: row["slot"])
