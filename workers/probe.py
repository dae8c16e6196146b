"""What `whisperfleet doctor` asks in a child that is set up like a worker."""

import ctypes
import multiprocessing
from pathlib import Path

from workers.runtime import initialise, preload_cublas
from workers.whisper.model import supported_compute_types

__all__ = ["count_cuda_devices", "find_cublas", "initialise", "start_method", "supported_compute_types"]

CUBLAS = "libcublas.so.12"


def start_method() -> str:
    """How this process came about: "spawn", "fork" or "forkserver"; "main" if it is no child at all."""
    # Its class says it; `get_start_method` would say how this process starts children of its own.
    name = type(multiprocessing.current_process()).__name__.lstrip("_")
    return name.removesuffix("Process").lower()


def find_cublas() -> str:
    """The file that cuBLAS 12 is loaded from. Raises OSError where it cannot be loaded."""
    preload_cublas()
    ctypes.CDLL(CUBLAS)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(CUBLAS) or f"/{CUBLAS}." in line:
            return line.split(maxsplit=5)[-1]
    return CUBLAS


def count_cuda_devices() -> int:
    """How many GPUs CTranslate2 sees. Raises ImportError where it cannot be imported."""
    import ctranslate2

    return int(ctranslate2.get_cuda_device_count())
