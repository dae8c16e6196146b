"""Lock files that one process at a time can hold. The kernel releases the lock when that process ends."""

import fcntl
from pathlib import Path
from typing import BinaryIO


def try_lock(path: Path) -> BinaryIO | None:
    """Lock the file at `path`, creating it if needed. Closing the returned file releases the lock.

    Returns None if another process holds the lock. Raises OSError if the file cannot be created.
    """
    lock = path.open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
