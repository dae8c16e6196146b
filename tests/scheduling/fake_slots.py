"""Slots that do as they are told."""

import asyncio
from collections.abc import Sequence

from app.errors import ProcessCrashed
from app.scheduling.tasks import SlotStatus


class FakeSlot:
    """Answers each payload in upper case; "die" kills its process, "raise" is an error of the work itself."""

    def __init__(self, index: int, *, fails: int = 0, batch_limit: int = 1) -> None:
        self.index = index
        self.batch_limit = batch_limit
        self.status = SlotStatus()
        self.needs_restart = asyncio.Event()
        self.fails = fails  # starts that fail before one succeeds
        self.starts = 0
        self.up = asyncio.Event()
        self.batches: list[list[str]] = []
        self.open = asyncio.Event()  # batches wait for it
        self.open.set()

    async def start(self) -> None:
        self.starts += 1
        if self.starts <= self.fails:
            raise OSError("no such model")
        self.up.set()

    async def run(self, payloads: Sequence[str]) -> list[str]:
        self.batches.append(list(payloads))
        await self.open.wait()
        await asyncio.sleep(0)
        if "die" in payloads:
            raise ProcessCrashed("killed")
        if "raise" in payloads:
            raise ValueError("cannot be done")
        return [payload.upper() for payload in payloads]

    async def close(self) -> None: ...


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
