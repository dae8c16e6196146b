"""NVML with GPUs that a test defines: put it in place of the module `pynvml`."""

from dataclasses import dataclass

import pynvml


@dataclass(frozen=True)
class FakeGpu:
    uuid: str
    instances: tuple[str, ...] | None = None  # None: it has no MIG mode
    lost: bool = False


def mig_gpu(uuid: str, *instances: str) -> FakeGpu:
    """A GPU with MIG enabled."""
    return FakeGpu(uuid, instances)


def whole_gpu(uuid: str) -> FakeGpu:
    return FakeGpu(uuid)


class FakeNvml:
    """The functions of `pynvml` that the service calls. Its GPUs do not know their memory."""

    class NVMLError(Exception):
        pass

    NVML_DEVICE_MIG_ENABLE = 1

    def __init__(self, *gpus: FakeGpu, error: str = "") -> None:
        self.gpus = gpus
        self.error = error
        self.open = 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        if self.error:
            raise self.NVMLError(self.error)
        return len(self.gpus)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.124.06"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        if self.gpus[index].lost:
            raise self.NVMLError("GPU is lost")
        return self.gpus[index]

    def nvmlDeviceGetName(self, handle: FakeGpu) -> str:
        return "NVIDIA A100"

    def nvmlDeviceGetUUID(self, handle: FakeGpu | str) -> str:
        return handle if isinstance(handle, str) else handle.uuid

    def nvmlDeviceGetCudaComputeCapability(self, handle: FakeGpu) -> tuple[int, int]:
        return 8, 0

    def nvmlDeviceGetMemoryInfo(self, handle: FakeGpu) -> object:
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetMigMode(self, handle: FakeGpu) -> list[int]:
        if handle.instances is None:
            raise self.NVMLError("Not Supported")
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: FakeGpu) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: FakeGpu, index: int) -> str:
        instances = device.instances or ()
        if index >= len(instances):
            raise self.NVMLError("Not Found")
        return instances[index]


assert all(name.startswith("_") or hasattr(pynvml, name) for name in vars(FakeNvml)), "pynvml has others"
