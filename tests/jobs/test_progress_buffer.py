"""When progress is stored, and that none of it is lost."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from app.common.errors import DatabaseUnavailable
from app.jobs.job import JobProgress, Stage
from app.jobs.running import progress as module
from app.jobs.running.progress import ProgressBuffer
from app.jobs.storage.published_clips import PublishedClip
from app.media.peaks import PeakCollector, Peaks
from tests.event_loop import until
from tests.jobs.samples import TRACK
from tests.sample_peaks import collected
from workers.messages import Decoded, RecordingWarning

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


CLIPS = [PublishedClip((0, 100), (0, 100, "en")), PublishedClip((200, 300), None)]


def at(done_s: float) -> JobProgress:
    return JobProgress(Stage.TRANSCRIBING, done_s)


CUT_OFF = RecordingWarning("cut_off", "The file ends at 0:16 of 3:03.", 16, 183)


class FakeStore:
    """Records what it stores; raises an error while `fails` is set."""

    def __init__(self) -> None:
        self.fails = False
        self.stored: list[Any] = []
        self.called = asyncio.Event()
        self.followed: set[str] = set()

    def is_followed(self, job_id: str) -> bool:
        return job_id in self.followed

    async def flush(self) -> None:
        """As the store of clips does."""

    async def update(self, job_id: str, *, by_run: bool, packed_peaks: bytes, **changes: Any) -> None:
        assert by_run
        await self._store((job_id, Peaks.unpack(packed_peaks).samples, *changes.values()))

    async def store_progress(
        self, progress: Mapping[str, JobProgress], published: Mapping[str, Sequence[PublishedClip]]
    ) -> None:
        await self._store((dict(progress), dict(published)))

    async def _store(self, value: Any) -> None:
        fails = self.fails
        self.called.set()
        await asyncio.sleep(0)
        if fails:
            raise DatabaseUnavailable("gone")
        self.stored.append(value)


def peaks(samples: int) -> PeakCollector:
    return collected(np.zeros(samples, np.int16))


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def buffer(store: FakeStore) -> ProgressBuffer:
    """A buffer with three running jobs."""
    buffer = ProgressBuffer(store, store)  # type: ignore[arg-type]
    for job_id in ("a", "b", "done"):
        buffer.begin(job_id)
    return buffer


async def test_the_latest_value_is_stored_once(buffer: ProgressBuffer, store: FakeStore) -> None:
    for done_s in (1.0, 2.0):
        buffer.progressed("a", at(done_s))
    buffer.progressed("b", at(5.0))
    buffer.decoded("a", "100 boot", Decoded(100, True, (TRACK,), warnings=(CUT_OFF,)), peaks(100))
    await buffer.store()
    await buffer.store()
    assert store.stored == [
        ("a", 100, "100 boot", [asdict(TRACK)], [asdict(CUT_OFF)]),
        ({"a": at(2.0), "b": at(5.0)}, {}),
    ]


async def test_nothing_is_lost_if_storing_fails(buffer: ProgressBuffer, store: FakeStore) -> None:
    store.fails = True
    for job_id in ("a", "b", "done"):
        buffer.progressed(job_id, at(1.0))
        buffer.decoded(job_id, "100 boot", Decoded(100, True, ()), peaks(100))
        buffer.published(job_id, CLIPS[0])
    storing = asyncio.create_task(buffer.store())
    await store.called.wait()
    buffer.progressed("b", at(2.0))
    buffer.decoded("b", "200 boot", Decoded(200, True, (TRACK,)), peaks(200))
    buffer.published("b", CLIPS[1])
    buffer.end("done")
    with pytest.raises(DatabaseUnavailable):
        await storing
    store.fails = False
    await buffer.store()
    assert store.stored[:-1] == [
        ("a", 100, "100 boot", [], []),
        ("b", 200, "200 boot", [asdict(TRACK)], []),
    ]
    assert store.stored[-1] == (
        {"a": at(1.0), "b": at(2.0)},
        {"a": [CLIPS[0]], "b": [CLIPS[0], CLIPS[1]]},
    )


async def test_storing_in_the_background_goes_on_after_an_error(
    buffer: ProgressBuffer, store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of clips without progress."""
    monkeypatch.setattr(module, "TICK_S", 0.001)
    store.fails = True
    buffer.published("a", CLIPS[0])
    storing = asyncio.create_task(buffer.store_forever())
    await store.called.wait()
    store.fails = False
    await until(lambda: store.stored)
    assert store.stored == [({}, {"a": [CLIPS[0]]})]
    storing.cancel()


async def test_storing_an_empty_buffer_waits_for_values_that_are_being_stored(
    buffer: ProgressBuffer, store: FakeStore
) -> None:
    """The last event of a job, which is stored next, therefore comes after its progress."""
    buffer.progressed("a", at(1.0))
    first = asyncio.create_task(buffer.store())
    await store.called.wait()
    assert store.stored == []
    await buffer.store()
    assert store.stored == [({"a": at(1.0)}, {})]
    await first


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic time, in s."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_the_interval_grows_with_the_time_since_the_job_began(store: FakeStore, now: list[float]) -> None:
    buffer = ProgressBuffer(store, store)  # type: ignore[arg-type]
    buffer.begin("a")
    store.followed.add("a")
    stored = []
    for step in range(36_000):  # seconds: ten hours
        now[0] = 1001.0 + step
        buffer.progressed("a", at(step))
        if buffer._due():
            buffer._jobs["a"].stored_at = now[0]
            stored.append(step)
    assert stored[:100] == list(range(100))
    assert 2000 < len(stored) < 5000
    assert 30 < stored[-1] - stored[-2] < 40


async def test_jobs_that_nobody_follows_are_stored_together_every_two_seconds(
    buffer: ProgressBuffer, store: FakeStore, now: list[float]
) -> None:
    store.followed.add("a")
    stored: dict[str, list[float]] = {"a": [], "b": [], "done": []}
    for tick in range(20):
        now[0] = 1000 + 0.5 * tick
        for job_id in stored if tick else ("a", "b"):
            buffer.published(job_id, CLIPS[0])
        due = buffer._due()
        await buffer._store_jobs(due)
        for job_id in due:
            stored[job_id].append(0.5 * tick)
    assert stored == {
        "a": [0.5 * tick for tick in range(20)],
        "b": [0.0, 2.0, 4.0, 6.0, 8.0],
        "done": [0.5, 2.0, 4.0, 6.0, 8.0],
    }, "the first value does not wait"
