"""A file part on its way to disk: taken on the event loop, written and hashed in threads."""

import asyncio
import contextlib
import hashlib
import os
from io import BufferedWriter
from pathlib import Path

from app.errors import InvalidInput, TooLarge
from app.shielding import run_shielded

BUFFER_BYTES = 1 << 20  # written and hashed at once
MAX_PLAIN_TEXT_BYTES = 4096


class FileSink:
    """Writes one part to `path`, up to `max_bytes`.

    `described` tells that the part calls itself a file, by a filename or a media type. `field` is the
    part's name, for errors. `durable`: once finished, the file outlasts a power cut. End with `finish` or
    `discard`, and have no other call under way then.
    """

    def __init__(
        self,
        path: Path,
        filename: str,
        max_bytes: int,
        field: str,
        *,
        described: bool,
        durable: bool = False,
    ) -> None:
        self.path = path
        self.filename = filename
        self.size = 0  # bytes taken so far
        self._max_bytes = max_bytes
        self._field = field
        self._described = described
        self._durable = durable
        self._pending = bytearray()
        self._hash = hashlib.sha256()
        self._file: BufferedWriter | None = None

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def feed(self, data: bytes) -> None:
        """Take bytes. Raises TooLarge."""
        self.size += len(data)
        if self.size > self._max_bytes:
            raise too_large(self._max_bytes, self._field)
        self._pending += data

    async def drain(self) -> None:
        """Write what is pending once it is worth a thread. Raises OSError."""
        if len(self._pending) >= BUFFER_BYTES:
            await run_shielded(asyncio.to_thread(self._write))

    async def finish(self) -> None:
        """Write the rest. Raises InvalidInput where the part holds no file, and OSError."""
        self._check()
        await run_shielded(asyncio.to_thread(self._close))

    async def discard(self) -> None:
        """Remove the file as far as it was written."""
        await run_shielded(asyncio.to_thread(self._delete))

    def _check(self) -> None:
        if not self.size:
            fault = (
                "is empty (0 bytes): the upload may have been interrupted, send it again"
                if self.filename
                else "was sent without a file being chosen"
            )
            raise InvalidInput(f"`{self._field}` {fault}.", param=self._field, code="empty_file")
        # A forgotten "@" is the commonest slip with curl; nobody should have to guess it from "not audio".
        if not self._described and self.size == len(self._pending) and _is_plain_text(self._pending):
            raise InvalidInput(
                f"`{self._field}` is a text field, not a file; with curl, write -F {self._field}=@PATH.",
                param=self._field,
            )

    def _write(self) -> None:
        data, self._pending = self._pending, bytearray()
        if self._file is None:
            self._file = _create(self.path)
        self._file.write(data)
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
            with contextlib.suppress(OSError):  # a full disk fails the last flush, too
                self._file.close()
        self.path.unlink(missing_ok=True)


def too_large(max_bytes: int, param: str) -> TooLarge:
    return TooLarge(
        f"The upload is over this service's limit of {max_bytes / 1e6:g} MB (WHISPER_MAX_UPLOAD_MB).",
        param=param,
        code="file_too_large",
    )


def _create(path: Path) -> BufferedWriter:
    """Recordings are nobody else's business: only the service's own user may read the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _is_plain_text(data: bytearray) -> bool:
    if len(data) > MAX_PLAIN_TEXT_BYTES:
        return False
    try:
        return data.decode().strip().isprintable()
    except UnicodeDecodeError:
        return False
