"""A process that is none: it answers as a Whisper worker does, in virtual time, and gets into trouble."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

from app.errors import ProcessCrashed
from app.scheduling.process import ChildProcess, Outcome
from bench.virtual_clock import VirtualClockLoop
from workers import calls
from workers.messages import AnyWindow, LoadOptions, Window, WindowResult, WorkerInfo
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
    unsent: int = 0  # batches that cannot be sent
    exhausted: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Model, its compute type, windows (0: it was loaded) and beams of each call without enough memory."""
    faults: list[str] = field(default_factory=list)  # of the service, that workers have noticed
    pids: Callable[[], int] = count(1).__next__

    def fate(self, window: Window) -> Fate:
        return self.fates.get(str(window.decoding.prompt)) or Fate()  # that of a probe


class StubProcess(ChildProcess):
    """A `ChildProcess` whose process is a `StubWorker`."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(lambda: None)
        self._machine = machine
        self.worker: StubWorker | None = None

    async def start(self) -> None:
        self.pid = self._machine.pids()
        self.worker = StubWorker(self._machine, self.pid, self._answered, self._on_pidfd)
        self._connection = self.worker  # type: ignore[assignment]
        await asyncio.sleep(1)

    def check_that_it_hangs(self) -> None:
        assert self.worker is not None
        if not self.worker.hangs:
            self._machine.faults.append(
                f"process {self.pid} is taken for one that hangs, although it works: {self.worker.doing}"
            )

    def _kill(self) -> None:
        assert self.worker is not None
        self.check_that_it_hangs()
        self.worker.exit("killed: it did not answer")

    async def close(self) -> None:
        if self.worker is not None:
            self.worker.on_exit = lambda: None
            self.worker.exit("closed")
        self._connection = self.worker = self.pid = None
        await asyncio.sleep(0.01)

    def _answered(self, number: int, outcome: Outcome) -> None:
        if number in self._calls:
            self._calls.pop(number).set_result(outcome)


class StubWorker:
    """A process with the functions of `workers.whisper.worker`. A connection that takes their calls."""

    def __init__(
        self,
        machine: Machine,
        pid: int,
        on_answer: Callable[[int, Outcome], None],
        on_exit: Callable[[], None],
    ) -> None:
        self.pid = pid
        self.on_exit = on_exit
        self.hangs = False
        self.doing = "nothing"
        self._machine = machine
        self._models: dict[str, str] = {}  # with their compute types
        # Of batches that are urgent, and of others.
        self._on_host = {False: asyncio.Lock(), True: asyncio.Lock()}
        self._turns = {False: asyncio.Lock(), True: asyncio.Lock()}
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._on_answer = on_answer
        self._has_exited = False

    def send(self, number: int, call: tuple[Any, ...]) -> None:
        """Run a call beside others. Raises ProcessCrashed if the process has ended."""
        if self._has_exited:
            raise ProcessCrashed(f"process {self.pid} crashed")
        _, function, *args = call
        if self._machine.unsent and function is whisper.decode:
            self._machine.unsent -= 1
            self._machine.trace(f"process {self.pid} does not get {_described(args)}")
            raise MemoryError
        self._calls[number] = asyncio.get_running_loop().create_task(self._run(number, function, args))

    def exit(self, reason: str) -> None:
        """The process ends, whatever it does."""
        if self._has_exited:
            return
        self._has_exited = True
        self._machine.trace(f"process {self.pid} ends: {reason} ({self.doing})")
        for number, call in self._calls.items():
            call.cancel()
            self._on_answer(number, (ProcessCrashed(f"process {self.pid} crashed"), None))
        self.on_exit()

    async def _run(self, number: int, function: Callable[..., Any], args: Sequence[Any]) -> None:
        self.doing = f"{function.__name__} {_described(args)}"
        try:
            result = await self._answer(function, *args)
        except Exception as error:
            self._on_answer(number, (error, None))
        else:
            self._on_answer(number, (None, calls.Answer(result, ())))
        del self._calls[number]

    async def _answer(self, function: Callable[..., Any], *args: Any) -> Any:
        if function is whisper.load:
            return await self._load(*args)
        if function is whisper.unload:
            self._models.pop(args[0], None)
            return None
        if function is whisper.smaller_compute_type:
            return smaller(args[0].compute_type, "cuda", COMPUTE_TYPES)
        assert function is whisper.decode
        return await self._decode(*args)

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

    async def _decode(self, windows: Sequence[AnyWindow], urgent: bool = False) -> list[whisper.Answer]:
        model, beams = windows[0].decoding.model, windows[0].decoding.beams
        if model not in self._models:
            self._machine.faults.append(f"process {self.pid} should decode with {model}, which is not loaded")
            raise RuntimeError(f"the model {model!r} is not loaded in this worker")
        compute_type = self._models[model]
        async with self._on_host[urgent]:
            await asyncio.sleep(_FEATURES_S * len(windows))
        async with self._turns[urgent]:
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
            asyncio.get_running_loop().call_soon(self.exit, f"crashed on {window.decoding.prompt}")
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
