"""The slot of a Whisper worker: the models that the worker holds, and its counters."""

import asyncio
import contextvars
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

import structlog

from app.common.concurrency import BackgroundTasks
from app.common.errors import DeviceFailed, Fault, ProcessCrashed, ProcessHung, ProcessLost, RequeueBatch
from app.common.known_errors import explain, last_line
from app.engines.backend_choice import CTRANSLATE2, TORCH
from app.engines.catalogue import ModelCatalogue
from app.engines.oom_fallback import USUAL_BEAMS, OomFallback
from app.engines.window_request import WindowRequest
from app.pool.tasks import RestartReason, SlotStatus, WorkerProcess
from workers.causes import Cause, cause_of, is_out_of_memory
from workers.messages import (
    SAMPLE_RATE,
    BackendUnfit,
    LoadOptions,
    Window,
    WindowResult,
    WorkerInfo,
)
from workers.whisper import worker as whisper
from workers.whisper.worker import Answer

R = TypeVar("R")

_LOAD_DEADLINE_S = 900.0  # a large model from a slow disk, kernels compiled for a new GPU
_ANSWER_DEADLINE_S = 120.0  # for a call that takes no time
# The deadline of a batch: so many times what it should take, and at least so many seconds. A batch takes many
# times as long as it should if all its clips are decoded again.
_DEADLINE_FACTOR = 50.0
_LEAST_DEADLINE_S = 60.0
# The same while the slot's speed is not known: so many seconds for each second of audio. A large model on one
# slow core needs some 20. On a GPU, the first batch may wait for its kernels to be compiled.
_FIRST_DEADLINE_FACTOR = {"cpu": 60.0, "cuda": 10.0, "simulated": 10.0}
_LEAST_FIRST_DEADLINE_S = 300.0
# No batch has longer, unless that is less than so many times what it should take: it is slow, or was taken
# for a hang. Then it has that time, up to so many times this deadline.
_SLOW_FACTOR, _MOST_FACTOR = 2.0, 4.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """How much a slot may do at a time."""

    batch_size: int  # windows
    batch_timeout_s: float | None = None  # for a batch, before its worker counts as hung; None: as it proves
    one_model: bool = False  # unload the others before another model is loaded
    batches_at_once: int = 1


class WhisperSlot:
    """A worker and its models."""

    node_name: str | None = None  # of the node with its worker; None: this machine

    def __init__(
        self, index: int, catalogue: ModelCatalogue, limits: SlotLimits, process: WorkerProcess
    ) -> None:
        self.index = index
        self.status = SlotStatus()
        self.needs_restart = asyncio.Event()
        self._catalogue = catalogue
        self._limits = limits
        self._process = process
        process.on_exit = self._exited
        self._oom = OomFallback(limits.batch_size)
        self._no_torch: str | None = None  # why models are loaded with CTranslate2 instead
        self._info: WorkerInfo | None = None
        self._held: dict[str, asyncio.TimerHandle | None] = {}  # models in memory, and their unload timers
        self._compute_types: dict[str, str] = {}  # with which the worker has loaded models, or tried to
        self._loads = 0
        # Of batches that succeeded, kept by the ledger.
        self.clips = 0
        self.samples = 0
        self._background = BackgroundTasks()
        self.batches_at_once = limits.batches_at_once
        self._changing = asyncio.Lock()  # held while a model is loaded or unloaded
        self._asked: asyncio.Task[Any] | None = None  # what the worker was asked last

    def batch_limit(self, weight: int = USUAL_BEAMS) -> int:
        """How many windows the slot takes at once if each is decoded with `weight` beams."""
        return self._oom.batch_limit(weight)

    async def start(self) -> None:
        """Start the worker and load the default model, with a smaller compute type if memory is short.

        Loading is a call of its own: an initializer that fails would hide the error.
        """
        model = self._catalogue.default
        while True:
            await self._spawn()
            try:
                return await self._load(model)
            except BackendUnfit as error:
                self._give_up_torch(error)
                reason = RestartReason.DEVICE
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or not await self._use_smaller_type(model, error):
                    raise
                reason = RestartReason.MEMORY
            # GPU memory is returned for certain only when a process ends.
            await self.close()
            self.status.restarts_by[reason] += 1

    async def probe(self) -> None:
        """Decode a bundled sentence with the default model. Raises as `run` does."""
        deadline_s = self._limits.batch_timeout_s or _LEAST_FIRST_DEADLINE_S
        with _device_failures():
            await self._ask(deadline_s, whisper.probe, self._catalogue.default)

    async def run(self, payloads: Sequence[WindowRequest], expected_s: float | None = None) -> list[Answer]:
        """Decode a batch of windows of one model, which is loaded first if necessary.

        A worker that cannot read a window's audio answers with an error in its place. `expected_s`: what the
        batch should take; None if that is not known.

        When memory is short, the other models are unloaded first. If that is not enough, raises RequeueBatch:
        `batch_limit` is smaller then or, for a single window, the worker restarts with a smaller compute
        type. Also raises DeviceFailed if the device fails or the worker hangs, ProcessCrashed (for a lack of
        memory, `batch_limit` is smaller then, too), OSError if the audio for another machine is gone, and the
        worker's own errors.
        """
        began = time.monotonic()
        windows = await self._windows(payloads)
        try:
            with _device_failures():
                results = await self._decode_with_model(windows, expected_s)
        except ProcessCrashed as error:
            if error.fault is Fault.MEMORY and len(windows) > 1:
                self._oom.halve(len(windows), windows[0].decoding.beams, error)
            raise
        model = windows[0].decoding.model
        notes = (result.note for result in results if isinstance(result, WindowResult))
        if note := next(filter(None, notes), None):
            self._note(model, note)
        took_s = round(time.monotonic() - began, 3)
        log.debug("batch decoded", slot=self.index, model=model, windows=len(windows), took_s=took_s)
        restarts = self._oom.lowered and self._oom.wants_restart(self._held_types)
        if restarts and not self.needs_restart.is_set():
            log.info("memory was short; trying a larger compute type again", slot=self.index)
            self._restart(RestartReason.MEMORY)
        return results

    async def close(self) -> None:
        """End the worker."""
        self._info = None
        for model in list(self._held):
            self._stop_unload_timer(model)
        self._held.clear()
        self._compute_types.clear()
        self._oom.batch_size = self._limits.batch_size
        await self._process.close()

    def holds(self, model: str) -> bool:
        """Whether the worker has a model in memory."""
        return model in self._held

    @property
    def _held_types(self) -> dict[str, str]:
        """The models that the worker has in memory, and the compute types that it was to load them with."""
        return {model: self._compute_types[model] for model in self._held}

    @property
    def notes(self) -> list[str]:
        """What the results of the worker's models lack, and why."""
        return [note for model, note in self._catalogue.notes.items() if model in self._held]

    def row(self) -> dict[str, object]:
        """The slot as `GET /v1/workers` shows it."""
        info = self._info
        options = self._load_options(self._catalogue.default)
        return {
            "slot": self.index,
            "node": None,
            "node_name": self.node_name,
            "actor": None,
            "device": options.device,
            "visible_devices": info.visible_devices if info else None,
            "pid": info.pid if info else None,
            "model": options.model,
            "models": sorted(self._held),
            "backend": (info or options).backend,
            "compute_type": info.compute_type if info else options.compute_type,
            "batch_size": self.batch_limit(),
            "state": self.status.state,
            "loads": self._loads,
            "batches": self.status.batches,
            "clips": self.clips,
            "audio_s": round(self.samples / SAMPLE_RATE, 2),
            "restarts": self.status.restarts,
            "error": self.status.error or self._oom.explain(self._held_types) or self._no_torch,
            "notes": self.notes,
        }

    def _restart(self, reason: RestartReason) -> None:
        self.status.ending = reason
        self.needs_restart.set()

    async def _spawn(self) -> None:
        """Start a worker without a model."""
        await self._process.start()

    def _exited(self, error: ProcessCrashed) -> None:
        """The worker has ended. What it was asked raises the reason itself."""
        if isinstance(error, ProcessLost):
            self.status.ending = RestartReason.LOST
        self.status.error = self.status.error or explain(error.message)
        self.needs_restart.set()

    async def _ask(self, deadline_s: float, function: Callable[..., R], *args: object) -> R:
        """Ask the worker, which does one thing after the other.

        Raises ProcessHung if it takes longer than `deadline_s` from the end of what it was asked before. The
        worker must be replaced then.
        """
        before, asked = self._asked, asyncio.create_task(self._process.call(function, *args))
        self._asked = asked
        try:
            if before is not None and not before.done():
                await asyncio.wait([before, asked], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([asked], timeout=deadline_s)
            if not asked.done():
                self.needs_restart.set()
                fault = Fault.OUTSIDE if self._process.is_stopped() else Fault.OWN
                raise ProcessHung(f"the worker did not answer within {deadline_s:.0f} s", fault=fault)
            return asked.result()
        finally:
            asked.cancel()

    async def _windows(self, payloads: Sequence[WindowRequest]) -> Sequence[Window]:
        """The windows of a batch, in the languages that are known now."""
        return [payload.for_worker() for payload in payloads]

    async def _decode_with_model(self, windows: Sequence[Window], expected_s: float | None) -> list[Answer]:
        decoding = windows[0].decoding
        model, deadline_s = decoding.model, self._deadline_s(windows, expected_s)
        try:
            try:
                return await self._decode(windows, deadline_s)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or self._held.keys() <= {model}:
                    raise
                async with self._changing:
                    await self._unload_others(model)
            return await self._decode(windows, deadline_s)
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                await self._shrink_and_requeue(model, len(windows), decoding.beams, error)
            raise

    async def _decode(self, windows: Sequence[Window], deadline_s: float) -> list[Answer]:
        """Decode a batch with its model, which is loaded first if necessary.

        A model is unloaded after the batches that need it: the worker does what it is asked in order.
        """
        model = windows[0].decoding.model
        async with self._changing:
            if model not in self._held:
                await self._load_on_demand(model)
            self._stop_unload_timer(model)
        try:
            return await self._ask(deadline_s, whisper.decode, windows)
        finally:
            if model in self._held and model != self._catalogue.default:
                self._start_unload_timer(model)

    def _deadline_s(self, windows: Sequence[Window], expected_s: float | None) -> float:
        if self._limits.batch_timeout_s is not None:
            return self._limits.batch_timeout_s
        device = self._catalogue.options[windows[0].decoding.model].device
        audio_s = sum(window.samples for window in windows) / SAMPLE_RATE
        first_s = max(_LEAST_FIRST_DEADLINE_S, _FIRST_DEADLINE_FACTOR[device] * audio_s)
        if expected_s is None:
            return first_s
        usual_s = max(_LEAST_DEADLINE_S, _DEADLINE_FACTOR * expected_s)
        return min(usual_s, max(first_s, _SLOW_FACTOR * expected_s), _MOST_FACTOR * first_s)

    async def _load_on_demand(self, model: str) -> None:
        if self._limits.one_model:
            await self._unload_others(model)
        try:
            try:
                return await self._load(model)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or not await self._unload_others(model):
                    raise
            await self._load(model)
        except BackendUnfit as error:
            self._give_up_torch(error)
            self._restart(RestartReason.DEVICE)
            raise RequeueBatch(f"torch is given up: {error}") from error
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                await self._shrink_and_requeue(model, 1, 1, error)
            log.error("model not loaded", slot=self.index, model=model, error=explain(error))
            raise

    async def _unload_others(self, model: str) -> bool:
        """Unload all models but one. Returns whether there were any."""
        others = [name for name in self._held if name != model]
        if others:
            log.warning("unloading other models to free memory", slot=self.index, models=others)
        for name in others:
            await self._unload(name)
        return bool(others)

    async def _shrink_and_requeue(self, model: str, windows: int, beams: int, error: Exception) -> NoReturn:
        """Use less memory from now on. Raises RequeueBatch, and RuntimeError if nothing smaller is left."""
        if self.needs_restart.is_set():  # the shortage may end with it
            raise RequeueBatch(f"out of memory before a restart: {last_line(error)}") from error
        if windows > 1:
            self._oom.halve(windows, beams, error)
            limit = self.batch_limit(beams)
            log.warning("memory is short: smaller batches", slot=self.index, batch_size=limit, beams=beams)
            raise RequeueBatch(f"out of memory with {windows} windows at once: {last_line(error)}") from error
        if await self._use_smaller_type(model, error):
            self._restart(RestartReason.MEMORY)  # memory comes back for certain only when the process ends
            raise RequeueBatch(f"out of memory with one window: {last_line(error)}") from error
        reason = last_line(error)
        message = f"not enough memory for one window with the smallest compute type: {reason}"
        raise RuntimeError(message) from error

    async def _use_smaller_type(self, model: str, error: Exception) -> bool:
        """Load a model with a smaller compute type from now on. Returns whether there is one."""
        used = self._compute_types[model]
        options = replace(self._load_options(model), compute_type=used)
        smaller = await self._ask(_ANSWER_DEADLINE_S, whisper.smaller_compute_type, options)
        if smaller is None and options.backend == TORCH:
            self._give_up_torch(error)
            return True
        if smaller is None:
            return False
        self._oom.step_down(model, self._catalogue.options[model].compute_type, used, smaller, error)
        log.warning("memory is short: smaller type", slot=self.index, model=model, compute_type=smaller)
        return True

    def _give_up_torch(self, error: Exception) -> None:
        """Load all models with CTranslate2 from now on, which takes less memory and works on more GPUs."""
        self._no_torch = f"CTranslate2 instead of torch: {last_line(error)}"
        log.error("torch is given up", slot=self.index, reason=last_line(error))

    def _load_options(self, model: str) -> LoadOptions:
        """How this slot loads a model."""
        options = self._catalogue.options[model]
        return replace(
            options,
            compute_type=self._oom.compute_type(model, options.compute_type),
            batch_size=self._limits.batch_size,
            backend=CTRANSLATE2 if self._no_torch else options.backend,
        )

    async def _load(self, model: str) -> None:
        options = self._load_options(model)
        self._compute_types[model] = options.compute_type
        info = await self._ask(_LOAD_DEADLINE_S, whisper.load, options)
        self._loads += 1
        self._oom.loaded(model, options.compute_type)
        self._catalogue.languages[model] = info.languages
        if info.batch_size is not None and info.batch_size < self._oom.batch_size:
            self._oom.batch_size = size = info.batch_size
            log.warning("memory is short: smaller batches", slot=self.index, model=model, batch_size=size)
        if model == self._catalogue.default or self._info is None:
            self._info = info
        self._held[model] = None
        if info.note is not None:
            self._note(model, info.note)

    def _note(self, model: str, note: str) -> None:
        """Log once, for all slots, what the results of a model lack; `row` shows it."""
        if model not in self._catalogue.notes:
            self._catalogue.notes[model] = f"{model}: {explain(note)}"
            log.warning("transcripts are incomplete", slot=self.index, model=model, reason=explain(note))

    def _stop_unload_timer(self, model: str) -> None:
        timer = self._held[model]
        if timer is not None:
            timer.cancel()
        self._held[model] = None

    def _start_unload_timer(self, model: str) -> None:
        """Unload a model after `idle_s` without use."""
        self._stop_unload_timer(model)
        self._held[model] = asyncio.get_running_loop().call_later(
            self._catalogue.idle_s,
            lambda: self._background.spawn(self._unload_unused(model)),
            context=contextvars.Context(),  # without the ids of the batch that was the last one
        )

    async def _unload_unused(self, model: str) -> None:
        async with self._changing:
            # Its timer may have run out while another was being unloaded, and the worker may have ended.
            if model in self._held:
                log.info("unloading idle model", slot=self.index, model=model)
                await self._unload(model)

    async def _unload(self, model: str) -> None:
        self._stop_unload_timer(model)
        del self._held[model]
        with suppress(ProcessCrashed):  # its memory is free then, too
            await self._ask(_LOAD_DEADLINE_S, whisper.unload, model)


@contextmanager
def _device_failures() -> Iterator[None]:
    """Raise DeviceFailed for errors of the device, and for a worker that hangs by itself."""
    try:
        yield
    except ProcessHung as error:
        if error.fault is Fault.OUTSIDE:
            raise
        raise DeviceFailed(error.message) from error
    except (RuntimeError, ValueError) as error:
        if cause_of(error) is Cause.DEVICE:
            raise DeviceFailed(last_line(error)) from error
        raise
