"""How much audio the jobs of the queue are known to have."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from app.jobs.turns import LONG_S


@dataclass(frozen=True, slots=True)
class _Length:
    decoded_s: float
    done_s: float

    @property
    def remaining_s(self) -> float:
        return self.decoded_s - self.done_s


class Lengths:
    """The length of recordings, as far as they were ever decoded, and how much of them is done."""

    def __init__(self, on_long: Callable[[], None]) -> None:
        """`on_long` is called when a job turns out to be long."""
        self._lengths: dict[str, _Length] = {}
        self._on_long = on_long

    def record(self, job_id: str, decoded_s: float, done_s: float) -> None:
        """So much of a job is decoded or done, in s. Earlier runs may have got further."""
        before = self._lengths.get(job_id, _Length(0, 0))
        now = _Length(max(before.decoded_s, decoded_s), max(before.done_s, done_s))
        self._lengths[job_id] = now
        if before.remaining_s <= LONG_S < now.remaining_s:
            self._on_long()

    def remaining_s(self, job_id: str) -> float | None:
        """How much audio of a job is left, in s, at least. None: nothing is known."""
        length = self._lengths.get(job_id)
        return None if length is None else length.remaining_s

    def keep(self, job_ids: Collection[str]) -> None:
        """Forget all other jobs."""
        self._lengths = {id: length for id, length in self._lengths.items() if id in job_ids}
