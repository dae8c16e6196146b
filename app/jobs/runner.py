"""Which jobs are worked on: as many at once as keep the workers busy, in turn for all who hand them in."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

import structlog

from app.errors import (
    DatabaseUnavailable,
    DiskFull,
    IllegalTransition,
    ModelUnavailable,
    UnknownJob,
    WhisperfleetError,
)
from app.jobs.clip_store import ClipStore
from app.jobs.executor import TRANSIENT_ERRORS, UNEXPECTED, JobExecutor
from app.jobs.job import Job, JobStatus
from app.jobs.progress_buffer import ProgressBuffer
from app.jobs.store import Store
from app.settings import Settings
from app.transcription.service import TranscriptionService

_LOOK_S = 10.0  # after which jobs are looked for unasked
_READY_POLL_S = 0.2
_PAUSES_S = (5.0, 30.0, 120.0)  # before a job is tried again, each time that something passing hinders it
# What a job itself may be the cause of: it is given up where that does not pass.
_GIVEN_UP: dict[type[Exception], str] = {DiskFull: "disk_full", ModelUnavailable: "model_unavailable"}

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Run:
    """A job that is being worked on."""

    job: Job
    task: asyncio.Task[None]


class JobRunner:
    """Takes queued jobs, and gives them back to the queue when the service stops."""

    def __init__(
        self, service: TranscriptionService, store: Store, clips: ClipStore, settings: Settings
    ) -> None:
        self._service = service
        self._store = store
        self._clips = clips
        self._news = ProgressBuffer(store)
        self._work = JobExecutor(service, store, clips, self._news, settings)
        self._running: dict[str, Run] = {}
        self._tries: Counter[str] = Counter()  # of jobs that something hindered
        self._pausing: dict[str, asyncio.TimerHandle] = {}  # such jobs, until they are tried again
        self._wakeup = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to take jobs."""
        self._tasks = [
            asyncio.create_task(self._take_jobs(), name="job-runner"),
            asyncio.create_task(self._news.store_forever(), name="job-news"),
        ]

    def wake(self) -> None:
        """There may be a new job."""
        self._wakeup.set()

    async def stop(self) -> None:
        """Put all jobs back into the queue; what was done of them stays stored."""
        with suppress(WhisperfleetError):
            await self._news.store()  # while the jobs are there of which it tells
        runs = list(self._running.values())
        for pause in self._pausing.values():
            pause.cancel()
        for task in [*self._tasks, *(run.task for run in runs)]:
            task.cancel()
        await asyncio.gather(*self._tasks, *(run.task for run in runs), return_exceptions=True)
        await self._clips.stop()
        with suppress(WhisperfleetError):  # the next start finds them in any case
            for run in runs:
                await self._requeue(run.job)

    async def cancel(self, job_id: str) -> None:
        """Stop working on a job, if that is being done. Its state is the caller's."""
        self._tries.pop(job_id, None)
        run = self._running.get(job_id)
        if run is not None:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)

    async def _take_jobs(self) -> None:
        look_at = time.monotonic() + _LOOK_S
        while True:
            try:
                if time.monotonic() >= look_at:
                    look_at = time.monotonic() + _LOOK_S
                    await self._requeue_orphans()
                while len(self._running) < self._service.jobs_at_once and await self._take_one():
                    pass
            except WhisperfleetError as error:
                log.error("jobs cannot be taken; trying again", error=error.message)
            except Exception:  # this task is the only one that takes jobs: it has to go on
                log.exception("a job could not be begun")
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._wakeup.wait()
            self._wakeup.clear()

    async def _requeue_orphans(self) -> None:
        """Put jobs back that run by the database and yet not here: a change was made, but seemed to fail."""
        for job in await self._store.in_state([JobStatus.RUNNING]):
            if job.id not in self._running:
                await self._requeue(job)

    async def _take_one(self) -> bool:
        owners = Counter(run.job.submission.owner for run in self._running.values())
        job = await self._store.next_queued(owners, self._pausing)
        if job is None:
            return False
        if self._service.readiness() is not None:
            await asyncio.sleep(_READY_POLL_S)
            return True
        try:
            job = await self._store.begin(job)
        except (IllegalTransition, UnknownJob):
            return True  # deleted meanwhile
        task = asyncio.create_task(self._run(job), name=f"job {job.id}")
        self._running[job.id] = Run(job, task)
        return True

    async def _run(self, job: Job) -> None:
        self._news.begin(job.id)
        with structlog.contextvars.bound_contextvars(job=job.id):
            try:
                await self._work.do(job)
                self._tries.pop(job.id, None)
            except TRANSIENT_ERRORS as error:
                log.warning("the job waits", error=error.message)
                await self._try_again(job, error)
            except Exception as error:
                log.exception("the end of a job could not be noted")
                await self._try_again(job, error)
            finally:
                self._news.end(job.id)
                del self._running[job.id]
                self.wake()

    async def _try_again(self, job: Job, error: Exception) -> None:
        """Put a job back and let it pause, or give it up where it may itself be what is wrong."""
        if isinstance(error, DiskFull):
            await asyncio.to_thread(self._work.forget_audio, job)
        self._tries[job.id] += 1
        tries = self._tries[job.id]
        may_be_the_cause = type(error) in _GIVEN_UP or not isinstance(error, TRANSIENT_ERRORS)
        try:
            if may_be_the_cause and tries > len(_PAUSES_S):
                known = error if isinstance(error, WhisperfleetError) else UNEXPECTED
                await self._work.fail(job, known, code=_GIVEN_UP.get(type(error)))
                del self._tries[job.id]
                return
            await self._requeue(job)
        except (DatabaseUnavailable, DiskFull) as worse:
            log.warning("the job cannot be put back yet", error=worse.message)  # `_requeue_orphans` does that
        pause_s = _PAUSES_S[min(tries, len(_PAUSES_S)) - 1]
        loop = asyncio.get_running_loop()
        self._pausing[job.id] = loop.call_later(pause_s, self._resume, job.id)

    def _resume(self, job_id: str) -> None:
        self._pausing.pop(job_id, None)
        self.wake()

    async def _requeue(self, job: Job) -> None:
        with suppress(IllegalTransition, UnknownJob):
            await self._store.requeue(job)
