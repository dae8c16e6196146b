"""Runs one job: downloads its recording, transcribes it, and stores the outcome."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from app.common.errors import (
    DatabaseUnavailable,
    DiskFull,
    HelperFailed,
    IllegalTransition,
    Interrupted,
    InvalidInput,
    LostLease,
    ModelUnavailable,
    NotReady,
    PreconditionFailed,
    SpeakerModelUnavailable,
    UnknownJob,
    WhisperfleetError,
    no_descriptor,
)
from app.common.machine import boot_id
from app.engines.ledger import JobName
from app.intake.downloads import download
from app.intake.uploads import Upload
from app.jobs.job import Job, JobError, JobProgress, Stage, Submission
from app.jobs.running.again import keeps_speakers, parent_of, revise_parent
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.progress import Lengths, ProgressBuffer
from app.jobs.running.result_digest import result_digest
from app.jobs.storage.published_clips import LIVE_CHANNEL, PublishedClip
from app.jobs.storage.store import Store
from app.media.pcm_files import channel_path, remove_channels
from app.media.peaks import PeakCollector
from app.recording.channels import ChannelPipelines
from app.recording.clip_decoding import ClipKey
from app.recording.pipeline import Pipeline
from app.recording.recording_work import Observer, Progress
from app.recording.service import TranscriptionService, traced
from app.settings import Settings
from app.telemetry import traces
from app.transcript.formats import FORMATS
from app.transcript.rendering import with_word_times
from app.transcript.timeline import Transcript
from workers.messages import BYTES_PER_SAMPLE, Decoded, Span

# The job may not be at fault, and a later retry may succeed.
TRANSIENT_ERRORS = (
    NotReady,
    ModelUnavailable,
    SpeakerModelUnavailable,
    DiskFull,
    DatabaseUnavailable,
    HelperFailed,
)

_MAX_INTERRUPTIONS = 24  # of a job by ends of the whole service; its clips are set aside long before
_MARKER_PARTS = 4
_MODEL_WAIT_S = 2.0  # finding a model that is on this machine takes much less

UNEXPECTED = WhisperfleetError(
    "The service failed unexpectedly; its log has the details.", code="internal_error"
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobObserver(Observer):
    """Records the progress of a job."""

    job: Job
    progress: ProgressBuffer
    lengths: Lengths
    published_before: frozenset[ClipKey]  # by an earlier run, or by a live stream
    has_live_text: bool  # which stays until all is transcribed
    peaks: PeakCollector | None

    def decoded(self, decoded: Decoded) -> None:
        self.progress.decoded(self.job.id, _pcm_marker(decoded, run_name(self.job).file), decoded, self.peaks)

    def progressed(self, progress: Progress) -> None:
        self.lengths.record(self.job.id, progress.total_s or progress.decoded_s, progress.done_s)
        stage = Stage.DECODING if progress.total_s is None else Stage.TRANSCRIBING
        self.progress.progressed(
            self.job.id,
            JobProgress(
                stage, progress.done_s, progress.expected_s, progress.clips_done, progress.clips_total
            ),
        )

    def published(self, clip: Span, key: ClipKey | None, channel: int = 0, until: int | None = None) -> None:
        # A clip of one channel may let the clips of others, published before, into the transcript.
        if not self.has_live_text and (key not in self.published_before or until is not None):
            self.progress.published(self.job.id, PublishedClip(clip, key, channel, until))


class JobExecutor:
    """Runs jobs, any number at the same time."""

    def __init__(
        self,
        service: TranscriptionService,
        store: Store,
        clips: ClipStore,
        progress: ProgressBuffer,
        lengths: Lengths,
        settings: Settings,
    ) -> None:
        self._service = service
        self._store = store
        self._clips = clips
        self._progress = progress
        self._lengths = lengths
        self._settings = settings

    async def run(self, job: Job) -> Job | None:
        """Download the recording of a job if there is only a URL, or else transcribe it.

        Returns the job if it was downloaded, and None if it has ended, or another front end has it. Raises
        one of `TRANSIENT_ERRORS` if a later retry may succeed.
        """
        try:
            if job.interruptions >= _MAX_INTERRUPTIONS:
                raise Interrupted(
                    f"The service ended {job.interruptions} times in the middle of this job: perhaps the "
                    "machine lacks memory. Look into the service's log, and transcribe it again.",
                    code="interrupted",
                )
            again = job.submission.again
            recorded = job if again is None else await parent_of(self._store, again)
            if not await asyncio.to_thread(self._upload_path(recorded.submission).is_file):
                return await self._download(job)
            job, pipeline, has_live_text = await self._prepare(job, recorded.submission)
            transcript = await traced(pipeline)
        except TRANSIENT_ERRORS:
            raise
        except UnknownJob:
            log.info("the job was deleted while it ran")
        except LostLease:
            log.warning("another front end has taken the job over")
        except WhisperfleetError as error:
            await self.fail(job, error)
        except Exception as error:
            if (lack := no_descriptor(error)) is not None:
                raise lack from error
            log.exception("the job failed unexpectedly")
            await self.fail(job, UNEXPECTED)
        else:
            if pipeline.errors and not job.submission.options.allow_partial:
                await self.fail(job, pipeline.errors[0], transcript)
            else:
                await self._succeed(job, transcript, has_live_text)
        return None

    async def fail(self, job: Job, error: WhisperfleetError, transcript: Transcript | None = None) -> None:
        """Mark a job as failed, with the transcript of its other clips, if any. Raises as the store does."""
        await self._progress.store()
        with suppress(IllegalTransition, UnknownJob):
            job = await self._store.get(job.id)  # its recording may have been downloaded meanwhile
            failure = JobError(error.message, error.code)
            await self._store.fail(job, failure, self._settings.keep_audio, transcript)
            await self._remove_files(job)

    async def remove_partly_decoded(self, job: Job) -> None:
        """Remove the decoded audio of a run that has ended, unless all of it is there."""
        with suppress(UnknownJob):
            if (await self._store.get(job.id)).pcm is not None:
                return
        await self._service.remove_decoded(run_name(job))

    async def _prepare(self, job: Job, recorded: Submission) -> tuple[Job, Pipeline | ChannelPipelines, bool]:
        """Returns the job with the digest of its results, its pipeline, and whether a stream gave it text.

        `recorded`: the submission of the job that has the recording.
        """
        # The client may request the transcript in any format.
        options = with_word_times(job.submission.options, *FORMATS)
        async with _limited_wait():
            dispatcher, model = await self._service.fleet.ready(job.submission.model, options)
            voices = await self._service.media.speaker_models.get() if options.diarize else None
        speaker_model = None if voices is None else voices.identity
        load_options = self._service.fleet.catalogue.options[model]
        digest = await asyncio.to_thread(result_digest, options, load_options, speaker_model)
        await self._clips.flush()  # results that an earlier run of this process left may be of another digest
        decoded_before = job.pcm
        job = await self._store.set_result_digest(job, digest)
        path = self._upload_path(recorded)
        upload = Upload(path, recorded.filename, recorded.size or 0, recorded.sha256 or "")
        results = await self._clips.load(job)
        name = run_name(job)
        await self._service.keep_decoded(name)
        decoded = await self._decoded_before(job, decoded_before, name)
        known = await self._store.known_speakers(job) if options.diarize else ()
        if any(speaker.model != speaker_model for speaker in known):
            log.warning("known speakers get no names: another model of voices has embedded them", job=job.id)
            known = ()
        of_parent = job.submission.again is not None and keeps_speakers(options, recorded.options)
        peaks = PeakCollector() if job.submission.again is None else None  # the parent has them
        has_live_text = any(channel == LIVE_CHANNEL for *_, channel in results.published)
        observer = JobObserver(job, self._progress, self._lengths, results.published, has_live_text, peaks)
        options = options.model_copy(update={"allow_partial": True})  # a clip that fails costs no other one
        more = (observer, decoded, None if of_parent else known, await self._store.terms(job))
        # Of a live job, the stream is charged.
        allowance = None if job.is_live else self._service.budgets.of_job(job.id, job.submission.owner)
        pipeline = self._service.pipeline(name, upload, options, model, dispatcher, results, *more, allowance)
        return job, pipeline, has_live_text

    async def _succeed(self, job: Job, transcript: Transcript, had_live_text: bool) -> None:
        await self._progress.store()  # before the success, which is the last event
        again = job.submission.again
        try:
            with traces.span("store result"):
                if again is None:
                    keeps = self._settings.keep_audio
                    await self._store.succeed(job, transcript, keeps, had_live_text=had_live_text)
                else:
                    await revise_parent(self._store, self._service.helper, job, again, transcript)
        except (IllegalTransition, UnknownJob):
            return  # deleted meanwhile, or in the trash, where it keeps its recording
        except PreconditionFailed as error:
            await self.fail(job, error)
            return
        await self._remove_files(job)

    async def _decoded_before(self, job: Job, marker: str | None, name: JobName) -> Decoded | None:
        """The complete decoded audio of an earlier run, which is this one's from now on, or else nothing.

        `marker`: of what that run left. A job of another digest by now has none.
        """
        if marker is None:
            return None
        folder, before = self._service.media.folder.pcm, decoded_file(marker)
        decoded = await asyncio.to_thread(_decoded_audio, job.pcm, folder / before)
        if before == name.file:
            return decoded and replace(decoded, warnings=job.warnings)
        if decoded is None:
            await asyncio.to_thread(remove_channels, folder / before)
            return None
        await asyncio.to_thread(_rename_channels, decoded, folder / before, folder / name.file)
        await self._store.update(job.id, by_run=True, pcm=_pcm_marker(decoded, name.file))
        return replace(decoded, warnings=job.warnings)

    async def _download(self, job: Job) -> Job:
        """Download the recording of a job. Returns the job with it."""
        if job.submission.url is None:
            raise InvalidInput("The recording is gone from the service's data folder.", code="file_gone")
        async with _limited_wait():  # no download in vain
            await self._service.fleet.ready(job.submission.model, job.submission.options)
        with traces.span("download"):
            return await self._download_from(job, job.submission.url)

    async def _download_from(self, job: Job, url: str) -> Job:
        settings = self._settings
        folder, max_bytes = self._service.media.folder.uploads, settings.max_upload_bytes
        disk, owner = self._service.media.folder.disk, job.submission.owner
        await asyncio.to_thread(disk.check_share, owner)
        upload = await download(url, folder, max_bytes, settings.max_duration_s)
        try:
            downloaded = await self._store.update(
                job.id,
                by_run=True,
                file=upload.path.name,
                filename=job.submission.filename or upload.filename,
                size=upload.size,
                sha256=upload.sha256,
            )
            if downloaded is None:
                raise UnknownJob(f"The job {job.id} was deleted, or another front end runs it.")
        except WhisperfleetError:
            # Not after a cancellation: `Store.update` runs to completion, so the next run finds the file.
            await asyncio.to_thread(upload.remove)
            raise
        disk.stored[owner] += upload.size
        return downloaded

    async def _remove_files(self, job: Job) -> None:
        """Remove the files that a finished job does not need."""
        await self._service.remove_decoded(run_name(job))
        if not self._settings.keep_audio and job.submission.file:
            await asyncio.to_thread(self._upload_path(job.submission).unlink, missing_ok=True)
            await self._service.media.copies.remove(job.submission.file)

    def _upload_path(self, submission: Submission) -> Path:
        return self._service.media.folder.uploads / (submission.file or "")


@asynccontextmanager
async def _limited_wait() -> AsyncIterator[None]:
    """For a block that waits for models. Raises NotReady if that takes long: others need the job's place."""
    try:
        async with asyncio.timeout(_MODEL_WAIT_S):
            yield
    except TimeoutError:
        raise NotReady("A model is being downloaded.") from None


def run_name(job: Job) -> JobName:
    """Of the last run of a job."""
    return JobName("job", job.id, job.epoch)


def decoded_file(marker: str) -> str:
    """The name of the decoded audio that a marker describes."""
    return marker.split(" ")[-1]


def _pcm_marker(audio: Decoded, file: str) -> str:
    """A marker for complete decoded audio: its number of samples, its boot, its channels and its file.

    It is valid in that boot only: after a power failure, the disk may lack parts of the files.
    """
    return f"{audio.samples} {boot_id()} {','.join(map(str, audio.channels))} {file}"


def _decoded_audio(marker: str | None, path: Path) -> Decoded | None:
    """The decoded audio at `path`, and beside it, if it is complete, else None."""
    parts = (marker or "").split(" ")
    if len(parts) != _MARKER_PARTS or not path.is_file():  # an older version's have fewer
        return None
    channels = tuple(map(int, parts[2].split(",")))
    audio = Decoded(path.stat().st_size // BYTES_PER_SAMPLE, channels=channels)
    paths = [channel_path(path, channel) for channel in channels]
    if marker != _pcm_marker(audio, path.name) or not all(each.is_file() for each in paths):
        return None
    return audio if len({each.stat().st_size for each in paths}) == 1 else None


def _rename_channels(audio: Decoded, before: Path, after: Path) -> None:
    """Give decoded audio to another run: the front end of the one before would remove it."""
    for channel in audio.channels:
        channel_path(before, channel).replace(channel_path(after, channel))
