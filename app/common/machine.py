"""The machine that the service runs on."""

import uuid
from functools import cache
from pathlib import Path


@cache
def boot_id() -> str:
    """Another one after each boot, and on each machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux: another one in each process
        return str(uuid.uuid4())
