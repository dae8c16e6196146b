"""Clip results on their way into the database and back."""

import asyncio
import json
import math
import zlib
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.errors import DatabaseUnavailable
from app.database.connection import Database
from app.jobs.job import Job
from app.jobs.running import clip_store as module
from app.jobs.running.clip_store import ClipStore
from app.jobs.serialization import pack_transcript, unpack_transcript
from app.jobs.storage.store import Store
from app.recording.clip_decoding import ClipRequest
from app.transcript.packed import pack_result, unpack_result
from app.transcript.timeline import ClipResult
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import RESULT, SUBMISSION, TRANSCRIPT
from workers.messages import DecodingOptions, Segment, Word

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

PACKED = pack_result(RESULT)
CLIP = (0, 480_000, "de", 0)
CLIP_WITHOUT_LANGUAGE = (0, 480_000, None, 0)

numbers = st.integers(0, 2**40)
floats = st.floats(allow_nan=False, allow_infinity=False)
words = st.builds(Word, text=st.text(), start=numbers, end=numbers, probability=floats)
segments = st.builds(
    Segment,
    start=numbers,
    end=numbers,
    text=st.text(st.characters(exclude_categories=["Cs"])),
    tokens=st.lists(numbers).map(tuple),
    temperature=floats,
    avg_logprob=floats,
    compression_ratio=floats,
    no_speech_prob=floats,
    words=st.lists(words).map(tuple),
)
probabilities = st.lists(st.tuples(st.text(), floats)).map(tuple)
results = st.builds(ClipResult, st.text(), probabilities, st.lists(segments).map(tuple))


@settings(max_examples=30)
@given(results)
def test_a_result_is_unpacked_as_it_was(result: ClipResult) -> None:
    assert unpack_result(pack_result(result)) == result


def test_fields_that_a_result_lacks_are_ignored() -> None:
    """Results of an unfinished job may be of another version of the service."""
    content = json.loads(zlib.decompress(pack_result(RESULT))) | {"note": "no word times: odd tokens"}
    assert unpack_result(zlib.compress(json.dumps(content).encode())) == RESULT


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_lacks_are_never_stored(value: float) -> None:
    segment = replace(RESULT.segments[0], avg_logprob=value)
    with pytest.raises(ValueError, match="JSON"):
        pack_result(replace(RESULT, segments=(segment,)))
    with pytest.raises(ValueError, match="JSON"):
        pack_result(replace(RESULT, language_probs=(("en", value),)))
    with pytest.raises(ValueError, match="not finite"):
        pack_transcript(replace(TRANSCRIPT, segments=(segment,)))


def test_a_transcript_is_unpacked_as_it_was() -> None:
    assert unpack_transcript(pack_transcript(TRANSCRIPT)) == TRANSCRIPT


def request(start: int, end: int, language: str | None, channel: int = 0) -> ClipRequest:
    return ClipRequest(
        Path("/nowhere"), start, end, (), DecodingOptions("demo", language=language), channel=channel
    )


class Transcriber:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, request: ClipRequest) -> ClipResult:
        self.calls += 1
        return RESULT


@pytest.fixture
def transcribe() -> Transcriber:
    return Transcriber()


@pytest.fixture
async def job(store: Store) -> Job:
    """A running job."""
    return await store.begin(await store.add(SUBMISSION))


async def test_stored_results_are_unpacked_one_by_one(
    job: Job, clip_store: ClipStore, transcribe: Transcriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All results of ten hours at once would hold the GIL, and with it the event loop."""
    recording = await clip_store.load(job)
    for clip in (CLIP, CLIP_WITHOUT_LANGUAGE):
        await recording.get_or_transcribe(request(*clip), transcribe)
    await clip_store.flush()
    unpacked: list[bytes] = []

    def unpack(content: bytes) -> ClipResult:
        unpacked.append(content)
        return unpack_result(content)

    monkeypatch.setattr("app.transcript.packed.unpack_result", unpack)
    recording = await clip_store.load(job)
    assert not unpacked
    assert (await recording.get_or_transcribe(request(*CLIP), transcribe)).result == RESULT
    assert len(unpacked) == 1


async def test_results_of_another_digest_are_removed(
    store: Store, job: Job, clip_store: ClipStore, transcribe: Transcriber
) -> None:
    async def transcribe_clip(job: Job) -> None:
        await (await clip_store.load(job)).get_or_transcribe(request(*CLIP), transcribe)
        await clip_store.flush()

    job = await store.set_result_digest(job, "digest")
    await transcribe_clip(job)
    await store.update(job.id, pcm="1000 boot")
    job = await store.set_result_digest(await store.begin(await store.requeue(job)), "digest")
    assert job.pcm == "1000 boot"
    await transcribe_clip(job)
    assert transcribe.calls == 1
    job = await store.set_result_digest(await store.begin(await store.requeue(job)), "another")
    assert job.pcm is None
    await transcribe_clip(job)
    assert transcribe.calls == 2


async def test_crash_counts_are_stored(database: Database, job: Job) -> None:
    clip_store = ClipStore(database)
    clip_store.start()
    recording = await clip_store.load(job)
    assert recording.crash_count(CLIP) == 0
    recording.record_crash(CLIP, 1)
    recording.record_crash(CLIP, 2)
    await clip_store.stop()
    recording = await ClipStore(database).load(job)
    assert recording.crash_count(CLIP) == 2
    assert recording.crash_count(CLIP_WITHOUT_LANGUAGE) == 0


@pytest.fixture
def failures(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors of the next transactions."""
    monkeypatch.setattr(module, "_TICK_S", 0.01)
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    write, failures = database.write, list[Exception]()

    def unreliable() -> AbstractAsyncContextManager[AsyncConnection]:
        if failures:
            raise failures.pop(0)
        return write()

    monkeypatch.setattr(database, "write", unreliable)
    return failures


async def test_no_caller_waits_unless_results_are_late(
    job: Job,
    clip_store: ClipStore,
    transcribe: Transcriber,
    failures: list[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures += [DatabaseUnavailable("gone")] * 1000
    recording = await clip_store.load(job)
    await recording.get_or_transcribe(request(*CLIP), transcribe)
    monkeypatch.setattr(module, "_LATE_S", 0.0)
    late = asyncio.create_task(recording.get_or_transcribe(request(*CLIP_WITHOUT_LANGUAGE), transcribe))
    await until(lambda: len(failures) < 990)
    assert not late.done(), "a kill would lose it, and all that follow"
    failures.clear()
    await late
    assert (await clip_store.load(job)).results.keys() == {CLIP, CLIP_WITHOUT_LANGUAGE}


async def test_rows_that_can_never_be_stored_do_not_prevent_the_storing_of_others(
    store: Store, job: Job, clip_store: ClipStore
) -> None:
    other = await store.begin(await store.add(SUBMISSION))
    clip_store.put(job.number, (0, 2**70, None, 0), 0, PACKED)
    clip_store.put(other.number, CLIP, 0, PACKED)
    await clip_store.flush()
    assert (await clip_store.load(other)).results.keys() == {CLIP}
    assert not (await clip_store.load(job)).results


@ON_BOTH
async def test_the_last_row_of_a_clip_counts(job: Job, clip_store: ClipStore) -> None:
    for flushes in (False, True):
        clip = (0, int(flushes), None, 0)
        for count, result in ((1, None), (2, PACKED), (3, None)):
            clip_store.put(job.number, clip, count, result)
            if flushes:
                await clip_store.flush()
        await clip_store.flush()
        recording = await clip_store.load(job)
        assert recording.crash_count(clip) == 3
        assert clip in recording.results, "a late crash takes no result away"


@pytest.mark.parametrize("end", ["cancel", "delete"])
async def test_nothing_is_stored_of_a_job_that_has_ended(
    store: Store, job: Job, clip_store: ClipStore, end: str
) -> None:
    clip_store.put(job.number, CLIP, 0, PACKED)
    await getattr(store, end)(job)
    await clip_store.flush()
    assert not (await clip_store.load(job)).results


async def test_the_result_of_a_cancelled_caller_is_stored(
    database: Database, job: Job, transcribe: Transcriber
) -> None:
    clip_store = ClipStore(database)  # not started yet, so nothing is stored
    recording = await clip_store.load(job)
    transcribed = asyncio.Event()

    async def notify(request: ClipRequest) -> ClipResult:
        asyncio.get_running_loop().call_soon(transcribed.set)
        return RESULT

    caller = asyncio.create_task(recording.get_or_transcribe(request(*CLIP), notify))
    await transcribed.wait()
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    clip_store.start()
    await clip_store.stop()
    await (await clip_store.load(job)).get_or_transcribe(request(*CLIP), transcribe)
    assert transcribe.calls == 0
