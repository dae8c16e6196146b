"""The search of jobs: a table with the words of each job's name and text, in the syntax of each database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.jobs.tables import jobs


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The statements of one database. `:number`: of a job; `:words`: separated by spaces."""

    delete: str
    insert: str
    find: str  # the numbers of jobs; `:query`: terms with operators between them
    term: str  # a word that begins with `{}`
    operator: str
    prepare: str | None = None  # before `find`, in its transaction


# Words consist of letters, digits and marks. In quotes, neither database takes them for syntax.
_DIALECTS = {
    "sqlite": _Dialect(
        delete="DELETE FROM search WHERE rowid = :number",
        insert="INSERT INTO search (rowid, words) VALUES (:number, :words)",
        find="SELECT rowid AS number FROM search WHERE search MATCH :query",
        term='"{}"*',
        operator=" AND ",
    ),
    "postgresql": _Dialect(
        delete="DELETE FROM search WHERE job_number = :number",
        insert="INSERT INTO search (job_number, words) "
        "VALUES (:number, array_to_tsvector(string_to_array(CAST(:words AS text), ' ')))",
        find="SELECT job_number AS number FROM search WHERE words @@ CAST(CAST(:query AS text) AS tsquery)",
        term="'{}':*",
        operator=" & ",
        # The planner takes rows for small, since their words are stored elsewhere. It would read all of them.
        prepare="SET LOCAL enable_seqscan = off",
    ),
}


async def index_text(connection: AsyncConnection, job_number: int, words: str) -> None:
    """Make a job found by these words, from `text_words`, and by no others.

    Call it in the transaction that changes the name or the text, with the words of both.
    """
    dialect = _DIALECTS[connection.dialect.name]
    await connection.execute(sa.text(dialect.delete), {"number": job_number})
    await connection.execute(sa.text(dialect.insert), {"number": job_number, "words": words})
    await connection.execute(sa.update(jobs).where(jobs.c.number == job_number).values(indexed=True))


async def only_matching(
    connection: AsyncConnection, query: sa.Select[Any], words: Sequence[str]
) -> sa.Select[Any]:
    """A query of jobs, limited to those that match all `words`, from `query_words`.

    Execute it on the same connection, in the same transaction.
    """
    dialect = _DIALECTS[connection.dialect.name]
    if dialect.prepare is not None:
        await connection.execute(sa.text(dialect.prepare))
    terms = dialect.operator.join(dialect.term.format(word) for word in words)
    # Materialized, so that nothing else decides how the table of words is read.
    found = (
        sa.text(dialect.find)
        .bindparams(query=terms)
        .columns(sa.column("number", sa.BigInteger))
        .cte("found")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    return query.join(found, found.c.number == jobs.c.number)
