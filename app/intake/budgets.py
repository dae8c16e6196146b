"""How much audio owners have had transcribed in a month, what is reserved for them, and their budgets."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from app.common.errors import InsufficientQuota, InvalidSetting
from app.common.files import entries_of
from app.settings import Settings

OTHERS, UNLIMITED = "*", "unlimited"  # in the file: owners that it does not name, and no budget
LEAST_S = 1.0  # reserved while the length is not known
MOST_NAMED = 20  # owners in metrics


class Used(NamedTuple):
    """Audio that was transcribed."""

    day: str
    owner: str
    model: str
    jobs: int  # also requests and streams
    seconds: float


class Budgets:
    """Times are seconds of audio; days and months are those of UTC, as ISO 8601 has them.

    Nothing waits between a check and the reservation: two requests cannot get the same minutes.
    """

    def __init__(self, file: Path | None = None, *, shows_owners: bool = False) -> None:
        """`shows_owners`: in metrics. Raises ValueError and OSError, as `load`."""
        self.used = defaultdict[tuple[str, str], float](float)  # by month and owner
        self.reserved = defaultdict[str, float](float)
        self.on_charge: Callable[[Used], object] = lambda used: None  # called to store it
        self._of_jobs: dict[str, Allowance] = {}
        self._limits: dict[str, float] = {}
        self._file = file
        self._shows_owners = shows_owners
        self.load()

    def load(self) -> None:
        """Read the file again. After an error, all budgets stay as they were.

        Its entries are `OWNER:MINUTES`; of several of an owner, the last counts. Raises ValueError for a
        wrong one, and OSError.
        """
        if self._file is not None:
            self._limits = dict(map(_parse, entries_of(self._file)))

    def limit(self, owner: str) -> float:
        """What an owner may use in a month; infinite without a budget."""
        return self._limits.get(owner, self._limits.get(OTHERS, math.inf))

    def left(self, owner: str) -> float:
        """What an owner may still use in this month."""
        return self.limit(owner) - self.used.get((today()[:7], owner), 0.0) - self.reserved[owner]

    def check(self, owner: str, wanted: float = LEAST_S, before: float = 0.0) -> None:
        """Raise InsufficientQuota if `wanted` cannot be reserved instead of what was `before`."""
        left = self.left(owner) + before
        if wanted > before and round(left - wanted, 3) < 0:
            renewed = (date.fromisoformat(today()).replace(day=28) + timedelta(4)).replace(day=1)
            raise InsufficientQuota(
                f"{max(left, 0) / 60:.1f} of your {self.limit(owner) / 60:g} minutes a month are left, too "
                f"few for this. All of them are there again on {renewed}.",
                code="insufficient_quota",
            )

    def of_job(self, job_id: str, owner: str) -> "Allowance":
        """What a job has reserved, from its admission, which has checked that, until `end_job`."""
        if job_id not in self._of_jobs:
            self._of_jobs[job_id] = Allowance(self, owner, LEAST_S)
            self.reserved[owner] += LEAST_S
        return self._of_jobs[job_id]

    def end_job(self, job_id: str) -> None:
        if job_id in self._of_jobs:
            self._of_jobs.pop(job_id).reserve(0.0)

    def count(self, used: Used) -> None:
        """Count what is stored, or will be."""
        self.used[used.day[:7], used.owner] += used.seconds

    def used_by_owner(self) -> Iterator[tuple[tuple[str], float]]:
        """What owners have used in this month. Those that came after many others count together."""
        now = today()[:7]
        of_month = [((owner,), used) for (month, owner), used in self.used.items() if month == now]
        if self._shows_owners:
            yield from of_month[:MOST_NAMED]
            yield ("other",), sum(used for _, used in of_month[MOST_NAMED:])


@dataclass(slots=True, eq=False)
class Allowance:
    """What a request, a stream or a job may use: what it has `reserved` of its owner's budget."""

    budgets: Budgets
    owner: str = ""
    reserved: float = 0.0
    _jobs: int = 1  # for the next charge

    def reserve(self, wanted: float) -> None:
        """Reserve this instead of what was reserved before. Raises InsufficientQuota."""
        self.budgets.check(self.owner, wanted, self.reserved)
        self.budgets.reserved[self.owner] += wanted - self.reserved
        self.reserved = wanted

    def charge(self, model: str, seconds: float) -> None:
        """So much was transcribed by a model, and need not be reserved any more."""
        if seconds > 0:
            used = Used(today(), self.owner, model, self._jobs, seconds)
            self.budgets.count(used)
            self.budgets.on_charge(used)
            self._jobs = 0
            self.reserve(max(0.0, self.reserved - seconds))


def budgets_of(settings: Settings) -> Budgets:
    """Raises InvalidSetting if the file cannot be read, or has a wrong entry."""
    try:
        return Budgets(settings.budgets_file, shows_owners=settings.metrics_by_owner)
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"WHISPER_BUDGETS_FILE={settings.budgets_file}: {error}") from None


def day_of(moment: float) -> str:
    """The day of a Unix time (s)."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def today() -> str:
    return day_of(time.time())


def _parse(entry: str) -> tuple[str, float]:
    owner, _, minutes = entry.rpartition(":")
    try:
        seconds = math.inf if minutes == UNLIMITED else 60 * float(minutes)
    except ValueError:
        seconds = math.nan
    if not owner or not seconds >= 0:
        raise ValueError(f"{entry!r} is no budget. Write OWNER:MINUTES, such as alice:600 or {OTHERS}:60")
    return owner, seconds
