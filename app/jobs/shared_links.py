"""Links that open one transcript on the page, for people without a key: they expire, and can be revoked."""

import hashlib
import secrets
import uuid
from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import QueueFull, UnknownSharedLink
from app.database import tables
from app.database.connection import Database, Then
from app.jobs.access import note_access
from app.jobs.job import Job
from app.jobs.storage.service_clock import ServiceClock

TOKEN_PREFIX = b"shared_"  # of the bearer token
MOST = 100  # of one job
_TOKEN_BYTES = 32

# What links open: methods and parts of a job, by their paths.
_READING = frozenset(
    {("GET", ""), ("GET", "segments"), ("GET", "cues"), ("GET", "result"), ("POST", "links")}
)
_SOUND = frozenset({("GET", "audio"), ("GET", "peaks")})
_REVISIONS = frozenset({("GET", "revisions")})
_CORRECTING = frozenset({("PUT", "segments"), ("POST", "cues"), ("POST", "speakers")})


@dataclass(frozen=True, slots=True)
class SharedLink:
    """What a link opens, and until when: a time of service (s). `created_at` is a Unix time (s)."""

    id: str
    job_id: str
    may_correct: bool
    has_audio: bool  # whether it opens the recording and its waveform
    has_revisions: bool  # earlier texts: they may have what was removed before the transcript was shared
    created_at: float
    expires_at: float

    def may(self, method: str, part: str) -> bool:
        """Whether a request is allowed: `part` of the job, `""` for itself."""
        asked = ("GET" if method == "HEAD" else method, part)
        others = (self.has_audio, _SOUND), (self.has_revisions, _REVISIONS), (self.may_correct, _CORRECTING)
        return asked in _READING or any(opens and asked in parts for opens, parts in others)


_FIELDS = [field.name for field in fields(SharedLink)]


class SharedLinks:
    """All links that are valid. They are in the database, and in memory: checks cost no query."""

    def __init__(self, database: Database, clock: ServiceClock) -> None:
        self._database = database
        self._clock = clock
        self._links: dict[str, SharedLink] = {}  # by digest of their tokens
        self._digests: dict[str, str] = {}  # by id

    async def load(self, withdrawn: str | None = None) -> None:
        """Read the links, after those that have expired are deleted, and those that an owner has made.

        Raises what `Database` raises.
        """
        table, jobs = tables.shared_links, tables.jobs
        columns = [jobs.c.id if name == "job_id" else table.c[name] for name in _FIELDS]
        query = sa.select(table.c.token_digest, *columns).join(jobs, jobs.c.number == table.c.job_number)

        async def load(connection: AsyncConnection, then: Then) -> None:
            has_ended = sa.or_(table.c.expires_at <= self._clock(), table.c.owner == withdrawn)
            await connection.execute(sa.delete(table).where(has_ended))
            if withdrawn is not None:
                await note_access(self._database, connection)
            rows = (await connection.execute(query)).all()
            then(self._replace, {digest: SharedLink(*values) for digest, *values in rows})

        await self._database.transact(load)

    def _replace(self, links: dict[str, SharedLink]) -> None:
        self._links = links
        self._digests = {link.id: digest for digest, link in links.items()}

    def find(self, token: bytes) -> SharedLink | None:
        """The link with a token; None if it was revoked, has expired, or never was."""
        return self._unexpired(self._links.get(_digest(token)))

    def get(self, link_id: str) -> SharedLink | None:
        """The link with an id; None if it was revoked or has expired."""
        return self._unexpired(self._links.get(self._digests.get(link_id, "")))

    def of_job(self, job: Job) -> list[SharedLink]:
        """The links to a job, oldest first."""
        links = [link for link in self._links.values() if link.job_id == job.id and self._unexpired(link)]
        return sorted(links, key=lambda link: link.created_at)

    def _unexpired(self, link: SharedLink | None) -> SharedLink | None:
        return link if link is not None and self._clock() < link.expires_at else None

    async def add(
        self, job: Job, owner: str, may_correct: bool, has_audio: bool, has_revisions: bool, lifetime_s: float
    ) -> tuple[SharedLink, str]:
        """A new link to a job, made by an owner, and its token, which is stored nowhere.

        Raises QueueFull beyond `MOST`.
        """
        if len(self.of_job(job)) >= MOST:
            raise QueueFull(f"The job has {MOST} links, as many as it may have; revoke one.")
        token = (TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES).encode()).decode()
        now, digest = self._clock(), _digest(token.encode())
        opens, times = (may_correct, has_audio, has_revisions), (self._clock.date(now), now + lifetime_s)
        link = SharedLink(uuid.uuid4().hex, job.id, *opens, *times)
        row = asdict(link) | {"token_digest": digest, "job_number": job.number, "owner": owner}
        del row["job_id"]

        async def insert(connection: AsyncConnection, then: Then) -> None:
            await connection.execute(sa.insert(tables.shared_links).values(row))
            await note_access(self._database, connection)
            then(self._links.__setitem__, digest, link)
            then(self._digests.__setitem__, link.id, digest)

        await self._database.transact(insert)
        return link, token

    async def revoke(self, job: Job, link_id: str) -> None:
        """Revoke a link to a job. Raises UnknownSharedLink."""
        link = self.get(link_id)
        if link is None or link.job_id != job.id:
            raise UnknownSharedLink(
                f"The job has no shared link {link_id[:64]!r}: it was revoked, or has expired."
            )

        async def delete(connection: AsyncConnection, then: Then) -> None:
            table = tables.shared_links
            await connection.execute(sa.delete(table).where(table.c.id == link_id))
            await note_access(self._database, connection)
            then(self._forget, link_id)

        await self._database.transact(delete)

    def _forget(self, link_id: str) -> None:
        self._links.pop(self._digests.pop(link_id, ""), None)


def _digest(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()
