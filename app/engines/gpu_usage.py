"""How full and how busy the slots' GPUs are, as NVML says. It creates no CUDA context."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.engines.nvml import mig_instances, opened
from app.telemetry.sampler import Sampler


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU, or one MIG instance. None: NVML does not know it."""

    memory_used: int | None  # bytes, by all processes
    memory_total: int | None  # bytes
    utilisation: float | None  # the part of the last moments in which it computed, 0 to 1


GpuSamples = Sequence[GpuSample | None]


class GpuMonitor:
    """Samples the GPUs of slots when it is asked to, in a thread. Never raises, and never blocks the loop."""

    def __init__(
        self, names: Sequence[str], read: Callable[[Sequence[str]], GpuSamples] | None = None
    ) -> None:
        """`names`: the GPU of each slot, as `CUDA_VISIBLE_DEVICES` names it. Empty without GPUs."""
        self._names = names
        self._sampler = Sampler("the GPUs", "NVML", partial(read or read_usage, names))

    def usage(self, slot: int) -> GpuSample | None:
        """The latest figures of a slot's GPU; None if there are none."""
        usages = self._sampler.latest or ()
        return usages[slot] if slot < len(usages) else None

    def by_name(self) -> dict[str, GpuSample]:
        """The latest figures of each GPU that has some, by its name."""
        usages = self._sampler.latest or ()
        return {name: usage for name, usage in zip(self._names, usages, strict=False) if usage is not None}

    def refresh(self) -> None:
        """Start a sample unless the last one is recent, or NVML still has not answered."""
        if self._names:
            self._sampler.refresh()

    async def sample(self) -> None:
        """Refresh the figures, and wait for them a little unless NVML hangs already."""
        if self._names:
            await self._sampler.sample()


def read_usage(names: Sequence[str]) -> list[GpuSample | None]:
    """The figures of GPUs that `CUDA_VISIBLE_DEVICES` names: by index, by UUID or its beginning, or a MIG id.

    None for one that NVML does not know, or that fails. May block. Raises NVMLError without a driver.
    """
    with opened():
        handles = _handles()
        found = {name: _find(name, handles) for name in dict.fromkeys(names)}
        usages = {name: None if handle is None else _usage(handle) for name, handle in found.items()}
        return [usages[name] for name in names]


def _handles() -> dict[str, Any]:
    """NVML's handles of all GPUs by index and UUID, and those of MIG instances by UUID."""
    import pynvml

    handles: dict[str, Any] = {}
    for index in range(pynvml.nvmlDeviceGetCount()):
        with suppress(pynvml.NVMLError):  # a GPU that has failed must not hide the others
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            handles[str(index)] = handle
            handles[str(pynvml.nvmlDeviceGetUUID(handle))] = handle
            for uuid in mig_instances(handle) or ():
                handles[uuid] = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    return handles


def _find(name: str, handles: dict[str, Any]) -> Any:
    """The handle with a name, or the only one whose UUID begins with it."""
    if name in handles or name.isdecimal():
        return handles.get(name)
    matching = [handle for uuid, handle in handles.items() if uuid.startswith(name)]
    return matching[0] if len(matching) == 1 else None


def _usage(handle: Any) -> GpuSample | None:
    import pynvml

    used = total = utilisation = None
    with suppress(pynvml.NVMLError):  # not supported if CPU and GPU use the same memory
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        used, total = int(memory.used), int(memory.total)
    with suppress(pynvml.NVMLError):  # not supported for MIG instances
        utilisation = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
    if total is None and utilisation is None:
        return None
    return GpuSample(used, total, utilisation)
