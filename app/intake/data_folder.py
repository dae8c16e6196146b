"""The folder in which the service keeps uploads, copies of them for browsers, and decoded audio."""

import errno
import math
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from app.common.errors import InvalidSetting
from app.common.files import NO_LINKS, sync, try_lock, write_whole
from app.common.ids import ID
from app.intake.disk import DiskSpace
from app.intake.uploads import remove_leftovers

_RESTORED = "restored "  # in the note, before the folder for the recordings of the database before


class DataFolder:
    """The data folder. One process at a time uses it, or several front ends: a lock file ensures that."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uploads = path / "uploads"  # recordings as they were received
        self.pcm = path / "pcm"  # decoded audio
        self.copies = path / "copies"  # of recordings, as browsers play them
        self.note = path / "database"  # says which database has the jobs of the recordings
        self.disk = DiskSpace(path)
        self._lock: BinaryIO | None = None

    def lock(self, *, shared: bool = False) -> None:
        """Create the folder, for its user alone, and acquire its lock; does nothing if this process holds it.

        The mode of a folder that exists stays as it is. `shared`: with other front ends.

        Raises InvalidSetting if the folder cannot be used, or another process holds the lock.
        """
        if self._lock is not None:
            return
        try:
            if not self.path.exists():  # as a parent of the others it would get the mode of the umask
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.uploads, self.pcm, self.copies):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = try_lock(self.path / "lock", shared=shared)
        except OSError as error:
            raise InvalidSetting(f"WHISPER_DATA_DIR={self.path} cannot be used: {error.strerror}") from None
        if self._lock is None:
            raise InvalidSetting(
                f"WHISPER_DATA_DIR={self.path}: another whisperfleet uses this folder; "
                "stop it, or give this one a folder of its own"
            )

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def begin_restoration(self, folder: str) -> None:
        """Note that the database is about to be replaced. `folder`: for the recordings of the one before.

        Raises OSError.
        """
        content = f"{_RESTORED}{folder}".encode()
        write_whole(self.note, content, self.note.with_suffix(".part"), self.path.stat())
        sync(self.path)

    def finish_restoration(self, recordings: Collection[str]) -> Path | None:
        """Move aside the recordings of the database before, if a restoration was begun. Returns their folder.

        `recordings`: those of the restored database. They stay, and the folder has links to them: both
        databases may need them. A kill leaves all files in one of the two places; call it again then. Raises
        OSError.
        """
        if not self.note.exists() or not (noted := self.note.read_text()).startswith(_RESTORED):
            return None
        aside = self.path / noted.removeprefix(_RESTORED)
        if not aside.exists():
            aside = self._move_aside(aside, recordings)
        self.note.unlink()
        return aside if aside.exists() else None

    def _move_aside(self, aside: Path, stay: Collection[str]) -> Path:
        files = [path for path in self.uploads.iterdir() if ID.fullmatch(path.name) and path.is_file()]
        folder = self.uploads / aside.name  # on the same file system
        if files:
            _make_private(folder)
        for path in files:
            if path.name not in stay:
                path.rename(folder / path.name)
                continue
            try:
                os.link(path, folder / path.name)
            except OSError as error:
                if error.errno not in (*NO_LINKS, errno.EEXIST):
                    raise
        with suppress(OSError):  # uploads on a disk of their own: the folder stays there
            folder.rename(aside)
            return aside
        return folder

    def clean(self, uploads: Collection[str], pcm: Collection[str], before: float = math.inf) -> None:
        """Remove the uploads and decoded audio that a killed process left behind.

        `uploads` and `pcm` name the files to keep, besides those that were not last written `before` a Unix
        time (s).
        """
        remove_leftovers(self.uploads, uploads, before)
        remove_leftovers(self.pcm, pcm, before)


def _make_private(folder: Path) -> None:
    """Create a folder for the owner of the folder above it alone."""
    if not folder.exists():
        folder.mkdir(mode=0o700)
        owner = folder.parent.stat()
        with suppress(OSError):  # only root may, and root restores for the service's user
            os.chown(folder, owner.st_uid, owner.st_gid)
