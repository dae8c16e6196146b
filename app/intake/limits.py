"""Limits of requests, jobs and uploads at the same time: of all together, and of one owner.

All links together are one owner, and without keys there is one in all. While nobody
else has any or waits for one, an owner may have all places. As soon as others come, none may take more than
an equal share. What it has beyond that it keeps until its requests end. Others could wait for long, so some
places are guaranteed to each owner, on top of the total: as many again in all.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from app.common.errors import QueueFull
from app.common.owners import Client
from app.settings import Settings

GUARANTEED_DIVISOR = 10  # a tenth of all places is guaranteed to an owner, less while more of them want some
CORRECTIONS_DIVISOR = 10  # corrections, as a part of the uploads
PARTIAL_UPLOADS = 10  # incomplete or unused uploads, for each that may be received at the same time
RETRY_AFTER_S = 10  # what refused clients are asked to wait
WAITING_S = RETRY_AFTER_S + 5.0  # after a refusal, an owner counts as waiting


@dataclass(slots=True)
class Limit:
    """At most `total` of something, which owners share. Further ones get a 429."""

    total: int
    setting: str  # what decides, for errors
    what: str  # the things that are limited, and their state: `uploads are under way`
    guaranteed: int = 1  # to each owner, if that is no more than its share: they may make `2 * total` in all
    per_key: int | None = None  # never more, for one API key
    setting_per_key: str = ""
    remedy: str = "try again when one has ended"  # for their owner
    verb: str = "takes"  # what the service does with them
    code: str | None = None  # of the error
    clock: Callable[[], float] = time.monotonic
    _waiting: dict[str, float] = field(default_factory=dict)  # owners that were refused, and until when

    def check(self, owner: str, held: Mapping[str, int], more: int = 0) -> None:
        """Raise QueueFull if an owner can have no further one. An owner that is refused will ask again.

        `held`: how many each owner has. `more`: how many there may be beside `total`.
        """
        now = self.clock()
        self._waiting = {other: until for other, until in self._waiting.items() if until > now}
        if (refusal := self._refusal(owner, held, self.total + more)) is not None:
            self._waiting[owner] = now + WAITING_S
            raise refusal

    def _refusal(self, owner: str, held: Mapping[str, int], total: int) -> QueueFull | None:
        """The error of an owner that can have no further one; None if it can."""
        own = held.get(owner, 0)
        if self.per_key is not None and own >= self.per_key:
            return self._full(own, f"one API key may have {self.per_key} ({self.setting_per_key})")
        claimants = {owner, *self._waiting, *(other for other, count in held.items() if count)}
        all_held, most = sum(held.values()), max(1, total // len(claimants))
        if own < min(self.guaranteed, most) and all_held < 2 * total:
            return None
        if most < total and own >= most:
            return self._full(own, f"one API key may have {most} while others want some ({self.setting})")
        if all_held < total:
            return None
        return QueueFull(
            f"{total} {self.what}, as many as this service {self.verb} ({self.setting}); try again later.",
            code=self.code,
        )

    def check_link(self, held: int) -> None:
        """Raise QueueFull if one link, which has some, can have no further one."""
        if held >= self.guaranteed:
            raise self._full(held, f"one link may have {self.guaranteed} (a part of {self.setting})")

    def _full(self, own: int, reason: str) -> QueueFull:
        return QueueFull(f"{own} of your {self.what}, and {reason}; {self.remedy}.", code=self.code)


def _limit(total: int, setting: str, what: str, code: str | None = None, **others: Any) -> Limit:
    return Limit(total, setting, what, max(1, total // GUARANTEED_DIVISOR), code=code, **others)


def limit_of_jobs(settings: Settings) -> Limit:
    """The limit of jobs that are not done. Those that can run at once do not count: `more` of `check`."""
    return _limit(
        settings.max_queued_jobs,
        "WHISPER_MAX_QUEUED_JOBS",
        "jobs are not done yet",
        per_key=settings.max_jobs_per_key,
        setting_per_key="WHISPER_MAX_JOBS_PER_KEY",
        remedy="try again when one is",
    )


def limit_of_partial_uploads(settings: Settings) -> Limit:
    """The limit of resumable uploads that no job has used."""
    return _limit(
        PARTIAL_UPLOADS * settings.max_uploads,
        f"{PARTIAL_UPLOADS} times WHISPER_MAX_UPLOADS",
        "resumable uploads are incomplete or have no job yet",
        code="too_many_uploads",
        verb="keeps",
        remedy="submit or delete some, then retry",
    )


class Limiter:
    """Counts the requests that hold something, by owner and by link."""

    def __init__(self, limit: Limit, more: int = 0) -> None:
        """`more`: how many there may be beside those of the limit."""
        self._limit = limit
        self._more = more
        self._by_owner: Counter[str] = Counter()
        self._by_link: Counter[str] = Counter()  # all links together are one owner

    @property
    def held(self) -> int:
        """How many requests hold it."""
        return self._by_owner.total()

    @contextmanager
    def hold(self, client: Client) -> Iterator[None]:
        """Count a request of a client meanwhile. Raises as `check` does."""
        self.check(client)
        counted = [(self._by_owner, client.owner), *([(self._by_link, client.link)] if client.link else [])]
        for counter, name in counted:
            counter[name] += 1
        try:
            yield
        finally:
            for counter, name in counted:
                counter[name] -= 1
                if not counter[name]:
                    del counter[name]

    def check(self, client: Client) -> None:
        """Raise QueueFull if a request of a client exceeds the limit."""
        if client.link:
            self._limit.check_link(self._by_link[client.link])
        self._limit.check(client.owner, self._by_owner, self._more)


class Admission:
    """The limiters of the requests to a server process. Several divide the numbers of the settings evenly."""

    def __init__(self, settings: Settings, jobs_at_once: int) -> None:
        """`jobs_at_once`: how many requests can run at a time. These do not count."""

        def part(total: int, setting: str, divisor: int = 1) -> tuple[int, str]:
            divisor *= settings.processes
            return max(1, total // divisor), setting if divisor == 1 else f"1/{divisor} of {setting}"

        queue = part(settings.max_queued_jobs, "WHISPER_MAX_QUEUED_JOBS")
        uploads = part(settings.max_uploads, "WHISPER_MAX_UPLOADS")
        corrections = part(settings.max_uploads, "WHISPER_MAX_UPLOADS", CORRECTIONS_DIVISOR)
        streams = part(settings.max_event_streams, "WHISPER_MAX_EVENT_STREAMS")
        live = part(settings.max_streams, "WHISPER_MAX_STREAMS")
        sent = "spans, archives and long transcripts are being sent"
        self.requests = Limiter(_limit(*queue, "requests are under way"), jobs_at_once)
        self.uploads = Limiter(_limit(*uploads, "uploads are under way", "too_many_uploads"))
        # Their bodies are in memory.
        self.corrections = Limiter(_limit(*corrections, "corrections are under way", "too_many_corrections"))
        self.streams = Limiter(_limit(*streams, "event streams are under way", "too_many_event_streams"))
        self.live_streams = Limiter(_limit(*live, "live streams are open", code="too_many_streams"))
        # They hold memory or temporary files until the client has them.
        self.sending = Limiter(_limit(*uploads, sent, "too_many_downloads"))
        self.recordings = Limiter(_limit(*streams, "recordings are being sent", "too_many_downloads"))
