"""What the dispatcher deals in: tasks, and the slots that do them."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

P = TypeVar("P")
R = TypeVar("R")
Work = TypeVar("Work", contravariant=True)


@dataclass(slots=True)
class SlotStatus:
    """What a slot does and has done; `GET /v1/workers` shows it."""

    state: str = "loading"  # loading | idle | busy | restarting | failed
    batches: int = 0
    restarts: int = 0
    error: str | None = None


class Slot(Protocol[Work, R]):
    """A place where work is done: it keeps its device for life, whatever becomes of its process."""

    index: int
    status: SlotStatus
    died: asyncio.Event  # its process is gone, or is to be replaced

    @property
    def batch_limit(self) -> int:
        """How many tasks it takes at once; that may become less."""

    async def start(self) -> None:
        """Bring up the process, in place of the last one if there was one. Raises what hinders it."""

    async def run(self, payloads: Sequence[Work]) -> list[R]:
        """Do a batch of work.

        Raises ProcessCrashed if the process crashes or hangs, and RequeueBatch if the batch cannot be run as
        it is, through no fault of its tasks.
        """

    async def close(self) -> None:
        """End the process."""


class Done(NamedTuple, Generic[R]):
    """What came of a task: its result, the slot that did it, and how many processes had died of it before."""

    result: R
    slot: int
    deaths: int


@dataclass(slots=True, eq=False)
class Task(Generic[P, R]):
    """One piece of work. Tasks with equal keys may share a batch.

    `home` is the one slot that may do it, for as long as that slot's process lives.
    """

    job: str
    payload: P
    key: Hashable
    home: int | None
    deaths: int  # of processes that had it alone in hand
    on_crash: Callable[[int], None]
    size: float  # expected tokens
    done: asyncio.Future[Done[R]]
    passed_over: int = 0  # times that others of its job were taken while it was first in line
    alone: bool = False  # not to share a batch: it may be what kills processes
    unwanted: bool = False  # its job was cancelled while a slot had it in hand
