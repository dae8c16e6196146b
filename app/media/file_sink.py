"""Writes an uploaded file to disk. The event loop collects its bytes; threads write and hash them."""

import asyncio
import contextlib
import hashlib
import os
from io import BufferedWriter
from pathlib import Path

from app.errors import InvalidInput, TooLarge
from app.media.disk import Reservation, disk_full
from app.shielding import run_shielded
from workers.messages import NO_SPACE_ERRNOS

BUFFER_BYTES = 1 << 20  # written and hashed at once
MAX_PLAIN_TEXT_BYTES = 4096


class FileSink:
    """Writes one part of a form to `path`, up to `max_bytes`.

    `described`: the part has a filename or the media type of a file. `field` is the part's name, for errors.
    `space` is that of the body to which the part belongs. `durable`: the finished file survives a power cut.
    Call `finish` or `discard` last, when no other call runs.
    """

    def __init__(
        self,
        path: Path,
        filename: str,
        max_bytes: int,
        field: str,
        space: Reservation,
        *,
        described: bool,
        durable: bool = False,
    ) -> None:
        self.path = path
        self.filename = filename
        self.size = 0  # bytes so far
        self._max_bytes = max_bytes
        self._field = field
        self._space = space
        self._described = described
        self._durable = durable
        self._pending = bytearray()
        self._hash = hashlib.sha256()
        self._file: BufferedWriter | None = None

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def feed(self, data: bytes) -> None:
        """Add bytes. Raises TooLarge."""
        self.size += len(data)
        if self.size > self._max_bytes:
            raise too_large(self._max_bytes, self._field)
        self._pending += data

    async def drain(self) -> None:
        """Write the pending bytes in a thread once there are enough of them. Raises OSError and DiskFull."""
        if len(self._pending) >= BUFFER_BYTES:
            await run_shielded(asyncio.to_thread(self._write))

    async def finish(self) -> None:
        """Write the rest. Raises InvalidInput if the part is no file, OSError and DiskFull."""
        self._check_is_file()
        await run_shielded(asyncio.to_thread(self._close))

    async def discard(self) -> None:
        """Remove the unfinished file."""
        await run_shielded(asyncio.to_thread(self._delete))

    def _check_is_file(self) -> None:
        if not self.size:
            fault = (
                "is empty (0 bytes): the upload may have been interrupted, send it again"
                if self.filename
                else "was sent without a file being chosen"
            )
            raise InvalidInput(f"`{self._field}` {fault}.", param=self._field, code="empty_file")
        # With curl a forgotten "@" is the most common mistake, and "not audio" would not explain it.
        if not self._described and self.size == len(self._pending) and _is_plain_text(self._pending):
            raise InvalidInput(
                f"`{self._field}` is a text field, not a file; with curl, write -F {self._field}=@PATH.",
                param=self._field,
            )

    def _write(self) -> None:
        data, self._pending = self._pending, bytearray()
        self._space.check(len(data))
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Only the service's own user may read recordings.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "wb")
        self._file.write(data)
        self._space.written += len(data)
        self._hash.update(data)

    def _close(self) -> None:
        self._write()
        if self._file is not None:
            if self._durable:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()

    def _delete(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # on a full disk the last flush fails, too
                self._file.close()
        self.path.unlink(missing_ok=True)


def too_large(max_bytes: int, param: str) -> TooLarge:
    """The error for an upload over `max_bytes` in the field `param`."""
    return TooLarge(
        f"The upload is over this service's limit of {max_bytes / 1e6:g} MB (WHISPER_MAX_UPLOAD_MB).",
        param=param,
        code="file_too_large",
    )


def raise_if_full(error: OSError) -> None:
    """Raise DiskFull if `error` means that the disk is full."""
    if error.errno in NO_SPACE_ERRNOS:
        raise disk_full() from error


def _is_plain_text(data: bytearray) -> bool:
    if len(data) > MAX_PLAIN_TEXT_BYTES:
        return False
    try:
        return data.decode().strip().isprintable()
    except UnicodeDecodeError:
        return False
