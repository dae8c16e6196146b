"""What a media worker keeps open from one step of a recording to the next, by the id of the session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast


class Session(Protocol):
    """A decoder or an encoder with its files."""

    @property
    def finished(self) -> bool:
        """Whether its last step is done."""

    def close(self) -> None: ...


S = TypeVar("S", bound=Session)

_open: dict[str, Session] = {}


@contextmanager
def session(session_id: str, begin: Callable[[], S]) -> Iterator[S]:
    """The session for one step: the one that is open, or else the one that `begin` returns.

    It is closed and forgotten after its last step, and after an error in the step.
    """
    if session_id not in _open:
        _open[session_id] = begin()
    found = cast(S, _open[session_id])
    try:
        yield found
    except BaseException:
        close(session_id)
        raise
    if found.finished:
        close(session_id)


def close(session_id: str) -> None:
    """Close a session, if it is open. Its files stay as they are."""
    found = _open.pop(session_id, None)
    if found is not None:
        found.close()
