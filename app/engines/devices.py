"""The GPU of each worker, as settings and `CUDA_VISIBLE_DEVICES` name those that NVML lists."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.common.errors import InvalidSetting
from app.engines.nvml import PresentGpu
from app.settings import Settings

_CORES_PER_CPU_WORKER = 4
# Of a worker: they compute features, and each decodes a part of a batch. On an H200, 16 windows at once took
# 6 s with one, 2.3 s with 4, 1.8 s with 8 and 2.1 s with 16.
_FEWEST_THREADS_BESIDE_GPU, _MOST_THREADS_BESIDE_GPU = 4, 8
# If there are as many cores: two workers of one thread are 1.9 times as fast as one worker of two.
_FEWEST_CPU_WORKERS = 2
_NO_GPU = ("", "NoDevFiles")  # of schedulers and of people who mean none, as -1 is


@dataclass(frozen=True, slots=True)
class Devices:
    """The `CUDA_VISIBLE_DEVICES` of each worker."""

    device: str  # "cuda", "cpu" or "simulated"
    visible: tuple[str, ...]
    cpu_threads: int  # of each worker
    warnings: tuple[str, ...] = ()  # GPUs that are left out, and why


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def plan_devices(
    settings: Settings, environ: Mapping[str, str], gpus: Sequence[PresentGpu], cores: int
) -> Devices:
    """One entry for each worker. `gpus` are all that NVML lists, in its order. Pure.

    Honours the `CUDA_VISIBLE_DEVICES` of this process: `all` means the entries that count, and an index in
    `WHISPER_GPUS` counts within them, as in CUDA. An entry that names a GPU with MIG enabled, by index or
    UUID, stands for all of its instances. Other UUIDs and MIG ids stay as they are. Raises InvalidSetting
    for a GPU that is not there, or that was named and cannot compute.
    """
    if settings.engine == "simulated":
        return Devices("simulated", _cpu_entries(settings, cores), 1)
    present, ignored = visible_entries(environ, gpus)
    unusable = [entry for entry in present if _found(entry, gpus).is_unusable]
    all_usable = [entry for entry in present if entry not in unusable]
    warnings = (*ignored, *(_no_instances(f"GPU {entry}") for entry in unusable))
    device = ("cuda" if all_usable else "cpu") if settings.device == "auto" else settings.device
    if device == "cpu":
        entries = _cpu_entries(settings, cores)
        warnings = warnings if settings.device == "auto" else ()
        return Devices(device, entries, settings.cpu_threads or max(1, cores // len(entries)), warnings)
    if not present:
        hidden = f" that {'; '.join(ignored) or 'CUDA_VISIBLE_DEVICES'} leaves visible" if gpus else ""
        raise InvalidSetting(
            f"WHISPER_DEVICE=cuda, but there is no NVIDIA GPU{hidden}: check `nvidia-smi`, and in a "
            "container the NVIDIA container toolkit, or set WHISPER_DEVICE=cpu"
        )
    if settings.gpus and settings.gpus != ("all",):
        named = _named_entries(settings.gpus, present, gpus)
        if settings.engine == "inline":
            _check_first(named[0], _instances(all_usable, gpus), gpus)
        return Devices(device, named, _threads_beside_gpu(settings, cores // len(named)))
    if not all_usable:
        raise InvalidSetting(f"WHISPER_DEVICE=cuda, but {'; '.join(warnings)}")
    visible = _instances(all_usable, gpus)
    return Devices(device, visible, _threads_beside_gpu(settings, cores // len(visible)), warnings)


def plan_cluster_devices(settings: Settings, device: str) -> Devices:
    """The device of all workers on a cluster: "simulated" if WHISPER_SIMULATED is set.

    `device`: of workers whose settings leave the choice. A worker on a CPU has one thread for each of Ray's
    CPUs that it takes.
    """
    if settings.simulated:
        return Devices("simulated", (), 1)
    device = device if settings.device == "auto" else settings.device
    threads = _threads_beside_gpu(settings) if device == "cuda" else settings.cpu_threads or 1
    return Devices(device, (), threads)


def _threads_beside_gpu(settings: Settings, cores: int = 0) -> int:
    """How many threads a worker has if there are so many cores for it; 0: that is not known."""
    threads = min(_MOST_THREADS_BESIDE_GPU, max(_FEWEST_THREADS_BESIDE_GPU, cores))
    return settings.cpu_threads or threads


def visible_entries(
    environ: Mapping[str, str], gpus: Sequence[PresentGpu]
) -> tuple[list[str], tuple[str, ...]]:
    """The GPUs that CUDA lets this process see, as entries of `CUDA_VISIBLE_DEVICES`; and why others are not.

    CUDA ignores all entries from the first one that names no GPU on, and all of them if two name the same GPU
    (CUDA C++ Programming Guide, "CUDA Environment Variables"; the second is not documented). Pure.
    """
    given = environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return [str(index) for index in range(len(gpus))], ()
    entries: list[str] = []
    named: set[str] = set()
    for entry in map(str.strip, given.split(",") if gpus else ()):
        name = _full_name(entry, gpus)
        if name is None:
            reason = f"CUDA_VISIBLE_DEVICES={given}: CUDA finds no GPU {entry}, and ignores what follows it"
            return entries, () if entry in _NO_GPU or entry.startswith("-") else (reason,)
        if name in named:
            return [], (
                f"CUDA_VISIBLE_DEVICES={given}: {entry} names a GPU again, so CUDA ignores all entries",
            )
        named.add(name)
        entries.append(entry)
    return entries, ()


def _full_name(entry: str, gpus: Sequence[PresentGpu]) -> str | None:
    """One name for each GPU or MIG instance that an entry may name in several ways; None if it names none."""
    if entry.isdecimal():
        return (gpus[int(entry)].uuid or str(int(entry))) if int(entry) < len(gpus) else None
    if not entry.startswith(("GPU-", "MIG-")):
        return None
    uuids = [uuid for gpu in gpus for uuid in (gpu.uuid, *(gpu.instances or ()))]
    matching = [uuid for uuid in uuids if uuid.startswith(entry)]
    if entry in matching or len(matching) == 1:
        return entry if entry in matching else matching[0]
    # One that NVML does not know may have this name, too.
    is_older_form = any(entry.startswith(f"MIG-{gpu.uuid}/") for gpu in gpus if gpu.uuid)
    return entry if is_older_form or ("" in uuids and not matching) else None


def _cpu_entries(settings: Settings, cores: int) -> tuple[str, ...]:
    if settings.gpus and settings.gpus != ("all",):
        return settings.gpus
    workers = settings.cpu_workers or max(cores // _CORES_PER_CPU_WORKER, min(cores, _FEWEST_CPU_WORKERS))
    return tuple(str(index) for index in range(workers))


def _named_entries(
    wanted: Sequence[str], present: Sequence[str], gpus: Sequence[PresentGpu]
) -> tuple[str, ...]:
    setting = f"WHISPER_GPUS={','.join(wanted)}"
    entries = []
    for entry in wanted:
        if entry.isdecimal() and int(entry) >= len(present):
            raise InvalidSetting(f"{setting}: there is no GPU {entry}; found {len(present)}")
        entries.append(present[int(entry)] if entry.isdecimal() else entry)
        if _found(entries[-1], gpus).is_unusable:
            raise InvalidSetting(f"{setting}: {_no_instances(f'GPU {entry}')}")
    return _instances(entries, gpus)


def _check_first(entry: str, visible: Sequence[str], gpus: Sequence[PresentGpu]) -> None:
    """Raise InvalidSetting unless an entry names the first visible GPU, the only one used in this process."""
    first = visible[0] if visible else entry
    if entry != first and not _found(first, gpus).uuid.startswith(entry):
        raise InvalidSetting(
            "WHISPER_GPUS: WHISPER_ENGINE=inline uses the first GPU that its process sees; set "
            f"CUDA_VISIBLE_DEVICES={entry} instead of WHISPER_GPUS, or WHISPER_ENGINE=local"
        )


def _instances(entries: Sequence[str], gpus: Sequence[PresentGpu]) -> tuple[str, ...]:
    """The entries, each GPU with MIG enabled replaced by its instances.

    With MIG enabled anywhere, CUDA need not count as NVML does: UUIDs then name the other GPUs, too.
    """
    any_mig = any(gpu.instances is not None for gpu in gpus)
    chosen: list[str] = []
    for entry in entries:
        gpu = _found(entry, gpus)
        if gpu.instances is not None:
            chosen += gpu.instances
        else:
            chosen.append(gpu.uuid if any_mig and gpu.uuid else entry)
    return tuple(chosen)


def _found(entry: str, gpus: Sequence[PresentGpu]) -> PresentGpu:
    """The GPU that an entry of `CUDA_VISIBLE_DEVICES` names by its index or its complete UUID."""
    names = {str(index): gpu for index, gpu in enumerate(gpus)} | {gpu.uuid: gpu for gpu in gpus if gpu.uuid}
    return names.get(entry, PresentGpu())


def _no_instances(gpu: str) -> str:
    return (
        f"{gpu} has MIG enabled but no instances: create some (`nvidia-smi mig -cgi …,… -C`), or disable MIG "
        "(`nvidia-smi -mig 0`)"
    )
