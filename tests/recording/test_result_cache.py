"""Results of clips whose client disconnected."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.engines.window_request import WindowRequest
from app.pool.dispatcher import Dispatcher
from app.recording.clip_decoding import ClipRequest, decode_clip
from app.recording.result_cache import KEEP_S, CachedClipResults, ClipResults, ResultCache
from app.telemetry.work import Work, working_for
from app.transcript.packed import PackedResult, pack_result
from app.transcript.timeline import ClipResult
from tests.event_loop import let_tasks_run, no_error_left
from tests.pool.fake_slots import StubSlot
from workers.messages import DecodingOptions

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

RESULT = ClipResult("en", (), ())
PACKED = PackedResult(RESULT, pack_result(RESULT))
CLIP = ClipRequest(Path("pcm"), 0, 100, ((0, 100),), DecodingOptions("demo"))
OTHER_CLIP = ClipRequest(Path("pcm"), 100, 200, ((100, 200),), DecodingOptions("demo"))


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
    return CachedClipResults()


async def test_a_retry_transcribes_only_the_missing_clips() -> None:
    cache, worker = ResultCache(), FakeWorker()
    with suppress(ConnectionError), cache.recording("talk") as recording:
        await recording.get_or_transcribe(CLIP, worker)
        raise ConnectionError
    with cache.recording("talk") as recording:
        assert await recording.get_or_transcribe(CLIP, worker) == PACKED
        assert await recording.get_or_transcribe(OTHER_CLIP, worker) == PACKED
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
    cache = ResultCache(keep_s=0.5)
    for _ in range(2):  # a retry starts the time anew
        with pytest.raises(ConnectionError), cache.recording("talk"):
            raise ConnectionError
        await asyncio.sleep(0.3)
        assert len(cache) == 1
    await asyncio.sleep(0.6)
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
    assert await second == PACKED
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
    assert await other == PACKED
    assert worker.calls == 1


class ReadingSlot(StubSlot):
    """Reads the audio of its batches once it may. A `Slot[WindowRequest, ClipResult]`."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = asyncio.Event()
        self.may_read = asyncio.Event()
        self.read: list[object] = []

    async def run(self, payloads: Sequence[WindowRequest], expected_s: float | None) -> list[ClipResult]:
        self.taken.set()
        await self.may_read.wait()
        for request in payloads:
            request.for_worker().read()
            self.read.append(request.pcm)
        return [RESULT for _ in payloads]


async def test_a_clip_whose_audio_went_with_another_request_is_transcribed_again(
    tmp_path: Path, recording: ClipResults
) -> None:
    """The first of two equal requests is cancelled after its clip was taken, before its audio was read."""
    slot = ReadingSlot()
    dispatcher = Dispatcher[WindowRequest, ClipResult]("worker", [slot])
    dispatcher.start()

    async def request(name: str) -> PackedResult:
        async def transcribe(request: ClipRequest) -> ClipResult:
            return (await dispatcher.submit(name, next(decode_clip(request)))).result

        path = tmp_path / name
        path.write_bytes(bytes(1000))
        try:
            return await recording.get_or_transcribe(replace(CLIP, pcm_path=path), transcribe)
        finally:
            dispatcher.cancel(name)
            path.unlink()

    try:
        first = asyncio.create_task(request("first"))
        await slot.taken.wait()
        others = [asyncio.create_task(request(name)) for name in ("second", "third")]
        await let_tasks_run()
        first.cancel()
        await asyncio.wait([first])
        slot.may_read.set()
        assert await asyncio.gather(*others) == [PACKED] * 2
        assert slot.read == [tmp_path / "second"]
    finally:
        await dispatcher.stop()


async def test_a_request_whose_own_audio_is_gone_fails(recording: ClipResults) -> None:
    async def transcribe(request: ClipRequest) -> ClipResult:
        raise FileNotFoundError(request.pcm_path)

    async with asyncio.timeout(10):
        with pytest.raises(FileNotFoundError):
            await recording.get_or_transcribe(CLIP, transcribe)


@pytest.mark.parametrize("kind", ["transcribe", "embed"])
async def test_an_error_after_all_have_gone_is_nobodys(recording: ClipResults, kind: str) -> None:
    may_fail = asyncio.Event()

    async def fail(_: object) -> Any:
        await may_fail.wait()
        raise FileNotFoundError("the audio went with the request")

    waits = (
        recording.get_or_transcribe(CLIP, fail)
        if kind == "transcribe"
        else recording.get_or_embed((0, 100), fail)
    )
    with no_error_left():
        caller = asyncio.create_task(waits)
        await let_tasks_run()
        caller.cancel()
        may_fail.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await let_tasks_run()
        del caller


async def test_an_error_is_not_cached(recording: ClipResults) -> None:
    async def fail(request: ClipRequest) -> ClipResult:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await recording.get_or_transcribe(CLIP, fail)
    assert await recording.get_or_transcribe(CLIP, FakeWorker()) == PACKED


def test_a_result_belongs_to_a_span_a_channel_and_the_language_asked_for() -> None:
    elected = replace(CLIP, late_language=lambda: "de", speculative=True)
    assert CLIP.key == elected.key == (0, 100, None, 0)
    assert replace(CLIP, decoding=DecodingOptions("demo", language="en")).key == (0, 100, "en", 0)
    assert replace(CLIP, channel=2).key == (0, 100, None, 2)


def test_a_crash_makes_a_clip_suspect_for_its_owner_alone_and_for_ten_minutes(
    recording: ClipResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    with working_for(Work(owner="ann")):
        recording.record_crash(CLIP.key, 2)
        assert recording.crash_count(CLIP.key) == 0, "a new request gets a verdict of its own"
        assert (recording.is_suspect(CLIP.key), recording.is_suspect(OTHER_CLIP.key)) == (True, False)
        with working_for(Work(owner="bob")):
            assert not recording.is_suspect(CLIP.key)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + KEEP_S)
        assert not recording.is_suspect(CLIP.key), "and asking does not prolong it"
