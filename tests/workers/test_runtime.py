"""The setup of child processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.pool.process import ChildProcess
from workers import runtime

MEASURE_FREED_MEMORY = """
import ctypes, threading, psutil
from workers import runtime
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
BUFFERS, SIZE = 16, 4 << 20
def allocate_and_free():
    buffers = [libc.malloc(ctypes.c_size_t(SIZE)) for _ in range(BUFFERS)]
    for buffer in buffers:
        ctypes.memset(buffer, 1, SIZE)
    for buffer in buffers:
        libc.free(ctypes.c_void_p(buffer))
def grown_mib():
    return (psutil.Process().memory_info().rss - before) >> 20
before = psutil.Process().memory_info().rss
if {keep}:
    runtime.keep_freed_memory()
thread = threading.Thread(target=allocate_and_free)
thread.start()
thread.join()
kept = grown_mib()
runtime.release_freed_memory()
print(kept, grown_mib())
"""


@pytest.mark.parametrize("keep", [True, False])
def test_freed_memory_is_kept_until_it_is_released(keep):
    """Also the memory of other threads: CTranslate2 has its own."""
    script = MEASURE_FREED_MEMORY.format(keep=keep)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    kept, after_trim = map(int, done.stdout.split())
    assert (kept > 48) == keep
    assert after_trim < 16


@pytest.mark.anyio
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, ("{folder}", "4294967296")), ({"CUDA_CACHE_PATH": "/mine"}, ("/mine", "4294967296"))],
)
async def test_compiled_kernels_are_kept_where_the_environment_or_the_service_says(
    given: dict[str, str], expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CUDA_CACHE_PATH", "CUDA_CACHE_MAXSIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    child = ChildProcess(runtime.initialise, "", 0, tmp_path / "kernels")
    await child.start()
    try:
        path = await child.call(os.getenv, "CUDA_CACHE_PATH", deadline_s=30)
        size = await child.call(os.getenv, "CUDA_CACHE_MAXSIZE", deadline_s=30)
    finally:
        await child.close()
    assert (path, size) == (expected[0].format(folder=tmp_path / "kernels"), expected[1])
