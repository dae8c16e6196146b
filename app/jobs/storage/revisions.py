"""The revisions of a transcript in the database: the original, number 0, and corrections."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import PreconditionFailed, UnknownJob, UnknownRevision
from app.database.tables import jobs, revisions, transcripts
from app.jobs.corrections import Reason
from app.jobs.job import Job
from app.jobs.serialization import PackedTranscript, Summary
from app.jobs.storage.search import index_text, put_passages

ORIGINAL = 0
KEPT = 20  # corrections of a job
KEPT_BY_LINKS = 10  # of them: a link must not remove all that others corrected


class ListedRevision(NamedTuple):
    """A revision in a list."""

    number: int
    created_at: float  # Unix time in s
    changed: int  # segments that differ from the revision before
    by_link: bool = False  # somebody made it by a shared link
    reason: Reason | None = None  # None: it is the original, or a version without reasons made it
    restored: int | None = None  # the revision that it brings back
    author: str | None = None  # the owner of the request, or the id of the shared link; None: not known


async def add_revision(
    connection: AsyncConnection,
    job: Job,
    packed: PackedTranscript,
    summary: Summary,
    changed: int,
    now: float,
    **more: Any,
) -> None:
    """Store a revision of a job's transcript; the original is number 0. Of more corrections than `KEPT`,
    the one that lasted the shortest is removed, and so of those by links.

    All changes of a job's text go through this function. `now`: Unix time in s. `more`: of the columns of a
    correction.
    """
    revision, content = packed.revision, packed.content
    await index_text(connection, job, summary.words)
    await put_passages(connection, job.number, summary.passages)
    row = {"job_number": job.number, "content": content}
    if revision == ORIGINAL:
        partial = transcripts.c.job_number == job.number  # of a job that failed before
        await connection.execute(sa.delete(transcripts).where(partial))
        await connection.execute(sa.insert(transcripts).values(row))
        return
    row |= {"number": revision, "created_at": now, "changed": changed, **more}
    await connection.execute(sa.insert(revisions).values(row))
    of_job = revisions.c.job_number == job.number
    columns = (revisions.c.number, revisions.c.created_at, revisions.c.by_link)
    stored = (await connection.execute(sa.select(*columns).where(of_job).order_by(revisions.c.number))).all()
    by_links = {number for number, _, by_link in stored if by_link}
    outdated = briefest([(number, at) for number, at, _ in stored], by_links)
    if outdated:
        await connection.execute(sa.delete(revisions).where(of_job, revisions.c.number.in_(outdated)))


def briefest(corrections: Sequence[tuple[int, float]], by_links: Collection[int] = ()) -> list[int]:
    """The numbers of the corrections beyond the limits that were replaced the soonest: an editor saves often.

    `corrections`: the number and the Unix time (s) of each, in order. The newest one stays. `by_links`: the
    numbers of those by links.
    """
    left = list(corrections)
    removed: list[int] = []
    for numbers, most in ((by_links, KEPT_BY_LINKS), ({number for number, _ in left}, KEPT)):
        while sum(number in numbers for number, _ in left) > most:
            places = [place for place, (number, _) in enumerate(left[:-1]) if number in numbers]
            place = min(places, key=lambda at: left[at + 1][1] - left[at][1])
            removed.append(left.pop(place)[0])
    return removed


async def read_revision(connection: AsyncConnection, job: Job, revision: int | None) -> PackedTranscript:
    """A revision of a job that has succeeded; the newest if `revision` is None.

    Raises UnknownRevision, and UnknownJob if the job is deleted.
    """
    number = jobs.c.revision if revision is None else sa.literal(revision)
    of_job = revisions.c.job_number == jobs.c.number
    is_original = sa.and_(transcripts.c.job_number == jobs.c.number, number == ORIGINAL)
    query = (
        sa.select(number.label("number"), sa.func.coalesce(transcripts.c.content, revisions.c.content))
        .select_from(jobs)
        .outerjoin(transcripts, is_original)
        .outerjoin(revisions, sa.and_(of_job, revisions.c.number == number))
        .where(jobs.c.number == job.number)
    )
    row = (await connection.execute(query)).one_or_none()  # one statement: it sees one state of the tables
    if row is None:
        raise UnknownJob(f"The transcript of job {job.id!r} is gone.")
    found, content = row
    if content is None:
        raise UnknownRevision(
            f"Job {job.id!r} has no revision {found}: the original and {KEPT} corrections are "
            f"kept. GET /v1/jobs/{job.id}/revisions lists them.",
            param="revision",
        )
    return PackedTranscript(found, bytes(content))


async def list_revisions(connection: AsyncConnection, job: Job) -> list[ListedRevision]:
    """All revisions of a job that has succeeded, newest first."""
    columns = [revisions.c[name] for name in ListedRevision._fields]
    query = sa.select(*columns).where(revisions.c.job_number == job.number)
    rows = await connection.execute(query.order_by(revisions.c.number.desc()))
    return [
        *(ListedRevision(*row) for row in rows),
        ListedRevision(ORIGINAL, job.finished_at or job.created_at, 0),
    ]


def corrected_meanwhile() -> PreconditionFailed:
    """The error of a job that transcribes another one again, whose transcript has changed since."""
    return PreconditionFailed(
        "The transcript was corrected meanwhile, and stays as it is. Transcribe it again to begin from the "
        "corrections.",
        code="revision_changed",
    )


def transcript_changed(newest: int | None = None) -> PreconditionFailed:
    """The error of a request that corrects another revision than the newest; None: or a part of a text that
    grows, which has changed.
    """
    why = "" if newest is None else f": its newest revision is {newest}"
    return PreconditionFailed(
        f"The transcript has changed{why}. Get the segments again, and correct those.",
        param="If-Match",
    )
