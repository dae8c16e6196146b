"""Kills of the service while it stores clips and progress: at any await of any transaction, also a lost one.

Whatever clients have seen is in the database then, and stored clips are not transcribed again.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.common.errors import DatabaseUnavailable, OutcomeUnknown, UnknownJob, WhisperfleetError
from app.database.connection import FILE_NAME, Database
from app.jobs.events import SEGMENTS, Event
from app.jobs.job import Job
from app.jobs.running import clip_store, progress
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.executor import JobObserver
from app.jobs.running.progress import Lengths, ProgressBuffer
from app.jobs.storage.store import Store
from app.recording.clip_decoding import ClipKey, ClipRequest
from app.recording.recording_work import Progress
from app.transcript.timeline import ClipResult
from tests.jobs.databases import put_tables
from tests.jobs.samples import RESULT, SUBMISSION
from workers.messages import DecodingOptions, Span

pytestmark = pytest.mark.timeout(120)

CLIPS = 6  # of each job
SPANS: list[Span] = [(10_000 * number, 10_000 * number + 9_000) for number in range(CLIPS)]
FAULTS = {"refused": DatabaseUnavailable("gone"), "lost": OutcomeUnknown("committed, or not")}


class Service:
    """The part of the service that stores what running jobs bring, until it is killed."""

    def __init__(self, folder: Path, kill_at: int | None, faults: Mapping[int, str]) -> None:
        self.database = Database(None, folder)
        self.store = Store(self.database)
        self.store.on_event = lambda job_id, event: self.shown[job_id].append(event)
        self.clips = ClipStore(self.database)
        self.progress = ProgressBuffer(self.store, self.clips)
        self.shown: dict[str, list[Event]] = defaultdict(list)
        self.killed = asyncio.Event()
        self.transcribed: dict[str, list[ClipKey]] = defaultdict(list)
        self.durable: dict[str, set[ClipKey]] = defaultdict(set)  # as flushes have said
        self._kill_at = kill_at
        self._faults = faults
        self._points = self._transactions = 0

    async def start(self) -> None:
        await self.database.open()
        self._write, self.database.write = self.database.write, self.write  # type: ignore[method-assign]
        self.clips.start()
        self._storing = asyncio.create_task(self.progress.store_forever())

    async def point(self) -> None:
        """Nothing happens after the one at which the service is killed."""
        if self._points == self._kill_at:
            self.killed.set()
        if self.killed.is_set():
            await asyncio.Event().wait()
        self._points += 1

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Any]:
        self._transactions += 1
        fault = self._faults.get(self._transactions)
        await self.point()
        if fault == "refused":
            raise FAULTS[fault]
        async with self._write() as connection:
            yield _Connection(self, connection)
            await self.point()
        await self.point()  # committed, and nobody knows
        if fault == "lost":
            raise FAULTS[fault]

    async def flush(self) -> None:
        before = {job_id: set(keys) for job_id, keys in self.transcribed.items()}
        await self.progress.store()
        for job_id, keys in before.items():
            self.durable[job_id] |= keys

    async def transcribe(self, job: Job, order: list[int], end: str) -> None:
        """Transcribe clips in an order, and publish them in theirs."""
        self.progress.begin(job.id)
        results = await self.clips.load(job)
        observer = JobObserver(job, self.progress, Lengths(lambda: None), results.published, False, None)
        there: set[int] = set()
        published = 0

        async def transcribe(request: ClipRequest) -> ClipResult:
            await asyncio.sleep(0.0005 * (request.start % 7))
            self.transcribed[job.id].append(request.key)
            return RESULT

        for number in order:
            if number % 4 == 3:
                results.record_crash((*SPANS[number], None, 0), 1)
            await results.get_or_transcribe(_request(SPANS[number]), transcribe)
            there.add(number)
            observer.progressed(Progress(100.0, 100.0, float(len(there)), len(there), CLIPS))
            while published in there:
                observer.published(SPANS[published], (*SPANS[published], None, 0))
                published += 1
            if end == "delete" and len(there) == CLIPS // 2:
                with suppress(WhisperfleetError):
                    await self.store.delete(job)
        await _retried(self.flush)
        if end == "requeue":
            with suppress(WhisperfleetError):
                await self.store.requeue(job)

    async def stop(self) -> None:
        """What is left when the process is gone: nothing runs on, and open transactions are rolled back."""
        async with asyncio.timeout(30):
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in others:
                    task.cancel()
                await asyncio.wait(others, timeout=0.1)
        await self.database.close()


class _Connection:
    def __init__(self, service: Service, connection: Any) -> None:
        self._service = service
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)

        async def call(*arguments: Any) -> Any:
            await self._service.point()
            return await method(*arguments)

        return call


def _request(span: Span) -> ClipRequest:
    return ClipRequest(Path("/nowhere"), *span, (), DecodingOptions("demo"))


async def _retried(call: Any) -> Any:
    while True:
        try:
            return await call()
        except WhisperfleetError:
            await asyncio.sleep(0.001)


async def _until_killed(service: Service, orders: list[list[int]], ends: list[str]) -> list[Job]:
    jobs = [await service.store.begin(await service.store.add(SUBMISSION)) for _ in orders]
    await service.start()
    runs = [
        asyncio.create_task(service.transcribe(job, order, end))
        for job, order, end in zip(jobs, orders, ends, strict=False)
    ]
    done = asyncio.create_task(asyncio.wait(runs))
    killed = asyncio.create_task(service.killed.wait())
    await asyncio.wait([done, killed], return_when=asyncio.FIRST_COMPLETED)
    for run in runs:
        if run.done():
            run.result()
    return jobs


async def _check(before: Service, after: Service, job: Job) -> None:
    """Compare what the first process has shown with what the second finds, and let that finish the job."""
    stored = await after.store.events(job, 0)
    shown = before.shown[job.id]
    try:
        job = await after.store.get(job.id)
    except UnknownJob:
        return
    assert [event.number for event in stored] == list(range(1, len(stored) + 1))
    rest = iter(stored)
    assert all(event in rest for event in shown), "in order, and nothing is shown that is not stored"
    spans = [event.span for event in stored if event.type == SEGMENTS]
    assert all(first[1] == second[0] for first, second in pairwise(spans))
    results = await after.clips.load(job)
    until = spans[-1][1] if spans else 0
    announced = {(*span, None, 0) for span in SPANS if span[1] <= until}
    assert announced <= results.results.keys()
    assert results.published == announced
    assert before.durable[job.id] <= results.results.keys()
    if shown[-1].type == "job.progress":
        assert json.loads(shown[-1].data)["progress"]["clips_done"] <= len(results.results)
    kept = set(results.results)
    if job.status == "running":
        job = await after.store.requeue(job)
    job = await after.store.begin(job)
    await after.transcribe(job, list(range(CLIPS)), "succeed")
    assert not kept & set(after.transcribed[job.id]), "no stored clip is transcribed again"
    results = await after.clips.load(job)
    assert results.published == {(*span, None, 0) for span in SPANS}
    events = [event for event in await after.store.events(job, 0) if event.type == SEGMENTS]
    assert events[-1].span[1] == SPANS[-1][1]


async def _run(
    orders: list[list[int]], ends: list[str], kill_at: int | None, faults: Mapping[int, str]
) -> None:
    with TemporaryDirectory() as name:
        put_tables(Path(name) / FILE_NAME)
        before = Service(Path(name), kill_at, faults)
        await before.database.open()
        jobs = await _until_killed(before, orders, ends)
        await before.stop()
        after = Service(Path(name), None, {})
        await after.start()
        for job in jobs:
            await _check(before, after, job)
        await after.stop()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    orders=st.lists(st.permutations(range(CLIPS)), min_size=1, max_size=3),
    ends=st.lists(st.sampled_from(["succeed", "requeue", "delete"]), min_size=3, max_size=3),
    kill_at=st.none() | st.integers(0, 60),
    faults=st.dictionaries(st.integers(1, 6), st.sampled_from(sorted(FAULTS)), max_size=3),
)
def test_a_kill_loses_nothing_that_clients_have_seen(
    orders: list[list[int]],
    ends: list[str],
    kill_at: int | None,
    faults: dict[int, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, constant in ((clip_store, "_TICK_S"), (clip_store, "_RETRY_S"), (progress, "TICK_S")):
        monkeypatch.setattr(module, constant, 0.001)
    monkeypatch.setattr(progress, "_UNFOLLOWED_S", 0.0)
    asyncio.run(_run(orders, ends, kill_at, faults))
