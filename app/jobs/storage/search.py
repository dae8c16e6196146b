"""The search of jobs: a table with the words of each job's text and details, in the syntax of each database.

The details are what people call it: its title, its tags, its notes, and the name of its file.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import passages
from app.jobs.job import Job, Status
from app.jobs.search_terms import detail_words

SHORT = 3  # characters of words for whose beginnings there is an index of its own; see `app.database.tables`
_HIGHEST = 2**63 - 1  # number of a job


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The statements of one database. `:number`: of a job."""

    delete: str
    insert: str  # `{words}` and `{details}`: `indexed`
    change_details: str
    indexed: str  # words as the table has them; `:%s`: separated by spaces
    find: str  # numbers of jobs, newest first; `:query`: terms with operators between them
    term: str  # a word that begins with `{}`
    short_term: str  # the same, for `SHORT` characters at most
    operator: str  # between terms: all of them
    prepare: str | None = None  # before `find`, in its transaction

    def writing(self, statement: str) -> sa.TextClause:
        """`insert` or `change_details`, complete."""
        return sa.text(statement.format(words=self.indexed % "words", details=self.indexed % "details"))


# Words consist of letters, digits and marks. In quotes, neither database takes them for syntax.
_DIALECTS = {
    name: _Dialect(**statements)
    for name, statements in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}


async def index_text(connection: AsyncConnection, job: Job, words: str) -> None:
    """Make a job found by these words of its text, from `text_words`, and by what people call it.

    Call it in the transaction that changes the text.
    """
    dialect = _DIALECTS[connection.dialect.name]
    await connection.execute(sa.text(dialect.delete), {"number": job.number})
    values = {"number": job.number, "words": words, "details": _details(job)}
    await connection.execute(dialect.writing(dialect.insert), values)


async def index_details(connection: AsyncConnection, job: Job) -> None:
    """Make a job found by what people call it now. Call it in the transaction that changes that."""
    dialect = _DIALECTS[connection.dialect.name]
    values = {"number": job.number, "details": _details(job)}
    await connection.execute(dialect.writing(dialect.change_details), values)


async def put_passages(connection: AsyncConnection, job_number: int, content: bytes) -> None:
    """Store the passages of a job's newest transcript, from `pack_passages`."""
    await connection.execute(sa.delete(passages).where(passages.c.job_number == job_number))
    await connection.execute(sa.insert(passages).values(job_number=job_number, content=content))


async def read_passages(connection: AsyncConnection, numbers: Sequence[int]) -> dict[int, bytes]:
    """The passages of jobs by their numbers; those that have none are left out."""
    query = sa.select(passages).where(passages.c.job_number.in_(numbers))
    return {row.job_number: bytes(row.content) for row in await connection.execute(query)}


def _details(job: Job) -> str:
    submission = job.submission
    texts = (submission.title or "", submission.filename, submission.notes or "")
    return detail_words(submission.tags, *texts)


async def find_jobs(
    connection: AsyncConnection,
    words: Sequence[str],
    *,
    status: Status | None,
    below: int | None,
    limit: int,
    owner: str | None,
    trashed: bool,
) -> list[int]:
    """The numbers of the newest jobs that match all `words`, from `query_words`.

    Only those with a status and of an owner, if they are given, and with a number below `below`. `trashed`:
    those in the trash, instead of all others.
    """
    dialect = _DIALECTS[connection.dialect.name]
    if dialect.prepare is not None:
        await connection.execute(sa.text(dialect.prepare))
    values = {
        "query": dialect.operator.join(
            (dialect.short_term if len(word) <= SHORT else dialect.term).format(word) for word in words
        ),
        "status": None if status is None else status.value,
        "below": _HIGHEST if below is None else below,
        "limit": limit,
        "owner": owner,
        "trashed": trashed,
    }
    return list(await connection.scalars(sa.text(dialect.find), values))
