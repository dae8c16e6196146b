"""A slot whose worker is no process, and its catalogue."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from app.common.errors import ProcessCrashed
from app.engines.catalogue import ModelCatalogue
from app.engines.slot import SlotLimits, WhisperSlot
from app.engines.window_request import WindowRequest
from workers.messages import DecodingOptions, LoadOptions, Window, WindowResult, WorkerInfo
from workers.whisper import worker as whisper
from workers.whisper.compute_types import smaller

RESULT = WindowResult("en", (), (), None, 0, 0.0, 0.0, 1.0)


def new_catalogue(idle_s: float = 99, compute_type: str = "int8") -> ModelCatalogue:
    """A catalogue of three models: "main", the default one, "a" and "b"."""
    options = {name: LoadOptions(name, f"/{name}", "cpu", compute_type, 1) for name in ("main", "a", "b")}
    return ModelCatalogue("main", idle_s, options)


def in_memory(window: Window) -> WindowRequest:
    """The request for a window whose audio nobody has to read."""
    return WindowRequest(window.pcm, 0, window.samples, window.speech, window.decoding)


class FakeWorker:
    """A `WorkerProcess` that does what its slot says, one thing after the other."""

    def __init__(self, slot: "FakeSlot") -> None:
        self.pid: int | None = None
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None
        self._slot = slot
        self._turn = asyncio.Lock()

    async def call(self, function: Callable[..., Any], *args: Any, deadline_s: float | None = None) -> Any:
        return await getattr(self, function.__name__)(*args)

    async def start(self) -> None:
        self._slot.calls.append("spawn")
        self._slot.loaded = {}

    async def load(self, options: LoadOptions) -> WorkerInfo:
        async with self._turn:
            await asyncio.sleep(0)
            return self._slot.load(options)

    async def unload(self, model: str) -> None:
        async with self._turn:
            await asyncio.sleep(0)
            self._slot.calls.append(f"unload {model}")
            self._slot.loaded.pop(model, None)

    async def smaller_compute_type(self, options: LoadOptions) -> str | None:
        return smaller(options.compute_type, "cpu", {"float32", "int8_float32", "int8"})

    async def decode(self, windows: Sequence[Window]) -> list[whisper.Answer]:
        async with self._turn:
            await asyncio.sleep(0)
            await self._slot.unblocked.wait()
            return self._slot.answer(windows)

    async def probe(self, model: str) -> None:
        await self.decode([Window(bytes(2), (), DecodingOptions(model))])

    def is_stopped(self) -> bool:
        return False

    async def close(self) -> None: ...


class FakeSlot(WhisperSlot):
    """Its worker has memory for `max_models` models, and notes its calls."""

    def __init__(
        self, idle_s: float = 99, max_models: int = 9, compute_type: str = "int8", **limits: Any
    ) -> None:
        catalogue = new_catalogue(idle_s, compute_type)
        super().__init__(0, catalogue, SlotLimits(**{"batch_size": 8} | limits), FakeWorker(self))
        self.calls: list[str] = []
        self.loaded: dict[str, str] = {}  # models, and their compute types
        self.max_models = max_models
        self.deadlines_s: list[float] = []
        self.unblocked = asyncio.Event()  # batches wait for it
        self.unblocked.set()

    def load(self, options: LoadOptions) -> WorkerInfo:
        if len(self.loaded) >= self.max_models or not self.fits(options.compute_type):
            raise RuntimeError("CUDA failed with error out of memory")
        self.calls.append(f"load {options.model}")
        self.loaded[options.model] = options.compute_type
        loads = len(self.calls)
        return WorkerInfo(1, "0", options.model, "cpu", options.compute_type, loads, ("en", "de"))

    async def _decode(self, windows: Sequence[Window], deadline_s: float) -> list[whisper.Answer]:
        self.deadlines_s.append(deadline_s)
        return await super()._decode(windows, deadline_s)

    def answer(self, windows: Sequence[Window]) -> list[whisper.Answer]:
        """The answers of a worker that reads the windows itself."""
        batch = whisper.read(windows)
        readable = [window for window in batch if isinstance(window, Window)]
        return whisper.in_place(self.decode_batch(readable) if readable else [], batch)

    def fits(self, compute_type: str) -> bool:
        """Whether there is memory for a model's weights."""
        return True

    def decode_batch(self, windows: list[Window]) -> list[WindowResult]:
        model = windows[0].decoding.model
        assert model in self.loaded
        self.calls.append(f"transcribe {model}")
        return [RESULT for _ in windows]

    async def transcribe(
        self, model: str, windows: int = 1, seconds: int = 1, beams: int = 5, expected_s: float | None = None
    ) -> None:
        """Run a batch of equal windows, each the first of its clip."""
        window = Window(
            bytes(32_000 * seconds), ((0, 16_000 * seconds),), DecodingOptions(model, beam_size=beams)
        )
        assert await self.run([in_memory(window)] * windows, expected_s) == [RESULT] * windows
