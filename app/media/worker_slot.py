"""A media worker of this machine, and what it is asked."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.common.errors import ProcessCrashed, ProcessLost
from app.pool.process import ChildProcess
from app.pool.tasks import RestartReason, SlotStatus, WorkerProcess
from workers import runtime
from workers.media import tasks

_HEADROOM_BYTES = 2 << 30  # address space that a worker may use beyond its libraries
# Below the Whisper workers, even those on the CPU. With equal priority a long recording would keep its first
# clips waiting until its last were found.
_NICENESS = 15
_START_DEADLINE_S = 120.0
DEADLINE_S = 120.0  # for a step or a chunk, which take a second at most


@dataclass(frozen=True, slots=True)
class MediaCall:
    """A call of a function in `workers.media`, with paths of this machine."""

    function: Callable[..., Any]
    args: tuple[object, ...]


# How the process of a media worker is set up, wherever it runs: see `ChildProcess`.
INITIALIZER: tuple[Callable[..., None], str, int] = (runtime.initialise, "", _NICENESS)


class MediaWorkerSlot:
    """One media worker."""

    batches_at_once = 1

    def __init__(self, index: int, process: WorkerProcess | None = None) -> None:
        """`process`: by default, one of this machine. It is not started yet."""
        self.index = index
        self.status = SlotStatus()
        self.needs_restart = asyncio.Event()
        self._process = process or ChildProcess(*INITIALIZER)
        self._process.on_exit = self._exited

    async def start(self) -> None:
        """Start the process and limit its memory."""
        await self._process.start()
        await self._process.call(tasks.limit_memory, _HEADROOM_BYTES, deadline_s=_START_DEADLINE_S)

    def batch_limit(self, weight: int = 1) -> int:
        """One call at a time."""
        return 1

    async def probe(self) -> None:
        """Does nothing: no device is used, so DeviceFailed is never raised."""

    async def run(self, payloads: Sequence[MediaCall], expected_s: float | None) -> list[Any]:
        """Run one call."""
        [call] = payloads
        return [await self._process.call(call.function, *call.args, deadline_s=DEADLINE_S)]

    async def close(self) -> None:
        """Kill the process."""
        await self._process.close()

    def _exited(self, error: ProcessCrashed) -> None:
        if isinstance(error, ProcessLost):
            self.status.ending = RestartReason.LOST
        self.needs_restart.set()
