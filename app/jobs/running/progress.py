"""Buffers the progress of running jobs: storing it with every clip would be too often."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TypeVar

import structlog

from app.concurrency import Wakeup
from app.errors import DatabaseUnavailable, DiskFull
from app.jobs.job import JobProgress
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.order import LONG_S
from app.jobs.storage.published_clips import PublishedClip
from app.jobs.storage.store import Store
from app.media.peaks import PeakCollector
from app.media.pool import Decoded

T = TypeVar("T")

TICK_S = 0.5
_UNFOLLOWED_S = 2.0  # the same for jobs that nobody follows, after their first value
_INTERVAL_FRACTION = 1 / 1000  # of the time since the job began: the interval between two stored values

log = structlog.get_logger(__name__)


class ProgressBuffer:
    """The latest progress of jobs, their published clips, and what is known of their decoded audio.

    All of it until it is stored.
    """

    def __init__(self, store: Store, clips: ClipStore) -> None:
        self._store = store
        self._clips = clips
        self._progress: dict[str, JobProgress] = {}  # not stored yet
        self._published: dict[str, list[PublishedClip]] = {}  # not stored yet, in order
        # Not stored yet.
        self._decoded: dict[str, tuple[str, Decoded, PeakCollector | None]] = {}
        self._began_at: dict[str, float] = {}
        self._stored_at: dict[str, float] = {}
        self._unfollowed_at = 0.0  # when jobs that nobody follows are due (monotonic, in s)
        self._storing = asyncio.Lock()
        self._wakeup = Wakeup()

    def begin(self, job_id: str) -> None:
        """Accept the progress of a job from now on."""
        self._began_at[job_id] = time.monotonic()

    def end(self, job_id: str) -> None:
        """Forget a job."""
        for values in (self._progress, self._published, self._decoded, self._began_at, self._stored_at):
            values.pop(job_id, None)

    def progressed(self, job_id: str, progress: JobProgress) -> None:
        """Buffer the progress of a job."""
        self._progress[job_id] = progress
        self._wakeup.set()

    def published(self, job_id: str, clip: PublishedClip) -> None:
        """Buffer the next published clip of a job."""
        self._published.setdefault(job_id, []).append(clip)
        self._wakeup.set()

    def decoded(self, job_id: str, pcm: str, decoded: Decoded, peaks: PeakCollector | None) -> None:
        """Buffer the marker of a job's complete decoded audio, what that showed, and any peaks."""
        self._decoded[job_id] = (pcm, decoded, peaks)
        self._wakeup.set()

    async def store_forever(self) -> None:
        """Store buffered values as they become due, at most once in `TICK_S`.

        Clients that follow a job see its text within a second; nobody waits for that of other jobs.
        """
        while True:
            await self._wakeup.wait()
            await asyncio.sleep(TICK_S)
            try:
                await self._store_jobs(self._due())
            except (DatabaseUnavailable, DiskFull) as error:
                log.error("progress cannot be stored; retrying", error=error.message)
            except Exception:  # the loop must go on: nothing else stores the progress of other jobs
                log.exception("progress cannot be stored; retrying")
            if self._waiting or self._decoded:
                self._wakeup.set()

    async def store(self) -> None:
        """Store all buffered values, and the clips' results. Raises what the store raises."""
        await self._clips.flush()
        await self._store_jobs(self._waiting)

    @property
    def _waiting(self) -> list[str]:
        """The jobs whose progress or clips are not stored yet."""
        return list({**self._progress, **self._published})

    async def _store_jobs(self, job_ids: list[str]) -> None:
        async with self._storing:  # so a caller that finds nothing buffered knows that all is stored
            decoded, self._decoded = self._decoded, {}
            progress = _taken(self._progress, job_ids)
            published = _taken(self._published, job_ids)
            try:
                for job_id, (pcm, of_recording, peaks) in decoded.items():
                    changes = {
                        "pcm": pcm,
                        "audio_tracks": list(map(asdict, of_recording.tracks)),
                        "warnings": list(map(asdict, of_recording.warnings)),
                    }
                    if peaks is None:
                        await self._store.update(job_id, **changes)
                        continue
                    packed = await asyncio.to_thread(peaks.pack)
                    await self._store.store_peaks(job_id, packed, **changes)
                if progress or published:
                    await self._clips.flush()  # nothing is shown before it is stored
                    await self._store.store_progress(progress, published)
            except BaseException:  # keep the values for the next time, unless there are newer ones
                self._decoded = _only(self._began_at, decoded) | self._decoded
                self._progress = _only(self._began_at, progress) | self._progress
                for job_id, clips in _only(self._began_at, published).items():
                    self._published[job_id] = [*clips, *self._published.get(job_id, ())]
                raise
            stored = {**progress, **published}.keys() & self._began_at.keys()
            self._stored_at |= dict.fromkeys(stored, time.monotonic())

    def _due(self) -> list[str]:
        """The waiting jobs whose values must be stored now; those that nobody follows come together."""
        now = time.monotonic()
        with_unfollowed = now >= self._unfollowed_at
        if with_unfollowed:
            self._unfollowed_at = now + _UNFOLLOWED_S
        return [
            job_id
            for job_id in self._waiting
            if job_id not in self._stored_at
            or ((with_unfollowed or self._store.is_followed(job_id)) and self._is_due(job_id, now))
        ]

    def _is_due(self, job_id: str, now: float) -> bool:
        # At a constant interval, a recording of ten hours would get tens of thousands of events.
        interval_s = (now - self._began_at.get(job_id, 0)) * _INTERVAL_FRACTION
        return now - self._stored_at[job_id] >= interval_s


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


def _taken(values: dict[str, T], job_ids: Collection[str]) -> dict[str, T]:
    """The values of some jobs, which are removed."""
    return {job_id: values.pop(job_id) for job_id in job_ids if job_id in values}


def _only(job_ids: Collection[str], values: Mapping[str, T]) -> dict[str, T]:
    return {job_id: value for job_id, value in values.items() if job_id in job_ids}
