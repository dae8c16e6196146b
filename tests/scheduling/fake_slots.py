"""Slots without processes, for tests of the dispatcher."""

import asyncio
from collections.abc import Callable, Sequence

from app.errors import DeviceFailed, ProcessCrashed
from app.scheduling.dispatcher import Dispatcher
from app.scheduling.tasks import SlotStatus

NewDispatcher = Callable[..., Dispatcher[str, str]]  # what the fixture `new_dispatcher` is; takes the slots


class FakeSlot:
    """Returns each payload in upper case; "crash" crashes its process, "raise" is an error of the task.

    A `Slot[str, str]`.
    """

    def __init__(self, index: int, *, failing_starts: int = 0, batch_limit: int = 1) -> None:
        self.index = index
        self.limit = batch_limit
        self.status = SlotStatus()
        self.needs_restart = asyncio.Event()
        self.failing_starts = failing_starts  # before one succeeds
        self.starts = 0
        self.probes = 0
        self.started = asyncio.Event()
        self.batches: list[list[str]] = []
        self.unblocked = asyncio.Event()  # batches wait for it
        self.unblocked.set()

    def batch_limit(self, weight: int = 1) -> int:
        return max(1, self.limit // weight)

    async def start(self) -> None:
        self.starts += 1
        if self.starts <= self.failing_starts:
            raise OSError("no such model")
        self.started.set()

    async def probe(self) -> None:
        self.probes += 1

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        self.batches.append(list(payloads))
        await self.unblocked.wait()
        await asyncio.sleep(0)
        if "crash" in payloads:
            raise ProcessCrashed("killed")
        if "raise" in payloads:
            raise ValueError("cannot be done")
        return [payload.upper() for payload in payloads]

    async def close(self) -> None: ...


class SickSlot(FakeSlot):
    """Its device fails while `is_sick`, and so does its probe unless `passes_probes`."""

    def __init__(self, index: int, *, batch_limit: int = 1, passes_probes: bool = False) -> None:
        super().__init__(index, batch_limit=batch_limit)
        self.is_sick = True
        self.passes_probes = passes_probes

    async def probe(self) -> None:
        await super().probe()
        if self.is_sick and not self.passes_probes:
            raise DeviceFailed("CUDA failed with error an illegal memory access was encountered")

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        if self.is_sick or "poison" in payloads:
            self.batches.append(list(payloads))
            await asyncio.sleep(0)
            raise DeviceFailed("CUDA failed with error an illegal memory access was encountered")
        return await super().run(payloads, expected_s)
