"""What the slots of all engines have in common: the models that their worker holds, and what it has done."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from app.errors import ChildDied
from app.fleet.dispatcher import Status
from workers import whisper
from workers.messages import SAMPLE_RATE, Clip, ClipResult, LoadOptions, WorkerInfo

# Reads a clip's audio when its turn has come: what waits in the queue takes no memory.
ClipSource = Callable[[], Clip]

R = TypeVar("R")

_LOAD_DEADLINE_S = 900.0  # a large model from a slow disk, kernels compiled for a new GPU
_MIN_DEADLINE_S = 300.0
_DEADLINE_RATIO = 60.0  # times the audio's length: a large model on one slow core needs some 20

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Catalogue:
    """The models whose files are on this machine, by the names that requests use."""

    default: str  # loaded at the start, and never unloaded for being idle
    idle_s: float  # that another model may be idle before it is unloaded
    options: dict[str, LoadOptions] = field(default_factory=dict)


class WhisperSlot(ABC):
    """A worker and its models. One call at a time reaches it, in the order that they are made."""

    def __init__(self, index: int, catalogue: Catalogue) -> None:
        self.index = index
        self.status = Status()
        self.died = asyncio.Event()
        self._catalogue = catalogue
        self._info: WorkerInfo | None = None
        self._held: dict[str, asyncio.TimerHandle | None] = {}  # models in memory; when each is to go
        self._languages: dict[str, tuple[str, ...]] = {}  # of the models that have been loaded
        self._loads = 0
        self._clips = 0
        self._samples = 0
        self._background: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Bring the worker up and have it load the default model.

        As a task, so that the real error is seen: an initializer that fails shows none.
        """
        await self._spawn()
        await self._load(self._catalogue.default)

    async def run(self, payloads: Sequence[ClipSource]) -> list[ClipResult]:
        """Have the worker hear a batch of clips, with their model, which it loads if it has to."""
        clips = await asyncio.to_thread(_read, payloads)
        model = clips[0].decoding.model
        if model in self._held:
            self._keep(model)
        else:
            await self._make_room_and_load(model)
        samples = sum(clip.samples for clip in clips)
        deadline_s = max(_MIN_DEADLINE_S, _DEADLINE_RATIO * samples / SAMPLE_RATE)
        try:
            results = await self._call(whisper.transcribe, clips, deadline_s=deadline_s)
        finally:
            self._unload_when_idle(model)
        self._clips += len(clips)
        self._samples += samples
        return results

    async def close(self) -> None:
        """End the worker."""
        self._info = None
        for model in list(self._held):
            self._keep(model)
        self._held.clear()
        await self._end()

    def holds(self, model: str) -> bool:
        """Whether the worker has a model in memory."""
        return model in self._held

    def languages(self, model: str) -> tuple[str, ...] | None:
        """The languages of a model, ISO 639-1; None where it has not been loaded yet."""
        return self._languages.get(model)

    def row(self) -> dict[str, object]:
        """The slot as `GET /v1/workers` shows it."""
        info = self._info
        options = self._catalogue.options[self._catalogue.default]
        return {
            "slot": self.index,
            "device": options.device,
            "visible_devices": info.visible_devices if info else None,
            "pid": info.pid if info else None,
            "model": options.model,
            "models": sorted(self._held),
            "compute_type": info.compute_type if info else options.compute_type,
            "state": self.status.state,
            "loads": self._loads,
            "batches": self.status.batches,
            "clips": self._clips,
            "audio_s": round(self._samples / SAMPLE_RATE, 2),
            "restarts": self.status.restarts,
            "error": self.status.error,
        }

    @abstractmethod
    async def _spawn(self) -> None:
        """Bring up a worker without a model."""

    @abstractmethod
    async def _call(self, function: Callable[..., R], *args: object, deadline_s: float) -> R:
        """Run a function of `workers.whisper` in the worker, behind what it has been called for before."""

    @abstractmethod
    async def _end(self) -> None:
        """End the worker."""

    async def _make_room_and_load(self, model: str) -> None:
        try:
            await self._load(model)
        except (RuntimeError, MemoryError) as error:
            others = list(self._held)
            if not others or not _out_of_memory(error):
                raise
            log.warning("memory is short: unloading other models", slot=self.index, models=others)
            for name in others:
                await self._unload(name)
            await self._load(model)

    async def _load(self, model: str) -> None:
        options = self._catalogue.options[model]
        info = await self._call(whisper.load, options, deadline_s=_LOAD_DEADLINE_S)
        self._loads += 1
        self._languages[model] = info.languages
        if model == self._catalogue.default or self._info is None:
            self._info = info
        self._held[model] = None

    def _keep(self, model: str) -> None:
        """Stop the clock on which a model is unloaded."""
        timer = self._held[model]
        if timer is not None:
            timer.cancel()
        self._held[model] = None

    def _unload_when_idle(self, model: str) -> None:
        """Start that clock anew; for the default model there is none."""
        if model in self._held and model != self._catalogue.default:
            self._keep(model)
            loop = asyncio.get_running_loop()
            self._held[model] = loop.call_later(self._catalogue.idle_s, self._unload_soon, model)

    def _unload_soon(self, model: str) -> None:
        log.info("unloading idle model", slot=self.index, model=model)
        task = asyncio.get_running_loop().create_task(self._unload(model))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _unload(self, model: str) -> None:
        if model not in self._held:
            return  # its time ran out while another was being unloaded, or the worker has ended
        # Forgotten first: whoever needs the model from now on loads it anew, behind this call.
        self._keep(model)
        del self._held[model]
        with suppress(ChildDied):  # then it is unloaded, too
            await self._call(whisper.unload, model, deadline_s=_LOAD_DEADLINE_S)


def _read(sources: Sequence[ClipSource]) -> list[Clip]:
    return [source() for source in sources]


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()
