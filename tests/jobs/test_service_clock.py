"""Expiry by the time of service: whatever clocks say, nothing goes before its time, and later all goes."""

import random
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.common.errors import UnknownUpload, UploadExpired
from app.database.connection import Database
from app.database.tables import deliveries, jobs, voices
from app.intake.resumable import LIFETIME_S
from app.jobs.job import Job, JobProgress, Stage
from app.jobs.service import JobService
from app.jobs.storage.rows import submission_row
from app.jobs.storage.service_clock import ServiceClock
from app.settings import Settings
from tests.event_loop import Clock, until
from tests.jobs.databases import ON_BOTH, opened
from tests.jobs.samples import SUBMISSION, TRANSCRIPT
from tests.jobs.sites import serving
from tests.jobs.test_database import migrated_to
from tests.jobs.test_retention import correction, finished
from tests.jobs.test_webhooks import SECRET, receiving

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

HOUR_S, DAY_S = 3600.0, 86400.0
WEEK_S, YEARS_S = 7 * DAY_S, 3650 * DAY_S
BEGIN = 1_800_000_000.0


@dataclass
class Machine:
    """One machine's clocks, and its data folder."""

    folder: Path
    wall: Clock = field(default_factory=lambda: Clock(BEGIN))
    monotonic: Clock = field(default_factory=lambda: Clock(500.0))

    def pass_time(self, seconds: float) -> None:
        self.wall.now += seconds
        self.monotonic.now += seconds

    def serving(self, **settings: Any) -> AbstractAsyncContextManager[JobService]:
        """The service, whose sweeps are the test's."""
        return serving(Settings(data_dir=self.folder, _env_file=None, **settings), self._set_clocks)

    def _set_clocks(self, service: JobService) -> None:
        service.store._clock = service.clock._wall = service.webhooks._clock = self.wall
        service.clock._monotonic = self.monotonic


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "data")


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@dataclass
class Stored:
    """One of each that expires: a job, a recording, voices, a link and an upload."""

    plain: Job
    corrected: Job
    link: str
    upload: str

    @classmethod
    async def new(cls, service: JobService, link_s: float = WEEK_S) -> "Stored":
        uploads, store = service._service.media.folder.uploads, service.store
        plain, corrected = [await finished(store, f"{random.getrandbits(128):032x}") for _ in range(2)]
        async with service._database.write() as connection:
            row = {"job_number": corrected.number, "start": 0, "end": 1, "content": b"voice"}
            await connection.execute(sa.insert(voices).values(row))
        corrected = await store.correct(corrected, correction(1))
        for job in (plain, corrected):
            (uploads / str(job.submission.file)).write_bytes(b"RIFF")
        link, _ = await service.shared_links.add(
            corrected, "somebody", may_correct=False, has_audio=True, has_revisions=False, lifetime_s=link_s
        )
        upload = await service.uploads.create("somebody", 10, "talk.wav", "")
        async with service.uploads.lock("somebody", upload.id) as (upload, file):
            await service.uploads.append(upload, file, 0, chunks(b"RIFF"))
        return cls(plain, corrected, link.id, upload.id)

    async def left(self, service: JobService) -> set[str]:
        """What is still there."""
        uploads, left = service._service.media.folder.uploads, set()
        found = {job.id: job for job in await service.store.named([self.plain.id, self.corrected.id])}
        if self.plain.id in found and (uploads / str(self.plain.submission.file)).exists():
            left.add("job")
        corrected = found[self.corrected.id]
        if corrected.submission.file is not None and (uploads / corrected.submission.file).exists():
            left.add("recording")
        if await service.store.voices(corrected):
            left.add("voices")
        if service.shared_links.get(self.link) is not None:
            left.add("link")
        try:
            await service.uploads.find("somebody", self.upload)
        except (UploadExpired, UnknownUpload):  # the row goes a day later
            return left
        assert (uploads / self.upload).read_bytes() == b"RIFF"
        return left | {"upload"}


ALL = {"job", "recording", "voices", "link", "upload"}
LIFETIMES_S = {"job": WEEK_S, "recording": WEEK_S, "voices": WEEK_S, "link": WEEK_S, "upload": LIFETIME_S}


async def test_with_clocks_that_agree_all_goes_on_time(machine: Machine) -> None:
    async with machine.serving() as service:
        stored = await Stored.new(service)
        for name, lifetime_s in sorted(LIFETIMES_S.items(), key=lambda item: item[1]):
            while machine.wall.now < BEGIN + lifetime_s - 60:
                machine.pass_time(min(6 * HOUR_S, BEGIN + lifetime_s - 60 - machine.wall.now))
                await service.sweep()
            assert name in await stored.left(service)
        machine.pass_time(61)
        await service.sweep()
        assert await stored.left(service) == set()


async def test_a_front_end_may_begin_before_the_one_that_advances_the_clock(tmp_path: Path) -> None:
    database = Database(None, tmp_path)
    await database.open()
    clock = ServiceClock(database, Clock(BEGIN), Clock(500.0))
    await clock.follow()
    assert clock() == BEGIN
    await database.close()


async def test_dates_follow_a_clock_that_was_set(machine: Machine) -> None:
    async with machine.serving() as service:
        stored = await Stored.new(service)
        plain = await service.store.get(stored.plain.id)
        assert plain.expires_at == BEGIN + WEEK_S
        machine.wall.now -= YEARS_S
        await service.sweep()
        plain = await service.store.get(stored.plain.id)
        assert plain.expires_at == BEGIN - YEARS_S + WEEK_S
        machine.wall.now += 0.5  # a clock that is being adjusted
        await service.sweep()
        assert await service.store.get(stored.plain.id) == plain


async def test_a_webhook_does_not_wait_for_a_clock_that_was_set_back(machine: Machine) -> None:
    settings = {"webhook_secret": SECRET, "webhook_allow_private": True}
    with receiving("127.0.0.1") as receiver:
        receiver.statuses = [500, 204]
        async with machine.serving(**settings) as service:
            submitted = await service.store.add(replace(SUBMISSION, webhook_url=receiver.url))
            await service.store.succeed(await service.store.begin(submitted), TRANSCRIPT, keep_file=True)
            await until(lambda: service.webhooks.attempts["retried"])
            machine.wall.now -= YEARS_S
            await service.sweep()
            machine.monotonic.now += 6.0
            service.webhooks.wake()
            await until(lambda: service.webhooks.attempts["delivered"])
        first, second = [int(request.headers["webhook-timestamp"]) for request in receiver.requests]
        assert first - second == YEARS_S, "receivers compare it with their own clocks"


@ON_BOTH
async def test_processes_that_share_a_database_count_each_second_once(database: Database) -> None:
    wall = Clock(BEGIN)
    monotonics = [Clock(100.0), Clock(9000.0), Clock(4.0)]
    clocks = [ServiceClock(database, wall, monotonic) for monotonic in monotonics]
    await clocks[0].advance()
    for turn in range(30):
        for passing in (wall, *monotonics):
            passing.now += 10.0
        await clocks[turn % 3].advance()
        assert clocks[turn % 3]() == wall.now
    assert {clock() for clock in clocks} == {wall.now}


async def test_a_full_disk_at_the_start_lets_nothing_expire(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with machine.serving() as service:
        stored = await Stored.new(service)
    machine.wall.now += YEARS_S

    def full(connection: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async with machine.serving() as service:
        dialect = service._database._engine.sync_engine.dialect
        with monkeypatch.context() as patch:
            patch.setattr(dialect, "do_commit", full)
            service.clock._advanced_at = None  # as at the start
            await service.store.advance_clock()
            machine.pass_time(60)
            await service.store.advance_clock()
            assert service.clock() < BEGIN + 3 * DAY_S
        await service.sweep()
        assert await stored.left(service) == ALL - {"upload"}


@ON_BOTH
async def test_a_database_of_before_begins_with_its_newest_job(empty_url: str, tmp_path: Path) -> None:
    """Also a backup that is older than a week. What a wrong clock has put into the future begins then."""
    database = Database(empty_url, tmp_path)
    await migrated_to(database, "0013")
    columns = [name for name in jobs.c.keys() if name != "retained_since"]  # noqa: SIM118
    row = submission_row(SUBMISSION) | asdict(JobProgress(Stage.DONE)) | {"failed_spans": []}
    del row["has_terms"]
    then = sa.table(
        "jobs",
        *(
            sa.column(name, jobs.c[name].type)
            for name in columns
            if name in row or name in ("id", "status", "created_at", "finished_at", "corrected_at")
        ),
    )
    times = {"1": (10.0, None), "2": (WEEK_S, 2 * WEEK_S), "3": (3 * WEEK_S, None), "4": (None, None)}
    async with database.write() as connection:
        for name, (finished_at, corrected_at) in times.items():
            values = {"id": name * 32, "status": "succeeded" if finished_at else "queued", "created_at": 1.0}
            values |= {"finished_at": finished_at, "corrected_at": corrected_at}
            await connection.execute(sa.insert(then).values(row | values))
        delivery = {"id": "msg", "url": "", "body": "", "attempts": 1, "next_at": 9 * WEEK_S}
        await connection.execute(sa.insert(deliveries).values(delivery))
    await database.close()
    async with opened(empty_url) as database:
        clock = ServiceClock(database)
        await clock.advance()
        assert clock() == pytest.approx(3 * WEEK_S + DAY_S, abs=1)
        rows = await database.rows(sa.select(jobs.c.retained_since).order_by(jobs.c.number))
        assert [row.retained_since for row in rows] == [10.0, 2 * WEEK_S, 3 * WEEK_S, None]
        assert await database.scalar(sa.select(deliveries.c.next_at)) == 3 * WEEK_S


@dataclass
class Item:
    """What is stored, and since how long by the time of service, at most (s)."""

    stored: Stored
    served_s: float = 0.0


JUMPS_S = (1.0, -1.0, HOUR_S, -HOUR_S, 8 * DAY_S, -8 * DAY_S, YEARS_S, -YEARS_S)


@pytest.mark.parametrize("seed", range(2))
async def test_a_week_of_jumps_absences_and_restorations(machine: Machine, tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    items: list[Item] = []
    backup: list[Item] | None = None
    saved = tmp_path / "backup"

    def pass_time(seconds: float, counted_s: float) -> None:
        for item in items:
            item.served_s += counted_s
        machine.pass_time(seconds)

    async def check(service: JobService) -> None:
        for item in items:
            due = {name for name, lifetime_s in LIFETIMES_S.items() if item.served_s < lifetime_s}
            assert await item.stored.left(service) >= due, (seed, item.served_s)

    served_s = 0.0
    while served_s < WEEK_S:
        async with machine.serving() as service:
            for _ in range(choice.randint(2, 10)):
                if choice.random() < 0.6:
                    machine.wall.now += choice.choice(JUMPS_S)
                if choice.random() < 0.05:  # the machine is paused
                    pass_time(choice.choice([HOUR_S, 30 * DAY_S]), DAY_S)
                seconds = choice.choice([60.0, HOUR_S, 6 * HOUR_S, 12 * HOUR_S])
                pass_time(seconds / 2, seconds / 2)
                if choice.random() < 0.2:
                    items.append(Item(await Stored.new(service)))
                if choice.random() < 0.5:
                    machine.wall.now += choice.choice(JUMPS_S)
                pass_time(seconds / 2, seconds / 2)
                served_s += seconds
                await service.sweep()
                if choice.random() < 0.3:
                    await check(service)
            await check(service)
        jump_s, absence_s = choice.choice([0.0, 0.0, *JUMPS_S]), choice.choice([5.0, HOUR_S, 30 * DAY_S])
        counted_s = min(DAY_S, absence_s + max(0.0, jump_s))
        if choice.random() < 0.3:
            shutil.rmtree(saved, ignore_errors=True)
            shutil.copytree(machine.folder, saved)
            backup = [replace(item) for item in items]
        elif choice.random() < 0.3 and backup is not None:
            shutil.rmtree(machine.folder)
            shutil.copytree(saved, machine.folder)
            items, counted_s = [replace(item) for item in backup], DAY_S
        machine.wall.now += jump_s
        pass_time(absence_s, counted_s)
        if choice.random() < 0.5:
            machine.monotonic.now = choice.uniform(0, 1000)  # the machine has started again
    async with machine.serving() as service:
        for _ in range(8):
            machine.pass_time(DAY_S + 1)
            await service.sweep()
        for item in items:
            assert await item.stored.left(service) == set()
