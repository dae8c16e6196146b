"""What is at fault for an error of a model: memory, the device, or the task. Pure."""

import re
from enum import Enum

GPU_MEMORY_FULL = (
    r"CUDA.{0,20} out of memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_(ALLOC_FAILED|NOT_INITIALIZED)"
)
MACHINE_MEMORY_FULL = r"bad_alloc|allocate memory"
# After one of these, every later CUDA call of the process fails, too (CUDA Runtime API, `cudaError_t`).
GPU_FAILED = (
    r"illegal memory access|misaligned address|illegal (instruction|address)|hardware stack error|invalid "
    r"program counter|unspecified launch failure|launch (timed out|failed)|device-side assert|uncorrectable|"
    r"ECC error|GPU is lost|fallen off the bus|context is destroyed|"
    r"CU(BLAS|DNN)_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR)"
)
_MEMORY = re.compile(f"{GPU_MEMORY_FULL}|{MACHINE_MEMORY_FULL}|out of memory", re.IGNORECASE)
# The second line has CTranslate2's words for errors of the libraries, and the third has Thrust's.
_DEVICE = re.compile(
    rf"{GPU_FAILED}"
    r"|\b(CUDA|cuBLAS|cuDNN) (failed with|error)"
    r"|cudaError|parallel_for|failed to synchronize",
    re.IGNORECASE,
)


class Cause(Enum):
    """What is at fault when a worker raises an error."""

    MEMORY = "memory"  # the device, or the machine, has no free memory: use less
    DEVICE = "device"  # the device or its driver: replace the process
    TASK = "task"  # what the worker was asked to do


def cause_of(error: BaseException) -> Cause:
    """What is at fault for an error that a worker raised."""
    if isinstance(error, MemoryError) or _MEMORY.search(str(error)):
        return Cause.MEMORY
    return Cause.DEVICE if _DEVICE.search(str(error)) else Cause.TASK


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that the GPU, or the machine, has no free memory."""
    return cause_of(error) is Cause.MEMORY
