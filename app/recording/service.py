"""The transcription service: requests and jobs, on the media workers and the Whisper workers."""

import asyncio
from collections.abc import Sequence

from app.common.concurrency import end_tasks, run_shielded, spawn_shared
from app.common.errors import InsufficientQuota
from app.common.options import Options
from app.engines.devices import usable_cores
from app.engines.ledger import JobName, new_request
from app.engines.model_files import DEMO
from app.engines.plan import Plan, media_workers
from app.intake.budgets import Allowance, budgets_of
from app.intake.uploads import Upload
from app.media.pcm_files import remove_channels
from app.pool.helper import Helper
from app.recording.channels import ChannelPipelines
from app.recording.clip_planner import DEMO_MAX_SILENCE_SAMPLES, MAX_SILENCE_SAMPLES
from app.recording.fleet import WhisperFleet
from app.recording.media_service import MediaService
from app.recording.pipeline import Pipeline
from app.recording.recording_work import Observer, TranscriptionWork, WindowDispatcher
from app.recording.result_cache import CachedClipResults, ClipResults, ResultCache
from app.settings import Settings
from app.telemetry import traces
from app.telemetry.work import current_work
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.terms import Term
from app.transcript.timeline import Transcript
from workers.messages import Decoded


def max_silence_of(model: str) -> int:
    """The longest silence in a clip for a model, in samples: see `ClipPlanner`."""
    return DEMO_MAX_SILENCE_SAMPLES if model == DEMO else MAX_SILENCE_SAMPLES


async def traced(pipeline: Pipeline | ChannelPipelines) -> Transcript:
    """The transcript that a pipeline makes, with a span in the trace. Raises as `Pipeline.run` does."""
    with traces.span("transcribe") as span:
        transcript = await pipeline.run()
        clips = len(transcript.clips)
        span.set_attributes({"whisperfleet.audio_s": transcript.seconds, "whisperfleet.clips": clips})
    return transcript


class TranscriptionService:
    """Transcribes recordings. One for each process and each data folder."""

    def __init__(self, settings: Settings, plan: Plan) -> None:
        self.settings = settings
        self.media = MediaService(settings, media_workers(settings, plan, usable_cores()))
        self.fleet = WhisperFleet(settings, plan, self.media.pool)
        self.budgets = budgets_of(settings)
        self.helper = Helper()
        self._cache = ResultCache()
        self._removals: dict[JobName, asyncio.Task[None]] = {}  # of decoded audio that workers still read

    async def start(self) -> None:
        """Lock the data folder and start the workers, which load in the background.

        Raises InvalidSetting if the data folder cannot be used.
        """
        await self.media.start()
        await self.fleet.start()

    async def stop(self) -> None:
        """End all processes and release the data folder."""
        await self.fleet.stop_changes()
        await asyncio.gather(self.media.stop(), self.helper.stop(), self.fleet.stop_workers())
        await asyncio.gather(*self._removals.values(), return_exceptions=True)
        await self.fleet.disconnect()
        self.media.folder.release()

    async def transcribe(
        self,
        upload: Upload,
        options: Options,
        model: str,
        observer: Observer | None = None,
        known: Sequence[KnownSpeaker] = (),
        terms: tuple[Term, ...] = (),
    ) -> Transcript:
        """The transcript of a recording. Does not remove the upload's file.

        Cancelling the caller cancels the work. Results are cached for a while then: the same recording with
        the same options goes on from them. The caller is charged, see `telemetry.work`.

        Raises NotReady if there is no model or no worker, and as `Pipeline.run` does.
        """
        dispatcher, model = await self.fleet.ready(model, options)
        key = (upload.sha256 or upload.path, upload.raw_pcm, options, model)
        job, observer = new_request(), observer or Observer()
        allowance = Allowance(self.budgets, current_work().owner)
        with self._cache.recording(key) as results:
            more = (observer, None, known, terms, allowance)
            pipeline = self.pipeline(job, upload, options, model, dispatcher, results, *more)
            try:
                transcript = await traced(pipeline)
                allowance.charge(model, transcript.transcribed_s)
                return transcript
            except (asyncio.CancelledError, InsufficientQuota):  # the client may have some of the text
                allowance.charge(model, observer.sent_s)
                raise
            finally:
                allowance.reserve(0.0)
                await self.remove_decoded(job)

    async def detect_language(self, upload: Upload) -> tuple[str, float]:
        """The language of a recording, ISO 639-1, and its probability, 0 to 1.

        Raises as `transcribe` does.
        """
        options, job = Options(), new_request()
        dispatcher, model = await self.fleet.ready(self.fleet.catalogue.default, options)
        pipeline = self.pipeline(job, upload, options, model, dispatcher, CachedClipResults())
        assert isinstance(pipeline, Pipeline)  # of the mix of all channels
        try:
            with traces.span("transcribe"):
                return await pipeline.detect_language()
        finally:
            await self.remove_decoded(job)

    async def remove_decoded(self, job: JobName) -> None:
        """Remove the decoded audio of a request or a job that does not run.

        Workers read it: while they have windows of it, it is removed in the background, once they do not.
        """
        dispatcher = self.fleet.dispatcher
        if dispatcher is None or not dispatcher.has_in_flight(job):
            await asyncio.to_thread(remove_channels, self.media.folder.pcm / job.file)
        elif job not in self._removals:
            removal = self._removals[job] = spawn_shared(self._remove_later(dispatcher, job))
            removal.add_done_callback(lambda _: self._removals.pop(job, None))

    async def keep_decoded(self, job: JobName) -> None:
        """Call this before a job runs again: its decoded audio must not be removed meanwhile."""
        await end_tasks(self._removals.get(job))

    async def _remove_later(self, dispatcher: WindowDispatcher, job: JobName) -> None:
        await dispatcher.until_ended(job)
        await run_shielded(asyncio.to_thread(remove_channels, self.media.folder.pcm / job.file))

    def pipeline(
        self,
        job: JobName,
        upload: Upload,
        options: Options,
        model: str,
        dispatcher: WindowDispatcher,
        results: ClipResults,
        observer: Observer | None = None,
        decoded: Decoded | None = None,
        known: Sequence[KnownSpeaker] | None = (),
        terms: tuple[Term, ...] = (),
        allowance: Allowance | None = None,
    ) -> Pipeline | ChannelPipelines:
        """A pipeline for a recording, or one for its channels.

        `model` and `dispatcher` are those from `WhisperFleet.ready`. The caller removes the decoded audio by
        `remove_decoded`. `decoded`: what is there from an earlier run, if that decoded all of the recording.
        `known`: voices that the client knows, for `options.diarize`; None: they are embedded, and the caller
        finds who speaks. `terms`: replace what the model wrote. `allowance`: reserves the length.
        """
        work = TranscriptionWork(
            job=job,
            upload=upload,
            media_pool=self.media.pool,
            pcm_path=self.media.folder.pcm / job.file,
            max_duration_s=self.settings.max_duration_s,
            selection=options.selection,
            decoded=decoded,
            options=options,
            model=model,
            dispatcher=dispatcher,
            results=results,
            helper=self.helper,
            observer=observer or Observer(),
            max_silence=max_silence_of(model),
            min_context_s=self.fleet.catalogue.options[model].min_context_s,
            known=known,
            terms=terms,
            allowance=allowance,
        )
        return ChannelPipelines(work) if options.channels == "separate" else Pipeline(work)
