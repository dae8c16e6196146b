"""The transcription service: the media workers, the Whisper workers, and the requests that they serve."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import cast

import structlog

from app import tracing
from app.engines.catalogue import ModelCatalogue
from app.engines.cluster.bridge import Bridge
from app.engines.cluster.fleet import ClusterFleet
from app.engines.cluster.nodes import NO_CLUSTER
from app.engines.devices import usable_cores
from app.engines.gpu_usage import GpuMonitor
from app.engines.model_files import DEMO, ModelFiles, find
from app.engines.plan import Plan, make_plan, media_workers
from app.engines.slot import WhisperSlot
from app.errors import InvalidSetting, ModelUnavailable, NotReady, UnknownNode
from app.media.clip_planner import DEMO_MAX_SILENCE_SAMPLES, MAX_SILENCE_SAMPLES
from app.media.clip_search import FoundSpeech, find_speech
from app.media.pcm_files import remove_channels
from app.media.peaks import PeakCollector
from app.media.pool import MediaPool
from app.media.sound_copies import SoundCopies
from app.media.sound_encoder import SoundEncoder
from app.media.speech import VadParameters
from app.media.uploads import Upload
from app.options import Options
from app.scheduling.dispatcher import Dispatcher
from app.scheduling.tasks import Outcome, SlotStatus
from app.settings import Settings
from app.speakers.labelling import KnownSpeaker
from app.transcript.timeline import Transcript
from app.transcription.batch_traces import trace_batch
from app.transcription.channels import ChannelPipelines, DecodedAudio
from app.transcription.cluster_media import ClusterMedia
from app.transcription.data_folder import DataFolder
from app.transcription.helper import Helper
from app.transcription.known_speakers import find_known_speakers
from app.transcription.pipeline import Fleet, Observer, Pipeline
from app.transcription.result_cache import CachedRecording, ClipResults, ResultCache
from app.transcription.speaker_models import SpeakerModels
from app.transcription.speakers import SpeakerFinder
from app.transcription.work_blocks import (
    FleetBatch,
    WorkBlocks,
    bare_id,
    clips_by_job,
    new_request,
    public_jobs,
)
from app.transcription.work_totals import WorkTotals
from workers.messages import EVERYTHING, Selection, SpeakerModel

_MIN_JOBS_AT_ONCE = 8  # so a short job rarely waits for a long one to end
_LOOKUP_S = 8.0  # a request waits so long for the model to be found, before it gets an error
_RETRY_S = 60.0  # between attempts to get a model that was not available

log = structlog.get_logger(__name__)


class TranscriptionService:
    """Transcribes recordings. One for each process and each data folder."""

    def __init__(self, settings: Settings, plan: Plan) -> None:
        self.settings = settings
        self.folder = DataFolder(settings.data_dir)
        self.catalogue = ModelCatalogue(
            plan.models[0], settings.model_idle_s, others=plan.models[1:], aliases=plan.aliases
        )
        self.helper = Helper()
        self.gpus = GpuMonitor(plan.gpus)
        self.blocks = WorkBlocks()
        self.totals = WorkTotals()
        self._plan = plan
        self._planned_default = plan.models[0]  # another one may take its place
        self._speaker_models = SpeakerModels(settings.speaker_model)
        self._media = MediaPool(
            media_workers(settings, plan, usable_cores()), self.folder.disk, self._speaker_models.get
        )
        self.copies = SoundCopies(
            self.folder.uploads,
            self.folder.copies,
            settings.audio_cache_bytes,
            SoundEncoder(self._media, self.folder.disk, settings.max_duration_s),
        )
        self._cache = ResultCache()
        self._fleet: Fleet | None = None
        self.cluster: ClusterFleet | None = None  # with the engine `ray`
        if plan.cluster is not None:
            self.cluster = ClusterFleet(Bridge(plan.cluster.address, insecure=plan.cluster.insecure))
            self._cluster_media = ClusterMedia(
                self._media, self.cluster.bridge, settings.ray_media_workers, self.cluster.is_draining
            )
        self._located = asyncio.Event()  # the default model was found, or it is known to be unavailable
        self._not_ready: str | None = "the service is starting"
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Lock the data folder and start the workers, which load in the background.

        Raises InvalidSetting if the data folder cannot be used.
        """
        await asyncio.to_thread(self.folder.lock)
        self._media.start()
        self._speaker_models.start(self._media.fault_of_speaker_model)
        if self.cluster is not None:
            await self.cluster.start()
        self._starting = asyncio.create_task(self._start_workers())

    async def stop(self) -> None:
        """End all processes and release the data folder."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._speaker_models.stop()
        if self.cluster is not None:
            await self.cluster.stop_serving()
            await self._cluster_media.stop()
        await asyncio.gather(
            self.copies.stop(),
            self._media.stop(),
            self.helper.stop(),
            *([self._fleet.stop()] if self._fleet else []),
        )
        if self.cluster is not None:
            await self.cluster.stop()
        self.folder.release()

    async def drain(self, timeout_s: float) -> None:
        """Send the workers no more batches, and wait for those in flight, `timeout_s` at most."""
        if self._fleet is not None:
            await self._fleet.drain(timeout_s)

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
        fleet, model = await self.ready(model, options)
        key = (upload.sha256 or upload.path, upload.raw_pcm, options, model)
        with self._cache.recording(key) as results:
            pipeline = self.pipeline(
                new_request(), upload, options, model, fleet, results, observer or Observer(), known=known
            )
            try:
                with tracing.span("transcribe") as span:
                    transcript = await pipeline.run()
                    span.set(audio_s=transcript.seconds, clips=len(transcript.clips))
                return transcript
            finally:
                await asyncio.to_thread(remove_channels, pipeline.pcm_path)

    async def detect_language(self, upload: Upload) -> tuple[str, float]:
        """The language of a recording, ISO 639-1, and its probability, 0 to 1.

        Raises as `transcribe` does.
        """
        options = Options()
        fleet, model = await self.ready(self.catalogue.default, options)
        pipeline = self.pipeline(new_request(), upload, options, model, fleet, CachedRecording(), Observer())
        assert isinstance(pipeline, Pipeline)  # of the mix of all channels
        try:
            with tracing.span("transcribe"):
                return await pipeline.detect_language()
        finally:
            await asyncio.to_thread(remove_channels, pipeline.pcm_path)

    async def find_speech(self, upload: Upload, parameters: VadParameters) -> FoundSpeech:
        """Where somebody speaks in a recording. Needs no model but that of the media workers.

        Does not remove the upload's file. Cancelling the caller cancels the work. Raises as
        `media.clip_search.find_speech` does.
        """
        job = uuid.uuid4().hex
        pcm_path = self.folder.pcm / job
        try:
            return await find_speech(
                self._media, job, upload, pcm_path, parameters, self.settings.max_duration_s
            )
        finally:
            await asyncio.to_thread(pcm_path.unlink, missing_ok=True)

    async def peaks(self, upload: Upload, selection: Selection = EVERYTHING) -> bytes:
        """The packed peaks of a recording up to the end of what is selected: see `media.peaks`.

        Does not remove the upload's file. Cancelling the caller cancels the work. Raises InvalidInput if the
        file cannot be decoded, TooLarge if the recording is too long, FileNotFoundError if the file is gone,
        and DiskFull or OutgrowsDisk.
        """
        job = uuid.uuid4().hex
        pcm_path = self.folder.pcm / job
        limit_s = self.settings.max_duration_s
        peaks = PeakCollector()
        try:
            decoding = self._media.decode(job, upload, pcm_path, limit_s, peaks, selection)
            async with aclosing(decoding) as steps:
                async for _ in steps:
                    pass
            return await asyncio.to_thread(peaks.pack)
        finally:
            self._media.cancel(job)
            await asyncio.to_thread(pcm_path.unlink, missing_ok=True)

    def pipeline(
        self,
        job: str,
        upload: Upload,
        options: Options,
        model: str,
        fleet: Fleet,
        results: ClipResults,
        observer: Observer,
        decoded: DecodedAudio | None = None,
        known: Sequence[KnownSpeaker] = (),
    ) -> Pipeline | ChannelPipelines:
        """A pipeline for a recording, or one for its channels, with the workers and the model from `ready`.

        The caller removes the decoded audio, by `remove_channels`: the id of `job` in the folder `pcm`.
        `decoded`: what is there from an earlier run, if that decoded all of the recording. `known`: voices
        that the client knows, for `options.diarize`.
        """
        is_separate = options.channels == "separate"
        pcm_path = self.folder.pcm / bare_id(job)
        new_pipeline = partial(
            Pipeline,
            job=job,
            upload=upload,
            # Words may be crosstalk one by one.
            options=options.model_copy(update={"word_timestamps": True}) if is_separate else options,
            model=model,
            media=self._media,
            fleet=fleet,
            results=results,
            max_duration_s=self.settings.max_duration_s,
            max_silence=DEMO_MAX_SILENCE_SAMPLES if model == DEMO else MAX_SILENCE_SAMPLES,
            min_context_s=self.catalogue.options[model].min_context_s,
            selection=options.selection,
        )
        if not is_separate:
            speakers = None
            if options.diarize:
                speakers = SpeakerFinder(job, pcm_path, options, self._media, self.helper, results, known)
            samples = None if decoded is None else decoded.samples
            return new_pipeline(
                pcm_path=pcm_path, observer=observer, decoded_samples=samples, speakers=speakers
            )
        return ChannelPipelines(
            job=job,
            upload=upload,
            media=self._media,
            fleet=fleet,
            pcm_path=pcm_path,
            observer=observer,
            helper=self.helper,
            new_pipeline=new_pipeline,
            names=options.names_of_speakers,
            max_duration_s=self.settings.max_duration_s,
            selection=options.selection,
            decoded=decoded,
        )

    def check_diarize(self, options: Options) -> None:
        """Raise SpeakerModelUnavailable if the options ask who speaks and the model for that is not here."""
        if options.diarize:
            self._speaker_models.check()

    async def known_speakers(
        self, names: Sequence[str], references: Sequence[str]
    ) -> tuple[KnownSpeaker, ...]:
        """The voices of the speakers in data URLs. Raises as `known_speakers.find_known_speakers` does."""
        return await find_known_speakers(self._media, self.folder, names, references)

    async def speaker_model(self) -> SpeakerModel:
        """The model that embeds voices. Raises SpeakerModelUnavailable."""
        return await self._speaker_models.get()

    @property
    def jobs_at_once(self) -> int:
        """How many jobs keep all workers busy."""
        return max(_MIN_JOBS_AT_ONCE, 2 * max(self._plan.worker_count, len(self._slots)))

    @property
    def is_asleep(self) -> bool:
        """Whether no worker runs, and the next request starts one."""
        statuses = [slot.status for slot in self._slots]
        may_wake = any(status.state == "asleep" or status.waking for status in statuses)
        return may_wake and not any(status.is_serving for status in statuses)

    def readiness(self) -> str | None:
        """None once a worker is loaded, or if the next request starts one; else the reason."""
        if self.is_asleep or any(slot.status.is_serving for slot in self._slots):
            return None
        if self.cluster is not None and self.cluster.fault is not None:
            return self.cluster.fault
        if self._not_ready is not None:
            return self._not_ready
        slots = self._slots
        if not slots or any(slot.status.state != "failed" for slot in slots):
            return f"the model {self.catalogue.default!r} is being loaded"
        return f"no worker could load the model {self.catalogue.default!r}: {slots[0].status.error}"

    @property
    def _slots(self) -> list[WhisperSlot]:
        """Those that there are now, by number."""
        return cast(list[WhisperSlot], self._fleet.slots) if self._fleet is not None else []

    def workers(self) -> list[dict[str, object]]:
        """One row for each slot, as `GET /v1/workers` shows it."""
        return [slot.row() | self._current(slot.index) for slot in self._slots]

    def slot_statuses(self) -> dict[int, SlotStatus]:
        """The status of each slot, by its number; empty until the model is found."""
        return {slot.index: slot.status for slot in self._slots}

    def workers_by_node(self) -> Counter[tuple[str, str]]:
        """How many workers each node of the cluster has in each state, by its name."""
        return Counter(
            (slot.node_name, slot.status.state) for slot in self._slots if slot.node_name is not None
        )

    def nodes(self) -> list[dict[str, object]]:
        """One row for each node of the cluster, as `GET /v1/nodes` shows it; none with other engines."""
        if self.cluster is None:
            return []
        return [self.cluster.row(node, self.slot_statuses()) for node in self.cluster.nodes]

    def drain_node(self, name: str, *, undo: bool = False) -> dict[str, object]:
        """Let the workers of a node finish their batches and end, and give it no others. Returns its row.

        `undo`: let it have workers again. Raises UnknownNode, AmbiguousNode, and NotReady until the nodes are
        known.
        """
        if self.cluster is None:
            raise UnknownNode(NO_CLUSTER)
        node = self.cluster.find(name)
        (self.cluster.undrain if undo else self.cluster.drain)(node.node.id)
        return self.cluster.row(node, self.slot_statuses())

    @property
    def media_busy_ratio(self) -> float:
        """The part of the media workers that work now, 0 to 1."""
        return self._media.busy_ratio

    def backlog(self) -> tuple[int, float]:
        """How many clips wait for a worker, and for how long the oldest has (s; 0 if none waits)."""
        return self._fleet.backlog() if self._fleet is not None else (0, 0.0)

    def _batch_ended(self, batch: FleetBatch, outcome: Outcome) -> None:
        self.blocks.add(batch, outcome)
        self.totals.add(batch, outcome)
        if tracing.is_on():
            parts = next((slot.parts for slot in self._slots if slot.index == batch.slot), [])
            trace_batch(batch, outcome, self.blocks.last_id, parts)

    def _current(self, slot: int) -> dict[str, object]:
        """What a slot does now, and the latest figures of its GPU."""
        usage = self.gpus.usage(slot)
        batch = self._fleet.running(slot) if self._fleet is not None else None
        working: list[dict[str, object]] = []
        if batch is not None:
            since = {"since": round(batch.start, 3)}
            working = [entry | since for entry in public_jobs(clips_by_job(batch))]
        return {"gpu": usage.public() if usage else None, "working": working}

    async def ready(self, model: str, options: Options) -> tuple[Fleet, str]:
        """The workers, and the model for a request that names `model`; its files are here then.

        Raises NotReady, ModelUnavailable, and InvalidInput if the model does not know the language.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOKUP_S):
                await self._located.wait()
        if self.cluster is not None and self.cluster.fault is not None:
            raise NotReady(self.cluster.fault)
        if self._fleet is None:
            raise NotReady(self._not_ready or "the service is starting")
        if model in (self._planned_default, self._plan.models[0]):
            model = self.catalogue.default  # the demo model may have taken its place meanwhile
        await self.catalogue.locate(model, self._plan.load_options)
        self.catalogue.check_language(model, options.language)
        return self._fleet, model

    async def _start_workers(self) -> None:
        """Find the default model, however long that takes, and start the workers."""
        if self.cluster is not None and self._plan.cluster is not None:
            device = await self.cluster.usable_device(self._plan.cluster.device)
            try:
                self._plan = make_plan(self.settings, device)
            except InvalidSetting as error:  # they fit the models of GPUs, but not those of CPUs
                self._not_ready = error.message
                self._located.set()
                log.error("the settings do not fit the cluster", reason=error.message)
                return
            self.catalogue.default = self._plan.models[0]
        while (files := await self._find_default()) is None:
            self._located.set()
            await asyncio.sleep(_RETRY_S)
        self.catalogue.default = files.name
        self.catalogue.options[files.name] = self._plan.load_options(files)
        settings = self.settings
        self._fleet = Dispatcher(
            "worker",
            self._plan.slots(self.catalogue) if self.cluster is None else [],
            self._plan.cost,
            retries_errors=True,
            sleep_after_s=None if settings.keep_default_model else settings.model_idle_s,
            waits_for_slots=self.cluster is not None,
            on_batch=self._batch_ended,
        )
        self.catalogue.holders = lambda: self._slots
        self._fleet.start()
        if self.cluster is not None:
            slots = self._plan.ray_slots(self.cluster.bridge, self.catalogue)
            self.cluster.serve(self._fleet, slots)
            self._cluster_media.start(slots.reserved_cpus)
        self._not_ready = None
        self._located.set()

    async def _find_default(self) -> ModelFiles | None:
        name = self.catalogue.default
        if self._plan.simulation is not None:
            log.warning("workers are simulated: their transcripts are made up")
            return ModelFiles(name, Path())
        self._not_ready = f"the model {name!r} is being looked up or downloaded"
        try:
            return await find(name)
        except ModelUnavailable as error:
            self._not_ready = error.message
            # A model that was named is never replaced by another.
            if self.settings.model == "auto" and self.settings.demo_fallback:
                log.warning(
                    "falling back to the demo model, which understands synthetic speech only",
                    reason=error.message,
                )
                return await find(DEMO)
            log.error("model unavailable", reason=error.message)
        except Exception as error:  # nobody awaits this task: the reason is shown by /ready
            self._not_ready = f"the model {name!r} cannot be had: {error!r}"
            log.exception("model unavailable")
        return None
