"""NVIDIA's driver and GPUs as NVML describes them. It creates no CUDA context."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PresentGpu:
    """A GPU that NVML lists. One that has failed has no values."""

    uuid: str = ""
    instances: tuple[str, ...] | None = None  # UUIDs of its MIG instances; None if MIG is disabled
    capability: tuple[int, int] = (0, 0)  # CUDA's compute capability
    name: str = ""
    memory: tuple[int, int] | None = None  # free and total, in bytes; None if NVML does not know

    @property
    def is_unusable(self) -> bool:
        """Whether MIG is enabled, but there is no instance that could compute."""
        return self.instances == ()


@dataclass(frozen=True, slots=True)
class NvidiaDriver:
    """NVIDIA's driver, and all GPUs in its order."""

    version: str = ""
    gpus: tuple[PresentGpu, ...] = ()
    error: str | None = None  # why NVML, or one of the GPUs, failed


def query_nvml() -> NvidiaDriver:
    """The driver and its GPUs; without a driver, there is an error. May block."""
    import pynvml

    errors: list[str] = []
    try:
        with opened():
            gpus = tuple(_gpu(index, errors) for index in range(pynvml.nvmlDeviceGetCount()))
            version = str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError as error:
        return NvidiaDriver(error=str(error))
    return NvidiaDriver(version, gpus, next(iter(errors), None))


def list_gpus() -> tuple[PresentGpu, ...]:
    """The GPUs that NVML sees, in its order; none without a driver."""
    return query_nvml().gpus


@contextmanager
def opened() -> Iterator[None]:
    """Open NVML for the block. Raises NVMLError without a driver."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def mig_instances(handle: Any) -> tuple[str, ...] | None:
    """The UUIDs of a GPU's MIG instances; None if MIG is disabled. `handle` is NVML's, which must be open."""
    import pynvml

    try:
        current, _ = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError:
        return None
    if current != pynvml.NVML_DEVICE_MIG_ENABLE:
        return None
    instances = []
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with suppress(pynvml.NVMLError):  # no instance at this index
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            instances.append(str(pynvml.nvmlDeviceGetUUID(instance)))
    return tuple(instances)


def _gpu(index: int, errors: list[str]) -> PresentGpu:
    """A GPU; without values if it fails, for a reason that is added to `errors`."""
    import pynvml

    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        memory = None
        with suppress(pynvml.NVMLError):  # not supported if CPU and GPU use the same memory
            info = pynvml.nvmlDeviceGetMemoryInfo(handle)
            memory = (int(info.free), int(info.total))
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        return PresentGpu(
            uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
            instances=mig_instances(handle),
            capability=(int(major), int(minor)),
            name=str(pynvml.nvmlDeviceGetName(handle)),
            memory=memory,
        )
    except pynvml.NVMLError as error:  # it must not hide the others; its worker shows the reason
        errors.append(str(error))
        return PresentGpu()
