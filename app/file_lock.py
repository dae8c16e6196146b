"""Lock files. The system releases a process's locks when it ends, however it ends."""

import fcntl
from pathlib import Path
from typing import BinaryIO


def try_lock(path: Path) -> BinaryIO | None:
    """Acquire the lock file at `path`; closing the returned file releases it. None if another process has it.

    Raises OSError if the file cannot be made.
    """
    lock = path.open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
