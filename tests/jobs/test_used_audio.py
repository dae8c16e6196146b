"""How much was transcribed: it is the sum of what has ended well, whatever becomes of the jobs."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.database.connection import Database
from app.database.tables import jobs, usage
from app.intake.budgets import LEAST_S, Used, today
from app.jobs.job import Again, Job, JobError, JobProgress, Stage
from app.jobs.running import clip_store as clip_store_module
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.store import Store
from app.jobs.storage.usage import sums_of
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import TRANSCRIPT, submission
from tests.jobs.sites import started_jobs
from workers.messages import SAMPLE_RATE

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

SPEECH = replace(TRANSCRIPT, failed_spans=())  # 5 s


async def sums(database: Database, *by: str, owner: str | None = None) -> list[tuple[Any, ...]]:
    rows = await database.rows(sums_of("0001-01-01", "9999-12-31", by, owner))
    return [(*row[:-1], round(row[-1], 3)) for row in rows]


async def running(store: Store, **changes: Any) -> Job:
    return await store.begin(await store.add(submission(**changes)))


@ON_BOTH
async def test_many_jobs_of_twenty_owners_sum_up_to_their_recordings(
    database: Database, store: Store
) -> None:
    count = 2000 if database.is_sqlite else 400
    told: Counter[str] = Counter()
    store.on_used = lambda used: told.update({used.owner: used.seconds})
    first = await running(store)
    async with database.write() as connection:
        row = dict((await connection.execute(sa.select(jobs))).one()._mapping)
        del row["number"]
        columns = {column.name: column.key for column in jobs.c}
        row = {columns[name]: value for name, value in row.items()}
        others = [
            row | {"id": f"{number + 1:032}", "owner": f"owner{number % 20}", "model": f"model{number % 3}"}
            for number in range(count)
        ]
        await connection.execute(sa.insert(jobs), others)
    wanted: Counter[tuple[str, str]] = Counter()

    async def end_all(connection: Any, then: Any) -> None:
        for number in range(count):
            job = await store._get(connection, f"{number + 1:032}")
            seconds = 0.5 + number / 7
            changes = {"done_s": seconds, "total_s": seconds, "duration": seconds}
            await store._transit(connection, then, job, type(job.status).SUCCEEDED, changes)
            wanted[job.submission.owner, job.submission.model] += seconds

    await store._write(end_all)
    found = await sums(database, "owner", "model")
    assert [row[:2] for row in found] == sorted(wanted)
    assert {row[:2]: row[3] for row in found} == pytest.approx(dict(wanted), abs=0.002)
    assert {row[2] for row in found} <= {count // 60, count // 60 + 1}
    assert await sums(database, "day") == [(today(), count, pytest.approx(sum(wanted.values()), abs=0.01))]
    assert sum(told.values()) == pytest.approx(sum(wanted.values()))
    await store.delete(await store.get(f"{8:032}"))
    assert await sums(database, "owner", "model") == found
    of_one = sum(seconds for (owner, _), seconds in wanted.items() if owner == "owner7")
    assert await sums(database, "owner", owner="owner7") == [
        ("owner7", count // 20, pytest.approx(of_one, abs=0.01))
    ]
    assert (await store.get(first.id)).progress.done_s == 0


async def test_what_failed_is_free_and_so_are_failed_parts(database: Database, store: Store) -> None:
    await store.fail(await running(store), JobError("broken", None), keep_file=True, transcript=SPEECH)
    assert await sums(database, "owner") == []
    lost = replace(SPEECH, failed_spans=((0, 2 * SAMPLE_RATE),))
    await store.succeed(await running(store), lost, keep_file=False)
    assert await sums(database, "owner") == [("somebody", 1, 3.0)]


async def test_what_was_transcribed_before_the_budget_was_used_up_counts_until_it_goes_on(
    database: Database, store: Store
) -> None:
    job = await running(store)
    await store.store_progress({job.id: JobProgress(Stage.TRANSCRIBING, 3.0)})
    job = await store.fail(job, JobError("used up", "insufficient_quota"), keep_file=True)
    assert await sums(database, "owner") == [("somebody", 1, 3.0)]
    job = await store.begin(await store.reopen(job))
    assert await sums(database, "owner") == [("somebody", 0, 0.0)]
    await store.succeed(job, SPEECH, keep_file=True)
    assert await sums(database, "owner") == [("somebody", 1, 5.0)]


async def test_a_part_counts_as_long_as_it_is_and_again_is_another_job(
    database: Database, store: Store
) -> None:
    parent = await store.succeed(await running(store), SPEECH, keep_file=True)
    asked = Again(parent.id, parent.revision, keep_corrections=True)
    child = await running(store, file=None, again=asked)
    part = replace(SPEECH, start=4 * SAMPLE_RATE)
    await store.succeed_again(child, part, None, replaces_voices=False)
    assert await sums(database, "owner") == [("somebody", 2, 6.0)]


@ON_BOTH
async def test_a_cancelled_job_has_used_what_could_be_read_of_it(database: Database, store: Store) -> None:
    told: list[Used] = []
    store.on_used = told.append
    job, silent = await running(store), await running(store)
    await store.store_progress({job.id: JobProgress(Stage.TRANSCRIBING, 3.0, 5.0)})
    await store.trash(await store.get(job.id))
    await store.cancel(silent)
    assert await sums(database, "owner") == [("somebody", 1, 3.0)]
    restored = await store.restore(await store.get_any(job.id))
    assert await sums(database, "owner") == [("somebody", 0, 0.0)]
    await store.succeed(await store.begin(restored), SPEECH, keep_file=True)
    assert await sums(database, "owner") == [("somebody", 1, 5.0)]
    assert [(used.jobs, used.seconds) for used in told] == [(1, 3.0), (-1, -3.0), (1, 5.0)]


async def test_the_recording_of_a_stream_is_counted_with_the_stream(database: Database, store: Store) -> None:
    job = await store.add(submission(file="4" * 32), live_id="4" * 32)
    await store.requeue(job)
    await store.succeed(await store.begin(job), SPEECH, keep_file=False)
    assert await sums(database, "owner") == []


@ON_BOTH
async def test_an_owner_keeps_it_under_another_name(
    database: Database, store: Store, clip_store: ClipStore
) -> None:
    for owner, seconds in (("key-1", 10.0), ("key-1", 5.0), ("alice", 1.0), ("bob", 2.0)):
        clip_store.put_used(Used("2026-11-28", owner, "tiny", 1, seconds))
    clip_store.put_used(Used("2026-11-29", "key-1", "tiny", 0, 7.0))
    await clip_store.flush()
    await store.rename_owners({"key-1": "alice"})
    assert await sums(database, "day", "owner") == [
        ("2026-11-28", "alice", 3, 16.0),
        ("2026-11-28", "bob", 1, 2.0),
        ("2026-11-29", "alice", 0, 7.0),
    ]


async def test_what_a_request_has_used_is_stored_without_the_clips_of_jobs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_USED_S", "_TICK_S"):
        monkeypatch.setattr(clip_store_module, name, 0.01)
    clips = ClipStore(database)
    clips.start()
    clips.put_used(Used(today(), "alice", "tiny", 1, 2.0))
    await until(lambda: not clips._used)
    assert await sums(database, "owner") == [("alice", 1, 2.0)]
    clips.put_used(Used(today(), "alice", "tiny", 1, 3.0))
    await clips.stop()
    assert await sums(database, "owner") == [("alice", 2, 5.0)]


async def test_a_start_knows_what_is_used_and_reserved(url: str, tmp_path: Path) -> None:
    (tmp_path / "budgets").write_text("somebody:1\n")
    settings = {"budgets_file": tmp_path / "budgets"}
    async with started_jobs(url, tmp_path, **settings) as service:
        budgets = service.budgets
        budgets.on_charge(Used(today(), "somebody", "tiny", 1, 20.0))
        budgets.on_charge(Used("2020-01-01", "somebody", "tiny", 1, 20.0))
        await service.store.add(submission())
    async with started_jobs(url, tmp_path, **settings) as service:
        assert service.budgets.left("somebody") == 60 - 20 - LEAST_S
        [job], _ = await service.store.page(None, 2, None)
        await service.delete(job.id)
        assert service.budgets.left("somebody") == 40
        assert (await service._database.scalar(sa.select(sa.func.count()).select_from(usage))) == 2
