"""How much was transcribed, by day, owner and model."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import usage
from app.intake.budgets import Used, day_of
from app.jobs.job import Job, Status
from workers.messages import seconds


def _adding(insert: postgresql.Insert) -> sa.Insert:
    """Adds to the row of the same day, owner and model."""
    sums = {name: usage.c[name] + insert.excluded[name] for name in ("jobs", "seconds")}
    return insert.on_conflict_do_update(index_elements=["day", "owner", "model"], set_=sums)  # as in SQLite


ADD_USED = _adding(postgresql.insert(usage))  # its values are those of `Used`


def used_by(before: Job, job: Job) -> Iterator[Used]:
    """What a change of a job's status adds. One that goes on after it was cancelled takes back its part.

    What failed is free, and so is the recording of a stream, which is counted as that. What was transcribed
    of a job before it was cancelled, or went beyond its budget, could be read.
    """
    for ended, sign in ((before, -1), (job, 1)):
        used_s = ended.progress.done_s - seconds(sum(end - start for start, end in ended.failed_spans))
        is_stopped = ended.error is not None and ended.error.code == "insufficient_quota"
        is_using = ended.status in (Status.SUCCEEDED, Status.CANCELLED) or is_stopped
        if is_using and ended.finished_at and used_s > 0 and not before.is_live:
            of = ended.submission
            yield Used(day_of(ended.finished_at), of.owner, of.model, sign, sign * used_s)


async def rename_usage(connection: AsyncConnection, before: str, after: str) -> None:
    """Add what an owner has used to what another one has."""
    columns = {**usage.c, "owner": sa.literal(after)}
    rows = sa.select(*columns.values()).where(usage.c.owner == before)
    await connection.execute(_adding(postgresql.insert(usage).from_select([*columns], rows)))
    await connection.execute(sa.delete(usage).where(usage.c.owner == before))


def sums_of(
    first: str, last: str, by: Sequence[str], owner: str | None = None
) -> sa.Select[*tuple[Any, ...]]:
    """The query for `jobs` and `seconds` from one day to another, by some of its other columns.

    `owner`: whose; None: of all.
    """
    columns = [usage.c[name] for name in by]
    totals = [sa.func.sum(usage.c[name]).label(name) for name in ("jobs", "seconds")]
    of_owner = sa.true() if owner is None else usage.c.owner == owner
    query = sa.select(*columns, *totals).where(usage.c.day.between(first, last), of_owner)
    return query.group_by(*columns).order_by(*columns)
