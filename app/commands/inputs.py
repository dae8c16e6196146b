"""The recordings that a command line names: files, folders and patterns."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import InvalidInput
from app.files import is_recording


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording, and the named folder in which it was found; None if its file was named."""

    path: Path
    folder: Path | None = None


def find_recordings(named: Sequence[Path]) -> list[Recording]:
    """The named files, and the recordings in named folders and in the folders below, in order.

    A name with `*`, `?` or `[` that is no file stands for what it matches: not every shell expands it.
    Raises `InvalidInput` if something is missing, or a folder has no recordings.
    """
    return [recording for name in named for path in _matches(name) for recording in _recordings(path)]


def _matches(name: Path) -> list[Path]:
    if name.exists():
        return [name]
    if glob.has_magic(str(name)):
        pattern = os.path.expanduser(str(name))  # noqa: PTH111 - as the shell does, before it expands
        if found := sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 - absolute patterns, too
            return [Path(path) for path in found]
        raise InvalidInput(f"no file matches {name}")
    raise InvalidInput(f"there is no file {name}")


def _recordings(path: Path) -> Iterator[Recording]:
    if not path.is_dir():
        yield Recording(path)
        return
    found = False
    for recording in _walk(path):
        found = True
        yield Recording(recording, path)
    if not found:
        raise InvalidInput(f"there are no recordings in the folder {path}: files are found by their suffixes")


def _walk(folder: Path) -> Iterator[Path]:
    """The recordings below a folder. Links to folders are not followed: they may lead in circles.

    Raises `InvalidInput` for a folder that cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise InvalidInput(f"the folder {error.filename} cannot be read: {error.strerror}")

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if is_recording(path) and path.is_file():
                yield path
