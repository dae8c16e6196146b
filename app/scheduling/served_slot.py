"""What the dispatcher keeps for each slot that it serves."""

import asyncio
from collections import deque
from typing import Generic, TypeGuard, TypeVar

from app.concurrency import Wakeup
from app.scheduling.tasks import Batch, OverlappingSlot, Slot

P = TypeVar("P")
R = TypeVar("R")


class ServedSlot(Generic[P, R]):
    """A slot, its loop, and its batches in flight."""

    def __init__(self, slot: Slot[P, R], sleep_after_s: float | None) -> None:
        """`sleep_after_s`: see `Dispatcher`."""
        self.slot = slot
        self.index = slot.index
        self.sleep_after_s = sleep_after_s
        # Found once: checking a protocol takes as long as planning a batch.
        self.overlapping = slot if _overlaps(slot) else None
        self.wakeup = Wakeup()
        self.in_flight: deque[Batch[P, R]] = deque()  # in order
        self.loop: asyncio.Task[None] | None = None
        self.is_removed = False  # the dispatcher has taken its tasks back, and ignores what it still answers
        self.closed = asyncio.Event()  # removed, and its process has ended

    @property
    def is_draining(self) -> bool:
        """Whether it takes no more batches, and is removed when it has answered those it has."""
        return self.slot.status.state == "draining"

    def is_idle_too_long(self, idle_s: float) -> bool:
        """Whether it has been idle for so long that its process ends."""
        return self.sleep_after_s is not None and idle_s >= self.sleep_after_s

    def sleeps_in(self, idle_s: float) -> float | None:
        """The time until then (s); None: it never sleeps."""
        return None if self.sleep_after_s is None else max(self.sleep_after_s - idle_s, 0.01)


def _overlaps(slot: Slot[P, R]) -> TypeGuard[OverlappingSlot[P, R]]:
    return isinstance(slot, OverlappingSlot) and slot.overlaps
