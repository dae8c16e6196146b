"""The `simulated` engine: workers without a model, which take as long as a cost model says.

For experiments with scheduling on any number of slots, and for clients under development. Everything else
is real: dispatcher, messages, pipeline, HTTP. Runs on the real clock and on a virtual one.
"""

import asyncio
import math
import os
import random
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from app.common.errors import Fault, InvalidSetting, ProcessCrashed
from app.common.languages import LANGUAGES, language_code
from app.engines.window_request import expected_tokens
from app.pool.batching import BatchCost
from workers.messages import (
    FULL_CONTEXT_S,
    SAMPLE_RATE,
    DecodingOptions,
    LanguageProbs,
    LoadOptions,
    Segment,
    Span,
    Window,
    WindowResult,
    Word,
    WorkerInfo,
)
from workers.whisper import worker as whisper

SIMULATED = "simulated"  # the name of the device and of the model
_LEAST_PART = 0.5  # of the speech of a window that leaves text, which it transcribes
_DRAWN_FROM = 2 * SAMPLE_RATE  # bytes: the first second of a window decides whether it leaves text

_BySlot = tuple[tuple[int, float], ...]  # slots, and a number for each


@dataclass(frozen=True, slots=True)
class Simulation:
    """How simulated workers behave. Times in simulated seconds, unless their names say otherwise."""

    cost: BatchCost = BatchCost()  # noqa: RUF009 - frozen
    batch: int = 8  # most windows in one
    host_ms: float = 0.0  # that each window is on its way, before its worker can decode it
    second_window: float = 0.0  # probability that a window leaves text for another one of its clip
    load_ms: float = 0.0  # of a model
    crash: float = 0.0  # probability that a worker crashes during a batch
    seed: int = 0  # of the random crashes and of the windows that leave text
    crash_at: _BySlot = ()  # when the slot's worker crashes, counted from the slot's first start
    poisoned_at: _BySlot = ()  # the age at which the device of each of the slot's workers fails for good
    poisoned_for_good: tuple[int, ...] = ()  # slots whose device never works
    slow: dict[int, float] = field(default_factory=dict)  # slot, and the factor on its times
    speed: float = 1.0  # simulated seconds that pass in a real one
    languages: tuple[tuple[float, str], ...] = ()  # each from a second of a recording on; English before


def parse_simulation(text: str) -> Simulation:
    """Parse `fixed_ms=10,clip_ms=50,slow=1:3+2:1.5,crash_at=0:12,…`, in any order and with defaults.

    Raises InvalidSetting for anything else.
    """
    given: dict[str, Any] = {}
    costs: dict[str, float] = {}
    try:
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = part.partition("=")
            if name in _COSTS:
                costs[_COSTS[name]] = float(value)
            else:
                given[name] = _PARSERS[name](value)
        simulation = Simulation(cost=BatchCost(**costs), **given)
    except (KeyError, ValueError):
        raise InvalidSetting(
            f"WHISPER_SIMULATED={text}: {part!r} makes no sense; known are "
            f"{', '.join([*_COSTS, *_PARSERS])}, as in {_EXAMPLE}"
        ) from None
    _check(text, simulation)
    return simulation


def _by_slot(value: str) -> _BySlot:
    pairs = (entry.split(":") for entry in value.split("+"))
    return tuple((int(slot), float(number)) for slot, number in pairs)


def _by_time(value: str) -> tuple[tuple[float, str], ...]:
    pairs = (entry.split(":") for entry in value.split("+"))
    return tuple(sorted((float(second), str(language_code(language))) for second, language in pairs))


_EXAMPLE = "fixed_ms=10,clip_ms=50,token_ms=2,batch=8,crash=0.01,slow=1:3"
# Names of the setting, and what `BatchCost` calls them: a task is a window, and its size is in tokens.
_COSTS = {"clip_ms": "task_ms", "fixed_ms": "fixed_ms", "token_ms": "size_ms"}
_PARSERS: dict[str, Callable[[str], Any]] = {
    "batch": int,
    "host_ms": float,
    "second_window": float,
    "load_ms": float,
    "crash": float,
    "seed": int,
    "crash_at": _by_slot,
    "poisoned_at": _by_slot,
    "poisoned_for_good": lambda value: tuple(int(slot) for slot in value.split("+")),
    "slow": lambda value: dict(_by_slot(value)),
    "speed": float,
    "languages": _by_time,
}


def _check(text: str, simulation: Simulation) -> None:
    cost = simulation.cost
    events = [*simulation.crash_at, *simulation.poisoned_at]
    times = [cost.fixed_ms, cost.size_ms, simulation.host_ms, simulation.load_ms, *(at for _, at in events)]
    above_0 = [cost.task_ms, simulation.speed, *simulation.slow.values()]
    if (
        min(times) < 0
        or min(above_0) <= 0
        or not 1 <= simulation.batch <= 128
        or not 0 <= simulation.crash <= 1
        or not 0 <= simulation.second_window < 1
    ):
        raise InvalidSetting(
            f"WHISPER_SIMULATED={text}: times must not be negative; clip_ms, speed and the factors of slow "
            "slots must be above 0; batch is 1 to 128, crash 0 to 1, second_window below 1"
        )


class SimulatedWorker:
    """A `WorkerProcess` that is none, and has no models: its answers come when a timer ends."""

    def __init__(self, index: int, visible_devices: str, simulation: Simulation) -> None:
        """`index`: of its slot."""
        self.index = index
        self.pid: int | None = None
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None
        self._visible_devices = visible_devices
        self._simulation = simulation
        self._random = random.Random(f"{simulation.seed}-{index}")
        self._crashes: list[asyncio.TimerHandle] | None = None  # None: never started
        self._killed = asyncio.Event()
        self._crash_count = 0
        self._loads = 0
        self._poisoned_at = math.inf  # of the event loop's clock
        self._turns = asyncio.Lock()  # of batches on their way
        self._device = asyncio.Lock()
        self.device_s = 0.0  # simulated time in which the device has decoded batches
        self.windows = 0  # that it has decoded

    async def start(self) -> None:
        """Start the worker anew."""
        self.pid = os.getpid()  # there is no other process
        self._loads = 0
        self._killed = asyncio.Event()
        self._poisoned_at = self._next_poisoning()
        if self._crashes is None:
            loop = asyncio.get_running_loop()
            self._crashes = [
                loop.call_later(at / self._simulation.speed, self._kill)
                for slot, at in self._simulation.crash_at
                if slot == self.index
            ]

    async def call(self, function: Callable[..., Any], *args: Any, deadline_s: float | None = None) -> Any:
        """Do what a function of `workers.whisper.worker` does in a process."""
        return await getattr(self, function.__name__)(*args)

    async def load(self, options: LoadOptions) -> WorkerInfo:
        """Take as long as it takes to load a model."""
        await self._elapse(self._simulation.load_ms / 1000)
        self._loads += 1
        return WorkerInfo(
            pid=os.getpid(),
            visible_devices=self._visible_devices,
            model=options.model,
            device=options.device,
            compute_type=options.compute_type,
            loads=self._loads,
            languages=tuple(LANGUAGES),
            backend=options.backend,
        )

    async def unload(self, model: str) -> None:
        """Does nothing."""

    async def smaller_compute_type(self, options: LoadOptions) -> None:
        """There is none."""

    async def decode(self, windows: Sequence[Window]) -> list[whisper.Answer]:
        """Take as long as the cost model says, after the batches before."""
        batch = await _read(windows)
        async with self._turns:
            await self._elapse(self._simulation.host_ms * len(batch) / 1000)
        async with self._device:
            # Those that could be read.
            if readable := [window for window in batch if isinstance(window, Window)]:
                await self._decode_on_device(readable)
        return whisper.in_place([simulated_result(window, self._simulation) for window in readable], batch)

    def is_stopped(self) -> bool:
        """Never."""
        return False

    async def probe(self, model: str) -> None:
        """Decode a second of speech."""
        await self.decode([Window(bytes(2 * SAMPLE_RATE), ((0, SAMPLE_RATE),), DecodingOptions(model))])

    async def close(self) -> None:
        """End the worker."""
        self.pid = None

    async def _decode_on_device(self, windows: Sequence[Window]) -> None:
        simulation = self._simulation
        if asyncio.get_running_loop().time() >= self._poisoned_at:
            raise RuntimeError("CUDA failed with error an illegal memory access was encountered")
        cost = simulation.cost
        context = windows[0].decoding.context_s / FULL_CONTEXT_S  # the same in all of a batch
        cost = replace(cost, task_ms=cost.task_ms * context)
        slowness = simulation.slow.get(self.index, 1.0)
        seconds = slowness * cost.seconds([_decoder_steps(window) for window in windows])
        if self._random.random() < simulation.crash:
            await self._elapse(seconds * self._random.random())
            self._kill()
            raise self._crashed()
        await self._elapse(seconds)
        self.device_s += seconds
        self.windows += len(windows)

    def _next_poisoning(self) -> float:
        """When the device of the worker that starts now fails."""
        if self.index in self._simulation.poisoned_for_good:
            return -math.inf
        sound_s = min(
            (age for slot, age in self._simulation.poisoned_at if slot == self.index), default=math.inf
        )
        return asyncio.get_running_loop().time() + sound_s / self._simulation.speed

    async def _elapse(self, seconds: float) -> None:
        """Let simulated time pass. Raises ProcessCrashed if the worker is killed meanwhile."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds / self._simulation.speed):
                await self._killed.wait()
            raise self._crashed()

    def _kill(self) -> None:
        self._crash_count += 1
        self._killed.set()
        self.on_exit(self._crashed())

    def _crashed(self) -> ProcessCrashed:
        message = f"simulated worker {self.index} crashed (crash {self._crash_count})"
        return ProcessCrashed(message, fault=Fault.OWN)


async def _read(windows: Sequence[Window]) -> Sequence[Window | OSError]:
    """The windows with their audio. A program on a virtual clock, which has no threads, has read it."""
    in_memory = all(window.pcm_path is None for window in windows)
    return windows if in_memory else await asyncio.to_thread(whisper.read, windows)


def simulated_result(window: Window, simulation: Simulation) -> WindowResult:
    """A result of the right shape, made of the window's speech spans: the same for the same window.

    If the window leaves text for another one, that is the text of some of its last speech. Whether it does
    is drawn from its audio and the seed. Its language is that of its first speech.
    """
    decoding = window.decoding
    [probs, *_] = _spoken(window.speech or ((0, 0),), window, simulation)
    segments = [_segment(span, window) for span in window.speech]
    tail: Segment | None = None
    if segments and (chance := _chance(window, simulation)).random() < simulation.second_window:
        closed = _first_part(window.speech, _LEAST_PART + (1 - _LEAST_PART) * chance.random())
        segments = [_segment(span, window) for span in closed]
        start, end = window.speech[-1]
        tail = _segment((max(start, closed[-1][1]), end), window)
    return WindowResult(
        language=decoding.language or probs[0][0],
        language_probs=() if decoding.language else probs,
        segments=tuple(segments),
        tail=tail,
        token_count=round(expected_tokens(window.speech)),
        stretch_probs=_spoken(window.stretches, window, simulation),
    )


def _spoken(spans: Sequence[Span], window: Window, simulation: Simulation) -> tuple[LanguageProbs, ...]:
    """The language of each span of a window: the one that is spoken where it begins."""
    spoken = [(-math.inf, "en"), *simulation.languages]
    seconds = [(window.start + start) / SAMPLE_RATE for start, _ in spans]
    return tuple((([name for since, name in spoken if since <= at][-1], 1.0),) for at in seconds)


def _decoder_steps(window: Window) -> float:
    """One for each token of the text. The languages of stretches take another one, together."""
    tokens = 0.0 if window.decoding.language_only else expected_tokens(window.speech)
    return tokens + bool(window.stretches)


def _chance(window: Window, simulation: Simulation) -> random.Random:
    """Random numbers of a window: the same on every slot and in every order of windows."""
    audio = zlib.crc32(window.pcm[:_DRAWN_FROM])
    return random.Random(f"{simulation.seed} {audio} {window.speech}")


def _first_part(speech: Sequence[Span], part: float) -> list[Span]:
    """The first part of speech: so much of all of it, 0 to 1."""
    left = part * sum(end - start for start, end in speech)
    first = []
    for start, end in speech:
        if left <= 0:
            break
        first.append((start, min(end, start + round(left))))
        left -= end - start
    return first


def _segment(span: Span, window: Window) -> Segment:
    start, end = span
    text = f" Simulated: speech from sample {start} to {end} of a window."
    words = text.split()
    edges = [start + (end - start) * place // len(words) for place in range(len(words) + 1)]
    return Segment(
        start=start,
        end=end,
        text=text,
        tokens=(),
        temperature=window.decoding.temperature,
        avg_logprob=0.0,
        compression_ratio=1.0,
        no_speech_prob=0.0,
        words=tuple(
            Word(f" {word}", begin, stop, 1.0)
            for word, begin, stop in zip(words, edges, edges[1:], strict=False)
        )
        if window.decoding.word_timestamps
        else (),
    )
