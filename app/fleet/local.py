"""The `local` engine: one spawned worker process for each slot, pinned to the slot's GPU."""

from collections.abc import Callable
from typing import TypeVar

from app.fleet.child import Child
from app.fleet.slot import Catalogue, Limits, WhisperSlot
from workers import runtime

R = TypeVar("R")


class LocalSlot(WhisperSlot):
    """A worker process on one GPU, or on some CPU cores."""

    def __init__(
        self, index: int, catalogue: Catalogue, limits: Limits, visible_devices: str, niceness: int
    ) -> None:
        super().__init__(index, catalogue, limits)
        self._child = Child(runtime.initialise, visible_devices, niceness)
        self._child.on_death = self.died.set

    async def _spawn(self) -> None:
        await self._child.start()

    async def _call(self, function: Callable[..., R], *args: object, deadline_s: float) -> R:
        return await self._child.call(function, *args, deadline_s=deadline_s)

    async def _end(self) -> None:
        await self._child.close()
