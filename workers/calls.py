"""A call of a child process: the ids of its work, for log lines, and the parts of it that were measured."""

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from workers.messages import Part

R = TypeVar("R")

Ids = Mapping[str, str | Sequence[str]]

_MOST_PARTS = 64  # of a call; a batch whose windows cannot be decoded together has several for each
_MOST_CHARACTERS = 400  # of an error
_SHORT_S = 0.05  # that a call may always take: each costs the server a millisecond


@dataclass(slots=True)
class Call:
    """A call that runs, or work that has several."""

    ids: Ids = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """The result of a call, and what was measured."""

    result: R
    parts: tuple[Part, ...]


_current: ContextVar[Call | None] = ContextVar("call", default=None)


def answer(ids: Ids, function: Callable[..., R], *args: object) -> Answer[R]:
    """Call a function for the requests and jobs with these ids. Raises what it raises."""
    context, call = separate(ids)
    return Answer(context.run(function, *args), tuple(call.parts))


def answer_parent(ids: Ids, function: Callable[..., R], *args: object) -> Answer[R]:
    """As `answer`, in a process of its own. Raises errors that the parent can read."""
    try:
        return answer(ids, function, *args)
    except BaseException as error:
        if (sent := readable(error)) is error:
            raise
        raise sent from error


def readable(error: BaseException) -> Exception:
    """The error, or one that says the same if another process could not read it, or would end with it."""
    try:
        pickle.loads(pickle.dumps(error))
        if isinstance(error, Exception):
            return error
    except Exception:
        pass
    return RuntimeError(f"{type(error).__name__}: {one_line(error)}")


def one_line(error: BaseException) -> str:
    """The text of an error, on one line of bounded length."""
    return " ".join(str(error).split())[:_MOST_CHARACTERS]


def current() -> Call:
    """The call that runs; a new one outside of calls. Threads need a copy of the caller's context."""
    return _current.get() or Call()


def separate(ids: Ids | None = None) -> tuple[Context, Call]:
    """A context for work of its own, and what is measured in it. `ids`: by default, those of the caller."""
    context, call = copy_context(), Call(current().ids if ids is None else ids)
    context.run(_current.set, call)
    return context, call


@contextmanager
def measured(name: str) -> Iterator[None]:
    """Measure a part of the call that runs."""
    start = time.time()
    try:
        yield
    finally:
        parts = current().parts
        if len(parts) < _MOST_PARTS:
            parts.append(Part(name, start, time.time()))


def has_taken_long(began_s: float, usual_s: float) -> bool:
    """Whether a call should return what it has done so far, because others wait for its process.

    Times of the CPU: `began_s` when it began (`time.process_time`), `usual_s` for as much of usual work.
    """
    return time.process_time() - began_s > max(_SHORT_S, usual_s)
