"""The transcription service: requests and jobs, on the media workers and the Whisper workers."""

import asyncio
from collections.abc import Sequence
from functools import partial

from app.concurrency import run_shielded, spawn_shared
from app.engines.devices import usable_cores
from app.engines.model_files import DEMO
from app.engines.plan import Plan, media_workers
from app.media.clip_planner import DEMO_MAX_SILENCE_SAMPLES, MAX_SILENCE_SAMPLES
from app.media.pcm_files import remove_channels
from app.media.uploads import Upload
from app.options import Options
from app.settings import Settings
from app.speakers.labelling import KnownSpeaker
from app.telemetry import traces
from app.transcript.timeline import Transcript
from app.transcription.channels import ChannelPipelines
from app.transcription.fleet import WhisperFleet
from app.transcription.helper import Helper
from app.transcription.ledger import bare_id, new_request
from app.transcription.media_service import MediaService
from app.transcription.pipeline import DecodedAudio, Observer, Pipeline, WindowDispatcher
from app.transcription.result_cache import CachedClipResults, ClipResults, ResultCache
from app.transcription.speakers import SpeakerFinder


def max_silence_of(model: str) -> int:
    """The longest silence in a clip for a model, in samples: see `ClipPlanner`."""
    return DEMO_MAX_SILENCE_SAMPLES if model == DEMO else MAX_SILENCE_SAMPLES


class TranscriptionService:
    """Transcribes recordings. One for each process and each data folder."""

    def __init__(self, settings: Settings, plan: Plan) -> None:
        self.settings = settings
        self.media = MediaService(settings, media_workers(settings, plan, usable_cores()))
        self.fleet = WhisperFleet(settings, plan, self.media.pool)
        self.helper = Helper()
        self._cache = ResultCache()
        self._removals: dict[str, asyncio.Task[None]] = {}  # of decoded audio that workers still read, by job

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
    ) -> Transcript:
        """The transcript of a recording. Does not remove the upload's file.

        Cancelling the caller cancels the work. Results are cached for a while then: the same recording with
        the same options goes on from them.

        Raises NotReady if there is no model or no worker, and as `Pipeline.run` does.
        """
        dispatcher, model = await self.fleet.ready(model, options)
        key = (upload.sha256 or upload.path, upload.raw_pcm, options, model)
        with self._cache.recording(key) as results:
            pipeline = self.pipeline(
                new_request(), upload, options, model, dispatcher, results, observer, known=known
            )
            try:
                with traces.span("transcribe") as span:
                    transcript = await pipeline.run()
                    span.set_attributes(
                        {
                            "whisperfleet.audio_s": transcript.seconds,
                            "whisperfleet.clips": len(transcript.clips),
                        }
                    )
                return transcript
            finally:
                await self.remove_decoded(pipeline.job)

    async def detect_language(self, upload: Upload) -> tuple[str, float]:
        """The language of a recording, ISO 639-1, and its probability, 0 to 1.

        Raises as `transcribe` does.
        """
        options = Options()
        dispatcher, model = await self.fleet.ready(self.fleet.catalogue.default, options)
        pipeline = self.pipeline(new_request(), upload, options, model, dispatcher, CachedClipResults())
        assert isinstance(pipeline, Pipeline)  # of the mix of all channels
        try:
            with traces.span("transcribe"):
                return await pipeline.detect_language()
        finally:
            await self.remove_decoded(pipeline.job)

    async def remove_decoded(self, job: str) -> None:
        """Remove the decoded audio of a request or a job that does not run.

        Workers read it: while they have windows of it, it is removed in the background, once they do not.
        """
        if not self.fleet.has_in_flight(job):
            await asyncio.to_thread(remove_channels, self.media.folder.pcm / bare_id(job))
        elif job not in self._removals:
            removal = self._removals[job] = spawn_shared(self._remove_later(job))
            removal.add_done_callback(lambda _: self._removals.pop(job, None))

    async def keep_decoded(self, job: str) -> None:
        """Call this before a job runs again: its decoded audio must not be removed meanwhile."""
        if (removal := self._removals.get(job)) is not None:
            removal.cancel()
            await asyncio.wait([removal])

    async def _remove_later(self, job: str) -> None:
        await self.fleet.until_ended(job)
        await run_shielded(asyncio.to_thread(remove_channels, self.media.folder.pcm / bare_id(job)))

    def pipeline(
        self,
        job: str,
        upload: Upload,
        options: Options,
        model: str,
        dispatcher: WindowDispatcher,
        results: ClipResults,
        observer: Observer | None = None,
        decoded: DecodedAudio | None = None,
        known: Sequence[KnownSpeaker] = (),
    ) -> Pipeline | ChannelPipelines:
        """A pipeline for a recording, or one for its channels.

        `model` and `dispatcher` are those from `WhisperFleet.ready`. The caller removes the decoded audio by
        `remove_decoded`.
        `decoded`: what is there from an earlier run, if that decoded all of the recording. `known`: voices
        that the client knows, for `options.diarize`.
        """
        is_separate = options.channels == "separate"
        pcm_path = self.media.folder.pcm / bare_id(job)
        new_pipeline = partial(
            Pipeline,
            job=job,
            upload=upload,
            # Words may be crosstalk one by one.
            options=options.model_copy(update={"word_timestamps": True}) if is_separate else options,
            model=model,
            media_pool=self.media.pool,
            dispatcher=dispatcher,
            results=results,
            max_duration_s=self.settings.max_duration_s,
            max_silence=max_silence_of(model),
            min_context_s=self.fleet.catalogue.options[model].min_context_s,
            selection=options.selection,
        )
        if not is_separate:
            pipeline = new_pipeline(pcm_path=pcm_path, observer=observer, decoded=decoded)
            if options.diarize:
                of_job = (job, pcm_path, options, self.media.pool, self.helper, results, known)
                pipeline.speakers = SpeakerFinder(*of_job, pipeline.errors)
            return pipeline
        return ChannelPipelines(
            job=job,
            upload=upload,
            media_pool=self.media.pool,
            dispatcher=dispatcher,
            pcm_path=pcm_path,
            observer=observer or Observer(),
            helper=self.helper,
            new_pipeline=new_pipeline,
            names=options.names_of_speakers,
            max_duration_s=self.settings.max_duration_s,
            selection=options.selection,
            decoded=decoded,
        )
