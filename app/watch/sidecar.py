"""Writes a subtitle beside its recording: all of it or nothing, under a temporary name first."""

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

_TEMPORARY = re.compile(r"\.whisperfleet-[0-9a-f]{16}\.tmp")


def temporary_path(target: Path) -> Path:
    """Where `target` is written at first: a hidden file with a short name, always the same one."""
    digest = hashlib.sha256(os.fsencode(target)).hexdigest()[:16]
    return target.with_name(f".whisperfleet-{digest}.tmp")


def is_temporary(name: str) -> bool:
    """Whether a file of this name is such a hidden file, perhaps left by a killed process."""
    return _TEMPORARY.fullmatch(name) is not None


def mark(path: Path) -> str:
    """What tells a file from a later version of it; blank if it is not there. Raises OSError."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def write(target: Path, content: bytes, recording: Path) -> str:
    """Write a subtitle, or replace it. Returns its `mark`. Raises OSError; no other file is left then.

    Who may read the recording may read the subtitle: it gets the recording's permissions and, where this
    process may set them, its owner. A file that is replaced keeps its own.
    """
    temporary = temporary_path(target)
    temporary.unlink(missing_ok=True)  # of a killed process
    model = _status(target) or _status(recording)
    try:
        with temporary.open("xb") as file:
            file.write(content)
            if model is not None:
                with suppress(OSError):  # a file system without owners, or of somebody else
                    os.fchown(file.fileno(), model.st_uid, model.st_gid)
                with suppress(OSError):
                    os.fchmod(file.fileno(), model.st_mode & 0o666 | 0o600)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return mark(target)


def move(source: Path, target: Path) -> bool:
    """Move a subtitle along with its recording. Returns False if there is none, or one at the target.

    Raises OSError.
    """
    if os.path.lexists(target) or not source.is_file():
        return False
    source.rename(target)
    return True


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
