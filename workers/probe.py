"""The checks that `whisperfleet doctor` runs in a child process with the same setup as a worker."""

import ctypes
import multiprocessing
from pathlib import Path

from workers.runtime import initialise, preload_cublas
from workers.whisper.worker import supported_compute_types

__all__ = ["count_cuda_devices", "find_cublas", "initialise", "start_method", "supported_compute_types"]

CUBLAS = "libcublas.so.12"


def start_method() -> str:
    """How this process was started: "spawn", "fork" or "forkserver"; "main" if it is not a child process."""
    # From its class: `get_start_method` is for the children that this process would start.
    name = type(multiprocessing.current_process()).__name__.lstrip("_")
    return name.removesuffix("Process").lower()


def find_cublas() -> str:
    """The file from which cuBLAS 12 is loaded. Raises OSError if it cannot be loaded."""
    preload_cublas()
    ctypes.CDLL(CUBLAS)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(CUBLAS) or f"/{CUBLAS}." in line:
            return line.split(maxsplit=5)[-1]
    return CUBLAS


def count_cuda_devices() -> int:
    """How many GPUs CTranslate2 sees. Raises ImportError if it cannot be imported."""
    import ctranslate2

    return int(ctranslate2.get_cuda_device_count())
