"""The setup of every child process: pin its device, load its libraries, exit with its parent."""

import ctypes
import importlib.util
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path

_STATM = Path("/proc/self/statm")  # sizes of this process in pages: Linux only

# Parameters of `mallopt` (malloc.h).
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_M_ARENA_MAX = -8
_MAX_KERNEL_CACHE = 1 << 32  # bytes: the driver's highest limit, where its default may drop what it needs


def initialise(visible_devices: str, niceness: int = 0, kernel_cache: Path | None = None) -> None:
    """Set up a newly spawned child process, before it imports anything that could use CUDA.

    `visible_devices` becomes `CUDA_VISIBLE_DEVICES`: an index, a UUID, a MIG id, or "" for no GPU.
    `niceness` is added to the process's own: with a lower priority than the parent, it may keep all cores
    busy while the parent still answers at once. In the folder `kernel_cache` the driver keeps the code that
    it compiles for GPUs which CTranslate2 has no code for, unless the environment names another folder.
    """
    os.nice(niceness)
    if kernel_cache is not None:
        os.environ.setdefault("CUDA_CACHE_PATH", str(kernel_cache.absolute()))
        os.environ.setdefault("CUDA_CACHE_MAXSIZE", str(_MAX_KERNEL_CACHE))
    os.environ["CUDA_VISIBLE_DEVICES"] = visible_devices
    # NVML numbers GPUs by bus; CUDA's default is the fastest first.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    # After each matrix product, numpy's threads spin while they wait for the next one. Child processes make
    # few and small ones: the threads would waste half a core per worker.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # By default, onnxruntime sends telemetry.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    follow_parent()


def follow_parent() -> None:
    """Let this process end with its parent, and no earlier.

    Ctrl-C reaches the process group, and a service manager's SIGTERM reaches every process of the service.
    The parent decides when its children end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, name="exit-with-parent", daemon=True).start()


def _exit_with_parent() -> None:
    # Not PR_SET_PDEATHSIG: it fires when the thread that spawned this process ends.
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def limit_memory(headroom_bytes: int) -> None:
    """Let this process map at most `headroom_bytes` more than it has mapped already.

    Beyond that, allocations fail: Python raises MemoryError, and libraries fail in their own ways. Only Linux
    says how much is mapped, and keeps this limit: elsewhere, nothing happens.
    """
    mapped = _mapped_bytes()
    if mapped is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + headroom_bytes, hard))


@contextmanager
def raised_memory_limit() -> Iterator[None]:
    """Run a block that loads libraries or models: the limit of `limit_memory` grows by what they map."""
    before = _mapped_bytes()
    limit, hard = resource.getrlimit(resource.RLIMIT_AS)
    if before is None or limit == resource.RLIM_INFINITY:
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        yield
    finally:
        raised = limit + max(0, (_mapped_bytes() or 0) - before)
        soft = raised if hard == resource.RLIM_INFINITY else min(raised, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _mapped_bytes() -> int | None:
    """How much this process has mapped; None where the system does not say."""
    try:
        return int(_STATM.read_text().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return None


def keep_freed_memory() -> None:
    """Let glibc keep freed memory until `release_freed_memory`, instead of returning it to the system.

    A model on the CPU allocates the same large buffers again for each clip. By default, the kernel provides
    and zeroes them each time, which took a quarter of a worker's time. All threads use the main arena:
    glibc can trim the top of that one alone, and few threads at a time allocate large buffers. Without glibc,
    nothing happens.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)  # allocate large buffers on the heap
        mallopt(_M_TRIM_THRESHOLD, -1)  # never trim the heap
        mallopt(_M_ARENA_MAX, 1)


def release_freed_memory() -> None:
    """Return the freed memory that glibc has kept to the system. Without glibc, nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def preload_cublas() -> None:
    """Load cuBLAS 12 from the package `nvidia-cublas-cu12`, if it is installed.

    CTranslate2 opens `libcublas.so.12` by name at run time. A library that is already loaded is found without
    LD_LIBRARY_PATH.
    """
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("libcublasLt.so.12", "libcublas.so.12"):
            library = Path(root) / "cublas" / "lib" / name
            if library.exists():
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
