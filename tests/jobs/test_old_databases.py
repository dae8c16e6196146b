"""A database that the version before this one has made, with jobs in all states.

tests/data/version_0001.json has the rows as that version wrote them: its tables, their columns and values.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from app.api.job_responses import result_response
from app.jobs.clip_store import ClipStore
from app.jobs.database import Database
from app.jobs.job import Job, Status
from app.jobs.outbox import DatabaseOutbox
from app.jobs.service import JobService
from app.jobs.store import Store
from app.jobs.tables import metadata
from app.options import SPEAKER_OPTIONS, Options
from app.settings import Settings
from app.transcript.formats import FORMATS
from tests.jobs.databases import opened
from tests.jobs.samples import RESULT
from tests.jobs.sites import FakePipeline, FakeService, block, succeed

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

ROWS: dict[str, list[dict[str, Any]]] = json.loads(Path("tests/data/version_0001.json").read_text())
IDS = {row["filename"]: row["id"] for row in ROWS["jobs"]}
TEXT = "Grüße an 世界. The quick brown fox."


@pytest.fixture
async def old_url(empty_url: str, tmp_path: Path) -> str:
    """The URL of such a database, of either kind."""
    database = Database(empty_url, tmp_path)
    async with database._engine.begin() as connection:
        await connection.run_sync(migrate, command.upgrade, "0001")
        for table, rows in ROWS.items():
            for row in rows:
                await connection.execute(sa.insert(metadata.tables[table]).inline().values(decoded(row)))
        if not database.is_sqlite:
            last = max(row["number"] for row in ROWS["jobs"])
            await connection.execute(sa.text(f"SELECT setval('jobs_number_seq', {last})"))
    await database.close()
    return empty_url


def migrate(connection: sa.Connection, function: Any, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", "app/jobs/migrations")
    config.attributes["connection"] = connection
    function(config, revision)


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: b64decode(value["base64"]) if isinstance(value, dict) and "base64" in value else value
        for name, value in row.items()
    }


def encoded(row: sa.RowMapping) -> dict[str, Any]:
    return {
        name: {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in row.items()
    }


@asynccontextmanager
async def started(url: str, folder: Path, work: Any = succeed) -> AsyncIterator[JobService]:
    """This version, on the old database and with its recordings."""
    settings = Settings(data_dir=folder, database_url=url, result_ttl_s=1e9, _env_file=None)
    service = FakeService(settings, work)
    for row in ROWS["jobs"]:
        if row["file"]:
            (service.media.folder.uploads / row["file"]).write_bytes(b"RIFF")
    jobs = JobService(service, settings, Database(url, folder))  # type: ignore[arg-type]
    await jobs.start()
    try:
        yield jobs
    finally:
        await jobs.stop()
        await service.helper.stop()
        service.media.folder.release()


@pytest.fixture(autouse=True)
def _no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    async def download(*args: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("app.jobs.executor.download", download)


async def ended(jobs: JobService, filename: str) -> Job:
    while not (job := await jobs.store.get(IDS[filename])).status.is_terminal:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return job


async def found(jobs: JobService, query: str) -> list[str]:
    """The names of the jobs that a query finds, once all jobs are indexed."""
    assert jobs._backfill._task is not None
    await jobs._backfill._task
    return [job.submission.filename for job in (await jobs.store.page(None, 10, None, query))[0]]


async def test_finished_jobs_are_readable(old_url: str, tmp_path: Path) -> None:
    async with started(old_url, tmp_path, block) as jobs:
        job = await jobs.store.get(IDS["Vorlesung.mkv"])
        announced = json.loads(ROWS["deliveries"][0]["body"])["data"]
        later = ("audio_track", "start", "end", "channels", *SPEAKER_OPTIONS)  # than that version
        options = {name: Options().model_dump()[name] for name in later} | announced["options"]
        assert job.public(0.0) == announced | {"revision": 0, "audio_tracks": None, "options": options}
        for form in ("json", "verbose_json", *FORMATS.keys() - {"scc", "stl"}):  # these lack characters of it
            response = await result_response(jobs._service, jobs, job, form)  # type: ignore[arg-type]
            assert "世界" in bytes(response.body).decode()
        assert (
            json.loads(bytes((await result_response(jobs._service, jobs, job, "json")).body))["text"] == TEXT
        )
        failed = await jobs.store.get(IDS["broken.wav"])
        assert failed.error is not None
        assert (failed.error.code, failed.failed_spans) == ("broken_file", ((1, 2),))
        listed = [job.submission.filename for job in (await jobs.store.page(None, 10, None))[0]]
        assert listed == ["", "queued.wav", "interrupted.wav", "broken.wav", "Vorlesung.mkv"]
        [delivery] = await DatabaseOutbox(jobs._database).due(2e9)
        assert delivery.id == ROWS["deliveries"][0]["id"]


async def test_events_go_on_where_they_ended(old_url: str, tmp_path: Path) -> None:
    async with started(old_url, tmp_path) as jobs:
        done = await jobs.store.events(await jobs.store.get(IDS["Vorlesung.mkv"]), 0)
        assert [event.type for event in done] == [
            f"job.{kind}" for kind in ("queued", "running", "progress", "succeeded")
        ]
        assert [json.loads(event.data)["status"] for event in done] == [
            "queued", "running", "running", "succeeded"
        ]  # fmt: skip
        job = await ended(jobs, "interrupted.wav")
        events = await jobs.store.events(job, 0)
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        types = [event.type for event in events]
        assert types[:3] == ["job.queued", "job.running", "job.progress"]
        assert types[3:5] == ["job.queued", "job.running"]
        assert json.loads(events[-1].data) == job.public(0.0)


async def test_unfinished_jobs_go_on(old_url: str, tmp_path: Path) -> None:
    pipelines: list[FakePipeline] = []

    async def work(pipeline: FakePipeline) -> Any:
        pipelines.append(pipeline)
        return await succeed(pipeline)

    async with started(old_url, tmp_path, work) as jobs:
        for name in ("interrupted.wav", "queued.wav"):
            assert (await ended(jobs, name)).status is Status.SUCCEEDED
        assert {pipeline.upload.filename for pipeline in pipelines} == {"interrupted.wav", "queued.wav"}
        assert (await jobs.store.get(IDS[""])).status is Status.RUNNING  # it is being downloaded


async def test_clip_results_stay(old_url: str) -> None:
    async with opened(old_url) as database:
        job = await Store(database).get(IDS["interrupted.wav"])
        stored = await ClipStore(database).load(job)
        request: Any = type("Request", (), {"key": (0, 48_000, None, 0)})
        assert await stored.get_or_transcribe(request, None) == RESULT  # type: ignore[arg-type]
        assert stored.crash_count((50_000, 80_000, "de", 0)) == 2
        assert job.pcm == "80000 boot"


async def test_old_names_and_texts_are_found(old_url: str, tmp_path: Path) -> None:
    async with started(old_url, tmp_path) as jobs:
        assert await found(jobs, "quick fox") == ["Vorlesung.mkv"]
        assert await found(jobs, "vorles") == ["Vorlesung.mkv"]
        assert await found(jobs, "broken") == ["broken.wav"]
        await ended(jobs, "interrupted.wav")
        await ended(jobs, "queued.wav")
        assert await found(jobs, "grüße 世界") == ["queued.wav", "interrupted.wav", "Vorlesung.mkv"]
        assert await found(jobs, "cancelled") == []


async def test_old_jobs_can_be_deleted(old_url: str, tmp_path: Path) -> None:
    async with started(old_url, tmp_path, block) as jobs:
        await found(jobs, "anything")
        for job_id in (IDS[name] for name in IDS if name != "cancelled.wav"):
            await jobs.delete(job_id)
        assert await jobs.store.page(None, 10, None) == ([], False)
        async with jobs._database.read() as connection:
            for table in ("jobs", "clips", "transcripts", "events", "search"):
                assert await connection.scalar(sa.text(f"SELECT count(*) FROM {table}")) == 0, table


async def test_a_downgrade_keeps_all_rows(old_url: str) -> None:
    async with opened(old_url) as database, database.write() as connection:
        await connection.run_sync(migrate, command.downgrade, "0001")
    database = Database(old_url, Path("/nowhere"))
    async with database._engine.connect() as connection:
        for name, rows in ROWS.items():
            table = metadata.tables[name]
            columns = [table.c[column] for column in rows[0]]
            key = [column for column in table.primary_key if column.name in rows[0]]
            query = sa.select(*columns).order_by(*key)
            stored = [encoded(row) for row in (await connection.execute(query)).mappings()]
            assert stored == sorted(rows, key=lambda row: [row[column.name] for column in key])
    await database.close()
    async with opened(old_url) as database:
        assert len((await Store(database).page(None, 10, None))[0]) == len(ROWS["jobs"])
