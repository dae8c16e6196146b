"""The media workers, without processes."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.common.errors import InvalidInput
from app.intake.disk import DiskSpace
from app.intake.uploads import Upload
from app.media.pool import MediaPool
from app.media.worker_slot import MediaCall
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import TaskResult
from tests.event_loop import let_tasks_run
from tests.pool.fake_slots import StubSlot
from workers.media import sessions as worker_sessions
from workers.media import tasks
from workers.media.voices import embed
from workers.messages import SAMPLE_RATE, Decoded, SpeakerModel

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

STEPS = 6


@pytest.fixture
def upload(tmp_path: Path) -> Upload:
    return Upload(tmp_path / "x", "x", 1, "")


class FakeSlot(StubSlot):
    """A `Slot`. A step lasts until a span is in flight elsewhere, and a span until a step is."""

    def __init__(self, index: int, may_start: asyncio.Event, in_flight: dict[Any, asyncio.Event]) -> None:
        super().__init__(index)
        self._may_start = may_start
        self._in_flight = in_flight
        self._steps = 0

    async def start(self) -> None:
        await self._may_start.wait()

    async def run(self, payloads: Sequence[MediaCall], expected_s: float | None) -> list[Any]:
        [call] = payloads
        self._in_flight[call.function].set()
        if call.function is tasks.decode:
            self._steps += 1
            if self._steps == 1:
                await asyncio.sleep(0)
            else:
                await self._wait_for(tasks.speech_probabilities)
            self._in_flight[call.function].clear()
            return [Decoded(self._steps, self._steps == STEPS)]
        if call.args[1] != STEPS - 1:  # no step is left to run beside the last span
            await self._wait_for(tasks.decode)
        self._in_flight[call.function].clear()
        return [b"\0\0\0\0"]

    async def _wait_for(self, other: object) -> None:
        async with asyncio.timeout(5):
            await self._in_flight[other].wait()


@pytest.mark.parametrize("decoding", [0, 1])
async def test_one_worker_decodes_while_the_other_finds_speech(
    tmp_path: Path, upload: Upload, decoding: int
) -> None:
    in_flight = {tasks.decode: asyncio.Event(), tasks.speech_probabilities: asyncio.Event()}
    may_start = [asyncio.Event(), asyncio.Event()]
    may_start[decoding].set()
    pool = MediaPool(2, DiskSpace(tmp_path))
    pool.dispatcher = Dispatcher(
        "media process", [FakeSlot(index, may_start[index], in_flight) for index in range(2)]
    )
    pool.start()
    spans = []
    async for decoded in pool.decode("job", upload, tmp_path / "pcm"):
        may_start[1 - decoding].set()
        span = pool.speech_probabilities("job", tmp_path / "pcm", decoded.samples - 1, 1)
        spans.append(asyncio.create_task(span))
    assert [len(probabilities) for probabilities in await asyncio.gather(*spans)] == [1] * STEPS
    await pool.stop()


class RecordingSlot(StubSlot):
    """A `Slot[MediaCall, Any]` that notes the functions that it was to call."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[object] = []

    async def run(self, payloads: Sequence[MediaCall], expected_s: float | None) -> list[Any]:
        self.called += [call.function for call in payloads]
        await asyncio.sleep(0)
        return [b"\0\0\0\0"]


async def test_the_voices_of_many_clips_hold_up_neither_the_search_for_speech_nor_other_jobs(
    tmp_path: Path,
) -> None:
    async def speaker_model() -> SpeakerModel:
        return SpeakerModel("resemblyzer", "", "")

    slot = RecordingSlot()
    pool = MediaPool(1, DiskSpace(tmp_path), speaker_model)
    pool.dispatcher = Dispatcher("media process", [slot])
    voices = [asyncio.create_task(pool.embed_voices("job", tmp_path, [(0, 1)])) for _ in range(9)]
    await let_tasks_run()
    chunks = [
        asyncio.create_task(pool.speech_probabilities(job, tmp_path, 0, 1)) for job in ("job", "other") * 2
    ]
    await let_tasks_run()
    pool.start()
    await asyncio.gather(*voices[:3], *chunks)
    round_of_three = [embed.embed, tasks.speech_probabilities, tasks.speech_probabilities]
    assert slot.called[:6] == round_of_three * 2
    pool.cancel("job")
    await asyncio.wait(voices)
    assert voices[-1].cancelled()
    await pool.stop()


class BarrierSlot(StubSlot):
    """A `Slot[MediaCall, Any]` whose calls wait for those of the other slots."""

    def __init__(self, index: int, started: list[int], barrier: asyncio.Barrier) -> None:
        super().__init__(index)
        self._started = started
        self._barrier = barrier

    async def start(self) -> None:
        self._started.append(self.index)

    async def run(self, payloads: Sequence[MediaCall], expected_s: float | None) -> list[Any]:
        await self._barrier.wait()
        return [b"\0\0\0\0"]


@pytest.mark.parametrize("workers", [1, 6])
async def test_all_workers_start_when_there_is_work_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    started: list[int] = []
    barrier = asyncio.Barrier(workers)
    monkeypatch.setattr("app.media.pool.MediaWorkerSlot", lambda index: BarrierSlot(index, started, barrier))
    pool = MediaPool(workers, DiskSpace(tmp_path))
    pool.start()
    for _ in range(20):
        await asyncio.sleep(0)
    assert started == [0]
    chunks = [pool.speech_probabilities("job", tmp_path / "pcm", frame, 1) for frame in range(2 * workers)]
    async with asyncio.timeout(5):  # fewer workers would wait for ever
        await asyncio.gather(*chunks)
    assert sorted(started) == list(range(workers))
    assert pool.worker_count == workers
    await pool.stop()


class CrashingDispatcher:
    """A `Dispatcher` whose slot crashes once before each step but the first."""

    def __init__(self) -> None:
        self.steps = 0

    async def submit(
        self, job: str, call: MediaCall, *, key: object, affinity: int | None
    ) -> TaskResult[Decoded]:
        self.steps += 1
        return TaskResult(Decoded(60 * SAMPLE_RATE, False), 0, 0 if self.steps == 1 else 1)


async def test_a_file_that_crashes_decoders_is_refused(tmp_path: Path, upload: Upload) -> None:
    """Each new process decodes it from the start, up to the step before the one that crashes."""
    pool = MediaPool(1, DiskSpace(tmp_path))
    pool.dispatcher = CrashingDispatcher()  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="crash or hang"):
        async for _ in pool.decode("job", upload, tmp_path / "pcm"):
            pass


async def test_a_job_that_starts_again_gets_a_decoder_of_its_own(tmp_path: Path, upload: Upload) -> None:
    """The decoder of its last run may not be closed yet."""
    calls: list[MediaCall] = []

    class Recorder(CrashingDispatcher):
        async def submit(self, job: str, call: MediaCall, **_: object) -> TaskResult[Decoded]:
            calls.append(call)
            return TaskResult(Decoded(60 * SAMPLE_RATE, False), 0, 0)

    pool = MediaPool(1, DiskSpace(tmp_path))
    pool.dispatcher = Recorder()  # type: ignore[assignment]
    for _ in range(2):
        async with aclosing(pool.decode("job", upload, tmp_path / "pcm")) as steps:
            await anext(steps)
        await asyncio.gather(*pool._background)
    sessions = [call.args[0] for call in calls if call.function is tasks.decode]
    closed = [call.args[0] for call in calls if call.function is worker_sessions.close]
    assert closed == list(dict.fromkeys(sessions))
    assert len(closed) == 2


async def test_a_worker_is_asked_for_what_a_long_chunk_lacks(tmp_path: Path) -> None:
    calls: list[tuple[object, ...]] = []

    class FewFrames(StubSlot):
        """Finds at most three frames at a time, of seven."""

        async def run(self, payloads: Sequence[MediaCall], expected_s: float | None) -> list[Any]:
            _, start, frames = payloads[0].args
            calls.append((start, frames))
            return [np.arange(start, min(start + frames, start + 3, 7), dtype="<f4").tobytes()]

    pool = MediaPool(1, DiskSpace(tmp_path))
    pool.dispatcher = Dispatcher("media process", [FewFrames()])
    pool.start()
    found = [await pool.speech_probabilities("job", tmp_path, 1, frames) for frames in (5, 8)]
    assert [list(each) for each in found] == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]]
    assert calls == [(1, 5), (4, 2), (1, 8), (4, 5), (7, 2)]
    await pool.stop()


async def test_stopping_leaves_no_decoder_to_close(tmp_path: Path, upload: Upload) -> None:
    """A step in flight is never answered then: the event loop could not end while something waits for it."""

    class Stopping(CrashingDispatcher):
        async def submit(self, job: str, call: MediaCall, **_: object) -> TaskResult[Decoded]:
            if self.steps:
                await asyncio.Event().wait()
            self.steps += 1
            return TaskResult(Decoded(60 * SAMPLE_RATE, False), 0, 0)

        async def stop(self) -> None: ...

    pool = MediaPool(1, DiskSpace(tmp_path))
    pool.dispatcher = Stopping()  # type: ignore[assignment]
    async with aclosing(pool.decode("job", upload, tmp_path / "pcm")) as steps:
        await anext(steps)
    assert pool._background
    async with asyncio.timeout(5):
        await pool.stop()
    await asyncio.sleep(0)
    assert not pool._background
