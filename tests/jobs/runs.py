"""A runner with a database and folders of its own, in front of recordings that do what a test says."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from samples import TRANSCRIPT, submission

from app.jobs.clip_store import ClipStore
from app.jobs.database import Database
from app.jobs.job import Job
from app.jobs.runner import JobRunner
from app.jobs.store import Event, Store
from app.media.uploads import Upload
from app.settings import Settings
from app.transcript.timeline import Transcript
from tests.api.fake_service import FakePipeline, FakeService

URL = "https://media.example/talk.mp3"
FILE = "0" * 32  # as the samples call it


class Pipeline(FakePipeline):
    """A recording that leaves decoded audio and then does what the service says."""

    async def run(self) -> Transcript:
        self.pcm_path.write_bytes(bytes(100))
        return await self.service.work(self)


class Service(FakeService):
    """Its pipelines are `work`'s, whatever that is."""

    work: Callable[[Pipeline], Awaitable[Transcript]]

    def pipeline(self, job: str, upload: Upload, options: Any, model: str, *_: object) -> Pipeline:
        return Pipeline(self, self.settings.pcm_dir / job, upload, options, model)


async def succeed(pipeline: Pipeline) -> Transcript:
    return TRANSCRIPT


async def hold(pipeline: Pipeline) -> Transcript:
    await asyncio.Event().wait()
    raise AssertionError


class Site:
    """All that a runner needs, and what has become of its jobs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        for folder in (settings.uploads_dir, settings.pcm_dir):
            folder.mkdir(parents=True, exist_ok=True)
        self.database = Database(settings.database_url, settings.data_dir)
        self.store = Store(self.database)
        self.store.on_event = self._tell
        self.service = Service(settings)
        self.service.work = succeed
        self.kinds: dict[str, list[str]] = defaultdict(list)  # of events, but for progress
        self._told = asyncio.Event()
        self.runner = self.new_runner()

    def new_runner(self) -> JobRunner:
        """One as after a start of the service."""
        clips = ClipStore(self.database)
        clips.start()
        self.runner = JobRunner(self.service, self.store, clips, self.settings)  # type: ignore[arg-type]
        return self.runner

    def _tell(self, job_id: str, event: Event) -> None:
        if event.type != "job.progress":
            self.kinds[job_id].append(event.type.removeprefix("job."))
        self._told.set()
        self._told = asyncio.Event()

    async def add(self, **changes: Any) -> Job:
        """A job; its recording lies in the folder unless it comes from a URL."""
        if "url" in changes:
            changes = {"file": None, "filename": ""} | changes
        else:
            (self.settings.uploads_dir / changes.get("file", FILE)).write_bytes(b"RIFF")
        return await self.store.add(submission(**changes))

    async def until(self, job: Job, kind: str, times: int = 1) -> Job:
        """The job, once it has had an event of a kind so many times."""
        while self.kinds[job.id].count(kind) < times:
            await self._told.wait()
        return await self.store.get(job.id)

    async def at_rest(self) -> None:
        """Wait until no job is being worked on: its files go after its last event."""
        while self.runner._running:
            await asyncio.gather(*(run.task for run in self.runner._running.values()))

    @property
    def uploads(self) -> list[str]:
        return [path.name for path in self.settings.uploads_dir.iterdir()]

    @property
    def decoded(self) -> list[str]:
        return [path.name for path in self.settings.pcm_dir.iterdir()]


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[Site]:
    site = Site(Settings(data_dir=folder, _env_file=None, **settings))
    await site.database.open()
    try:
        yield site
    finally:
        await site.runner.stop()
        await site.database.close()


def with_site(folder: Path, body: Callable[[Site], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with opened(folder, **settings) as site:
            await body(site)

    asyncio.run(run())
