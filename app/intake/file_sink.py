"""Writes an uploaded file to disk. The event loop collects its bytes; threads write and hash them."""

import asyncio
import contextlib
import hashlib
import os
from dataclasses import KW_ONLY, dataclass, field
from io import BufferedWriter
from pathlib import Path
from typing import TYPE_CHECKING

from app.common.concurrency import run_shielded
from app.common.errors import InvalidInput, TooLarge
from app.intake.disk import Reservation

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

BUFFER_BYTES = 1 << 20  # written and hashed at once
BUFFER_CHUNKS = 1 << 10  # the same: each takes memory, however short it is
MAX_PLAIN_TEXT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first `size` bytes of a file, and their SHA-256, which can go on."""

    size: int = 0
    hash: "Hash" = field(default_factory=hashlib.sha256)


@dataclass(slots=True, eq=False)
class FileSink:
    """Writes one part of a form to `path`, up to `max_bytes`.

    `described`: the part has a filename or the media type of a file. `param` is the part's name, for errors.
    `space` is that of the body to which the part belongs. `durable`: the finished file survives a power cut.
    Call `finish` or `discard` last, when no other call runs.

    With `start`, the sink goes on with a file that begins so: it replaces whatever follows, and may stop
    before the file is complete. Call `keep` last then.
    """

    path: Path
    filename: str
    max_bytes: int
    param: str
    space: Reservation
    _: KW_ONLY
    described: bool
    durable: bool = False
    start: Prefix | None = None
    size: int = field(init=False)  # bytes so far
    hash: "Hash" = field(init=False)  # of those that are written
    _written: int = field(init=False)
    _pending: list[bytes] = field(default_factory=list)  # not joined: large buffers cost page faults
    _pending_bytes: int = 0
    _file: BufferedWriter | None = None

    def __post_init__(self) -> None:
        start = self.start or Prefix()
        self.size = self._written = start.size
        self.hash = start.hash.copy()

    def feed(self, data: bytes) -> None:
        """Add bytes. Raises TooLarge."""
        self.size += len(data)
        if self.size > self.max_bytes:
            raise too_large(self.max_bytes, self.param)
        self._pending.append(data)
        self._pending_bytes += len(data)

    async def drain(self) -> None:
        """Write the pending bytes in a thread once there are enough of them. Raises OSError and DiskFull."""
        if self._pending_bytes >= BUFFER_BYTES or len(self._pending) >= BUFFER_CHUNKS:
            await run_shielded(asyncio.to_thread(self._write))

    async def finish(self) -> None:
        """Write the rest. Raises InvalidInput if the part is no file, OSError and DiskFull."""
        if not self.size:
            fault = (
                "is empty (0 bytes): the upload may have been interrupted, send it again"
                if self.filename
                else "was sent without a file being chosen"
            )
            raise InvalidInput(f"`{self.param}` {fault}.", param=self.param, code="empty_file")
        # With curl a forgotten "@" is the most common mistake, and "not audio" would not explain it.
        if (
            not self.described
            and self.size == self._pending_bytes
            and _is_plain_text(b"".join(self._pending))
        ):
            raise InvalidInput(
                f"`{self.param}` is a text field, not a file; with curl, write -F {self.param}=@PATH.",
                param=self.param,
            )
        await run_shielded(asyncio.to_thread(self._close))

    async def keep(self) -> Prefix:
        """Write the rest, however little it is; another sink can go on with what this returns.

        Raises OSError and DiskFull. Then the file may have fewer bytes, or a part of the last ones.
        """
        self.durable = self.durable and self.size == self.max_bytes  # only the complete file
        await run_shielded(asyncio.to_thread(self._close))
        return Prefix(self._written, self.hash)

    async def discard(self) -> None:
        """Remove the unfinished file."""
        await run_shielded(asyncio.to_thread(self._delete))

    def _write(self) -> None:
        chunks, self._pending = self._pending, []
        size, self._pending_bytes = self._pending_bytes, 0
        self.space.check(size)
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Only the service's own user may read recordings.
            flags = os.O_CREAT | os.O_EXCL if self.start is None else 0 if self._written else os.O_CREAT
            self._file = os.fdopen(os.open(self.path, os.O_WRONLY | flags, 0o600), "wb")
            self._file.seek(self._written)
            self._file.truncate()
        for chunk in chunks:
            self._file.write(chunk)
            self.hash.update(chunk)
        self._written += size
        self.space.written += size

    def _close(self) -> None:
        if self._pending:
            self._write()
        if self._file is not None:
            # Closes it although the last flush may fail, on a full disk.
            with self._file as file:
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())

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


def _is_plain_text(data: bytes) -> bool:
    if len(data) > MAX_PLAIN_TEXT_BYTES:
        return False
    try:
        return data.decode().strip().isprintable()
    except UnicodeDecodeError:
        return False
