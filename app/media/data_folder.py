"""The folder in which the service keeps uploads, copies of them for browsers, and decoded audio."""

from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from app.errors import InvalidSetting
from app.files import try_lock
from app.media.disk import DiskSpace
from app.media.sound_copies import remove_leftover_copies
from app.media.uploads import remove_leftovers


class DataFolder:
    """The data folder. One process at a time uses it, which a lock file ensures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uploads = path / "uploads"  # recordings as they were received
        self.pcm = path / "pcm"  # decoded audio
        self.copies = path / "copies"  # of recordings, as browsers play them
        self.disk = DiskSpace(path)
        self._lock: BinaryIO | None = None

    def lock(self) -> None:
        """Create the folder, for its user alone, and acquire its lock; does nothing if this process holds it.

        The mode of a folder that exists stays as it is.

        Raises InvalidSetting if the folder cannot be used, or another process holds the lock.
        """
        if self._lock is not None:
            return
        try:
            if not self.path.exists():  # as a parent of the others it would get the mode of the umask
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.uploads, self.pcm, self.copies):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = try_lock(self.path / "lock")
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

    def clean(self, uploads: Collection[str], pcm: Collection[str]) -> None:
        """Remove files that a killed process left behind. `uploads` and `pcm` name the files to keep."""
        remove_leftovers(self.uploads, uploads)
        remove_leftovers(self.pcm, pcm)
        remove_leftover_copies(self.copies, uploads)
