"""What every child process does first: pin its device, find its libraries, die with its parent."""

import ctypes
import importlib.util
import os
import resource
import signal
import threading
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path

# Of `mallopt` (malloc.h).
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_M_ARENA_MAX = -8


def initialise(visible_devices: str, niceness: int = 0) -> None:
    """Prepare a freshly spawned child, before anything that could touch CUDA is imported.

    `visible_devices` becomes `CUDA_VISIBLE_DEVICES`: an index, a UUID, a MIG id, or "" for no GPU at all.
    `niceness` is how far its priority is to lie below its parent's: while it keeps all cores busy, the
    parent still answers at once.
    """
    os.nice(niceness)
    os.environ["CUDA_VISIBLE_DEVICES"] = visible_devices
    # NVML numbers GPUs by bus; CUDA by default puts the fastest first.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    # After each matrix product, and a child makes few and small ones, numpy's threads wait for the next one
    # by turning on the spot: half a core of each worker's, taken from the others.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # onnxruntime reports its use to its makers unless it is told not to.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    # Ctrl-C reaches the whole process group, and a service manager's SIGTERM every process of the service:
    # the parent decides what becomes of its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, name="die-with-parent", daemon=True).start()


def _die_with_parent() -> None:
    # Not PR_SET_PDEATHSIG: that fires when the thread which spawned us ends.
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def limit_memory(headroom_bytes: int) -> None:
    """Let this process map at most `headroom_bytes` more than it has mapped so far.

    Beyond that allocations fail: with MemoryError, or in whatever way a library has for it.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + headroom_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def keep_freed_memory() -> None:
    """Have glibc keep what is freed, until `give_back_freed_memory`, instead of giving it back to the system.

    A model on the CPU takes the same large buffers again for each clip. By default they come fresh from the
    kernel each time, which has to zero them: that was a quarter of a worker's time. New threads get no arena
    of their own, since what is free at the top of one is given back for the main arena only, and one thread
    at a time takes large buffers. Elsewhere than on glibc nothing happens.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)  # large buffers from the heap, not each from the kernel
        mallopt(_M_TRIM_THRESHOLD, -1)  # never
        mallopt(_M_ARENA_MAX, 1)


def give_back_freed_memory() -> None:
    """Give back to the system what glibc keeps for later. Elsewhere than on glibc nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def preload_cublas() -> None:
    """Load cuBLAS 12 from the package `nvidia-cublas-cu12`, if it is installed.

    CTranslate2 opens `libcublas.so.12` by name at run time; a library that is already loaded is found
    without LD_LIBRARY_PATH.
    """
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("libcublasLt.so.12", "libcublas.so.12"):
            library = Path(root) / "cublas" / "lib" / name
            if library.exists():
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
