"""A small disk: the code sees its free space in place of the machine's."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest


class Usage(NamedTuple):
    total: int
    used: int
    free: int


class SmallDisk:
    """A disk with `capacity` bytes for the files below `folder`, all of them in use but those and `free`.

    Files in `folder` take their size.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, free: int, capacity: int = 1 << 40
    ) -> None:
        self.folder = folder
        self.capacity = capacity
        self._free = free + self.taken
        monkeypatch.setattr(shutil, "disk_usage", lambda path: self.usage)

    def add(self, size: int) -> None:
        """Free more bytes."""
        self._free += size

    @property
    def taken(self) -> int:
        """The bytes of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    @property
    def usage(self) -> Usage:
        free = self._free - self.taken
        return Usage(self.capacity, self.capacity - free, free)
