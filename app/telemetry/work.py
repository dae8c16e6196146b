"""The request or job for which code runs: its ids, which log lines have.

A request and each run of a job have one `Work`. All of their tasks share it, so that a batch of many requests
still knows whose it is.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import structlog

# Names of ids in log lines.
REQUEST_ID, JOB = "request_id", "job"

_MOST_IDS = 8  # in a log line; a batch may be of a hundred requests


@dataclass(frozen=True, slots=True)
class Work:
    """One request, or one run of a job."""

    request_id: str | None = None  # of a job: of the request that submitted it
    job: str | None = None
    owner: str = ""  # the digest of its API key, or another name: see `app.intake.limits`


_current: ContextVar[Work] = ContextVar("work", default=Work())  # noqa: B039 - frozen


# The work of the caller; one without ids if it works for no request and no job.
current_work: Callable[[], Work] = _current.get


@contextmanager
def working_for(work: Work) -> Iterator[None]:
    """Let the block work for `work`: its log lines have the ids."""
    token = _current.set(work)
    try:
        with structlog.contextvars.bound_contextvars(**log_ids([work])):
            yield
    finally:
        _current.reset(token)


def log_ids(works: Iterable[Work]) -> dict[str, str | list[str]]:
    """The ids of one or more requests and jobs as keys of a log line.

    One id is a string, several are a list. Its last entry says how many it leaves out: "+120".
    """
    found: dict[str, dict[str, None]] = {}
    for work in works:
        if work.request_id is not None:
            found.setdefault(REQUEST_ID, {})[work.request_id] = None
        if work.job is not None:
            found.setdefault(JOB, {})[work.job] = None
    return {name: _some(list(ids)) if len(ids) > 1 else next(iter(ids)) for name, ids in found.items()}


def bound_ids() -> dict[str, str | list[str]]:
    """The ids that the caller's log lines have now."""
    bound = structlog.contextvars.get_contextvars()
    return {name: bound[name] for name in (REQUEST_ID, JOB) if name in bound}


def _some(ids: list[str]) -> list[str]:
    left_out = len(ids) - _MOST_IDS
    return [*ids[:_MOST_IDS], f"+{left_out}"] if left_out > 0 else ids
