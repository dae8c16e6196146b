"""The `inline` engine: the model in this very process, without a child; for debugging and for notebooks."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.fleet.local import ClipSource, WhisperSlot, read_clips
from workers import whisper
from workers.messages import ClipResult

R = TypeVar("R")


class InlineSlot(WhisperSlot):
    """A model that is loaded here, and heard in a thread of its own. It cannot be killed, only waited for."""

    _executor: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Load the model."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="inline-whisper")
        self._loaded(await self._call(whisper.load, self._options))

    async def run(self, payloads: Sequence[ClipSource]) -> list[ClipResult]:
        """Hear a batch of clips."""
        clips = await asyncio.to_thread(read_clips, payloads)
        results = await self._call(whisper.transcribe, clips)
        self._heard(clips)
        return results

    async def close(self) -> None:
        """Wait for the batch in hand."""
        if self._executor is not None:
            await asyncio.to_thread(self._executor.shutdown)

    async def _call(self, function: Callable[..., R], *args: object) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *args)
