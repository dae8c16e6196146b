"""Slots without processes, for tests of the dispatcher."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from app.common.errors import DeviceFailed, Fault, ProcessCrashed, RequeueBatch
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import SlotStatus

NewDispatcher = Callable[..., Dispatcher[str, str]]  # what the fixture `new_dispatcher` is; takes the slots


class StubSlot:
    """The part of a `Slot` that has no process: everything but `run`. A batch has one task."""

    batches_at_once = 1

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self.status = SlotStatus()
        self.needs_restart = asyncio.Event()

    def batch_limit(self, weight: int = 1) -> int:
        return 1

    async def start(self) -> None: ...

    async def probe(self) -> None: ...

    async def close(self) -> None: ...


class FakeSlot(StubSlot):
    """Returns each payload in upper case, and an error for "gone".

    "crash" crashes its process, "raise" is an error of the batch. A `Slot[str, str]`.
    """

    def __init__(self, index: int, *, failing_starts: int = 0, batch_limit: int = 1) -> None:
        super().__init__(index)
        self.limit = batch_limit
        self.failing_starts = failing_starts  # before one succeeds
        self.starts = 0
        self.probes = 0
        self.closes = 0  # how often its process was ended
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

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str | Exception]:
        self.batches.append(list(payloads))
        await self.unblocked.wait()
        await asyncio.sleep(0)
        if "crash" in payloads:
            raise ProcessCrashed("killed", fault=Fault.OWN)
        if "raise" in payloads:
            raise ValueError("cannot be done")
        return [FileNotFoundError(payload) if payload == "gone" else payload.upper() for payload in payloads]

    async def close(self) -> None:
        self.closes += 1


Fake = TypeVar("Fake", bound=FakeSlot)


def blocked(slot: Fake) -> Fake:
    """A slot whose batches do not end before the test says so."""
    slot.unblocked.clear()
    return slot


async def submit_all(
    dispatcher: Dispatcher[str, str], *payloads: str, own_jobs: bool = False
) -> list[str | BaseException]:
    """The results of payloads that are submitted at once, or their errors. `own_jobs`: each is a job."""
    answers = await asyncio.gather(
        *(
            dispatcher.submit(f"job{number}" if own_jobs else "job", payload, key="k")
            for number, payload in enumerate(payloads)
        ),
        return_exceptions=True,
    )
    return [answer if isinstance(answer, BaseException) else answer.result for answer in answers]


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

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str | Exception]:
        if self.is_sick or "poison" in payloads:
            self.batches.append(list(payloads))
            await asyncio.sleep(0)
            raise DeviceFailed("CUDA failed with error an illegal memory access was encountered")
        return await super().run(payloads, expected_s)


class TwoBatchSlot(FakeSlot):
    """Has two batches, and runs them in order. A crash takes both.

    `in_flight` has what it holds with each new one. "no memory" cannot run beside other tasks.
    """

    batches_at_once = 2

    def __init__(self, index: int, *, batch_limit: int = 1) -> None:
        super().__init__(index, batch_limit=batch_limit)
        self.in_flight: list[list[list[str]]] = []
        self.errors: dict[str, Exception] = {}  # raised once when a batch with such a task has run
        self._taken: list[list[str]] = []
        self._turn = asyncio.Lock()
        self._is_gone = False

    async def start(self) -> None:
        await super().start()
        self._is_gone = False

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str | Exception]:
        batch = list(payloads)
        self._taken.append(batch)
        self.in_flight.append([*self._taken])
        try:
            async with self._turn:
                if self._is_gone:
                    raise ProcessCrashed("killed", fault=Fault.OWN)
                if "no memory" in payloads and len(payloads) > 1:
                    self.limit = len(payloads) // 2
                    raise RequeueBatch("out of memory")
                if "sick" in payloads:
                    raise DeviceFailed("CUDA failed with error an illegal memory access was encountered")
                results = await super().run(payloads, expected_s)
                for payload in payloads:
                    if payload in self.errors:
                        raise self.errors.pop(payload)
                return results
        except ProcessCrashed:
            self._is_gone = True
            raise
        finally:
            self._taken = [other for other in self._taken if other is not batch]
