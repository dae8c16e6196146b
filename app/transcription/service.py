"""Everything behind HTTP and the command line: one per process, and one per data folder."""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import structlog

from app.engines.devices import usable_cores
from app.engines.model_files import DEMO, ModelFiles, can_translate, find
from app.engines.plan import make_plan
from app.engines.slot import ModelCatalogue, WhisperSlot
from app.errors import InvalidInput, InvalidSetting, ModelUnavailable, NotReady, QueueFull, UnknownModel
from app.file_lock import try_lock
from app.languages import language_name
from app.media.pool import Media
from app.media.uploads import Upload, clean
from app.options import Options
from app.scheduling.dispatcher import Dispatcher
from app.settings import Settings
from app.transcript.timeline import Transcript
from app.transcription.pipeline import Fleet, Pipeline, Progress
from app.transcription.result_cache import CachedRecording, ClipResults, ResultCache
from workers.messages import LoadOptions, Segment

DEFAULT_MODEL_ALIAS = "whisper-1"  # what OpenAI calls its model, and clients send unasked
_MIN_JOBS_AT_ONCE = 8  # so that a short one seldom waits for a long one to end
_LOOKUP_S = 8.0  # that a request waits for the model to be found, before it is told to come back
_RETRY_S = 60.0  # between attempts to get a model that could not be had

log = structlog.get_logger(__name__)


class Service:
    """Media processes, workers, and the model that they serve."""

    def __init__(self, settings: Settings) -> None:
        """Raises InvalidSetting where the settings do not fit this machine."""
        self.settings = settings
        self._plan = make_plan(settings)
        self._catalogue = ModelCatalogue(self._plan.models[0], settings.model_idle_s)
        self._finding: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by model
        self._media = Media(usable_cores())
        self._memory = ResultCache()
        self._slots: list[WhisperSlot] = []
        self._fleet: Fleet | None = None
        self._located = asyncio.Event()  # the model has been found, or it is known that it cannot be
        self._reason: str | None = "the service is starting"
        self._bringing_up: asyncio.Task[None] | None = None
        self._lock: BinaryIO | None = None
        self._under_way = 0  # requests

    @property
    def demo(self) -> bool:
        """Whether the bundled demo model answers, which understands synthetic speech only."""
        return self._catalogue.default == DEMO

    async def start(self) -> None:
        """Take the data folder and begin to bring up the workers; they load in the background.

        Raises InvalidSetting where another process uses the data folder.
        """
        await asyncio.to_thread(self.lock_data_dir)
        self._media.start()
        self._bringing_up = asyncio.create_task(self._bring_up())

    async def stop(self) -> None:
        """End all processes and leave the data folder to others."""
        if self._bringing_up is not None:
            self._bringing_up.cancel()
            await asyncio.gather(self._bringing_up, return_exceptions=True)
        await asyncio.gather(self._media.stop(), *([self._fleet.stop()] if self._fleet else []))
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    async def transcribe(
        self,
        upload: Upload,
        options: Options,
        model: str,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        on_segments: Callable[[Sequence[Segment]], None] = lambda segments: None,
    ) -> Transcript:
        """The transcript of a recording; the upload's file stays where it is.

        `on_segments` is given the segments in order, each as soon as all before it are known. Cancelling
        the caller cancels the work; clips that have been heard by then are kept for a while, and the same
        recording with the same options goes on from them.

        Raises NotReady where there is no model or no worker, and what `Pipeline.run` raises.
        """
        fleet, model = await self.ready(model, options)
        identity = (upload.sha256 or upload.path, upload.raw_pcm, options, model)
        with self._memory.recall(identity) as clip_results:
            async with self._pipeline(upload, options, model, fleet, clip_results) as pipeline:
                pipeline.on_progress = on_progress
                pipeline.on_segments = on_segments
                return await pipeline.run()

    async def detect_language(self, upload: Upload) -> tuple[str, float]:
        """The language spoken in a recording, ISO 639-1, and how likely it is, 0 to 1.

        Raises as `transcribe` does.
        """
        options = Options()
        fleet, model = await self.ready(self._catalogue.default, options)
        async with self._pipeline(upload, options, model, fleet, CachedRecording()) as pipeline:
            return await pipeline.detect_language()

    @asynccontextmanager
    async def _pipeline(
        self, upload: Upload, options: Options, model: str, fleet: Fleet, clip_results: ClipResults
    ) -> AsyncIterator[Pipeline]:
        """A pipeline for a request's recording; its decoded audio is removed at the end.

        Raises QueueFull where as many requests are under way as may be.
        """
        if self._under_way >= self.settings.max_queued_jobs + self.jobs_at_once:
            raise QueueFull(
                f"{self._under_way} requests are under way, as many as this service takes "
                "(WHISPER_MAX_QUEUED_JOBS); try again later."
            )
        pipeline = self.pipeline(uuid.uuid4().hex, upload, options, model, fleet, clip_results)
        self._under_way += 1
        try:
            yield pipeline
        finally:
            self._under_way -= 1
            await asyncio.to_thread(pipeline.pcm_path.unlink, missing_ok=True)

    def pipeline(
        self, job: str, upload: Upload, options: Options, model: str, fleet: Fleet, clip_results: ClipResults
    ) -> Pipeline:
        """A pipeline for a recording, on the workers and with the model that `ready` named.

        Whoever runs it removes the decoded audio at `pcm_path`.
        """
        return Pipeline(
            job=job,
            upload=upload,
            options=options,
            model=model,
            media=self._media,
            fleet=fleet,
            pcm_path=self.settings.pcm_dir / job,
            clip_results=clip_results,
            max_duration_s=self.settings.max_duration_s,
        )

    def load_options(self, model: str) -> LoadOptions:
        """How the workers load a model that `ready` named."""
        return self._catalogue.options[model]

    @property
    def jobs_at_once(self) -> int:
        """How many jobs are worked on at a time; the others wait."""
        return max(_MIN_JOBS_AT_ONCE, 2 * self._plan.worker_count)

    async def drain(self, timeout_s: float) -> None:
        """Give the workers nothing more to do, and wait until they have done what they have in hand."""
        if self._fleet is not None:
            await self._fleet.drain(timeout_s)

    def readiness(self) -> str | None:
        """None once a worker is loaded, else why none is."""
        if any(slot.status.state in ("idle", "busy") for slot in self._slots):
            return None
        if self._reason is not None:
            return self._reason
        if any(slot.status.state != "failed" for slot in self._slots):
            return f"the model {self._catalogue.default!r} is being loaded"
        return f"no worker could load the model {self._catalogue.default!r}: {self._slots[0].status.error}"

    def workers(self) -> list[dict[str, object]]:
        """One row for each slot, as `GET /v1/workers` shows it."""
        return [slot.row() for slot in self._slots]

    def models(self) -> dict[str, str]:
        """The models that requests may name, the default one first: "loaded" by a worker, or "unloaded"."""
        names = [self._catalogue.default, *self._plan.models[1:]]
        return {
            name: "loaded" if any(slot.holds(name) for slot in self._slots) else "unloaded" for name in names
        }

    def resolve_model(self, name: str, task: str = "transcribe") -> str:
        """The model that a request means. Raises UnknownModel, and InvalidInput where it cannot translate."""
        model = self._catalogue.default if name in ("", DEFAULT_MODEL_ALIAS) else self._offered(name)
        if task == "translate" and not can_translate(model):
            raise InvalidInput(
                f"The model {model!r} cannot translate. Name one that can, such as large-v3: the service "
                "offers it when it is started with WHISPER_MODELS=large-v3.",
                param="model",
            )
        return model

    def _offered(self, name: str) -> str:
        if name in self.models():
            return name
        raise UnknownModel(
            f"The model {name!r} is not offered here; GET /v1/models lists those that are, and "
            f"{DEFAULT_MODEL_ALIAS!r} is the default one. WHISPER_MODELS offers more.",
            param="model",
            code="model_not_found",
        )

    def can_translate(self, model: str) -> bool:
        """Whether a model can translate into English."""
        return can_translate(model)

    async def ready(self, model: str, options: Options) -> tuple[Fleet, str]:
        """The workers, and the model that a request for `model` is to use, whose files are here then.

        Raises NotReady and ModelUnavailable, and InvalidInput for a language that the model does not know.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOKUP_S):
                await self._located.wait()
        if self._fleet is None:
            raise NotReady(self._reason or "the service is starting")
        if model == self._plan.models[0]:
            model = self._catalogue.default  # it may have fallen back meanwhile
        await self._find(model)
        known = next(filter(None, (slot.languages(model) for slot in self._slots)), None)
        if known and options.language and options.language not in known:
            raise InvalidInput(
                f"The model {model!r} does not know {language_name(options.language)}. Name another, or "
                "leave the language out to have it detected.",
                param="language",
            )
        return self._fleet, model

    async def _find(self, model: str) -> None:
        """See to it that a model's files are here, downloaded if they have to be. Raises ModelUnavailable."""
        if model in self._catalogue.options:
            return
        async with self._finding[model]:
            if model not in self._catalogue.options:
                files = await find(model)
                self._catalogue.options[model] = self._plan.load_options(files)

    async def _bring_up(self) -> None:
        """Find the model, for as long as it takes, and start the workers."""
        while (files := await self._locate()) is None:
            self._located.set()
            await asyncio.sleep(_RETRY_S)
        self._catalogue.default = files.name
        self._catalogue.options[files.name] = self._plan.load_options(files)
        self._slots = self._plan.slots(self._catalogue)
        self._fleet = Dispatcher("worker", self._slots, self._plan.cost)
        self._fleet.start()
        self._reason = None
        self._located.set()

    async def _locate(self) -> ModelFiles | None:
        if self._plan.simulation is not None:
            log.warning("workers are simulated: what they answer was not heard")
            return ModelFiles(self._catalogue.default, Path())
        self._reason = f"the model {self._catalogue.default!r} is being looked up or downloaded"
        try:
            return await find(self._catalogue.default)
        except ModelUnavailable as error:
            self._reason = error.message
            # A model that was named is never replaced by another.
            if self.settings.model == "auto" and self.settings.demo_fallback:
                log.warning(
                    "falling back to the demo model, which understands synthetic speech only",
                    reason=error.message,
                )
                return await find(DEMO)
            log.error("model unavailable", reason=error.message)
        except Exception as error:  # nobody awaits the bringing up: say it where it is looked for
            self._reason = f"the model {self._catalogue.default!r} cannot be had: {error!r}"
            log.exception("model unavailable")
        return None

    def lock_data_dir(self) -> None:
        """Make the data folder this process's own, if it is not yet.

        Raises InvalidSetting where another process uses it.
        """
        if self._lock is not None:
            return
        try:
            for folder in (self.settings.uploads_dir, self.settings.pcm_dir):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = try_lock(self.settings.data_dir / "lock")
        except OSError as error:
            raise InvalidSetting(
                f"WHISPER_DATA_DIR={self.settings.data_dir} cannot be used: {error.strerror}"
            ) from None
        if self._lock is None:
            raise InvalidSetting(
                f"WHISPER_DATA_DIR={self.settings.data_dir}: another whisperfleet uses this folder; "
                "stop it, or give this one a folder of its own"
            )

    def clean(self, uploads: Collection[str], pcm: Collection[str]) -> None:
        """Remove what a killed process left in the data folder, but for files of these names."""
        clean(self.settings.uploads_dir, uploads)
        clean(self.settings.pcm_dir, pcm)
