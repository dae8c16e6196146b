"""Slots without processes, for tests of the dispatcher."""

import asyncio
from collections.abc import Callable, Sequence

from app.errors import ProcessCrashed
from app.scheduling.dispatcher import Dispatcher
from app.scheduling.tasks import SlotStatus

NewDispatcher = Callable[..., Dispatcher[str, str]]  # what the fixture `new_dispatcher` is; takes the slots


class FakeSlot:
    """Returns each payload in upper case; "crash" crashes its process, "raise" is an error of the task.

    A `Slot[str, str]`.
    """

    def __init__(self, index: int, *, failing_starts: int = 0, batch_limit: int = 1) -> None:
        self.index = index
        self.batch_limit = batch_limit
        self.status = SlotStatus()
        self.needs_restart = asyncio.Event()
        self.failing_starts = failing_starts  # before one succeeds
        self.starts = 0
        self.started = asyncio.Event()
        self.batches: list[list[str]] = []
        self.unblocked = asyncio.Event()  # batches wait for it
        self.unblocked.set()

    async def start(self) -> None:
        self.starts += 1
        if self.starts <= self.failing_starts:
            raise OSError("no such model")
        self.started.set()

    async def run(self, payloads: Sequence[str]) -> list[str]:
        self.batches.append(list(payloads))
        await self.unblocked.wait()
        await asyncio.sleep(0)
        if "crash" in payloads:
            raise ProcessCrashed("killed")
        if "raise" in payloads:
            raise ValueError("cannot be done")
        return [payload.upper() for payload in payloads]

    async def close(self) -> None: ...
