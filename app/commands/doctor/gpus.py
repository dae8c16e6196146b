"""Checks of the NVIDIA driver and the GPUs through NVML, without CUDA."""

from collections.abc import Iterator, Mapping, Sequence

from app.commands.doctor.finding import UNKNOWN, Finding, Severity, fail, ok, warn
from app.commands.doctor.machine import gigabytes
from app.common.known_errors import diagnose
from app.engines.devices import visible_entries
from app.engines.nvml import NvidiaDriver, PresentGpu

# The driver branch that each compute capability and all above it need. Compiled code runs with the first
# driver for CUDA 12 (NVIDIA, "CUDA Compatibility", minor version compatibility). For newer GPUs the driver
# compiles the wheel's PTX. That is of CUDA 12.8 (`.version 8.7`), and so must the driver be. The last row is
# the driver of CUDA 12.9, the first to know these GPUs.
MIN_DRIVERS = (((0, 0), 525), ((9, 0), 570), ((10, 3), 575))
BLACKWELL_OF_12_8 = (12, 0)  # numbered above 10.3, but CUDA 12.8 knows it
# The wheel of CTranslate2 4.8 contains machine code for 5.3 to 8.6, which also runs on 8.9, and PTX of 8.6,
# which the driver compiles for newer GPUs.
OLDEST_CAPABILITY = (5, 3)
FIRST_COMPILED_CAPABILITY = (9, 0)
LITTLE_MEMORY = 2 * 10**9  # bytes: the weights of large-v3-turbo are 1.6 GB in float16
_NO_DRIVER = "NVML Shared Library Not Found"


def check_gpus(
    driver: NvidiaDriver, device: str, visible: Sequence[str] | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Findings about the driver and each GPU. Pure.

    `device` is the setting: "auto", "cuda" or "cpu". `visible` lists the workers' GPUs in the format of
    `CUDA_VISIBLE_DEVICES`; None means unknown: all GPUs are checked.
    """
    yield _check_driver(driver, device, visible, environ)
    for index, gpu in enumerate(driver.gpus if driver.error is None else ()):
        entries = None if visible is None else [entry for entry in visible if _selects(entry, index, gpu)]
        if device == "cpu" or entries == []:
            yield ok(f"GPU {index}", f"{_describe(gpu)}; not used")
        else:
            yield _check_gpu(f"GPU {index}", gpu, entries or [])


def _selects(entry: str, index: int, gpu: PresentGpu) -> bool:
    """Whether an entry of `CUDA_VISIBLE_DEVICES` selects a GPU or one of its MIG instances."""
    if entry == str(index) or gpu.uuid.startswith(entry):
        return True
    return entry in (gpu.instances or ()) or entry.startswith(f"MIG-{gpu.uuid}/")  # the older form of MIG ids


def _check_driver(
    driver: NvidiaDriver, device: str, visible: Sequence[str] | None, environ: Mapping[str, str]
) -> Finding:
    title = "NVIDIA driver"
    if driver.error is not None:
        return _driver_error(title, driver.error, device)
    count = len(driver.gpus)
    found = f"{driver.version}, {count} GPU{'' if count == 1 else 's'}"
    if "CUDA_VISIBLE_DEVICES" in environ:
        _, ignored = visible_entries(environ, driver.gpus)
        found += f", {'; '.join(ignored) or 'CUDA_VISIBLE_DEVICES=' + environ['CUDA_VISIBLE_DEVICES']}"
    needs_cuda = device != "cpu" and visible != ()
    used = [
        gpu
        for index, gpu in enumerate(driver.gpus)
        if visible is None or any(_selects(entry, index, gpu) for entry in visible)
    ]
    if needs_cuda and (remedy := driver_remedy(driver.version, used)):
        return fail(title, found, remedy, "driver-too-old")
    if not count and device == "cuda":
        return fail(
            title, found, "The driver finds no GPU. `sudo dmesg | grep NVRM` shows the reason.", "no-gpu"
        )
    return ok(title, found)


def min_driver(capability: tuple[int, int]) -> int:
    """The oldest driver branch with which a GPU of this compute capability can be used."""
    if capability == BLACKWELL_OF_12_8:
        capability = FIRST_COMPILED_CAPABILITY
    return max(driver for first, driver in MIN_DRIVERS if capability >= first)


def driver_remedy(driver: str, gpus: Sequence[PresentGpu] = ()) -> str | None:
    """What to do if the driver is too old for CUDA 12 or for one of the GPUs; None if it is not."""
    branch = driver.partition(".")[0]
    needed = max((min_driver(gpu.capability) for gpu in gpus), default=MIN_DRIVERS[0][1])
    if not branch.isdecimal() or int(branch) >= needed:
        return None
    if int(branch) < MIN_DRIVERS[0][1]:
        return f"The driver is too old for CUDA 12: update it to {needed} or newer and reboot."
    newest = max(gpus, key=lambda gpu: min_driver(gpu.capability))
    return (
        f"The driver is too old for {newest.name} (compute capability {_dotted(newest.capability)}): "
        f"update it to {needed} or newer and reboot."
    )


def _driver_error(title: str, error: str, device: str) -> Finding:
    if device == "cpu" or (device == "auto" and error == _NO_DRIVER):
        return ok(title, f"none ({error}); the service uses the CPU")
    known = diagnose(f"NVML: {error}")
    severity = Severity.FAIL if device == "cuda" else Severity.WARN
    found = error if device == "cuda" else f"{error}; the service uses the CPU"
    return Finding(title, found, severity, known.advice if known else UNKNOWN)


def _describe(gpu: PresentGpu) -> str:
    memory = "" if gpu.memory is None else f", {gigabytes(gpu.memory[0])} of {gigabytes(gpu.memory[1])} free"
    return f"{gpu.name}{memory}, compute capability {_dotted(gpu.capability)}"


def _check_gpu(title: str, gpu: PresentGpu, entries: Sequence[str]) -> Finding:
    found = _describe(gpu)
    if gpu.capability < OLDEST_CAPABILITY:
        remedy = f"CTranslate2 needs {_dotted(OLDEST_CAPABILITY)} or newer: exclude this GPU (WHISPER_GPUS)."
        return fail(title, found, remedy, "no-kernel-image")
    if gpu.instances is not None:
        return _check_mig(title, found, gpu.instances, entries)
    if gpu.memory is not None and gpu.memory[0] < LITTLE_MEMORY:
        remedy = (
            "Little memory is free: end other programs on the GPU (`nvidia-smi`), or use a smaller model."
        )
        return warn(title, found, remedy, "gpu-out-of-memory")
    if gpu.capability >= FIRST_COMPILED_CAPABILITY:
        found += "; the driver compiles code for it on the first load, which can take minutes"
    return ok(title, found)


def _check_mig(title: str, found: str, instances: Sequence[str], entries: Sequence[str]) -> Finding:
    found += f", MIG: {', '.join(instances) or 'no instances'}"
    if not instances:
        remedy = "MIG is enabled but has no instances: create some, or disable MIG."
        return fail(title, found, remedy, "wrong-gpu-names")
    used = [entry for entry in entries if entry.startswith("MIG-")]
    if entries and not used:
        remedy = f"At most one instance would be used: set WHISPER_GPUS={','.join(instances)}."
        return warn(title, found, remedy, "wrong-gpu-names")
    return ok(title, f"{found}; used: {', '.join(used)}" if used else found)


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))
