"""The GPUs as NVML sees them. CUDA is not touched."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from app.doctor.finding import UNKNOWN, Finding, Severity, fail, ok, warn
from app.doctor.machine import gigabytes
from app.known_errors import diagnose

MIN_DRIVER = 525  # of CUDA 12.x: NVIDIA, "CUDA Compatibility", minor version compatibility
# What the wheel of CTranslate2 4.8 brings: machine code for 5.3 to 8.6, which runs on 8.9, too, and PTX
# of 8.6, which the driver compiles for whatever is newer.
OLDEST_CAPABILITY = (5, 3)
FIRST_COMPILED_CAPABILITY = (9, 0)
LITTLE_MEMORY = 2 * 10**9  # bytes: the weights of large-v3-turbo are 1.6 GB in float16
_NO_DRIVER = "NVML Shared Library Not Found"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, or what NVML would tell of it."""

    name: str
    uuid: str
    capability: tuple[int, int]
    memory: tuple[int, int] | None  # free and total, in bytes; None where NVML does not say
    mig: tuple[str, ...] | None = None  # ids of its MIG instances; None with MIG off


@dataclass(frozen=True, slots=True)
class Machine:
    """All that NVML tells."""

    driver: str = ""
    gpus: tuple[Gpu, ...] = ()
    error: str | None = None  # why NVML tells nothing


def look() -> Machine:
    """Ask NVML."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Machine(error=str(error))
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return Machine(str(pynvml.nvmlSystemGetDriverVersion()), tuple(map(_gpu, handles)))
    except pynvml.NVMLError as error:
        return Machine(error=str(error))
    finally:
        pynvml.nvmlShutdown()


def findings(
    machine: Machine, device: str, visible: Sequence[str] | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """What to say of the driver and of each GPU. Pure.

    `device` is the setting: "auto", "cuda" or "cpu". `visible` is what the workers are to see, as for
    `CUDA_VISIBLE_DEVICES`; None: not known, so all of them count.
    """
    yield _driver(machine, device, visible, environ)
    for index, gpu in enumerate(machine.gpus):
        entries = None if visible is None else [one for one in visible if _names(one, index, gpu)]
        if device == "cpu" or entries == []:
            yield ok(f"GPU {index}", f"{_described(gpu)}; not used")
        else:
            yield _of_gpu(f"GPU {index}", gpu, entries or [])


def _names(entry: str, index: int, gpu: Gpu) -> bool:
    """Whether an entry of `CUDA_VISIBLE_DEVICES` means a GPU, or an instance of it."""
    if entry == str(index) or gpu.uuid.startswith(entry):
        return True
    return entry in (gpu.mig or ()) or entry.startswith(f"MIG-{gpu.uuid}/")  # the older form of MIG ids


def _driver(
    machine: Machine, device: str, visible: Sequence[str] | None, environ: Mapping[str, str]
) -> Finding:
    title = "NVIDIA driver"
    if machine.error is not None:
        return _unreachable(title, machine.error, device)
    count = len(machine.gpus)
    found = f"{machine.driver}, {count} GPU{'' if count == 1 else 's'}"
    if "CUDA_VISIBLE_DEVICES" in environ:
        found += f", CUDA_VISIBLE_DEVICES={environ['CUDA_VISIBLE_DEVICES']}"
    is_wanted = device != "cpu" and visible != ()
    if is_wanted and _major(machine.driver) < MIN_DRIVER:
        cure = f"The driver is too old for CUDA 12: update it to {MIN_DRIVER} or newer, and reboot."
        return fail(title, found, cure, "driver-too-old")
    if not count and device == "cuda":
        return fail(title, found, "The driver finds no GPU: `sudo dmesg | grep NVRM` says why.", "no-gpu")
    return ok(title, found)


def _unreachable(title: str, error: str, device: str) -> Finding:
    if device == "cpu" or (device == "auto" and error == _NO_DRIVER):
        return ok(title, f"none ({error}); the CPU does the work")
    trouble = diagnose(f"NVML: {error}")
    status = Severity.FAIL if device == "cuda" else Severity.WARN
    found = error if device == "cuda" else f"{error}; so the CPU does the work"
    return Finding(title, found, status, trouble.advice if trouble else UNKNOWN)


def _described(gpu: Gpu) -> str:
    memory = "" if gpu.memory is None else f", {gigabytes(gpu.memory[0])} of {gigabytes(gpu.memory[1])} free"
    return f"{gpu.name}{memory}, compute capability {_dotted(gpu.capability)}"


def _of_gpu(title: str, gpu: Gpu, entries: Sequence[str]) -> Finding:
    found = _described(gpu)
    if gpu.capability < OLDEST_CAPABILITY:
        cure = (
            f"CTranslate2 has code for {_dotted(OLDEST_CAPABILITY)} and newer: leave it out (WHISPER_GPUS)."
        )
        return fail(title, found, cure, "no-kernel-image")
    if gpu.mig is not None:
        return _divided(title, found, gpu.mig, entries)
    if gpu.memory is not None and gpu.memory[0] < LITTLE_MEMORY:
        cure = "Little memory is free: end what else is on it (`nvidia-smi`), or choose a smaller model."
        return warn(title, found, cure, "gpu-out-of-memory")
    if gpu.capability >= FIRST_COMPILED_CAPABILITY:
        found += "; the driver compiles for it on the first load, which may take minutes"
    return ok(title, found)


def _divided(title: str, found: str, instances: Sequence[str], entries: Sequence[str]) -> Finding:
    found += f", MIG: {', '.join(instances) or 'no instances'}"
    if not instances:
        cure = "There is nothing to compute on: make instances, or switch MIG off."
        return fail(title, found, cure, "wrong-gpu-names")
    if not any(entry.startswith("MIG-") for entry in entries):
        cure = f"At most one instance would be used: name them, WHISPER_GPUS={','.join(instances)}."
        return warn(title, found, cure, "wrong-gpu-names")
    return ok(title, found)


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


def _major(driver: str) -> int:
    head = driver.partition(".")[0]
    return int(head) if head.isdecimal() else MIN_DRIVER


def _gpu(handle: Any) -> Gpu:
    import pynvml

    memory = None
    with suppress(pynvml.NVMLError):  # where CPU and GPU share their memory
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
        memory = (int(info.free), int(info.total))
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        name=str(pynvml.nvmlDeviceGetName(handle)),
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        capability=(int(major), int(minor)),
        memory=memory,
        mig=_mig_instances(handle),
    )


def _mig_instances(handle: Any) -> tuple[str, ...] | None:
    import pynvml

    try:
        current, _ = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError:
        return None
    if current != pynvml.NVML_DEVICE_MIG_ENABLE:
        return None
    instances = []
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with suppress(pynvml.NVMLError):  # no instance in this place
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            instances.append(str(pynvml.nvmlDeviceGetUUID(instance)))
    return tuple(instances)
