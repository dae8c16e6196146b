"""Runs queued jobs: enough at once to keep the workers busy, in the order of `order`."""

import asyncio
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import structlog

from app.common.concurrency import Wakeup, end_tasks
from app.common.errors import (
    FAILURE_CODES,
    DatabaseUnavailable,
    DiskFull,
    HelperFailed,
    IllegalTransition,
    OutgrowsDisk,
    UnknownJob,
    UnknownStream,
    WhisperfleetError,
)
from app.jobs.job import Job, Stage, Status, Submission
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.executor import TRANSIENT_ERRORS, UNEXPECTED, JobExecutor, run_name
from app.jobs.running.live_job import LiveJob
from app.jobs.running.order import DownloadOrder, GiveWay, JobOrder, QueuedJob, Start, StartedJob
from app.jobs.running.progress import Lengths, ProgressBuffer
from app.jobs.storage.store import QueuedRow, Store
from app.recording.service import TranscriptionService
from app.settings import Settings
from app.telemetry import traces
from app.telemetry.work import Work, working_for
from app.transcript.terms import Term

_POLL_S = 10.0  # the database is checked at least so often
_READY_POLL_S = 0.2
RETURN_S = 60.0  # a live job waits so long for its client after a start of the service
_BACKOFF_S = (5.0, 30.0, 120.0)  # before each retry of a job; the last one repeats
# Errors that the job itself may cause, and the code of its failure if they persist.
_POSSIBLY_AT_FAULT: dict[type[Exception], str] = {**FAILURE_CODES, HelperFailed: "helper_failed"}

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class RunningJob:
    """A job and the task that runs it."""

    job: Job
    task: asyncio.Task[None]
    began: float  # monotonic, in s
    downloads: bool  # it counts as a download, and not among the other jobs


class JobRunner:
    """Runs queued jobs, and requeues them when the service stops."""

    def __init__(
        self, service: TranscriptionService, store: Store, clips: ClipStore, settings: Settings
    ) -> None:
        self._service = service
        self._store = store
        self._clips = clips
        self._progress = ProgressBuffer(store, clips)
        self._lengths = Lengths(on_long=self.wake)
        self._executor = JobExecutor(service, store, clips, self._progress, self._lengths, settings)
        self._order = JobOrder(settings.max_running_jobs_per_key)
        self._download_order = DownloadOrder()
        self._settings = settings
        self._running: dict[str, RunningJob] = {}
        # Those whose recording still comes, by their ids; None: it is being added.
        self._live: dict[str, LiveJob | None] = {}
        # Live jobs that wait for their clients after a start of the service, until their time is over.
        self._awaited: dict[str, asyncio.TimerHandle] = {}
        # By job, and by whether it may be at fault: a job that had to wait for a model gets all its retries.
        self._failed_attempts: dict[str, Counter[bool]] = defaultdict(Counter)
        self._paused: dict[str, asyncio.TimerHandle] = {}  # until their next attempt
        self._wakeup = Wakeup()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start to run queued jobs."""
        self._tasks = [
            asyncio.create_task(self._run_forever(), name="job-runner"),
            asyncio.create_task(self._progress.store_forever(), name="job-progress"),
        ]

    @property
    def running(self) -> dict[str, Job]:
        """The jobs that it runs, live ones among them, by id."""
        runs: list[RunningJob | LiveJob] = [*self._running.values(), *filter(None, self._live.values())]
        return {run.job.id: run.job for run in runs}

    def wake(self) -> None:
        """Check for queued jobs now."""
        self._wakeup.set()

    async def stop(self) -> None:
        """Requeue all running jobs. Their progress and clip results stay stored."""
        with suppress(WhisperfleetError):
            await self._progress.store()  # only running jobs can have progress
        running = list(self._running.values())
        for timer in (*self._paused.values(), *self._awaited.values()):
            timer.cancel()
        await end_tasks(*self._tasks, *(run.task for run in running))
        await self._clips.stop()
        with suppress(WhisperfleetError):  # otherwise the next start requeues them
            for run in running:
                await self._requeue(run.job)

    async def cancel(self, job_id: str) -> None:
        """Stop running a job, if it runs. The caller changes the job's status."""
        self._failed_attempts.pop(job_id, None)
        run, live = self._running.get(job_id), self._live.get(job_id)
        if run is not None:
            await end_tasks(run.task)
        if live is not None:
            await live.cancel()
        self._end_wait(job_id)

    async def abandon(self) -> None:
        """End all runs: another front end has their jobs, and none of their writes counts any more."""
        runs, streams = list(self._running.values()), list(self._live)
        await end_tasks(*(run.task for run in runs))
        for job_id in streams:
            await self.cancel(job_id)
        for run in runs:
            await self._service.remove_decoded(run_name(run.job))

    async def open_live(self, submission: Submission, terms: tuple[Term, ...]) -> LiveJob:
        """A job whose recording comes by a live stream. It runs until `end_live`. Raises as `Store.add`."""
        job_id = uuid.uuid4().hex
        self._live[job_id] = None  # or it could be taken for an orphan
        try:
            job = await self._store.add(replace(submission, file=job_id), terms=terms, live_id=job_id)
        except BaseException:
            del self._live[job_id]
            raise
        return self._began_live(job)

    def _began_live(self, job: Job) -> LiveJob:
        self._progress.begin(job.id)
        folder, max_bytes = self._service.media.folder, self._settings.max_upload_bytes
        buffers = (self._store, self._clips, self._progress)
        self._live[job.id] = live = LiveJob(job, folder.uploads / job.id, max_bytes, folder.disk, *buffers)
        return live

    def _await_client(self, job: Job) -> None:
        """Let a live job, which runs, wait for its client: the service has ended in its middle."""
        self._live[job.id] = None
        self._awaited[job.id] = asyncio.get_running_loop().call_later(RETURN_S, self._end_wait, job.id)

    def _end_wait(self, job_id: str) -> None:
        """No stream goes on with a live job. `requeue_orphans` queues it, if it runs."""
        self._live.pop(job_id, None)
        if (timer := self._awaited.pop(job_id, None)) is not None:
            timer.cancel()

    async def resume_live(self, job: Job) -> LiveJob:
        """The job for another stream. Raises UnknownStream if it waits for none, DiskFull and OSError."""
        timer = self._awaited.pop(job.id, None)
        if timer is None:
            raise UnknownStream(
                f"The job {job.id} waits for no stream: it does so for {RETURN_S:.0f} s after a start of the "
                "service. Open a new one.",
                param="job_id",
            )
        timer.cancel()
        live = self._began_live(job)
        try:
            await live.reopen()
        except BaseException:
            self._end_wait(job.id)
            raise
        return live

    async def end_live(self, live: LiveJob, *, waits: bool = False) -> None:
        """The stream has ended: queue the job as an upload of what came, unless it is cancelled.

        `waits`: the service ends, and the job is for `_await_client` when it starts again.
        """
        if live.is_closed:  # then it may have been restored from the trash, and run
            return
        try:
            await live.close()
            await self._service.media.copies.remove(live.job.id)  # they lack the end
            if not waits:
                await self._requeue(live.job)
        except WhisperfleetError as error:  # `requeue_orphans` does it later
            log.warning("a live job cannot be queued yet", job=live.job.id, error=error.message)
        finally:
            if not waits:
                self._end_wait(live.job.id)
                self.wake()

    async def _run_forever(self) -> None:
        check_orphans_at = time.monotonic() + _POLL_S
        while True:
            try:
                if time.monotonic() >= check_orphans_at:
                    check_orphans_at = time.monotonic() + _POLL_S
                    await self.requeue_orphans()
                while await self._take_step():
                    pass
            except WhisperfleetError as error:
                log.error("jobs cannot be started; retrying", error=error.message)
            except Exception:  # the loop must go on: nothing else starts jobs
                log.exception("a job could not be started")
            await self._wakeup.wait(_POLL_S)

    async def requeue_orphans(self) -> None:
        """Requeue jobs that are running in the database only.

        Their front end has ended, or a change seemed to fail, and was committed.
        """
        here, front_end = {*self._running, *self._live}, self._store.front_end
        found = await self._store.with_status([Status.RUNNING])
        orphans = [job for job in found if job.id not in here]
        taken = await front_end.take_over({job.front_end for job in orphans})
        for job in orphans:
            if job.front_end not in {*taken, None, front_end.name}:
                continue
            interrupted = job.epoch != front_end.epoch
            if interrupted and job.progress.stage is Stage.RECORDING:
                with suppress(IllegalTransition, UnknownJob):
                    self._await_client(await self._store.adopt(job))
                continue
            await self._requeue(job, interrupted=interrupted)
            if job.pcm is None:
                await self._service.remove_decoded(run_name(job))

    async def _take_step(self) -> bool:
        """Start the next job once there is a worker, or let another give way. False if nothing can start."""
        rows = await self._store.queued()
        while (step := self._next_step(rows)) is not None:
            if await self._take(step):
                return True
            rows = [row for row in rows if row.id != step.job_id]
        return False

    async def _take(self, step: Start | GiveWay) -> bool:
        """Returns False if the job is gone: another front end was faster, or it is deleted."""
        if self._service.fleet.readiness() is not None:
            while self._service.fleet.readiness() is not None:  # noqa: ASYNC110 (it has no event)
                await asyncio.sleep(_READY_POLL_S)
            return True  # another job may be the next one by now
        if isinstance(step, GiveWay):
            await self._give_way(step.job_id)
            return True
        return await self._start(step.job_id)

    def _next_step(self, rows: Sequence[QueuedRow]) -> Start | GiveWay | None:
        self._lengths.keep({*self._running, *(row.id for row in rows)})
        transcriptions: list[QueuedJob] = []
        downloads: list[QueuedJob] = []
        for row in rows:
            if row.total_s is not None:  # an earlier run, perhaps before a restart, knew its length
                self._lengths.record(row.id, row.total_s, row.done_s)
            if row.id not in self._paused and row.id not in self._running:  # or its last run is about to end
                remaining_s = self._lengths.remaining_s(row.id)
                job = QueuedJob(row.id, row.number, row.owner, row.size, remaining_s)
                (transcriptions if row.has_file else downloads).append(job)
        return self._download_order.next(
            downloads, self._started(downloads=True), time.monotonic()
        ) or self._order.next(
            transcriptions, self._started(downloads=False), self._service.fleet.jobs_at_once
        )

    def _started(self, *, downloads: bool) -> list[StartedJob]:
        return [
            StartedJob(id, run.job.submission.owner, run.began, self._lengths.remaining_s(id))
            for id, run in self._running.items()
            if run.downloads is downloads
        ]

    async def _start(self, job_id: str) -> bool:
        try:
            job = await self._store.begin(await self._store.get(job_id))
        except (IllegalTransition, UnknownJob):
            return False
        task = asyncio.create_task(self._run(job), name=f"job {job.id}")
        downloads = job.submission.is_download
        self._running[job.id] = RunningJob(job, task, time.monotonic(), downloads)
        return True

    async def _give_way(self, job_id: str) -> None:
        """Requeue a running job. Its clip results stay, and so does its decoded audio if it is complete."""
        run = self._running.get(job_id)
        if run is None:
            return  # it ended just now
        await self._progress.store()
        run.task.cancel()
        await asyncio.gather(run.task, return_exceptions=True)
        log.info("the job gives way to another", job=job_id)
        await self._requeue(run.job)
        await self._executor.remove_partly_decoded(run.job)

    async def _run(self, job: Job) -> None:
        self._progress.begin(job.id)
        submission = job.submission
        with working_for(Work(submission.request_id, job.id, submission.owner)):
            try:
                with traces.job_run(job.id, submission.traceparent):
                    while (downloaded := await self._executor.run(job)) is not None:
                        job = downloaded
                        if not self._leave_downloads(job.id):
                            await self._requeue(job)
                            break
                self._failed_attempts.pop(job.id, None)
            except TRANSIENT_ERRORS as error:
                log.warning("the job will be retried", error=error.message)
                await self._retry_or_fail(job, error)
            except Exception as error:
                log.exception("the end of a job could not be stored")
                await self._retry_or_fail(job, error)
            finally:
                self._progress.end(job.id)
                del self._running[job.id]
                self.wake()
                await self._trace_end(job.id)

    async def _trace_end(self, job_id: str) -> None:
        """Trace a job if it has ended. One that is cancelled is traced where that happens."""
        if traces.is_on():
            with suppress(WhisperfleetError):
                job = await self._store.get(job_id)
                if job.status in (Status.SUCCEEDED, Status.FAILED):
                    trace_job(job)

    def _leave_downloads(self, job_id: str) -> bool:
        """Count a job that was downloaded among the other jobs. False if no further one can run."""
        run = self._running[job_id]
        if run.downloads and len(self._started(downloads=False)) >= self._service.fleet.jobs_at_once:
            return False
        run.downloads = False
        run.began = time.monotonic()
        self.wake()
        return True

    async def _retry_or_fail(self, job: Job, error: Exception) -> None:
        """Requeue a job and pause it; mark it as failed if it may be at fault and had all its attempts."""
        if isinstance(error, DiskFull):
            await self._service.remove_decoded(run_name(job))
        may_be_at_fault = type(error) in _POSSIBLY_AT_FAULT or not isinstance(error, TRANSIENT_ERRORS)
        self._failed_attempts[job.id][may_be_at_fault] += 1
        attempts = self._failed_attempts[job.id][may_be_at_fault]
        try:
            # A retry would fill the disk again, for all others too.
            is_hopeless = isinstance(error, OutgrowsDisk)
            if is_hopeless or (may_be_at_fault and attempts > len(_BACKOFF_S)):
                known = error if isinstance(error, WhisperfleetError) else UNEXPECTED
                known.code = known.code or _POSSIBLY_AT_FAULT.get(type(error))
                await self._executor.fail(job, known)
                del self._failed_attempts[job.id]
                return
            await self._requeue(job)
        except (DatabaseUnavailable, DiskFull) as worse:  # `requeue_orphans` does it later
            log.warning("the job cannot be requeued yet", error=worse.message)
        pause_s = _BACKOFF_S[min(attempts, len(_BACKOFF_S)) - 1]
        self._paused[job.id] = asyncio.get_running_loop().call_later(pause_s, self._end_pause, job.id)

    def _end_pause(self, job_id: str) -> None:
        self._paused.pop(job_id, None)
        self.wake()

    async def _requeue(self, job: Job, *, interrupted: bool = False) -> None:
        with suppress(IllegalTransition, UnknownJob):
            await self._store.requeue(job, interrupted=interrupted)


def trace_job(job: Job) -> None:
    """Record a job that has just ended. Call it once for each."""
    submission = job.submission
    attributes: dict[str, str | float] = {"whisperfleet.status": job.status.value}
    if submission.request_id is not None:
        attributes["whisperfleet.request_id"] = submission.request_id
    if job.duration is not None:
        attributes["whisperfleet.audio_s"] = job.duration
    if job.error is not None and job.error.code is not None:
        attributes["whisperfleet.error_code"] = job.error.code
    traces.add_job(job.id, submission.traceparent, job.created_at, job.started_at, attributes)
