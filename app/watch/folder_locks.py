"""Locks of watched folders: two programs that watch the same files would transcribe each of them twice."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.common.errors import InvalidSetting
from app.common.files import try_lock
from app.watch.report import shown


@contextmanager
def lock_folders(lock_dir: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Lock folders and all below them for the time of the block, or until this process is killed.

    Yields a path in `lock_dir` that is of this process alone. Raises InvalidSetting if another process has
    locked one of the folders, or one above or below it.
    """
    with ExitStack() as held:
        locks = [_lock(folder, lock_dir, held) for folder in folders]
        for folder in folders:
            _check_others(folder, lock_dir, locks)
        yield locks[0].with_suffix(".sound")


def _lock(folder: Path, lock_dir: Path, held: ExitStack) -> Path:
    """The path of the lock of a folder, which is `held`. Raises InvalidSetting."""
    real = folder.resolve()
    path = lock_dir / f"{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}.lock"
    lock = try_lock(path)
    if lock is None:
        raise _watched(folder, real)
    held.enter_context(lock)
    path.with_suffix(".folder").write_bytes(os.fsencode(real))
    return path


def _check_others(folder: Path, lock_dir: Path, own: Sequence[Path]) -> None:
    # After our own locks, so of two that start at once at least one finds the other.
    real = folder.resolve()
    for note in lock_dir.glob("*.folder"):
        other = Path(os.fsdecode(note.read_bytes()))
        if not (other.is_relative_to(real) or real.is_relative_to(other)):
            continue
        if note.with_suffix(".lock") in own:
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
