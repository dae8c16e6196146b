"""The rows of resumable uploads in the database."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import UploadConflict
from app.database.connection import Database, Then
from app.database.tables import jobs, uploads
from app.intake.limits import Limit


@dataclass(frozen=True, slots=True)
class ResumableUpload:
    """A resumable upload. Times are times of service in s."""

    id: str  # the name of its file, too
    owner: str  # the digest of its API key; empty without keys
    filename: str  # as the client calls it, without folders; may be empty
    metadata: str  # `Upload-Metadata`, as the client sent it
    size: int  # bytes of the complete file
    created_at: float
    expires_at: float
    job_id: str | None = None  # of the job that has used it

    def is_live(self, now: float) -> bool:
        """Whether it can still be continued or used."""
        return self.job_id is None and now < self.expires_at


_COLUMNS = [uploads.c[field.name] for field in fields(ResumableUpload)]


class UploadRows:
    """The rows. Raises what `Database` raises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, upload: ResumableUpload, limit: Limit) -> None:
        """Raises QueueFull."""
        live = (
            sa.select(uploads.c.owner, sa.func.count())
            .where(uploads.c.job_id.is_(None), uploads.c.expires_at > upload.created_at)
            .group_by(uploads.c.owner)
        )

        async def insert(connection: AsyncConnection, then: Then) -> None:
            await self._database.serialize(connection, "uploads")
            held = dict(tuple(row) for row in await connection.execute(live))
            limit.check(upload.owner, held)
            await connection.execute(sa.insert(uploads).values(asdict(upload)))

        await self._database.transact(insert)  # writes take turns: nobody adds one in between

    async def get(self, upload_id: str) -> ResumableUpload | None:
        query = sa.select(*_COLUMNS).where(uploads.c.id == upload_id)
        found = await self._database.rows(query)
        return ResumableUpload(*found[0]) if found else None

    async def live(self, now: float) -> Sequence[ResumableUpload]:
        """All uploads that can still be continued or used."""
        query = sa.select(*_COLUMNS).where(uploads.c.job_id.is_(None), uploads.c.expires_at > now)
        return [ResumableUpload(*row) for row in await self._database.rows(query)]

    async def prolong(self, upload: ResumableUpload) -> None:
        """Store a later end of an upload."""
        change = sa.update(uploads).where(uploads.c.id == upload.id).values(expires_at=upload.expires_at)
        await self._database.execute(change)

    async def want(self, upload_id: str, at: float | None) -> None:
        """Note when (time of service, s) a request wanted an upload that another front end has; None: never.

        See `wanted`.
        """
        moment = None if at is None else round(at)
        change = sa.update(uploads).where(uploads.c.id == upload_id)
        await self._database.execute(change.values(wanted_at=moment))

    async def wanted(self, ids: Collection[str], since: float) -> Sequence[str]:
        """Which of these uploads are wanted since some time of service (s) at most."""
        query = sa.select(uploads.c.id).where(uploads.c.id.in_(ids), uploads.c.wanted_at >= since)
        return [row.id for row in await self._database.rows(query)]

    async def delete(self, upload_id: str) -> bool:
        """Delete a row. Returns whether no job has used the upload, so its file can go."""

        async def delete(connection: AsyncConnection, then: Then) -> bool:
            is_unused = await _is_unused(connection, upload_id)
            await connection.execute(sa.delete(uploads).where(uploads.c.id == upload_id))
            return is_unused

        return await self._database.transact(delete)

    async def has_expired(self, upload_id: str, now: float) -> bool:
        """Whether no job has used an upload, nor will: its time is over."""

        async def check(connection: AsyncConnection, then: Then) -> bool:
            return await _is_unused(connection, upload_id, uploads.c.expires_at <= now)

        return await self._database.transact(check)

    async def delete_expired(self, before: float) -> None:
        """Delete the rows of all uploads that expired before a time."""
        expired = uploads.c.expires_at < before
        # Writes take turns, and this is asked every minute.
        if await self._database.scalar(sa.select(uploads.c.id).where(expired).limit(1)) is not None:
            await self._database.execute(sa.delete(uploads).where(expired))

    async def sha256(self, job_id: str) -> str | None:
        """The hash of a job's recording, in hex; None if the job is deleted."""
        found: str | None = await self._database.scalar(sa.select(jobs.c.sha256).where(jobs.c.id == job_id))
        return found


async def mark_used(connection: AsyncConnection, upload_id: str, job_id: str, now: float) -> None:
    """Mark an upload as used by a job. Raises UploadConflict if another job has used it, or it has ended."""
    change = (
        sa.update(uploads)
        .where(uploads.c.id == upload_id, uploads.c.job_id.is_(None), uploads.c.expires_at > now)
        .values(job_id=job_id)
    )
    if not (await connection.execute(change)).rowcount:
        raise upload_used(
            await connection.scalar(sa.select(uploads.c.job_id).where(uploads.c.id == upload_id))
        )


def upload_used(job_id: str | None) -> UploadConflict:
    """The error for an upload that a job has used, or that has just ended (None)."""
    fault = f"has been used for job {job_id}" if job_id else "has been used for another job, or has expired"
    return UploadConflict(
        f"This upload {fault}. Upload the file again for another job.",
        param="upload",
        code="upload_used",
    )


async def _is_unused(
    connection: AsyncConnection, upload_id: str, *conditions: sa.ColumnElement[bool]
) -> bool:
    """Whether no job has used an upload, and it meets the conditions.

    Locks the row: a transaction that marks it as used, and whose end is unknown, ends first.
    """
    query = sa.select(uploads.c.id).where(uploads.c.id == upload_id, uploads.c.job_id.is_(None), *conditions)
    return await connection.scalar(query.with_for_update()) is not None
