"""How long jobs and their recordings stay, with and without corrections by people."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from app.common.errors import UnknownJob
from app.database.connection import Database
from app.database.tables import voices
from app.jobs.corrections import PackedCorrection, Segments, relabel
from app.jobs.document import public
from app.jobs.job import Job
from app.jobs.serialization import PackedTranscript, pack_with_summary
from app.jobs.service import JobService
from app.jobs.storage.retention import Retention
from app.jobs.storage.store import Store
from app.settings import Settings
from app.transcript.speakers import labelling
from app.transcript.speakers.clustering import SpeakerCount
from app.transcript.speakers.relabelling import SpeakerCorrection
from tests.event_loop import Clock, until
from tests.jobs.databases import ON_BOTH, opened
from tests.jobs.samples import PEAKS, TRANSCRIPT, submission
from tests.jobs.sites import started_jobs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

WEEK_S = 7 * 86400.0
CONTENT, WORDS = pack_with_summary(TRANSCRIPT)
RECORDING = "a" * 32


def correction(revision: int, *, by_people: bool = True) -> PackedCorrection:
    return PackedCorrection(PackedTranscript(revision, CONTENT), WORDS, 1, by_people)


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


async def finished(store: Store, file: str | None = RECORDING) -> Job:
    job = await store.begin(await store.add(submission(file=file)))
    return await store.succeed(job, TRANSCRIPT, keep_file=True)


def times(job: Job) -> tuple[float | None, float | None]:
    return job.expires_at, job.audio_expires_at


@ON_BOTH
async def test_what_people_corrected_stays_and_its_recording_goes_after_the_last_change(
    database: Database, clock: Clock
) -> None:
    store = Store(database, clock, retention=Retention(WEEK_S))
    plain, relabelled, corrected = [await finished(store) for _ in range(3)]
    assert {times(job) for job in (plain, relabelled, corrected)} == {(1000 + WEEK_S, 1000 + WEEK_S)}
    async with database.write() as connection:
        row = {"job_number": corrected.number, "start": 0, "end": 1, "content": b"voice"}
        await connection.execute(sa.insert(voices).values(row))
    clock.now += 6 * 86400
    relabelled = await store.correct(relabelled, correction(1, by_people=False))
    assert times(relabelled) == times(plain), "voices were compared, and nobody chose anything"
    corrected = await store.correct(corrected, correction(1))
    assert times(corrected) == (None, clock.now + WEEK_S)
    clock.now += WEEK_S - 1
    assert await store.expired(10) == [plain, relabelled]
    assert await store.expired(1) == [plain]
    assert await store.with_expired_recordings(10) == []
    assert not await store.drop_recording(corrected)
    clock.now += 2
    assert await store.with_expired_recordings(10) == [corrected]
    assert await store.drop_recording(corrected)
    assert await store.with_expired_recordings(10) == []
    corrected = await store.get(corrected.id)
    assert (times(corrected), corrected.submission.file) == ((None, None), None)
    assert await store.voices(corrected) == []
    assert await store.transcript(corrected) == correction(1).transcript


@ON_BOTH
async def test_without_the_setting_time_runs_from_the_last_change(database: Database, clock: Clock) -> None:
    store = Store(database, clock, retention=Retention(WEEK_S, keep_corrected=False))
    job = await finished(store)
    clock.now += 100
    job = await store.correct(job, correction(1))
    assert times(job) == (1100 + WEEK_S, 1100 + WEEK_S)
    clock.now = 1099 + WEEK_S
    assert await store.expired(10) == []
    clock.now = 1101 + WEEK_S
    assert await store.expired(10) == [job]
    assert await store.with_expired_recordings(10) == []


async def test_a_job_that_is_corrected_while_it_expires_stays(database: Database, clock: Clock) -> None:
    store = Store(database, clock, retention=Retention(WEEK_S))
    job = await finished(store)
    clock.now += WEEK_S + 1
    assert await store.expired(10) == [job]
    await store.correct(job, correction(1))
    assert not await store.delete(job, only_expired=True)
    assert (await store.get(job.id)).revision == 1
    assert await store.delete(job), "people may"
    with pytest.raises(UnknownJob):
        await store.get(job.id)


@pytest.mark.parametrize("ttl_s", [1e12, float("inf")])
async def test_a_time_beyond_all_dates_is_never(database: Database, ttl_s: float) -> None:
    job = await finished(Store(database, retention=Retention(ttl_s)))
    document = public(job, 0)
    assert document["expires_at"] is document["audio_expires_at"] is None


async def test_events_say_when_a_job_is_deleted(database: Database, clock: Clock) -> None:
    store = Store(database, clock, retention=Retention(WEEK_S))
    job = await finished(store)
    queued, *_, succeeded = [json.loads(event.data) for event in await store.events(job, 0)]
    assert queued["expires_at"] is queued["audio_expires_at"] is None
    assert succeeded["expires_at"] == succeeded["audio_expires_at"] == "1970-01-08T00:16:40.000Z"


@asynccontextmanager
async def swept(folder: Path, clock: Clock, **settings: Any) -> AsyncIterator[tuple[JobService, list[Any]]]:
    """A job service that looks for expired jobs all the time, and its log lines."""
    with capture_logs() as logs:
        async with started_jobs(f"sqlite:///{folder}/jobs.db", folder, clock, **settings) as jobs:
            yield jobs, logs


async def test_the_service_deletes_the_recording_alone_and_logs_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.service._SWEEP_S", 0.02)
    recordings = [tmp_path / "uploads" / name for name in (RECORDING, "b" * 32)]
    async with swept(tmp_path, clock) as (jobs, logs):
        plain, corrected = [await finished(jobs.store, path.name) for path in reversed(recordings)]
        for path in recordings:
            path.write_bytes(b"RIFF")
        await jobs.store.update(corrected.id, packed_peaks=PEAKS.pack())
        await jobs.store.correct(corrected, correction(1))
        clock.now += WEEK_S + 1
        await until(lambda: not any(path.exists() for path in recordings))
        await until(lambda: len([line for line in logs if "deleted" in line["event"]]) == 2)
        # Time may pass in the middle of a sweep: then the recording is the first.
        first, second = sorted(
            (line for line in logs if "deleted" in line["event"]), key=lambda line: line["event"]
        )
        assert (first["job"], first["event"]) == (plain.id, "job deleted: its time is over")
        assert (second["job"], second["event"].split(":")[0]) == (
            corrected.id, "recording of a corrected job deleted",
        )  # fmt: skip
        assert first["created_at"] == "1970-01-01T00:16:40.000Z"
        assert first["result_ttl_s"] == WEEK_S
        assert await jobs.store.statuses([plain.id, corrected.id]) == {corrected.id: corrected.status}
        assert await jobs.recordings.stored_peaks(await jobs.store.get(corrected.id)) == PEAKS.pack()
        assert [job.id for job in (await jobs.store.page(None, 10, None, "talk"))[0]] == [corrected.id]


@pytest.mark.parametrize(
    ("wanted", "by_people"),
    [
        (SpeakerCorrection(SpeakerCount(2, 2)), False),
        (SpeakerCorrection(same=(("0-0", "8000-0"),)), True),
        (SpeakerCorrection(different=(("0-0", "8000-0"),)), True),
        (SpeakerCorrection(names={"S1": "Anna"}), True),
    ],
)
def test_whoever_says_who_speaks_has_corrected(
    wanted: SpeakerCorrection, by_people: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(segments: Segments, *_: object) -> Segments:
        return tuple(replace(segment, speaker="S9") for segment in segments)

    monkeypatch.setattr(labelling, "relabelled", changed)
    monkeypatch.setattr(labelling, "renamed", changed)
    correction, _ = relabel(PackedTranscript(0, CONTENT), [b""], wanted)
    assert correction is not None
    assert correction.by_people is by_people


def test_the_time_is_that_of_the_settings(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, _env_file=None)
    assert (settings.result_ttl_s, settings.keep_corrected) == (WEEK_S, True)


async def test_corrections_of_an_older_database_count(tmp_path: Path, clock: Clock) -> None:
    """Nobody knows any more which of them were made by people."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with opened(url) as database:
        store = Store(database, clock)
        old, corrected = [await finished(store) for _ in range(2)]
        clock.now += 50
        await store.correct(corrected, correction(1, by_people=False))
        async with database.write() as connection:
            for statement in (
                "ALTER TABLE jobs DROP COLUMN corrected_at",
                *(
                    f"ALTER TABLE jobs DROP COLUMN {name}"
                    for name in ("warnings", "interruptions", "languages")
                ),
                *("DROP INDEX jobs_by_owner", "DROP INDEX jobs_by_size", "DROP TABLE link_secrets"),
                "DROP INDEX jobs_by_parent",
                *(
                    f"ALTER TABLE jobs DROP COLUMN {name}"
                    for name in ("parent", "parent_revision", "keep_corrections")
                ),
                "ALTER TABLE jobs DROP COLUMN excerpt",
                "ALTER TABLE jobs DROP COLUMN speakers",
                *(
                    f"ALTER TABLE revisions DROP COLUMN {name}"
                    for name in ("by_link", "reason", "restored", "author")
                ),
                "DROP TABLE shared_links",
                *("DROP TABLE service_clock", "DROP TABLE usage"),
                "ALTER TABLE jobs DROP COLUMN retained_since",
                *("DROP INDEX jobs_by_trash", "ALTER TABLE jobs DROP COLUMN trashed_at"),
                *("ALTER TABLE jobs DROP COLUMN has_terms", "DROP TABLE job_terms", "DROP TABLE terms"),
                *("DROP TABLE front_ends", "DROP TABLE readers"),
                *(f"ALTER TABLE jobs DROP COLUMN {name}" for name in ("front_end", "epoch")),
                *(f"ALTER TABLE jobs DROP COLUMN {name}" for name in ("title", "notes", "tags")),
                "ALTER TABLE jobs DROP COLUMN title_from_text",
                "DROP TABLE passages",
                "DROP INDEX deliveries_by_job",
                "DROP INDEX deliveries_by_owner",
                *(
                    f"ALTER TABLE deliveries DROP COLUMN {name}"
                    for name in ("owner", "host", "job_id", "type")
                ),
                "UPDATE alembic_version SET version_num = '0006'",
            ):
                await connection.exec_driver_sql(statement)
    async with opened(url) as database:
        store = Store(database, retention=Retention(WEEK_S))
        assert (await store.get(old.id)).corrected_at is None
        assert (await store.get(corrected.id)).corrected_at == 1050
