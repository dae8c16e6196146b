"""Clips that were heard, on their way into the database and back."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import RESULT, SUBMISSION, TRANSCRIPT, with_database

from app.errors import DatabaseUnavailable
from app.jobs import clip_store as module
from app.jobs.clip_store import ClipStore
from app.jobs.serialization import pack_result, pack_transcript, unpack_result, unpack_transcript
from app.jobs.store import Store
from workers.messages import ClipResult, Segment, Word

pytestmark = pytest.mark.timeout(60)

CLIP = (0, 480_000, "de")

numbers = st.integers(0, 2**40)
floats = st.floats(allow_nan=False)
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


@given(results)
def test_a_result_comes_back_as_it_was(result):
    assert unpack_result(pack_result(result)) == result


def test_a_transcript_comes_back_as_it_was():
    assert unpack_transcript(pack_transcript(TRANSCRIPT)) == TRANSCRIPT


def test_an_empty_transcript():
    empty = replace(TRANSCRIPT, segments=(), speech=(), failed_spans=())
    assert unpack_transcript(pack_transcript(empty)) == empty


def work_of(calls, result=RESULT):
    async def work():
        calls.append(result)
        return result

    return work


async def begun(database):
    store = Store(database)
    return store, await store.begin(await store.add(SUBMISSION))


async def started(database):
    clip_store = ClipStore(database)
    clip_store.start()
    return clip_store


def test_what_was_heard_is_not_heard_again(url):
    async def body(database):
        _, job = await begun(database)
        clip_store, calls = await started(database), []
        recording = await clip_store.recall(job)
        assert await recording.hear(CLIP, work_of(calls)) == RESULT
        # As after a kill: nothing has been told that there is an end.
        again = await (await started(database)).recall(job)
        assert await again.hear(CLIP, work_of(calls)) == RESULT
        assert len(calls) == 1
        # Another language is another question.
        await again.hear((0, 480_000, None), work_of(calls))
        assert len(calls) == 2
        await clip_store.stop()

    with_database(url, body)


def test_another_identity_begins_anew(url):
    async def body(database):
        store, job = await begun(database)
        clip_store, calls = await started(database), []
        job = await store.identify(job, "identity")
        await (await clip_store.recall(job)).hear(CLIP, work_of(calls))
        await store.update(job.id, pcm="1000 boot")
        job = await store.identify(await store.begin(await store.requeue(job)), "identity")
        assert job.pcm == "1000 boot"
        await (await clip_store.recall(job)).hear(CLIP, work_of(calls))
        assert len(calls) == 1
        job = await store.identify(await store.begin(await store.requeue(job)), "another")
        assert job.pcm is None
        await (await clip_store.recall(job)).hear(CLIP, work_of(calls))
        assert len(calls) == 2
        await clip_store.stop()

    with_database(url, body)


def test_deaths_are_remembered(url):
    async def body(database):
        _, job = await begun(database)
        clip_store = await started(database)
        recording = await clip_store.recall(job)
        assert recording.deaths(CLIP) == 0
        recording.died(CLIP, 1)
        recording.died(CLIP, 2)
        await clip_store.stop()
        again = await ClipStore(database).recall(job)
        assert again.deaths(CLIP) == 2
        assert again.deaths((0, 480_000, None)) == 0

    with_database(url, body)


def test_what_is_heard_while_the_database_fails_is_stored_later(url, monkeypatch):
    monkeypatch.setattr(module, "_RETRY_S", 0.01)

    async def body(database):
        _, job = await begun(database)
        clip_store = await started(database)
        recording = await clip_store.recall(job)
        write, fails = database.write, [True] * 3

        def unreliable():
            if fails:
                fails.pop()
                raise DatabaseUnavailable("gone")
            return write()

        monkeypatch.setattr(database, "write", unreliable)
        assert await recording.hear(CLIP, work_of([])) == RESULT
        assert not fails
        assert (await clip_store.recall(job)).deaths(CLIP) == 0
        await clip_store.stop()

    with_database(url, body)


def test_clips_of_a_deleted_job_do_not_hinder_the_others(url):
    async def body(database):
        store, doomed = await begun(database)
        job = await store.begin(await store.add(SUBMISSION))
        clip_store = await started(database)
        lost, kept = await clip_store.recall(doomed), await clip_store.recall(job)
        await store.delete(doomed)
        calls = []
        await asyncio.gather(
            *(recording.hear((n, n + 1, None), work_of([])) for n in range(5) for recording in (lost, kept))
        )
        again = await clip_store.recall(job)
        for n in range(5):
            await again.hear((n, n + 1, None), work_of(calls))
        assert not calls
        await clip_store.stop()

    with_database(url, body)


def test_a_caller_that_gives_up_still_has_its_clip_stored(url):
    async def body(database):
        _, job = await begun(database)
        clip_store = ClipStore(database)  # which does not store yet
        recording = await clip_store.recall(job)
        heard = asyncio.Event()

        async def work():
            asyncio.get_running_loop().call_soon(heard.set)
            return RESULT

        caller = asyncio.create_task(recording.hear(CLIP, work))
        await heard.wait()
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        clip_store.start()
        await clip_store.stop()
        calls = []
        await (await clip_store.recall(job)).hear(CLIP, work_of(calls))
        assert not calls

    with_database(url, body)
