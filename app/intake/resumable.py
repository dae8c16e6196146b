"""Resumable uploads: their rows, their files, and the space that their missing bytes will need.

An upload lives for a day, and one without bytes for minutes. A job that uses it takes over its file, which
keeps its name. A row stays another day after its end, so that the client learns why its upload is gone.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import structlog

from app.common.concurrency import run_shielded
from app.common.errors import UnknownUpload, UploadConflict, UploadExpired, UploadLocked
from app.common.ids import ID
from app.database.connection import Database
from app.intake.data_folder import DataFolder
from app.intake.disk import Reservation
from app.intake.limits import limit_of_partial_uploads
from app.intake.partial_file import GIVE_WAY_S, PartialFile, beyond_length, size_of
from app.intake.resumable_rows import ResumableUpload, UploadRows, upload_used
from app.intake.uploads import Upload
from app.settings import Settings

LIFETIME_S = 86400.0
EMPTY_LIFETIME_S = 600.0  # until the first bytes come: such an upload costs its client nothing
REMEMBERED_S = 86400.0  # after its end

log = structlog.get_logger(__name__)


class Uploads:
    """The resumable uploads of one database and one data folder. Raises what `Database` raises."""

    def __init__(
        self, database: Database, folder: DataFolder, settings: Settings, clock: Callable[[], float]
    ) -> None:
        """`clock`: the time of service (s)."""
        self._rows = UploadRows(database)
        self._folder = folder
        self._clock = clock
        self._files: dict[str, PartialFile] = {}  # of live uploads
        self._limit = limit_of_partial_uploads(settings)

    async def start(self) -> set[str]:
        """Reserve the space of live uploads again. Returns the names of their files."""
        live = await self._rows.live(self._clock())
        for upload in live:
            self._hold(upload, await asyncio.to_thread(size_of, self._path(upload)))
        return {upload.id for upload in live}

    async def create(self, owner: str, size: int, filename: str, metadata: str) -> ResumableUpload:
        """A new upload, with its space reserved. Raises DiskFull and QueueFull."""
        now = self._clock()
        expires_at = now + EMPTY_LIFETIME_S
        upload = ResumableUpload(uuid.uuid4().hex, owner, filename, metadata, size, now, expires_at)
        space = self._folder.disk.reserve(owner, has_row=True)
        try:
            await asyncio.to_thread(space.expect, size)
            await self._rows.add(upload, self._limit)
        except BaseException:
            space.close()
            raise
        self.release(upload.id)  # `refresh` may have found the row
        self._files[upload.id] = PartialFile(self._folder.uploads / upload.id, size, space)
        return upload

    async def find(self, owner: str, upload_id: str, param: str | None = None) -> ResumableUpload:
        """An upload that belongs to `owner`, or any if that is empty. `param` names the request's parameter.

        Raises UnknownUpload, and UploadExpired unless a job has used it.
        """
        upload = await self._rows.get(upload_id) if ID.fullmatch(upload_id) else None
        if upload is None or owner not in ("", upload.owner):
            raise UnknownUpload(
                f"There is no upload {upload_id[:64]!r}; it may have been deleted, or its time may be over. "
                "Create a new one.",
                param=param,
            )
        if upload.job_id is None and not upload.is_live(self._clock()):
            raise UploadExpired(
                f"This upload has expired: uploads are kept for {LIFETIME_S / 3600:g} h, and for "
                f"{EMPTY_LIFETIME_S / 60:g} minutes while they have no bytes. Create a new one.",
                param=param,
            )
        return upload

    @asynccontextmanager
    async def lock(
        self, owner: str, upload_id: str, param: str | None = None
    ) -> AsyncIterator[tuple[ResumableUpload, PartialFile]]:
        """Lock an upload: ends a request that sends bytes. Raises UploadLocked, and as `find`."""
        file = await self._file(await self.find(owner, upload_id, param))

        async def want(is_wanted: bool) -> None:
            await self._rows.want(upload_id, self._clock() if is_wanted else None)

        async with file.lock(want):
            # It may have been used or deleted while this request waited.
            yield await self.find(owner, upload_id, param), file

    async def offset(self, owner: str, upload_id: str) -> tuple[ResumableUpload, int]:
        """An upload, and how many of its bytes have arrived. Locks it."""
        async with self.lock(owner, upload_id) as (upload, file):
            return upload, upload.size if upload.job_id else await file.received()

    async def append(
        self,
        upload: ResumableUpload,
        file: PartialFile,
        offset: int,
        chunks: AsyncIterator[bytes],
        length: int | None = None,
    ) -> tuple[ResumableUpload, int]:
        """Append a body to an upload that is locked. Returns it, and how many of its bytes have arrived.

        Its first bytes make it live longer.

        `offset`: where the client says that the body begins. `length`: of the body, if it is known.

        Raises UploadConflict if that is not where the file ends or if a job has the upload, and as
        `PartialFile.append`.
        """
        if upload.job_id is not None:
            raise upload_used(upload.job_id)
        received = await file.received()
        if offset != received:
            raise UploadConflict(
                f"Upload-Offset is {offset}, and the service has {received} bytes. Continue at {received}.",
                param="Upload-Offset",
                code="upload_offset_mismatch",
            )
        if length is not None and offset + length > upload.size:
            raise beyond_length(upload.size)
        whole_life = replace(upload, expires_at=upload.created_at + LIFETIME_S)
        received = await file.append(chunks if received else self._prolong(whole_life, chunks))
        return (whole_life if received else upload), received

    async def _prolong(self, upload: ResumableUpload, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The chunks of the first part of an upload. Stores its new end as soon as bytes come."""
        is_stored = False
        async for chunk in chunks:
            if chunk and not is_stored:
                await self._rows.prolong(upload)
                is_stored = True
            yield chunk

    @asynccontextmanager
    async def complete(self, owner: str, upload_id: str) -> AsyncIterator[Upload]:
        """The file of a complete upload, for a job. It stays as it is in this block.

        Raises UploadConflict if bytes are missing, or a job that is deleted has used it, and as `find`.
        """
        await self._check_complete(await self.find(owner, upload_id, "upload"))
        async with self.lock(owner, upload_id, "upload") as (upload, file):
            await self._check_complete(upload)
            # A repeated submission gets the job that the first one made: `submit` compares them.
            sha256 = await (self._rows.sha256(upload.job_id) if upload.job_id else file.sha256())
            if sha256 is None:
                raise upload_used(upload.job_id)
            yield Upload(file.path, upload.filename, upload.size, sha256)

    async def delete(self, owner: str, upload_id: str) -> None:
        """Delete an upload. The file of a used one belongs to its job, and stays. Raises as `find`."""

        async def delete(upload: ResumableUpload, file: PartialFile) -> None:
            # The row goes first. The next start removes a file without one.
            if await self._rows.delete(upload.id):
                await file.remove()
            self.release(upload.id)

        async with self.lock(owner, upload_id) as (upload, file):
            await run_shielded(delete(upload, file))

    async def withdraw(self, owner: str) -> None:
        """Delete the uploads of an owner that no job has used."""
        for upload in await self._rows.live(self._clock()):
            if upload.owner == owner:
                with suppress(UnknownUpload, UploadExpired):  # ended just now
                    await self.delete(owner, upload.id)

    async def give_way(self) -> None:
        """End the requests here that send bytes to uploads which others at another front end want."""
        receiving = [upload_id for upload_id, file in self._files.items() if file.is_receiving]
        # One that did not end its wish is forgotten after a while.
        since = self._clock() - 2 * GIVE_WAY_S
        for upload_id in await self._rows.wanted(receiving, since) if receiving else ():
            if (file := self._files.get(upload_id)) is not None:
                file.end_append()

    async def refresh(self) -> None:
        """Reserve the space of all live uploads, also of those that are received elsewhere."""
        live = await self._rows.live(self._clock())
        written = await asyncio.to_thread(lambda: [size_of(self._path(upload)) for upload in live])
        for upload, size in zip(live, written, strict=True):
            if upload.id not in self._files:
                self._hold(upload, size)
            elif not self._files[upload.id].is_receiving:
                self._files[upload.id].space.written = size

    def release(self, upload_id: str) -> None:
        """Forget the file of an upload that is no longer live."""
        file = self._files.pop(upload_id, None)
        if file is not None:
            file.space.close()

    async def sweep(self) -> None:
        """Remove the files of uploads whose time is over, and later their rows."""
        now = self._clock()
        for upload_id, file in list(self._files.items()):
            upload = await self._rows.get(upload_id)
            if upload is not None and upload.is_live(now):
                continue
            file.is_live = upload is not None and upload.job_id is None
            with suppress(UploadLocked):  # another front end has it: later
                await self._end(upload_id, file, now)
        await self._rows.delete_expired(now - REMEMBERED_S)

    async def _end(self, upload_id: str, file: PartialFile, now: float) -> None:
        async with file.lock():
            try:
                if await self._rows.has_expired(upload_id, now):
                    await file.remove()
            except OSError as error:
                log.error("the file of an upload cannot be removed", path=str(file.path), error=repr(error))
            self.release(upload_id)

    async def _check_complete(self, upload: ResumableUpload) -> None:
        if upload.job_id is not None:
            return
        missing = upload.size - await (await self._file(upload)).received()
        if missing > 0:
            raise UploadConflict(
                f"This upload is not complete: {missing} of {upload.size} bytes are missing. Send them "
                "first.",
                param="upload",
                code="upload_incomplete",
            )

    async def _file(self, upload: ResumableUpload) -> PartialFile:
        """The file of an upload. That of an ended one has no reserved space, and nobody writes it."""
        if upload.job_id is not None:
            self.release(upload.id)  # a job has it, perhaps by another front end
        if upload.id not in self._files:
            written = await asyncio.to_thread(size_of, self._path(upload))
            now = await self._rows.get(upload.id)  # a job may have used it meanwhile
            if now is None or now.job_id is not None:
                space = Reservation(self._folder.disk)
                return PartialFile(self._path(upload), upload.size, space, is_live=False)
            if upload.id not in self._files:  # the commit of its creation seemed to fail
                self._hold(upload, written)
        return self._files[upload.id]

    def _hold(self, upload: ResumableUpload, written: int) -> None:
        space = self._folder.disk.reserve(upload.owner, upload.size, written, has_row=True)
        self._files[upload.id] = PartialFile(self._path(upload), upload.size, space)

    def _path(self, upload: ResumableUpload) -> Path:
        return self._folder.uploads / upload.id
