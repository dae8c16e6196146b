"""What a child does to its own process."""

import platform
import subprocess
import sys

import pytest

FREE_AND_LOOK = """
import ctypes, psutil
from workers import runtime
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def resident_mib_after_freeing():
    buffer = libc.malloc(ctypes.c_size_t(64 << 20))
    ctypes.memset(buffer, 1, 64 << 20)
    libc.free(ctypes.c_void_p(buffer))
    return (psutil.Process().memory_info().rss - before) >> 20
before = psutil.Process().memory_info().rss
given_back = resident_mib_after_freeing()
runtime.keep_freed_memory()
kept = resident_mib_after_freeing()
libc.malloc_trim(0)
print(given_back, kept, (psutil.Process().memory_info().rss - before) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a matter of glibc")
def test_freed_memory_is_kept_until_it_is_asked_for():
    done = subprocess.run([sys.executable, "-c", FREE_AND_LOOK], capture_output=True, text=True, check=True)
    given_back, kept, trimmed = map(int, done.stdout.split())
    assert given_back < 16
    assert kept > 48
    assert trimmed < 16
