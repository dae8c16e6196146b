"""The engines `local` and `inline`: Whisper workers in spawned processes, or in a thread of this one."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.errors import ProcessCrashed
from app.scheduling.process import WorkerProcess
from app.telemetry.work import bound_ids
from workers import calls
from workers.messages import AnyWindow, LoadOptions, WorkerInfo
from workers.whisper import worker as whisper

R = TypeVar("R")


class ProcessWorker:
    """A `WhisperWorker` whose models are in a process."""

    def __init__(self, process: WorkerProcess) -> None:
        self._process = process

    def watch(self, on_exit: Callable[[ProcessCrashed], None]) -> None:
        self._process.on_exit = on_exit

    async def start(self) -> None:
        await self._process.start()

    async def load(self, options: LoadOptions) -> WorkerInfo:
        return await self._process.call(whisper.load, options)

    async def unload(self, model: str) -> None:
        await self._process.call(whisper.unload, model)

    async def smaller_compute_type(self, options: LoadOptions) -> str | None:
        return await self._process.call(whisper.smaller_compute_type, options)

    async def decode(self, windows: Sequence[AnyWindow]) -> list[whisper.Answer]:
        return await self._process.call(whisper.decode, windows)

    async def close(self) -> None:
        await self._process.close()


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

    async def close(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            for model in self._models:
                executor.submit(whisper.unload, model)  # no process ends that would free their memory
            await asyncio.to_thread(executor.shutdown)
