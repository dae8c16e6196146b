"""The `local` engine: one spawned worker process for each slot, pinned to the slot's GPU."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from app.fleet.child import Child
from app.fleet.dispatcher import Status
from workers import runtime, whisper
from workers.messages import SAMPLE_RATE, Clip, ClipResult, LoadOptions, WorkerInfo

# Reads a clip's audio when its turn has come: what waits in the queue takes no memory.
ClipSource = Callable[[], Clip]

_LOAD_DEADLINE_S = 900.0  # a large model from a slow disk, kernels compiled for a new GPU
_MIN_DEADLINE_S = 300.0
_DEADLINE_RATIO = 60.0  # times the audio's length: a large model on one slow core needs some 20


def read_clips(sources: Sequence[ClipSource]) -> list[Clip]:
    """The clips themselves."""
    return [source() for source in sources]


class WhisperSlot(ABC):
    """What the slots of all engines have in common: what they have done, and how they tell of it."""

    def __init__(self, index: int, options: LoadOptions) -> None:
        self.index = index
        self.status = Status()
        self.died = asyncio.Event()
        self._options = options
        self._info: WorkerInfo | None = None
        self._loads = 0
        self._clips = 0
        self._samples = 0

    @abstractmethod
    async def start(self) -> None:
        """Bring the worker up and have it load its model."""

    @abstractmethod
    async def run(self, payloads: Sequence[ClipSource]) -> list[ClipResult]:
        """Have the worker hear a batch of clips."""

    @abstractmethod
    async def close(self) -> None:
        """End the worker."""

    def _loaded(self, info: WorkerInfo) -> None:
        self._info = info
        self._loads += 1

    def _heard(self, clips: Sequence[Clip]) -> None:
        self._clips += len(clips)
        self._samples += sum(clip.samples for clip in clips)

    def row(self) -> dict[str, object]:
        """The slot as `GET /v1/workers` shows it."""
        info = self._info
        return {
            "slot": self.index,
            "device": self._options.device,
            "visible_devices": info.visible_devices if info else None,
            "pid": info.pid if info else None,
            "model": self._options.model,
            "compute_type": info.compute_type if info else self._options.compute_type,
            "state": self.status.state,
            "loads": self._loads,
            "batches": self.status.batches,
            "clips": self._clips,
            "audio_s": round(self._samples / SAMPLE_RATE, 2),
            "restarts": self.status.restarts,
            "error": self.status.error,
        }


class LocalSlot(WhisperSlot):
    """A worker process on one GPU, or on some CPU cores."""

    def __init__(self, index: int, visible_devices: str, options: LoadOptions) -> None:
        super().__init__(index, options)
        self._child = Child(runtime.initialise, visible_devices)
        self._child.on_death = self.died.set

    async def start(self) -> None:
        """Spawn the worker and have it load its model, as a task: so that the real error is seen."""
        await self._child.start()
        info = await self._child.call(whisper.load, self._options, deadline_s=_LOAD_DEADLINE_S)
        self._loaded(info)

    async def run(self, payloads: Sequence[ClipSource]) -> list[ClipResult]:
        """Have the worker hear a batch of clips."""
        clips = await asyncio.to_thread(read_clips, payloads)
        audio_s = sum(clip.samples for clip in clips) / SAMPLE_RATE
        deadline_s = max(_MIN_DEADLINE_S, _DEADLINE_RATIO * audio_s)
        results = await self._child.call(whisper.transcribe, clips, deadline_s=deadline_s)
        self._heard(clips)
        return results

    async def close(self) -> None:
        """Kill the worker."""
        self._info = None
        await self._child.close()
