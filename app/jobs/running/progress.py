"""Buffers the progress of running jobs: storing it with every clip would be too often."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field

import structlog

from app.common.concurrency import Wakeup
from app.common.errors import DatabaseUnavailable, DiskFull
from app.jobs.job import JobProgress
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.order import LONG_S
from app.jobs.storage.published_clips import PublishedClip
from app.jobs.storage.store import Store
from app.media.peaks import PeakCollector
from workers.messages import Decoded

TICK_S = 0.5
_UNFOLLOWED_S = 2.0  # the same for jobs that nobody follows, after their first value
_INTERVAL_FRACTION = 1 / 1000  # of the time since the job began: the interval between two stored values

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Buffered:
    """What is known of a running job, and not stored yet. Times are of the monotonic clock, in s."""

    began_at: float = 0.0
    stored_at: float | None = None  # when its progress or clips were stored last
    progress: JobProgress | None = None
    published: list[PublishedClip] = field(default_factory=list)  # in order
    # The marker of its complete decoded audio, what that showed, and any peaks.
    decoded: tuple[str, Decoded, PeakCollector | None] | None = None


class ProgressBuffer:
    """The latest progress of jobs, their published clips, and what is known of their decoded audio.

    All of it until it is stored.
    """

    def __init__(self, store: Store, clips: ClipStore) -> None:
        self._store = store
        self._clips = clips
        self._jobs: dict[str, _Buffered] = defaultdict(_Buffered)
        self._unfollowed_at = 0.0  # when jobs that nobody follows are due (monotonic, in s)
        self._storing = asyncio.Lock()
        self._wakeup = Wakeup()

    def begin(self, job_id: str) -> None:
        """Accept the progress of a job from now on."""
        self._jobs[job_id].began_at = time.monotonic()

    def end(self, job_id: str) -> None:
        """Forget a job."""
        self._jobs.pop(job_id, None)

    def progressed(self, job_id: str, progress: JobProgress) -> None:
        """Buffer the progress of a job."""
        self._jobs[job_id].progress = progress
        self._wakeup.set()

    def published(self, job_id: str, clip: PublishedClip) -> None:
        """Buffer the next published clip of a job."""
        self._jobs[job_id].published.append(clip)
        self._wakeup.set()

    def decoded(self, job_id: str, pcm: str, decoded: Decoded, peaks: PeakCollector | None) -> None:
        """Buffer the marker of a job's complete decoded audio, what that showed, and any peaks."""
        self._jobs[job_id].decoded = (pcm, decoded, peaks)
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
            if self._waiting or any(job.decoded for job in self._jobs.values()):
                self._wakeup.set()

    async def store(self) -> None:
        """Store all buffered values, and the clips' results. Raises what the store raises."""
        await self._clips.flush()
        await self._store_jobs(self._waiting)

    @property
    def _waiting(self) -> dict[str, _Buffered]:
        """The jobs whose progress or clips are not stored yet."""
        return {job_id: job for job_id, job in self._jobs.items() if job.progress or job.published}

    async def _store_jobs(self, job_ids: Collection[str]) -> None:
        """Store what is known of all decoded audio, and the progress and clips of some jobs.

        What cannot be stored stays, and so does what comes meanwhile.
        """
        async with self._storing:  # so a caller that finds nothing buffered knows that all is stored
            for job_id, job in list(self._jobs.items()):
                if job.decoded is not None:
                    await self._store_decoded(job_id, job)
            jobs = {job_id: job for job_id, job in self._waiting.items() if job_id in job_ids}
            if not jobs:
                return
            progress = {job_id: job.progress for job_id, job in jobs.items() if job.progress}
            published = {job_id: list(job.published) for job_id, job in jobs.items() if job.published}
            await self._clips.flush()  # nothing is shown before it is stored
            await self._store.store_progress(progress, published)
            for job_id, job in jobs.items():
                job.stored_at = time.monotonic()
                if job.progress is progress.get(job_id):
                    job.progress = None
                del job.published[: len(published.get(job_id, ()))]

    async def _store_decoded(self, job_id: str, job: _Buffered) -> None:
        assert job.decoded is not None
        decoded = pcm, of_recording, peaks = job.decoded
        changes = {
            "pcm": pcm,
            "audio_tracks": list(map(asdict, of_recording.tracks)),
            "warnings": list(map(asdict, of_recording.warnings)),
        }
        packed = None if peaks is None else await asyncio.to_thread(peaks.pack)
        await self._store.update(job_id, by_run=True, packed_peaks=packed, **changes)
        if job.decoded is decoded:
            job.decoded = None

    def _due(self) -> list[str]:
        """The waiting jobs whose values must be stored now; those that nobody follows come together."""
        now = time.monotonic()
        with_unfollowed = now >= self._unfollowed_at
        if with_unfollowed:
            self._unfollowed_at = now + _UNFOLLOWED_S
        return [
            job_id
            for job_id, job in self._waiting.items()
            if job.stored_at is None
            or (
                (with_unfollowed or self._store.is_followed(job_id))
                # At a constant interval, a recording of ten hours would get tens of thousands of events.
                and now - job.stored_at >= (now - job.began_at) * _INTERVAL_FRACTION
            )
        ]


class Lengths:
    """The length of recordings, as far as they were ever decoded, and how much of them is done."""

    def __init__(self, on_long: Callable[[], None]) -> None:
        """`on_long` is called when a job turns out to be long."""
        self._lengths: dict[str, tuple[float, float]] = {}  # decoded, and done
        self._on_long = on_long

    def record(self, job_id: str, decoded_s: float, done_s: float) -> None:
        """So much of a job is decoded or done, in s. Earlier runs may have got further."""
        decoded_before_s, done_before_s = self._lengths.get(job_id, (0.0, 0.0))
        decoded_s, done_s = max(decoded_before_s, decoded_s), max(done_before_s, done_s)
        self._lengths[job_id] = (decoded_s, done_s)
        if decoded_before_s - done_before_s <= LONG_S < decoded_s - done_s:
            self._on_long()

    def remaining_s(self, job_id: str) -> float | None:
        """How much audio of a job is left, in s, at least. None: nothing is known."""
        length = self._lengths.get(job_id)
        return None if length is None else length[0] - length[1]

    def keep(self, job_ids: Collection[str]) -> None:
        """Forget all other jobs."""
        self._lengths = {id: length for id, length in self._lengths.items() if id in job_ids}
