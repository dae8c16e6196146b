"""A job runner with its own database and data folder, in front of a fake transcription service."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from app.database.connection import FILE_NAME, Database
from app.database.front_ends import FrontEnd
from app.jobs.events import Event
from app.jobs.job import Job
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.runner import JobRunner
from app.jobs.service import JobService
from app.jobs.storage.store import Store
from app.settings import Settings
from app.transcript.timeline import Transcript
from tests.api.fake_service import FakePipeline, FakeService, WorkOnJob, catalogue
from tests.jobs.databases import put_tables
from tests.jobs.samples import SUBMISSION, TRANSCRIPT, submission

URL = "https://media.example/talk.mp3"
FILE = str(SUBMISSION.file)


async def succeed(pipeline: FakePipeline) -> Transcript:
    return TRANSCRIPT


async def block(pipeline: FakePipeline) -> Transcript:
    await asyncio.Event().wait()
    raise AssertionError


def fake_service(settings: Settings, work: WorkOnJob = succeed, *, shared: bool = False) -> FakeService:
    """A transcription service that works on jobs, and holds its data folder."""
    service = FakeService(settings, work_on_job=work)
    service.fleet.catalogue = catalogue("demo")
    service.media.folder.lock(shared=shared)
    return service


@asynccontextmanager
async def serving(
    settings: Settings,
    prepare: Callable[[JobService], None] = lambda jobs: None,
    *,
    name: str | None = None,
    work: WorkOnJob | None = None,
) -> AsyncIterator[JobService]:
    """A job service. `prepare` is called before its start, `work` for each job; None: no worker is ready.

    `name`: of one that shares its database and its folder.
    """
    service = fake_service(settings, work or succeed, shared=name is not None)
    service.fleet.reason = "the model is being loaded" if work is None else None
    database = Database(settings.database_url, settings.data_dir, name)
    jobs = JobService(service, settings, database)  # type: ignore[arg-type]
    prepare(jobs)
    await jobs.start()
    try:
        yield jobs
    finally:
        await jobs.stop()
        service.media.folder.release()


async def not_advanced() -> None: ...


@asynccontextmanager
async def started_jobs(
    url: str, folder: Path, clock: Callable[[], float] = time.time, **values: object
) -> AsyncIterator[JobService]:
    """A job service all of whose times are those of `clock`."""

    def set_clock(jobs: JobService) -> None:
        jobs.store._clock = jobs.clock._wall = clock
        jobs.clock.advance = not_advanced  # type: ignore[method-assign]

    async with serving(
        Settings(data_dir=folder, database_url=url, _env_file=None, **values), set_clock
    ) as jobs:
        yield jobs


class Site:
    """A runner and all that it needs, and the events of its jobs."""

    def __init__(self, settings: Settings, front_end: str | None = None) -> None:
        """`front_end`: its name, if others share the database and the folder."""
        self.settings = settings
        self.service = fake_service(settings, shared=front_end is not None)
        self.folder = self.service.media.folder
        self.database = Database(settings.database_url, settings.data_dir, front_end)
        self.front_end = FrontEnd(self.database)
        self.store = Store(self.database, front_end=self.front_end)
        self.store.on_event = self._on_event
        self.events: dict[str, list[str]] = defaultdict(list)  # types without "job.", except progress
        self._changed = asyncio.Event()
        self.runner = self.new_runner()

    def new_runner(self) -> JobRunner:
        """A runner, as after a restart of the service."""
        clips = ClipStore(self.database, self.front_end)
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
async def opened_site(folder: Path, front_end: str | None = None, **settings: Any) -> AsyncIterator[Site]:
    """A site with an open database; neither its runner nor its front end is started."""
    if not (folder / FILE_NAME).exists():
        put_tables(folder / FILE_NAME)
    site = Site(Settings(data_dir=folder, _env_file=None, **settings), front_end)
    await site.database.open()
    try:
        yield site
    finally:
        await site.runner.stop()
        await site.front_end.stop()
        await site.database.close()
        site.folder.release()
