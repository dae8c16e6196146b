"""The `inline` engine: the model in this very process, without a child; for debugging and for notebooks."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.fleet.slot import WhisperSlot
from workers import whisper

R = TypeVar("R")


class InlineSlot(WhisperSlot):
    """Models that are loaded here, and heard in a thread of their own, which nobody can kill."""

    _executor: ThreadPoolExecutor | None = None

    async def _spawn(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="inline-whisper")

    async def _call(self, function: Callable[..., R], *args: object, deadline_s: float) -> R:
        # A thread that takes too long cannot be ended, so the deadline is not kept.
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *args)

    async def _end(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            for model in self._catalogue.options:
                executor.submit(whisper.unload, model)  # no process ends and takes them along
            await asyncio.to_thread(executor.shutdown)
