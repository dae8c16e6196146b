"""Lock files: held by one process at a time, and free again when that ends, however it does."""

import fcntl
from pathlib import Path
from typing import BinaryIO


def hold(path: Path) -> BinaryIO | None:
    """The lock file at `path`, held for as long as it is open; None where another process holds it.

    Raises OSError where there can be no such file.
    """
    lock = path.open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
