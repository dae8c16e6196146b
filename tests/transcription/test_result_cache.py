"""Results of clips whose client disconnected."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from app.engines.clip_request import ClipRequest
from app.transcription.result_cache import CachedRecording, ClipResults, ResultCache
from tests.event_loop import let_tasks_run
from workers.messages import ClipResult, Decoding

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

RESULT = ClipResult("en", (), ())
CLIP = ClipRequest(Path("pcm"), 0, 100, ((0, 100),), Decoding("demo"))
OTHER_CLIP = ClipRequest(Path("pcm"), 100, 200, ((100, 200),), Decoding("demo"))


class FakeWorker:
    """A `Transcribe` that counts its calls, and can be blocked."""

    def __init__(self, *, blocked: bool = False) -> None:
        self.calls = 0
        self.unblocked = asyncio.Event()
        if not blocked:
            self.unblocked.set()

    async def __call__(self, request: ClipRequest) -> ClipResult:
        self.calls += 1
        await self.unblocked.wait()
        return RESULT


@pytest.fixture
def recording() -> ClipResults:
    return CachedRecording()


async def test_a_retry_transcribes_only_the_missing_clips() -> None:
    cache, worker = ResultCache(), FakeWorker()
    with suppress(ConnectionError), cache.recording("talk") as recording:
        await recording.get_or_transcribe(CLIP, worker)
        raise ConnectionError
    with cache.recording("talk") as recording:
        assert await recording.get_or_transcribe(CLIP, worker) == RESULT
        assert await recording.get_or_transcribe(OTHER_CLIP, worker) == RESULT
    assert worker.calls == 2


async def test_the_results_of_an_answered_request_are_dropped() -> None:
    cache, worker = ResultCache(), FakeWorker()
    for _ in range(2):
        with cache.recording("talk") as recording:
            await recording.get_or_transcribe(CLIP, worker)
        await let_tasks_run()
        assert len(cache) == 0
    assert worker.calls == 2


async def test_results_expire_without_a_retry() -> None:
    cache = ResultCache(keep_s=0.05)
    for _ in range(2):  # a retry starts the time anew
        with pytest.raises(ConnectionError), cache.recording("talk"):
            raise ConnectionError
        await asyncio.sleep(0.03)
        assert len(cache) == 1
    await asyncio.sleep(0.06)
    assert len(cache) == 0


async def test_a_clip_in_flight_is_finished_for_the_retry(recording: ClipResults) -> None:
    worker = FakeWorker(blocked=True)
    first = asyncio.create_task(recording.get_or_transcribe(CLIP, worker))
    await let_tasks_run()
    first.cancel()
    await let_tasks_run()
    assert first.cancelled()
    second = asyncio.create_task(recording.get_or_transcribe(CLIP, worker))
    await let_tasks_run()
    worker.unblocked.set()
    assert await second == RESULT
    assert worker.calls == 1


async def test_a_clip_that_another_request_cancelled_is_transcribed_again(recording: ClipResults) -> None:
    """Two requests for the same recording run at once. One is cancelled, which must not affect the other."""
    queued: list[asyncio.Task[Any] | None] = []

    async def queue(request: ClipRequest) -> ClipResult:
        queued.append(asyncio.current_task())
        await asyncio.Event().wait()
        return RESULT

    cancelled = asyncio.create_task(recording.get_or_transcribe(CLIP, queue))
    await let_tasks_run()
    worker = FakeWorker()
    other = asyncio.create_task(recording.get_or_transcribe(CLIP, worker))
    await let_tasks_run()
    cancelled.cancel()
    assert queued[0] is not None
    queued[0].cancel()  # as the dispatcher does with tasks that are still in its queue
    assert await other == RESULT
    assert worker.calls == 1


async def test_an_error_is_not_cached(recording: ClipResults) -> None:
    async def fail(request: ClipRequest) -> ClipResult:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await recording.get_or_transcribe(CLIP, fail)
    assert await recording.get_or_transcribe(CLIP, FakeWorker()) == RESULT


def test_crashes_are_counted_clip_by_clip(recording: ClipResults) -> None:
    recording.record_crash(CLIP.key, 2)
    assert (recording.crash_count(CLIP.key), recording.crash_count(OTHER_CLIP.key)) == (2, 0)
