"""The `local` engine: one spawned worker process for each slot, pinned to the slot's GPU."""

from collections.abc import Callable
from typing import TypeVar

from app.fleet.child import Child
from app.fleet.slot import Catalogue, WhisperSlot
from workers import runtime

R = TypeVar("R")


class LocalSlot(WhisperSlot):
    """A worker process on one GPU, or on some CPU cores."""

    def __init__(self, index: int, catalogue: Catalogue, visible_devices: str) -> None:
        super().__init__(index, catalogue)
        self._child = Child(runtime.initialise, visible_devices)
        self._child.on_death = self.died.set

    async def _spawn(self) -> None:
        await self._child.start()

    async def _call(self, function: Callable[..., R], *args: object, deadline_s: float) -> R:
        return await self._child.call(function, *args, deadline_s=deadline_s)

    async def _end(self) -> None:
        await self._child.close()
