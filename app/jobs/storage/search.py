"""The search of jobs: a table with the words of each job's name and text, in the syntax of each database."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.jobs.job import Status

SHORT = 3  # characters of words for whose beginnings there is an index of its own; see `app.database.tables`
_HIGHEST = 2**63 - 1  # number of a job


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The statements of one database. `:number`: of a job; `:words`: separated by spaces."""

    delete: str
    insert: str
    find: str  # numbers of jobs, newest first; `:query`: terms with operators between them
    term: str  # a word that begins with `{}`
    short_term: str  # the same, for `SHORT` characters at most
    operator: str  # between terms: all of them
    prepare: str | None = None  # before `find`, in its transaction


# Words consist of letters, digits and marks. In quotes, neither database takes them for syntax.
_DIALECTS = {
    name: _Dialect(**statements)
    for name, statements in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}


async def index_text(connection: AsyncConnection, job_number: int, words: str) -> None:
    """Make a job found by these words, from `text_words`, and by no others.

    Call it in the transaction that changes the name or the text, with the words of both.
    """
    dialect = _DIALECTS[connection.dialect.name]
    await connection.execute(sa.text(dialect.delete), {"number": job_number})
    await connection.execute(sa.text(dialect.insert), {"number": job_number, "words": words})


async def find_jobs(
    connection: AsyncConnection,
    words: Sequence[str],
    *,
    status: Status | None,
    below: int | None,
    limit: int,
    owner: str | None,
) -> list[int]:
    """The numbers of the newest jobs that match all `words`, from `query_words`.

    Only those with a status and of an owner, if they are given, and with a number below `below`.
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
    }
    return list(await connection.scalars(sa.text(dialect.find), values))
