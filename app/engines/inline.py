"""The engine `inline`: a Whisper worker in a thread of this process."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.common.errors import ProcessCrashed
from app.telemetry.work import bound_ids
from workers import calls
from workers.whisper import worker as whisper

R = TypeVar("R")


class InlineProcess:
    """A `WorkerProcess` that is a thread of this process, which nobody can kill: for notebooks, debugging."""

    def __init__(self, models: Iterable[str]) -> None:
        """`models`: those that may be loaded."""
        self.pid: int | None = None
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None
        self._models = models
        self._executor: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        self._executor = ThreadPoolExecutor(1, "inline-whisper")

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        """Run a function. The deadline has no effect."""
        loop = asyncio.get_running_loop()
        answer: calls.Answer[R] = await loop.run_in_executor(
            self._executor, calls.answer, bound_ids(), function, *args
        )
        calls.current().parts.extend(answer.parts)
        return answer.result

    def is_stopped(self) -> bool:
        """Never: it is stopped with the service."""
        return False

    async def close(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            for model in self._models:
                executor.submit(whisper.unload, model)  # no process ends that would free their memory
            await asyncio.to_thread(executor.shutdown)
