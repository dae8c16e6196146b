"""Jobs at work: as many at once as keep the workers busy, each from where it was left."""

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import structlog

from app.audio.uploads import Upload
from app.audio.urls import download
from app.errors import (
    DatabaseUnavailable,
    DiskFull,
    IllegalTransition,
    InvalidInput,
    ModelUnavailable,
    NotReady,
    UnknownJob,
    WhisperfleetError,
)
from app.jobs.clip_store import ClipStore
from app.jobs.identity import identity
from app.jobs.job import Failure, Job, JobProgress, Stage
from app.jobs.store import Store
from app.options import Options
from app.pipeline import Pipeline, Progress
from app.service import Service
from app.settings import Settings
from app.transcript.timeline import Transcript
from workers.messages import BYTES_PER_SAMPLE, Span

PROGRESS_S = 0.5  # between two times that progress is stored
_READY_POLL_S = 0.2
_PAUSE_S = 5.0  # after something failed that is no job's fault: the disk, the database, all workers

# What a job waits for to get better, instead of failing.
_WAIT_FOR = (NotReady, ModelUnavailable, DiskFull, DatabaseUnavailable)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Run:
    """A job that is being worked on."""

    job: Job
    task: asyncio.Task[None]


class Runner:
    """Takes queued jobs in their order, and gives them back to the queue when the service stops."""

    def __init__(self, service: Service, store: Store, clips: ClipStore, settings: Settings) -> None:
        self._service = service
        self._store = store
        self._clips = clips
        self._settings = settings
        self._running: dict[str, Run] = {}
        self._progress: dict[str, JobProgress] = {}  # that is not stored yet
        self._pcm: dict[str, str] = {}  # nor this
        self._storing = asyncio.Lock()
        self._wakeup = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to take jobs."""
        self._tasks = [
            asyncio.create_task(self._take_jobs(), name="job-runner"),
            asyncio.create_task(self._store_progress(), name="job-progress"),
        ]
        self.wake()

    def wake(self) -> None:
        """There may be a new job."""
        self._wakeup.set()

    async def stop(self) -> None:
        """Put all jobs back into the queue; what was done of them stays stored."""
        runs = list(self._running.values())
        for task in [*self._tasks, *(run.task for run in runs)]:
            task.cancel()
        await asyncio.gather(*self._tasks, *(run.task for run in runs), return_exceptions=True)
        await self._clips.stop()
        with suppress(WhisperfleetError):  # the next start finds them in any case
            await self._store_news()
            for run in runs:
                with suppress(IllegalTransition, UnknownJob):
                    await self._store.requeue(run.job)

    async def cancel(self, job_id: str) -> None:
        """Stop working on a job, if that is being done. Its state is the caller's."""
        run = self._running.get(job_id)
        if run is not None:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)

    async def _take_jobs(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            try:
                while len(self._running) < self._service.jobs_at_once and await self._take_one():
                    pass
            except WhisperfleetError as error:
                log.error("jobs cannot be taken; trying again", error=error.message)
                await asyncio.sleep(_PAUSE_S)
                self.wake()
            except Exception:  # this task is the only one that takes jobs: it has to go on
                log.exception("a job could not be begun")
                await asyncio.sleep(_PAUSE_S)
                self.wake()

    async def _take_one(self) -> bool:
        job = await self._store.next_queued()
        if job is None:
            return False
        if self._service.readiness() is not None:
            await asyncio.sleep(_READY_POLL_S)
            return True
        try:
            _, model = await self._service.ready(job.submission.model, job.submission.options)
            options = self._service.load_options(model)
            depends_on = await asyncio.to_thread(identity, _worded(job), options)
            job = await self._store.begin(job, depends_on)
        except (IllegalTransition, UnknownJob):
            return True  # deleted meanwhile
        except (InvalidInput, ModelUnavailable) as error:
            await self._fail(job, error, ())  # others need not wait behind it
            return True
        task = asyncio.create_task(self._run(job), name=f"job {job.id}")
        self._running[job.id] = Run(job, task)
        return True

    async def _run(self, job: Job) -> None:
        with structlog.contextvars.bound_contextvars(job=job.id):
            try:
                await self._work(job)
            except _WAIT_FOR as error:
                log.warning("the job waits", error=error.message)
                if isinstance(error, DiskFull):
                    await asyncio.to_thread(self._pcm_path(job).unlink, missing_ok=True)
                await asyncio.sleep(_PAUSE_S)
                await self._back_to_the_queue(job)
            finally:
                del self._running[job.id]
                self.wake()

    async def _back_to_the_queue(self, job: Job) -> None:
        while True:
            try:
                await self._store.requeue(job)
                return
            except (IllegalTransition, UnknownJob):
                return
            except (DatabaseUnavailable, DiskFull):
                await asyncio.sleep(_PAUSE_S)

    async def _work(self, job: Job) -> None:
        failed_spans: list[Span] = []
        try:
            upload = await self._upload(job)
            pipeline = await self._pipeline(job, upload)
            failed_spans = pipeline.failed_spans
            transcript = await pipeline.run()
        except _WAIT_FOR:
            raise
        except WhisperfleetError as error:
            await self._fail(job, error, failed_spans)
        except Exception:
            log.exception("job failed unexpectedly")
            await self._fail(job, WhisperfleetError("The service failed unexpectedly; see its log."), ())
        else:
            await self._succeed(job, transcript)

    async def _upload(self, job: Job) -> Upload:
        """The recording, fetched if it has to be."""
        submission = job.submission
        if submission.file is None and submission.url is not None:
            return await self._download(job, submission.url)
        path = self._settings.uploads_dir / (submission.file or "")
        if not await asyncio.to_thread(path.is_file):
            raise InvalidInput("The recording is gone from the service's data folder.", code="file_gone")
        return Upload(path, submission.filename, submission.size or 0, submission.sha256 or "")

    async def _download(self, job: Job, url: str) -> Upload:
        upload = await download(
            url,
            self._settings.uploads_dir,
            self._settings.max_upload_bytes,
            self._settings.max_duration_s,
        )
        try:
            await self._store.update(
                job.id,
                file=upload.path.name,
                filename=upload.filename,
                size=upload.size,
                sha256=upload.sha256,
            )
        except BaseException:
            await asyncio.to_thread(upload.remove)
            raise
        return upload

    async def _pipeline(self, job: Job, upload: Upload) -> Pipeline:
        fleet, model = await self._service.ready(job.submission.model, job.submission.options)
        heard_before = await self._clips.recall(job)
        pipeline = self._service.pipeline(job.id, upload, _worded(job), model, fleet, heard_before)
        pipeline.decoded = await asyncio.to_thread(_decoded, job.pcm, pipeline.pcm_path)
        pipeline.on_decoded = partial(self._note_pcm, job)
        pipeline.on_progress = partial(self._progressed, job)
        return pipeline

    def _progressed(self, job: Job, progress: Progress) -> None:
        self._progress[job.id] = JobProgress(
            stage=Stage.DECODING if progress.total_s is None else Stage.TRANSCRIBING,
            done_s=progress.done_s,
            total_s=progress.total_s,
            clips_done=progress.clips_done,
            clips_total=progress.clips_total,
        )

    def _note_pcm(self, job: Job, samples: int) -> None:
        self._pcm[job.id] = _expected_pcm(samples)

    async def _store_progress(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            # What cannot be stored is not missed: a restart decodes again, and later progress says more.
            with suppress(DatabaseUnavailable, DiskFull):
                await self._store_news()

    async def _store_news(self) -> None:
        async with self._storing:  # whoever finds no news is to find them stored
            progress, self._progress = self._progress, {}
            pcm, self._pcm = self._pcm, {}
            for job_id, expected in pcm.items():
                await self._store.update(job_id, pcm=expected)
            if progress:
                await self._store.progress(progress)

    async def _succeed(self, job: Job, transcript: Transcript) -> None:
        # The last news first: a success is to be the last event.
        await self._store_news()
        keep = self._settings.keep_audio
        with suppress(IllegalTransition, UnknownJob):  # deleted meanwhile
            await self._store.succeed(job, transcript, keep)
            log.info("job succeeded", clips=len(transcript.speech), samples=transcript.samples)
        await self._remove_files(job, keep)

    async def _fail(self, job: Job, error: WhisperfleetError, failed_spans: Sequence[Span]) -> None:
        await self._store_news()
        keep = self._settings.keep_audio
        with suppress(IllegalTransition, UnknownJob):
            await self._store.fail(job, Failure(error.message, error.code), failed_spans, keep)
            log.warning("job failed", error=error.message)
        await self._remove_files(job, keep)

    async def _remove_files(self, job: Job, keep_upload: bool) -> None:
        await asyncio.to_thread(self._pcm_path(job).unlink, missing_ok=True)
        if not keep_upload and job.submission.file:
            await asyncio.to_thread(
                (self._settings.uploads_dir / job.submission.file).unlink, missing_ok=True
            )

    def _pcm_path(self, job: Job) -> Path:
        return self._settings.pcm_dir / job.id


def _worded(job: Job) -> Options:
    """The job's options, and word times in any case: the result may be asked for in every format."""
    return job.submission.options.model_copy(update={"word_timestamps": True})


def _expected_pcm(samples: int) -> str:
    """What a decoded recording should be: how long, and written since which start of the machine.

    What the machine had not written to its disk yet when its power failed may be there and yet be empty.
    """
    return f"{samples} {_boot_id()}"


def _decoded(expected: str | None, path: Path) -> int | None:
    """How many samples lie at `path`, if that is the whole recording."""
    if expected is None or not path.is_file():
        return None
    samples = path.stat().st_size // BYTES_PER_SAMPLE
    return samples if expected == _expected_pcm(samples) else None


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux: then nothing is known of the time before
        return str(uuid.uuid4())
