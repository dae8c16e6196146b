"""NVML with GPUs that a test defines: put it in place of the module `pynvml`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace

import pynvml

Figures = tuple[int, int, int | None]  # bytes in use, all bytes, percent of the time in use if NVML knows it


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
    """The functions of `pynvml` that the service calls."""

    class NVMLError(Exception):
        pass

    NVML_DEVICE_MIG_ENABLE = 1

    def __init__(
        self, *gpus: FakeGpu, error: str = "", figures: Mapping[str, Figures] = MappingProxyType({})
    ) -> None:
        """`figures`: by UUID. The others do not know their memory."""
        self.gpus = gpus
        self.error = error
        self.figures = figures
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

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu | str:
        return next((gpu for gpu in self.gpus if gpu.uuid == uuid), uuid)

    def nvmlDeviceGetMemoryInfo(self, handle: FakeGpu | str) -> object:
        used, total, _ = self._figures(handle)
        return SimpleNamespace(used=used, total=total, free=total - used)

    def nvmlDeviceGetUtilizationRates(self, handle: FakeGpu | str) -> object:
        *_, percent = self._figures(handle)
        if percent is None:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=percent)

    def _figures(self, handle: FakeGpu | str) -> Figures:
        uuid = self.nvmlDeviceGetUUID(handle)
        if uuid not in self.figures:
            raise self.NVMLError("Not Supported")
        return self.figures[uuid]

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
