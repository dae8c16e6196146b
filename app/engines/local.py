"""The engines `local` and `inline`: models in a spawned process for each slot, or in this very process."""

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.engines.catalogue import ModelCatalogue
from app.engines.slot import Limits, WhisperSlot
from app.errors import ProcessLost
from app.known_errors import explain
from app.scheduling.process import WorkerProcess
from app.scheduling.tasks import RestartReason
from app.telemetry.work import bound_ids
from workers import calls
from workers.messages import AnyWindow
from workers.whisper import worker as whisper

R = TypeVar("R")


class ProcessSlot(WhisperSlot):
    """A worker process on one GPU, or on some CPU cores."""

    def __init__(self, index: int, catalogue: ModelCatalogue, limits: Limits, process: WorkerProcess) -> None:
        super().__init__(index, catalogue, limits)
        self.process = process
        process.on_exit = self._exited

    async def _spawn(self) -> None:
        await self.process.start()

    async def _call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        result = await self.process.call(function, *args, deadline_s=deadline_s)
        calls.current().parts.extend(self.process.parts)
        return result

    async def _end(self) -> None:
        await self.process.close()

    def _exited(self) -> None:
        """The worker has ended. A call that was under way raises the reason itself."""
        error = self.process.exit_error
        assert error is not None  # it has ended
        if isinstance(error, ProcessLost):
            self.status.ending = RestartReason.LOST
        self.status.error = self.status.error or explain(error.message)
        self.needs_restart.set()


class InlineSlot(WhisperSlot):
    """Models in this process, in threads that nobody can kill; for debugging and for notebooks."""

    _executor: ThreadPoolExecutor | None = None

    async def _spawn(self) -> None:
        self._executor = ThreadPoolExecutor(thread_name_prefix="inline-whisper")

    async def _call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        # A thread cannot be ended, so the deadline has no effect.
        loop = asyncio.get_running_loop()
        answer: calls.Answer[R] = await loop.run_in_executor(
            self._executor, calls.answer, bound_ids(), function, *args
        )
        calls.current().parts.extend(answer.parts)
        return answer.result

    def _deadline_s(self, windows: Sequence[AnyWindow], expected_s: float | None) -> float:
        return math.inf  # a thread cannot be ended

    async def _end(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            for model in self._catalogue.options:
                executor.submit(whisper.unload, model)  # no process ends that would free their memory
            await asyncio.to_thread(executor.shutdown)
