"""The file of a resumable upload: it arrives in parts, which one request at a time appends."""

import asyncio
import errno
import fcntl
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

from app.common.concurrency import run_shielded
from app.common.errors import TooLarge, UploadConflict, UploadLocked
from app.common.files import sync
from app.intake.disk import Reservation, disk_errors
from app.intake.file_sink import FileSink, Prefix

_HASHED_AT_ONCE = 16 << 20  # bytes
_BLOCK_BYTES = 1 << 20
GIVE_WAY_S = 5.0  # in which another front end gives way to a later request
_WANT_S, _LOCK_POLL_S = 1.0, 0.05  # between two wishes, and two attempts


async def _ask_nobody(is_wanted: bool) -> None: ...


class PartialFile:
    """A file of `size` bytes, once it is complete. `space` is its reservation.

    The file itself says how much has arrived. Its hash is kept between requests; after a restart, it is
    computed again from the file. `is_live`: bytes may still come; another one may not be there.
    """

    def __init__(self, path: Path, size: int, space: Reservation, *, is_live: bool = True) -> None:
        self.path = path
        self.size = size
        self.space = space
        self._hashed = Prefix()
        self._is_durable = False
        self.is_live = is_live
        self._lock = asyncio.Lock()
        self._waiting = 0  # for the lock
        self._receiving: asyncio.Timeout | None = None  # of the `append` that runs

    @property
    def is_receiving(self) -> bool:
        """Whether an `append` runs."""
        return self._receiving is not None

    def end_append(self) -> None:
        """End an `append` that runs: its client may have lost the connection."""
        if self._receiving is not None and not self._receiving.expired():
            self._receiving.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def lock(self, want: Callable[[bool], Awaitable[None]] = _ask_nobody) -> AsyncIterator[None]:
        """Lock the file. Ends an `append` that runs.

        `received` needs no lock; all other methods do. `want` lets another front end that has the file know
        that it is wanted, and that it is not any more. Raises UploadLocked if that goes on for `GIVE_WAY_S`.
        """
        self.end_append()
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        locked: IO[bytes] | None = None
        try:
            if self.is_live:  # or else nobody writes it, and it may be gone
                locked = await self._lock_for_all(want)
            yield
        finally:
            if locked is not None:
                locked.close()
            self._lock.release()

    async def _lock_for_all(self, want: Callable[[bool], Awaitable[None]]) -> IO[bytes]:
        """Lock the file against other front ends. Closing what this returns unlocks it."""
        with disk_errors():
            locked = await asyncio.to_thread(_try_lock, self.path)
            if locked is not None:
                return locked
            want_at = time.monotonic()
            give_up_at = want_at + GIVE_WAY_S
            while locked is None and (now := time.monotonic()) < give_up_at:
                if now >= want_at:  # and again: its client may have been faster than this
                    await want(True)
                    want_at += _WANT_S
                await asyncio.sleep(_LOCK_POLL_S)
                locked = await asyncio.to_thread(_try_lock, self.path)
            await want(False)
        if locked is None:
            raise UploadLocked(
                "Another request still sends a part of this upload, and does not end. Try again later."
            )
        return locked

    async def received(self) -> int:
        """How many bytes the file has."""
        return await asyncio.to_thread(size_of, self.path)

    async def append(self, chunks: AsyncIterator[bytes]) -> int:
        """Append a body. Returns how many bytes the file has then; a complete file survives a power cut.

        What has arrived stays if the body ends early, by an error or by the next request.

        Raises TooLarge if the body goes beyond `size`, UploadConflict if the next request ended it, DiskFull,
        and the exceptions of `chunks`.
        """
        if self._waiting:
            raise _taken_over()
        try:
            with disk_errors():
                async with self._until_next_request():
                    start = await self._catch_up()
                sink = FileSink(
                    self.path, "", self.size, "file", self.space, described=True, durable=True, start=start
                )
                try:
                    await self._receive(sink, chunks)
                finally:
                    self._hashed = await sink.keep()
        finally:
            self.space.written = await self.received()
        self._is_durable = self._hashed.size == self.size
        return self._hashed.size

    async def sha256(self) -> str:
        """The hash of the complete file, in hex. The file survives a power cut then."""
        with disk_errors():
            prefix = await self._catch_up()
            if not self._is_durable:
                await run_shielded(asyncio.to_thread(sync, self.path))
                self._is_durable = True
        return prefix.hash.hexdigest()

    async def remove(self) -> None:
        """Delete the file, if it is there."""
        await run_shielded(asyncio.to_thread(self.path.unlink, missing_ok=True))

    async def _receive(self, sink: FileSink, chunks: AsyncIterator[bytes]) -> None:
        async with self._until_next_request():
            async for chunk in chunks:
                if sink.size + len(chunk) > self.size:
                    raise beyond_length(self.size)
                sink.feed(chunk)
                await sink.drain()

    @asynccontextmanager
    async def _until_next_request(self) -> AsyncIterator[None]:
        """The next request that locks the file ends this block with UploadConflict."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._receiving = scope
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise _taken_over() from None
        finally:
            self._receiving = None

    async def _catch_up(self) -> Prefix:
        """All of the file as a prefix: hashes what another process, or a failed write, left in it."""
        size = await self.received()
        if self._hashed.size > size:
            self._hashed = Prefix()
        while self._hashed.size < size:
            self._hashed = await run_shielded(asyncio.to_thread(_hash_more, self.path, self._hashed, size))
        return self._hashed


def beyond_length(size: int) -> TooLarge:
    """The error for a part that goes beyond the end of an upload of `size` bytes."""
    return TooLarge(
        f"The part goes beyond the {size} bytes that Upload-Length declared. Send what is missing, and no "
        "more.",
        param="Upload-Length",
        code="upload_too_long",
    )


def _taken_over() -> UploadConflict:
    return UploadConflict(
        "A later request for this upload has ended this one. Ask for the upload's offset, and go on from "
        "there.",
        code="upload_taken_over",
    )


def _try_lock(path: Path) -> IO[bytes] | None:
    """Lock the file of an upload, which may have no byte yet. None: another front end has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Writable: NFS locks no other ones against writers.
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except BaseException:
        file.close()
        raise
    return file


def size_of(path: Path) -> int:
    """How many bytes a file has; 0 if there is none."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _hash_more(path: Path, start: Prefix, end: int) -> Prefix:
    """A longer prefix, by at most `_HASHED_AT_ONCE`. Raises OSError if the file is shorter than `end`."""
    found = start.hash.copy()
    size = start.size
    stop = min(end, start.size + _HASHED_AT_ONCE)
    with path.open("rb") as file:
        file.seek(size)
        while size < stop:
            block = file.read(min(_BLOCK_BYTES, stop - size))
            if not block:
                raise OSError(errno.EIO, "the file of an upload has become shorter", str(path))
            found.update(block)
            size += len(block)
    return Prefix(size, found)
