"""Locks of watched folders: two programs that watch the same files would transcribe each of them twice."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from app.errors import InvalidSetting
from app.files import try_lock
from app.watch.text import shown


class FolderLocks:
    """The locks of this process. The kernel releases them when it ends."""

    def __init__(self, lock_dir: Path) -> None:
        self._lock_dir = lock_dir
        self._held: dict[Path, BinaryIO] = {}

    def acquire(self, folders: Sequence[Path]) -> None:
        """Lock folders and all below them.

        Raises InvalidSetting if another process has locked one of them, or one above or below it.
        """
        for folder in folders:
            real = folder.resolve()
            path = self._lock_dir / hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
            lock = try_lock(path.with_suffix(".lock"))
            if lock is None:
                raise _watched(folder, real)
            self._held[path.with_suffix(".lock")] = lock
            path.with_suffix(".folder").write_bytes(os.fsencode(real))
            self._check_others(folder, real)

    @property
    def own_path(self) -> Path:
        """A path beside the locks that is of this process alone, while it holds them."""
        return next(iter(self._held)).with_suffix(".sound")

    def release(self) -> None:
        """Release all locks."""
        while self._held:
            self._held.popitem()[1].close()

    def _check_others(self, folder: Path, real: Path) -> None:
        # After our own lock, so of two that start at once at least one finds the other.
        for note in self._lock_dir.glob("*.folder"):
            other = Path(os.fsdecode(note.read_bytes()))
            if not (other.is_relative_to(real) or real.is_relative_to(other)):
                continue
            if note.with_suffix(".lock") in self._held:
                continue
            lock = try_lock(note.with_suffix(".lock"))
            if lock is None:
                raise _watched(folder, other)
            lock.close()


def _watched(folder: Path, other: Path) -> InvalidSetting:
    return InvalidSetting(
        f"{shown(folder)} cannot be watched: another `whisperfleet watch` is at work in {shown(other)}. "
        "Stop it, or name all folders in one command."
    )
