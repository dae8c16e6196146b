"""Whatever happens to workers, in whatever order: each window is answered once, and all slots serve again.

The dispatcher, its policy and the slots are the real ones. Their processes are stubs on a virtual clock, with
crashes, hangs, device errors, windows that cannot be read, too little memory, two models, cancelled jobs and
slots that come and go. One seed alone: `.venv/bin/pytest -m '' -k 'seed-123]'` and the path of this file.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from app.common.errors import NotReady, ProcessHung, TaskCrashes
from app.engines.catalogue import ModelCatalogue
from app.engines.ledger import BatchLedger
from app.engines.oom_fallback import OomFallback
from app.engines.slot import SlotLimits, WhisperSlot
from app.engines.window_request import WindowRequest, expected_tokens
from app.pool.batching import BatchCost
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import RestartReason
from tests.engines.stub_worker import COMPUTE_TYPES, TASK_ERROR, Fate, Machine, StubProcess, ThreadlessLoop
from workers.messages import DecodingOptions, LoadOptions, Window, WindowResult
from workers.whisper.compute_types import smaller

T = TypeVar("T")

MODELS = ("main", "second")
TROUBLED_S = 20_000.0  # after that, nothing happens any more
DAY_S = 86_400.0
NO_THREAD = "can't start new thread"
OWN_ERRORS = (NO_THREAD, TASK_ERROR, str(MemoryError()))
# The patience of slots with a batch whose time is not known, for each second of audio.
SMALLER = {kind: smaller(kind, "cuda", COMPUTE_TYPES) for kind in COMPUTE_TYPES}
PACES = {"cuda": (0.01, 0.1, 1.0, 4.0), "cpu": (0.1, 1.0, 15.0, 40.0)}


@dataclass
class StubWindow(WindowRequest):
    """A window that may not be there for a while, or whose audio is gone."""

    errors: list[Exception] = field(default_factory=list)  # of the next attempts to get it

    def for_worker(self) -> Window:
        if FileNotFoundError in map(type, self.errors):  # a worker notices that
            return replace(super().for_worker(), pcm=b"", pcm_path="/gone", end=self.samples)
        if self.errors:
            raise self.errors.pop()
        return super().for_worker()


class CheckedFallback(OomFallback):
    """Checks that no limit is lower than its cause."""

    def __init__(self, batch_size: int, machine: Machine) -> None:
        super().__init__(batch_size, asyncio.get_running_loop().time)
        self._machine = machine

    def halve(self, clips: int, beams: int, error: Exception) -> None:
        super().halve(clips, beams, error)
        sizes = [windows for _, _, windows, width in self._machine.exhausted if width == beams]
        if (limit := self._limits[beams].clips) < min(sizes) // 2:
            self._machine.faults.append(f"batches of {limit}, but those of {sizes} had no memory")

    def step_down(self, model: str, configured: str, used: str, smaller: str, error: Exception) -> None:
        super().step_down(model, configured, used, smaller, error)
        types = {kind for name, kind, windows, _ in self._machine.exhausted if name == model and windows <= 1}
        if smaller not in {SMALLER[kind] for kind in types}:
            self._machine.faults.append(f"{model} in {smaller}, but it had no memory in {types}")


class CheckedSlot(WhisperSlot):
    """Checks that only a process that hangs is taken for one."""

    def __init__(
        self, index: int, catalogue: ModelCatalogue, limits: SlotLimits, process: StubProcess
    ) -> None:
        super().__init__(index, catalogue, limits, process)
        self.process = process

    async def _ask(self, deadline_s: float, function: Callable[..., T], *args: object) -> T:
        try:
            return await super()._ask(deadline_s, function, *args)
        except ProcessHung:
            self.process.check_that_it_hangs()
            raise


class Simulation:
    """One seed: a fleet, its troubles, and what it answers."""

    def __init__(self, seed: int, logs: list[Any]) -> None:
        self.random = draw = random.Random(seed)
        self.logs = logs
        self.device = draw.choice(("cuda", "cpu"))
        factors = {model: draw.choice(PACES[self.device]) for model in MODELS}
        self.machine = Machine(self.trace, factors, {"main": 1.0, "second": draw.choice((0.5, 2.0))})
        options = {name: LoadOptions(name, "", self.device, "float16", 1) for name in MODELS}
        self.catalogue = ModelCatalogue("main", 600, options, others=("second",))
        self.limits = SlotLimits(
            draw.choice((1, 1, 4, 8)),
            batches_at_once=2 if draw.random() < 0.6 else 1,
            one_model=draw.random() < 0.1,
        )
        self.slots: list[CheckedSlot] = []  # also those that are removed
        self.answers: dict[str, asyncio.Task[str]] = {}
        self.windows: dict[str, StubWindow] = {}
        self.failures: dict[str, int] = {}  # of processes or attempts that a window is going to cause
        self.cancelled: set[str] = set()
        self.dispatcher: Dispatcher[WindowRequest, WindowResult] | None = None
        self.numbers = count()

    def trace(self, event: str) -> None:
        self.logs.append({"event": event, "at": round(asyncio.get_running_loop().time(), 2)})

    def new_slot(self, index: int) -> CheckedSlot:
        slot = CheckedSlot(index, self.catalogue, self.limits, StubProcess(self.machine))
        slot._oom = CheckedFallback(self.limits.batch_size, self.machine)
        self.slots.append(slot)
        return slot

    async def run(self) -> None:
        draw = self.random
        fleet = self.dispatcher = Dispatcher[WindowRequest, WindowResult](
            "worker",
            [self.new_slot(index) for index in range(draw.choice((1, 1, 2, 3)))],
            BatchCost() if self.device == "cuda" else BatchCost(fixed_ms=10, task_ms=350, size_ms=2),
            retries_errors=True,
            sleep_after_s=draw.choice((None, None, 900.0)),
            kind_of=lambda window: window.decoding.model,
            on_batch=BatchLedger().add,
        )
        fleet.start()
        troubles = [
            asyncio.create_task(self.trouble(draw.uniform(0, TROUBLED_S))) for _ in range(draw.randint(0, 8))
        ]
        jobs = [
            asyncio.create_task(self.job(draw.uniform(0, TROUBLED_S))) for _ in range(draw.randint(4, 14))
        ]
        await asyncio.gather(*troubles, *jobs)
        await self.until_answered()
        self.machine.memory = 20.0
        await asyncio.sleep(2 * 3600)  # longer than any limit is kept
        await self.every_slot_serves()
        began = asyncio.get_running_loop().time()
        await fleet.drain(3600)
        self.check(asyncio.get_running_loop().time() - began < 1, "drain has waited for nothing")
        self.check_rest()
        await fleet.stop()

    async def job(self, begins_s: float) -> None:
        """Windows that come at once, or one after another; perhaps cancelled."""
        draw = self.random
        await asyncio.sleep(begins_s)
        model, beams = draw.choice(MODELS), draw.choice((5, 5, 10))
        name = f"job{next(self.numbers)}"
        pause_s = draw.choice((0.0, 0.0, 30.0, 200.0))
        for _ in range(draw.randint(1, 25)):
            self.submit(name, model, beams, self.draw_trouble())
            await asyncio.sleep(pause_s)
        if draw.random() < 0.15:
            await asyncio.sleep(draw.expovariate(1 / 30))
            self.trace(f"{name} is cancelled")
            self.cancelled.add(name)
            assert self.dispatcher is not None
            self.dispatcher.cancel(name)
            for window, answer in self.answers.items():
                if window.startswith(f"{name}/"):
                    answer.cancel()

    def draw_trouble(self) -> tuple[Fate, list[Exception]]:
        """What happens to a window; nothing to most of them."""
        draw = self.random
        if draw.random() < 0.9:
            return Fate(), []
        often = draw.choice((1, 1, 2, 99))
        kind = draw.choice(("crashes", "hangs", "device_errors", "errors", "memory", "thread", "gone"))
        if kind == "memory":
            return Fate(), [MemoryError()] * draw.randint(1, 3)
        if kind == "thread":
            return Fate(), [RuntimeError(NO_THREAD)] * draw.randint(1, 3)
        if kind == "gone":
            return Fate(), [FileNotFoundError()] * 2
        return Fate(**{kind: often}), []

    def submit(
        self,
        job: str,
        model: str,
        beams: int = 5,
        trouble: tuple[Fate, list[Exception]] = (Fate(), []),
        affinity: int | None = None,
    ) -> str:
        name = f"{job}/{next(self.numbers)}"
        fate, errors = trouble
        samples = 16_000 * self.random.choice((5, 10, 20, 30, 30))
        speech = ((0, samples),)
        decoding = DecodingOptions(model, prompt=name, beam_size=beams)
        window = StubWindow(bytes(2 * samples), 0, samples, speech, decoding, errors=errors)
        self.machine.fates[name] = fate
        self.windows[name] = window
        self.failures[name] = len(errors) + sum(asdict(fate).values())
        self.logs.append({"event": f"{name} of {model}: {samples // 16_000} s, {fate}, {errors[:3]}"})

        async def ask() -> str:
            assert self.dispatcher is not None
            answer = await self.dispatcher.submit(
                job,
                window,
                key=window.decoding.batch_key,
                size=expected_tokens(speech),
                weight=beams,
                affinity=affinity,
            )
            return answer.result.language

        self.answers[name] = asyncio.create_task(ask())
        return name

    async def trouble(self, begins_s: float) -> None:
        """Something happens to a worker or to the machine."""
        draw = self.random
        await asyncio.sleep(begins_s)
        assert self.dispatcher is not None
        slot = draw.choice(self.dispatcher.slots)
        assert isinstance(slot, CheckedSlot)
        process = slot.process
        match draw.choice(("memory", "memory", "memory", "crash", "load", "drain", "remove")):
            case "memory":
                self.machine.memory = draw.uniform(4.2, 10)
                self.trace(f"memory is {self.machine.memory:.1f}")
                await asyncio.sleep(draw.choice((10.0, 600.0, 4000.0)))
                self.machine.memory = 20.0
                self.trace("memory is enough again")
            case "crash" if process.worker is not None:
                process.worker.exit("crashed by itself", crashes=True)
            case "load":
                self.machine.hanging_loads = 1
                slot.needs_restart.set()
            case "drain" | "remove" as how:
                leaving = self.dispatcher.drain_slot if how == "drain" else self.dispatcher.remove_slot
                self.trace(f"{how} slot {slot.index}")
                self.dispatcher.add_slot(self.new_slot(self.dispatcher.free_index))
                await leaving(slot.index)

    async def until_answered(self) -> None:
        """Wait for all answers, each of which must be what its window deserves."""
        _, missing = await asyncio.wait(self.answers.values(), timeout=30 * DAY_S)
        names = [name for name, answer in self.answers.items() if answer in missing]
        self.check(not names, f"not answered: {names}")
        for name, answer in self.answers.items():
            if answer.cancelled():
                self.check(name.partition("/")[0] in self.cancelled, f"{name} was cancelled by nobody")
            elif (error := answer.exception()) is not None:
                self.check(self.deserves(name, error), f"{name} does not deserve {error!r}")
            else:
                self.check(answer.result() == name, f"{name} got the result of {answer.result()}")

    def deserves(self, name: str, error: BaseException) -> bool:
        """Whether a window may be answered by an error."""
        if isinstance(error, NotReady):
            return any(entry["event"] == "slot failed" for entry in self.logs)
        # A process that crashes by itself counts as well.
        is_own = isinstance(error, TaskCrashes | FileNotFoundError) or str(error) in OWN_ERRORS
        return is_own and self.failures[name] >= 2

    async def every_slot_serves(self) -> None:
        """Each slot answers a window of each model, and none is out of service."""
        assert self.dispatcher is not None
        for slot in self.dispatcher.slots:
            self.check(slot.status.state in ("idle", "asleep"), f"slot {slot.index} is {slot.status.state}")
            for model in MODELS:
                name = self.submit("last", model, affinity=slot.index)
                async with asyncio.timeout(2 * DAY_S):
                    self.check(await self.answers[name] == name, f"{name} got another window's result")

    def check_rest(self) -> None:
        """Nothing is left over, and each limit has a cause."""
        assert self.dispatcher is not None
        fleet = self.dispatcher
        self.check(not list(fleet._unanswered()), "tasks are left")
        for served in fleet._served.values():
            self.check(not served.in_flight, f"batches of slot {served.index} are in flight")
        for estimate in fleet._throughput._slots.values():
            self.check(not estimate.in_flight, "estimates are of batches in flight")
        for fault in self.machine.faults:
            self.check(condition=False, message=fault)
        # A shortage may cost a process, and the attempt to use as much as before another one.
        shortages = [windows for _, _, windows, _ in self.machine.exhausted if windows <= 1]
        restarts = sum(slot.status.restarts_by[RestartReason.MEMORY] for slot in self.slots)
        self.check(restarts <= 2 * len(shortages), f"{restarts} restarts for {len(shortages)} shortages")

    def check(self, condition: object, message: str) -> None:
        assert condition, message


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with capture_logs() as logs:
        yield logs


def _line(entry: dict[str, Any]) -> str:
    fields = {key: value for key, value in entry.items() if key not in ("event", "at", "log_level")}
    if isinstance(fields.get("exc_info"), BaseException):
        fields["exc_info"] = repr(fields["exc_info"])
    return f"{entry.get('at', ''):>12} {entry['event']} {fields or ''}"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "seeds",
    [range(20), *(pytest.param(range(at, at + 100), marks=pytest.mark.soak) for at in range(20, 820, 100))],
    ids=str,
)
def test_each_window_is_answered_once_whatever_happens(seeds: range, logs: list[Any]) -> None:
    for seed in seeds:
        logs.clear()
        try:
            with asyncio.Runner(loop_factory=ThreadlessLoop) as runner:
                runner.run(Simulation(seed, logs).run())
        except BaseException:
            print(f"seed {seed}:", *map(_line, logs), sep="\n")
            raise


def test_a_long_batch_is_not_ended_by_the_unloading_of_another_model() -> None:
    """It waits for the worker, which is at work for longer than unloading may take."""

    async def run() -> None:
        simulation = Simulation(0, [])
        simulation.machine.factors |= {"main": 40.0, "second": 0.1}
        simulation.limits = SlotLimits(4)
        slot = simulation.new_slot(0)
        simulation.catalogue.options |= {
            name: replace(options, device="cpu") for name, options in simulation.catalogue.options.items()
        }
        simulation.dispatcher = fleet = Dispatcher[WindowRequest, WindowResult]("worker", [slot])
        fleet.start()
        for model in ("second", *["main"] * 4):
            simulation.submit("job", model)
        await simulation.until_answered()
        assert asyncio.get_running_loop().time() > 600 + 900
        assert not slot.holds("second")
        assert (slot.status.restarts, simulation.machine.faults) == (0, [])
        await fleet.stop()

    with asyncio.Runner(loop_factory=ThreadlessLoop) as runner:
        runner.run(run())
