"""Waits until the disk has what was written."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder. Blocks. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
