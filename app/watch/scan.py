"""A search for the recordings in a folder and below it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.watch.rules import Rules, is_hidden
from app.watch.sidecar import is_temporary
from app.watch.state import Version


@dataclass(slots=True)
class Scan:
    """One search of a folder. Iterate `files`, then read what could not be searched."""

    root: Path
    rules: Rules
    in_use: Callable[[Path], bool]  # whether this process is writing a temporary file
    unreadable: dict[str, OSError] = field(default_factory=dict)  # folders

    def files(self, folder: Path) -> Iterator[dict[str, Version]]:
        """The recordings in `folder`, which is the root or below it, and in all folders below that, by path.

        Those of one folder come together. Follows symbolic links, and visits no folder twice. Removes
        temporary files that a killed process left. What vanishes meanwhile is skipped.
        """
        prefix = len(os.fspath(self.root).rstrip("/")) + 1
        visited: set[tuple[int, int]] = set()
        waiting = [os.fspath(folder)]
        while waiting:
            path = waiting.pop()
            found: dict[str, Version] = {}
            try:
                status = Path(path).stat()
                if (status.st_dev, status.st_ino) in visited:
                    continue
                visited.add((status.st_dev, status.st_ino))
                with os.scandir(path) as entries:
                    for entry in entries:
                        if is_hidden(entry.name):
                            if is_temporary(entry.name) and not self.in_use(Path(entry.path)):
                                Path(entry.path).unlink(missing_ok=True)
                        elif _is_folder(entry):
                            waiting.append(entry.path)
                        elif self.rules.wants(entry.path[prefix:]) and (version := _version(entry)):
                            found[entry.path] = version
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.unreadable[path] = error
            if found:
                yield found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


def _version(entry: os.DirEntry[str]) -> Version | None:
    """The version of a file; None if it is no file, or gone."""
    try:
        return Version.of(entry.stat()) if entry.is_file() else None
    except OSError:
        return None
