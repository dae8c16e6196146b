"""A job runner with its own database and data folder, in front of a fake transcription service."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from app.database.connection import FILE_NAME, Database
from app.errors import ClipFailed
from app.jobs.events import Event
from app.jobs.job import Job
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.runner import JobRunner
from app.jobs.service import JobService
from app.jobs.storage.store import Store
from app.media.pcm_files import remove_channels
from app.media.pool import Decoded
from app.media.uploads import Upload
from app.options import Options
from app.settings import Settings
from app.speakers.labelling import KnownSpeaker
from app.transcript.timeline import Transcript
from app.transcription.helper import Helper
from app.transcription.ledger import JobName
from app.transcription.media_service import MediaService
from app.transcription.recording_work import Observer
from app.transcription.result_cache import ClipResults
from tests.jobs.databases import put_tables
from tests.jobs.samples import SUBMISSION, TRANSCRIPT, submission
from workers.messages import LoadOptions

URL = "https://media.example/talk.mp3"
FILE = str(SUBMISSION.file)


@dataclass
class FakePipeline:
    """Leaves decoded audio, and then does what the service's `work` does."""

    service: "FakeService"
    upload: Upload
    options: Options
    observer: Observer
    decoded: Decoded | None
    pcm_path: Path
    results: ClipResults
    known: Sequence[KnownSpeaker]
    errors: list[ClipFailed] = field(default_factory=list)

    async def run(self) -> Transcript:
        self.pcm_path.write_bytes(bytes(100))
        return await self.service.work(self)


Work = Callable[[FakePipeline], Awaitable[Transcript]]


async def succeed(pipeline: FakePipeline) -> Transcript:
    return TRANSCRIPT


async def block(pipeline: FakePipeline) -> Transcript:
    await asyncio.Event().wait()
    raise AssertionError


class FakeCatalogue:
    """Knows the load options of each model."""

    def __init__(self) -> None:
        self.options = defaultdict(lambda: LoadOptions("demo", "", "cpu", "int8", 1))


class FakeFleet:
    """Workers without processes, as job runners see them."""

    def __init__(self) -> None:
        self.catalogue = FakeCatalogue()
        self.jobs_at_once = 4
        self.not_ready: str | None = None

    def readiness(self) -> str | None:
        return self.not_ready

    async def ready(self, model: str, options: Options) -> tuple[None, str]:
        return None, model

    async def drain(self, timeout_s: float) -> None: ...


class FakeService:
    """A transcription service without workers, as job runners use it."""

    def __init__(self, settings: Settings, work: Work = succeed) -> None:
        self.media = MediaService(settings, workers=1)  # which is not started
        self.media.folder.lock()  # creates the folders
        self.media.speaker_models.get = self.speaker_model  # type: ignore[method-assign]
        self.fleet = FakeFleet()
        self.helper = Helper()
        self.work = work
        self.speakers = SimpleNamespace(identity="first model")

    async def speaker_model(self) -> Any:
        return self.speakers

    def pipeline(
        self,
        job: JobName,
        upload: Upload,
        options: Options,
        model: str,
        fleet: None,
        results: ClipResults,
        observer: Observer,
        decoded: Decoded | None,
        known: Sequence[KnownSpeaker],
    ) -> FakePipeline:
        pcm_path = self.media.folder.pcm / job.id
        return FakePipeline(self, upload, options, observer, decoded, pcm_path, results, known)

    async def remove_decoded(self, job: JobName) -> None:
        remove_channels(self.media.folder.pcm / job.id)

    async def keep_decoded(self, job: JobName) -> None: ...


async def not_advanced() -> None: ...


@asynccontextmanager
async def started_jobs(
    url: str, folder: Path, clock: Callable[[], float] = time.time, **values: object
) -> AsyncIterator[JobService]:
    """A job service whose workers become ready once `not_ready` is None."""
    settings = Settings(data_dir=folder, database_url=url, _env_file=None, **values)
    service = FakeService(settings)
    service.fleet.not_ready = "the model is being loaded"
    jobs = JobService(service, settings, Database(url, folder))  # type: ignore[arg-type]
    jobs.store._clock = jobs.clock._wall = clock
    jobs.clock.advance = not_advanced  # type: ignore[method-assign]  # so that all times are those of `clock`
    await jobs.start()
    try:
        yield jobs
    finally:
        await jobs.stop()
        service.media.folder.release()


class Site:
    """A runner and all that it needs, and the events of its jobs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.service = FakeService(settings)
        self.folder = self.service.media.folder
        self.database = Database(settings.database_url, settings.data_dir)
        self.store = Store(self.database)
        self.store.on_event = self._on_event
        self.events: dict[str, list[str]] = defaultdict(list)  # types without "job.", except progress
        self._changed = asyncio.Event()
        self.runner = self.new_runner()

    def new_runner(self) -> JobRunner:
        """A runner, as after a restart of the service."""
        clips = ClipStore(self.database)
        clips.start()
        self.runner = JobRunner(self.service, self.store, clips, self.settings)  # type: ignore[arg-type]
        return self.runner

    def _on_event(self, job_id: str, event: Event) -> None:
        if event.type != "job.progress":
            self.events[job_id].append(event.type.removeprefix("job."))
        self._changed.set()
        self._changed = asyncio.Event()

    async def add(self, **changes: Any) -> Job:
        """Add a job. Its recording is in the uploads folder unless it has a URL."""
        if "url" in changes:
            changes = {"file": None, "filename": ""} | changes
        else:
            (self.folder.uploads / changes.get("file", FILE)).write_bytes(b"RIFF")
        return await self.store.add(submission(**changes))

    async def changed(self) -> None:
        """Wait for the next event of any job, or a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                await self._changed.wait()

    async def wait_for(self, job: Job, event: str, times: int = 1) -> Job:
        """The job, once it has had so many events of a type."""
        while self.events[job.id].count(event) < times:
            await self._changed.wait()
        return await self.store.get(job.id)

    async def wait_until_idle(self) -> None:
        """Wait until no job runs: a job's files are removed after its last event."""
        while self.runner._running:
            await asyncio.gather(*(run.task for run in self.runner._running.values()))

    @property
    def uploads(self) -> list[str]:
        return [path.name for path in self.folder.uploads.iterdir()]

    @property
    def decoded(self) -> list[str]:
        return [path.name for path in self.folder.pcm.iterdir()]


@asynccontextmanager
async def opened_site(folder: Path, **settings: Any) -> AsyncIterator[Site]:
    """A site with an open database; its runner is not started."""
    put_tables(folder / FILE_NAME)
    site = Site(Settings(data_dir=folder, _env_file=None, **settings))
    await site.database.open()
    try:
        yield site
    finally:
        await site.runner.stop()
        await site.database.close()
        site.folder.release()
