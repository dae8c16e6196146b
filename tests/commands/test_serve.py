"""What `whisperfleet serve` does with its process."""

import gc
import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.commands.serve import SWITCH_INTERVAL_S, keep_loop_free


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.enable()


def test_collections_begin_with_the_service_and_skip_all_objects_of_the_start() -> None:
    gc.unfreeze()
    gc.disable()
    keep_loop_free()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    assert "anyio._backends._asyncio" in sys.modules
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)


PARTS = """
import resource
from app.commands.serve import keep_some_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def use_parts():
    return len([bytes(400_000) for _ in range(3)])

keep_some_freed_memory()
use_parts()
before = faults()
for _ in range(100):
    use_parts()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this is no glibc")
def test_memory_of_one_part_is_there_for_the_next() -> None:
    done = subprocess.run([sys.executable, "-c", PARTS], capture_output=True, check=True, text=True)
    assert int(done.stdout) < 1000  # else thousands
