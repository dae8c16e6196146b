"""How full and how busy the slots' GPUs are, as NVML says. It creates no CUDA context."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from app.engines.devices import mig_instances
from app.known_errors import explain

_INTERVAL_S = 2.0  # between two samples, at least
_PATIENCE_S = 1.0  # a caller waits so long for a sample
_STALE_S = 10.0  # figures that are older are not shown

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """One GPU, or one MIG instance. None: NVML does not know it."""

    memory_used: int | None  # bytes, by all processes
    memory_total: int | None  # bytes
    utilisation: float | None  # the part of the last moments in which it computed, 0 to 1

    def public(self) -> dict[str, object]:
        """The figures as JSON."""
        return {
            "memory_used": self.memory_used,
            "memory_total": self.memory_total,
            "utilisation": self.utilisation,
        }


Usages = Sequence[GpuUsage | None]


class GpuMonitor:
    """Samples the GPUs of slots when it is asked to, in a thread. Never raises, and never blocks the loop."""

    def __init__(self, names: Sequence[str], read: Callable[[Sequence[str]], Usages] | None = None) -> None:
        """`names`: the GPU of each slot, as `CUDA_VISIBLE_DEVICES` names it. Empty without GPUs."""
        self._names = names
        self._read = read or read_usage
        self._usages: Usages = ()
        self._read_at = -math.inf
        self._sampling: asyncio.Future[None] | None = None
        self._began = -math.inf  # the last sample
        self._is_reported = False  # the current failure

    def usage(self, slot: int) -> GpuUsage | None:
        """The latest figures of a slot's GPU; None if there are none."""
        if slot >= len(self._usages) or time.monotonic() - self._read_at > _STALE_S:
            return None
        return self._usages[slot]

    def refresh(self) -> None:
        """Start a sample unless the last one is recent, or NVML still has not answered."""
        now = time.monotonic()
        if not self._names or now - self._began < _INTERVAL_S:
            return
        if self._sampling is not None:
            if now - self._began > _STALE_S:
                self._report("NVML does not answer")
            return
        self._began = now
        self._sampling = asyncio.get_running_loop().create_future()
        # A daemon: NVML may hang for ever, and the interpreter waits for the threads of pools.
        threading.Thread(
            target=self._sample, args=(asyncio.get_running_loop(),), name="nvml", daemon=True
        ).start()

    async def sample(self) -> None:
        """Refresh the figures, and wait for them a little unless NVML hangs already."""
        self.refresh()
        if self._sampling is not None and time.monotonic() - self._began < _PATIENCE_S:
            await asyncio.wait([self._sampling], timeout=_PATIENCE_S)

    def _sample(self, loop: asyncio.AbstractEventLoop) -> None:
        usages: Usages = ()
        failure: str | None = None
        try:
            usages = self._read(self._names)
        except Exception as error:  # NVML's own, and those of a library that does not fit
            failure = explain(f"NVML: {error}")
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(self._end, usages, failure)

    def _end(self, usages: Usages, failure: str | None) -> None:
        self._usages, self._read_at = usages, time.monotonic()
        if failure is not None:
            self._report(failure)
        else:
            self._is_reported = False
        sampling, self._sampling = self._sampling, None
        if sampling is not None:
            sampling.set_result(None)

    def _report(self, reason: str) -> None:
        if not self._is_reported:
            log.warning("no figures of the GPUs", reason=reason)
            self._is_reported = True


def read_usage(names: Sequence[str]) -> list[GpuUsage | None]:
    """The figures of GPUs that `CUDA_VISIBLE_DEVICES` names: by index, by UUID or its beginning, or a MIG id.

    None for one that NVML does not know, or that fails. May block. Raises NVMLError without a driver.
    """
    import pynvml

    pynvml.nvmlInit()
    try:
        handles = _handles()
        found = {name: _find(name, handles) for name in dict.fromkeys(names)}
        usages = {name: None if handle is None else _usage(handle) for name, handle in found.items()}
        return [usages[name] for name in names]
    finally:
        pynvml.nvmlShutdown()


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


def _usage(handle: Any) -> GpuUsage | None:
    import pynvml

    used = total = utilisation = None
    with suppress(pynvml.NVMLError):  # not supported if CPU and GPU use the same memory
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        used, total = int(memory.used), int(memory.total)
    with suppress(pynvml.NVMLError):  # not supported for MIG instances
        utilisation = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
    if total is None and utilisation is None:
        return None
    return GpuUsage(used, total, utilisation)
