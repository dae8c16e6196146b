"""Which GPUs there are, and which worker gets which. NVML counts them: CUDA is never touched here."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.errors import InvalidSetting
from app.settings import Settings

_CORES_PER_CPU_WORKER = 4
# If there are as many cores: two workers of one thread are 1.9 times as fast as one worker of two.
_FEWEST_CPU_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Devices:
    """The `CUDA_VISIBLE_DEVICES` of each worker."""

    device: str  # "cuda", "cpu" or "simulated"
    visible: tuple[str, ...]
    cpu_threads: int  # of each worker


def count_gpus() -> int:
    """How many GPUs NVML sees; 0 without a driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def plan_devices(settings: Settings, environ: Mapping[str, str], gpu_count: int, cores: int) -> Devices:
    """One entry for each worker. Pure.

    Honours the `CUDA_VISIBLE_DEVICES` of this process: `all` means its entries, and an index in
    `WHISPER_GPUS` counts within them, as in CUDA. UUIDs and MIG ids stay as they are. Raises InvalidSetting
    for a GPU that is not there.
    """
    if settings.engine == "simulated":
        return Devices("simulated", _cpu_entries(settings, cores), 1)
    given = environ.get("CUDA_VISIBLE_DEVICES")
    present = _given_entries(given) if given is not None else [str(i) for i in range(gpu_count)]
    present = present if gpu_count else []
    device = ("cuda" if present else "cpu") if settings.device == "auto" else settings.device
    if device == "cpu":
        entries = _cpu_entries(settings, cores)
        return Devices(device, entries, settings.cpu_threads or max(1, cores // len(entries)))
    if not present:
        hidden = " that CUDA_VISIBLE_DEVICES leaves visible" if gpu_count else ""
        raise InvalidSetting(
            f"WHISPER_DEVICE=cuda, but there is no NVIDIA GPU{hidden}: check `nvidia-smi`, and in a "
            "container the NVIDIA container toolkit, or set WHISPER_DEVICE=cpu"
        )
    return Devices(device, _gpu_entries(settings.gpus, present), settings.cpu_threads or 4)


def _given_entries(value: str) -> list[str]:
    """The entries before the first invalid one: CUDA ignores the rest of its list."""
    entries: list[str] = []
    for entry in value.split(","):
        if not entry.strip() or entry.strip().startswith("-"):
            break
        entries.append(entry.strip())
    return entries


def _cpu_entries(settings: Settings, cores: int) -> tuple[str, ...]:
    if settings.gpus and settings.gpus != ("all",):
        return settings.gpus
    workers = settings.cpu_workers or max(cores // _CORES_PER_CPU_WORKER, min(cores, _FEWEST_CPU_WORKERS))
    return tuple(str(index) for index in range(workers))


def _gpu_entries(wanted: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
    if not wanted or tuple(wanted) == ("all",):
        return tuple(present)
    entries = []
    for entry in wanted:
        if not entry.isdecimal():
            entries.append(entry)
        elif int(entry) < len(present):
            entries.append(present[int(entry)])
        else:
            raise InvalidSetting(
                f"WHISPER_GPUS={','.join(wanted)}: there is no GPU {entry}; found {len(present)}"
            )
    return tuple(entries)
