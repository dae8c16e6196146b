"""A process that is none: it answers as a Whisper worker does, in virtual time, and gets into trouble."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

from app.common.errors import Fault, ProcessCrashed
from bench.virtual_clock import VirtualClockLoop
from workers.messages import DecodingOptions, LoadOptions, Window, WindowResult, WorkerInfo
from workers.whisper import worker as whisper
from workers.whisper.compute_types import smaller

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

COMPUTE_TYPES = {"float16": 4.0, "int8_float16": 2.0, "int8": 1.5}  # and the memory for a model of size 1
ROW = 0.05  # memory for one beam of a window
_FEATURES_S = 0.02  # for each window
_THREAD_S = 0.01  # in which a thread reads a batch
_LOAD_S = 5.0
TASK_ERROR = "cannot be decoded"
OUT_OF_MEMORY = "CUDA failed with error out of memory"
DEVICE_ERROR = "CUDA failed with error an illegal memory access was encountered"


class ThreadlessLoop(VirtualClockLoop):
    """A virtual clock on which threads take a moment, and run in the loop."""

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(
        self, executor: object, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()

        def run() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_later(_THREAD_S, run)
        return future


@dataclass
class Fate:
    """What happens to the processes that decode a window: how often each."""

    crashes: int = 0
    hangs: int = 0
    device_errors: int = 0
    errors: int = 0


@dataclass
class Machine:
    """The computer of all workers of a simulation, and what happens on it."""

    trace: Callable[[str], None]
    factors: dict[str, float]  # seconds for each second of audio, by model
    sizes: dict[str, float]  # of the models' weights
    memory: float = 20.0  # that each worker can use
    fates: dict[str, Fate] = field(default_factory=dict)  # by the prompt of a window
    hanging_loads: int = 0
    exhausted: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Model, its compute type, windows (0: it was loaded) and beams of each call without enough memory."""
    faults: list[str] = field(default_factory=list)  # of the service, that workers have noticed
    pids: Callable[[], int] = count(1).__next__

    def fate(self, window: Window) -> Fate:
        return self.fates.get(str(window.decoding.prompt)) or Fate()  # that of a probe


class StubProcess:
    """A `WorkerProcess` whose process is a `StubWorker`."""

    def __init__(self, machine: Machine) -> None:
        self.pid: int | None = None
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None
        self.worker: StubWorker | None = None
        self._machine = machine

    async def start(self) -> None:
        self.pid = self._machine.pids()
        self.worker = StubWorker(self._machine, self.pid, self.on_exit)
        await asyncio.sleep(1)

    async def call(self, function: Callable[..., Any], *args: Any, deadline_s: float | None = None) -> Any:
        if self.worker is None:
            raise ProcessCrashed("the process has not been started")
        return await self.worker.call(function.__name__, *args)

    def check_that_it_hangs(self) -> None:
        assert self.worker is not None
        if not self.worker.hangs:
            self._machine.faults.append(
                f"process {self.pid} is taken for one that hangs, although it works: {self.worker.doing}"
            )

    def is_stopped(self) -> bool:
        return False

    async def close(self) -> None:
        if self.worker is not None:
            self.worker.on_exit = lambda error: None
            self.worker.exit("closed")
        self.worker = self.pid = None
        await asyncio.sleep(0.01)


class StubWorker:
    """A process with the functions of `workers.whisper.worker`, which it runs in order."""

    def __init__(self, machine: Machine, pid: int, on_exit: Callable[[ProcessCrashed], None]) -> None:
        self.pid = pid
        self.on_exit = on_exit
        self.hangs = False
        self.doing = "nothing"
        self._machine = machine
        self._models: dict[str, str] = {}  # with their compute types
        self._turn = asyncio.Lock()
        self._calls: set[asyncio.Task[Any]] = set()
        self._has_exited = False
        self._signal = signal.SIGKILL

    async def call(self, name: str, *args: Any) -> Any:
        """Run a call after those before. Raises ProcessCrashed if the process ends."""
        if self._has_exited:
            raise self._crashed()
        call = asyncio.get_running_loop().create_task(self._run(name, args))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        await asyncio.wait([call])
        if call.cancelled():
            raise self._crashed()
        return call.result()

    def exit(self, reason: str, *, crashes: bool = False) -> None:
        """The process ends, whatever it does: it crashes, or something kills it."""
        if self._has_exited:
            return
        self._has_exited = True
        self._signal = signal.SIGSEGV if crashes else signal.SIGKILL
        self._machine.trace(f"process {self.pid} ends: {reason} ({self.doing})")
        for call in self._calls:
            call.cancel()
        self.on_exit(self._crashed())

    def _crashed(self) -> ProcessCrashed:
        fault = Fault.OWN if self._signal is signal.SIGSEGV else Fault.OUTSIDE
        message = f"process {self.pid} was killed by signal {self._signal:d} ({self._signal.name})"
        return ProcessCrashed(message, exit_status=-self._signal, fault=fault)

    async def _run(self, name: str, args: Sequence[Any]) -> Any:
        async with self._turn:
            self.doing = f"{name} {_described(args)}"
            return await getattr(self, f"_{name}")(*args)

    async def _unload(self, model: str) -> None:
        self._models.pop(model, None)

    async def _smaller_compute_type(self, options: LoadOptions) -> str | None:
        return smaller(options.compute_type, "cuda", COMPUTE_TYPES)

    async def _load(self, options: LoadOptions) -> WorkerInfo:
        model, compute_type = options.model, options.compute_type
        if self._machine.hanging_loads:
            self._machine.hanging_loads -= 1
            await self._hang()
        await asyncio.sleep(_LOAD_S * self._machine.sizes[model])
        self._models.pop(model, None)
        needed = COMPUTE_TYPES[compute_type] * self._machine.sizes[model]
        self._use(needed, model, compute_type, 0, 0)
        self._models[model] = compute_type
        self._machine.trace(f"process {self.pid} has loaded {model} in {compute_type}")
        return WorkerInfo(self.pid, "0", model, options.device, compute_type, 1, ("en",))

    async def _decode(self, windows: Sequence[Window]) -> list[whisper.Answer]:
        model, beams = windows[0].decoding.model, windows[0].decoding.beams
        if model not in self._models:
            self._machine.faults.append(f"process {self.pid} should decode with {model}, which is not loaded")
            raise RuntimeError(f"the model {model!r} is not loaded in this worker")
        compute_type = self._models[model]
        await asyncio.sleep(_FEATURES_S * len(windows))
        self._use(ROW * beams * len(windows), model, compute_type, len(windows), beams)
        seconds = sum(window.samples for window in windows) / 16_000 * self._machine.factors[model]
        await asyncio.sleep(seconds / 2)
        batch = whisper.read(windows)
        readable = [window for window in batch if isinstance(window, Window)]
        for window in readable:
            await self._suffer(window)
        await asyncio.sleep(seconds / 2)
        self._machine.trace(f"process {self.pid} has decoded {_described([windows])}")
        return whisper.in_place([_result(window) for window in readable], batch)

    async def _suffer(self, window: Window) -> None:
        fate = self._machine.fate(window)
        if fate.crashes:
            fate.crashes -= 1
            asyncio.get_running_loop().call_soon(
                partial(self.exit, f"crashed on {window.decoding.prompt}", crashes=True)
            )
            await asyncio.sleep(1)
        if fate.hangs:
            fate.hangs -= 1
            await self._hang()
        if fate.device_errors:
            fate.device_errors -= 1
            raise RuntimeError(DEVICE_ERROR)
        if fate.errors:
            fate.errors -= 1
            raise ValueError(TASK_ERROR)

    async def _probe(self, model: str) -> None:
        await self._decode([Window(bytes(2), (), DecodingOptions(model))])

    async def _hang(self) -> None:
        self.hangs = True
        self._machine.trace(f"process {self.pid} hangs: {self.doing}")
        await asyncio.get_running_loop().create_future()

    def _use(self, memory: float, model: str, compute_type: str, windows: int, beams: int) -> None:
        weights = sum(COMPUTE_TYPES[used] * self._machine.sizes[name] for name, used in self._models.items())
        if weights + memory > self._machine.memory:
            self._machine.exhausted.append((model, compute_type, windows, beams))
            self._machine.trace(
                f"process {self.pid} has no memory for {windows} windows of {model} in {compute_type}"
            )
            raise RuntimeError(OUT_OF_MEMORY)


def _result(window: Window) -> WindowResult:
    """A result that says which window it is of."""
    return WindowResult(str(window.decoding.prompt), (), (), None, 0, 0.0, 0.0, 1.0)


def _described(args: Sequence[Any]) -> str:
    first = args[0] if args else None
    if isinstance(first, list):
        names = ", ".join(str(window.decoding.prompt) for window in first)
        return f"[{names}] with {first[0].decoding.model}"
    return f"{getattr(first, 'model', first)}"
