"""A folder with transcripts of a service, and its index: which file is whose, and what it was made of."""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from app.common.errors import InvalidInput, WhisperfleetError
from app.common.files import folded_name, rename_new, write_whole

INDEX = ".whisperfleet.json"
_PART = (
    ".whisperfleet.part"  # a file before it gets its name; one at a time, and one that is left is replaced
)


class ChangedHere(WhisperfleetError):
    """Somebody has changed a file in the folder, and a new transcript would replace it."""


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file that was written for a transcript."""

    name: str
    version: str  # what it was made of
    digest: str  # of its content


class Folder:
    """Nothing outside of it is ever written, nor a file that somebody else has put there."""

    def __init__(self, path: Path) -> None:
        """Creates the folder. Raises InvalidInput if that fails, and WhisperfleetError for a broken index."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"the folder {path} cannot be created: {error.strerror}") from None
        self._entries = _read_index(path / INDEX)
        self._owners = {folded_name(entry.name): key for key, entry in self._entries.items()}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands out. Raises WhisperfleetError and OSError."""
        number = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WhisperfleetError(
                    f"another fetch writes into {self.path}: wait until it ends"
                ) from None
            except OSError:
                pass  # a file system without locks
            yield
        finally:
            os.close(number)

    def has(self, key: str, stem: str, extension: str, version: str) -> bool:
        """Whether the file of a transcript is there under its name, and was made of this version."""
        entry = self._entries.get(key)
        return (
            entry is not None
            and entry.version == version
            and _is_numbered(entry.name, stem, extension)
            and os.path.lexists(self.path / entry.name)
        )

    def store(self, key: str, stem: str, extension: str, version: str, content: bytes) -> tuple[Path, bool]:
        """Write the file of a transcript. Returns where it is, and whether it is new or has changed.

        It keeps its name, and gets another one only if `stem` is new. Raises ChangedHere and OSError; the
        file is whole or not there.
        """
        entry, digest = self._entries.get(key), hashlib.sha256(content).hexdigest()
        own = {digest, entry.digest} if entry else {digest}
        if entry and (there := _digest(self.path / entry.name)) is not None and there not in own:
            raise ChangedHere(
                f"{self.path / entry.name} was changed here, and the transcript or its options have changed: "
                "move the file away, and fetch again"
            )
        name = self._name(key, stem, extension, own)
        target = self.path / name
        self._make_folder(target.parent)
        if entry and entry.name != name:
            with suppress(FileNotFoundError, FileExistsError):
                rename_new(self.path / entry.name, target)
        has_changed = _digest(target) != digest
        if has_changed:
            write_whole(target, content, self.path / _PART, None)
        if entry:
            self._owners.pop(folded_name(entry.name), None)
        self._owners[folded_name(name)] = key
        self._entries[key] = FetchedFile(name, version, digest)
        if entry and entry.name != name:
            self.save()  # before another file gets the name that is free now
        return target, has_changed

    def save(self) -> None:
        """Store the index. Files that were written since are found again without. Raises OSError."""
        files = {key: asdict(entry) for key, entry in self._entries.items()}
        content = json.dumps({"files": files}, ensure_ascii=False, indent=1).encode()
        write_whole(self.path / INDEX, content, self.path / _PART, None)

    def _make_folder(self, folder: Path) -> None:
        """Raises WhisperfleetError for a link, which may lead anywhere, and for a file that is in the way."""
        if folder.resolve() != self.path.resolve() / folder.relative_to(self.path):
            raise WhisperfleetError(f"{folder} is a link: move it away, and fetch again")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise WhisperfleetError(f"a file is in the way of the folder {folder}: rename the tag") from None

    def _name(self, key: str, stem: str, extension: str, own: set[str]) -> str:
        """The name that the file has, if it fits, or a free one."""
        entry = self._entries.get(key)
        if entry and _is_numbered(entry.name, stem, extension):
            return entry.name
        for number in count(1):
            name = f"{stem}.{extension}" if number == 1 else f"{stem} ({number}).{extension}"
            if self._owners.get(folded_name(name), key) != key:
                continue
            path = self.path / name
            if not os.path.lexists(path) or _digest(path) in own:  # perhaps of a run that was interrupted
                return name
        raise AssertionError("count() does not end")


def _read_index(path: Path) -> dict[str, FetchedFile]:
    """Raises WhisperfleetError."""
    try:
        document = json.loads(path.read_bytes())
        entries = {str(key): FetchedFile(**entry) for key, entry in document["files"].items()}
        if any(not _is_name(entry.name) for entry in entries.values()):
            raise ValueError
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise WhisperfleetError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise WhisperfleetError(
            f"{path} is not as this command writes it: remove it, and fetch again. Files stay where they are"
        ) from None
    return entries


def _is_name(name: object) -> bool:
    """Whether it is the name of a file in the folder or below, and neither is hidden."""
    return isinstance(name, str) and all(
        part and not part.startswith(".") and not set(part) & set("\\\0") for part in name.split("/")
    )


def _is_numbered(name: str, stem: str, extension: str) -> bool:
    return re.fullmatch(rf"{re.escape(stem)}( \(\d+\))?\.{extension}", name) is not None


def _digest(path: Path) -> str | None:
    """The digest of a file; None if there is none that can be read."""
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
