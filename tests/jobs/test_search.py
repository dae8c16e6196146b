"""The search of jobs: what is found, and that it changes with the jobs."""

import asyncio
import random
import string
from dataclasses import replace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.common.errors import DatabaseUnavailable
from app.database.connection import Database
from app.jobs.job import Again, Job, Status
from app.jobs.search_terms import text_words
from app.jobs.storage.search import index_text
from app.jobs.storage.store import Store
from tests.jobs.databases import ON_BOTH, lost_commits
from tests.jobs.samples import SEGMENT, SUBMISSION, TRANSCRIPT, submission

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def transcribed(store: Store, *texts: str, filename: str = "talk.flac") -> Job:
    """A job with a text."""
    job = await store.begin(await store.add(submission(filename=filename)))
    segments = tuple(replace(SEGMENT, text=text) for text in texts)
    return await store.succeed(job, replace(TRANSCRIPT, segments=segments), keep_file=True)


async def found(store: Store, query: str) -> list[int]:
    """The numbers of the jobs that a query finds."""
    return [job.number for job in (await store.page(None, 100, None, query))[0]]


@ON_BOTH
async def test_names_and_texts_are_found(store: Store) -> None:
    await transcribed(store, " The quick brown", " fox jumps.", filename="Füchse_01.mkv")
    await transcribed(store, " 今天天气", "很好。", filename="天.mp3")
    for query in (
        "fox",
        "FOX",
        "qui",
        "the jumps quick",
        "fuchse",
        "01 fox",
        "mkv",
        "fox.",
        "'fox' \"quick\"",
    ):
        assert await found(store, query) == [1], query
    for query in ("天", "天气", "天气很好", "mp3 今天", "气很"):
        assert await found(store, query) == [2], query
    for query in ("ox", "fox 天", "quick slow", "天今", "zzz"):
        assert await found(store, query) == [], query


async def test_unfinished_jobs_are_found_by_name(store: Store) -> None:
    job = await store.add(submission(filename="Interview.wav"))
    assert await found(store, "interv") == [job.number]
    running = await store.begin(job)
    assert (await store.page(Status.RUNNING, 5, None, "interv"))[0] == [running]
    assert (await store.page(Status.QUEUED, 5, None, "interv"))[0] == []


async def test_a_downloaded_recording_is_found_by_its_name(store: Store) -> None:
    job = await store.add(submission(filename="", file=None, url="https://media.example/watch"))
    await store.update(job.id, file="f" * 32, filename="Annual meeting.webm")
    assert await found(store, "annual") == [job.number]
    await store.update(job.id, pcm="1 boot")
    assert await found(store, "annual") == [job.number]


async def test_deleted_jobs_are_not_found_and_leave_nothing(store: Store, database: Database) -> None:
    job, other = await transcribed(store, " one"), await transcribed(store, " one two")
    await store.delete(job)
    assert await found(store, "one") == [other.number]
    async with database.read() as connection:
        assert await connection.scalar(sa.text("SELECT count(*) FROM search")) == 1


@ON_BOTH
async def test_pages_of_a_search(store: Store) -> None:
    matching = [await transcribed(store, f" text {number % 2}", filename="x") for number in range(6)]
    failed = await store.begin(await store.add(submission(filename="text.mp3")))
    await store.cancel(failed)
    newest = matching[::-1]
    page, has_more = await store.page(Status.SUCCEEDED, 2, None, "text")
    assert (page, has_more) == (newest[:2], True)
    assert await store.page(Status.SUCCEEDED, 4, newest[1], "text") == (newest[2:], False)
    assert await store.page(None, 2, newest[0], "text 0") == ([newest[1], newest[3]], True)
    assert await store.page(Status.FAILED, 2, None, "text") == ([], False)
    assert len((await store.page(None, 100, None, "text"))[0]) == 7


async def test_what_is_not_committed_is_not_found(store: Store, database: Database) -> None:
    job = await store.begin(await store.add(SUBMISSION))
    with lost_commits(database, committed=False), pytest.raises(DatabaseUnavailable):
        await store.succeed(job, TRANSCRIPT, keep_file=True)
    assert await found(store, "grüße") == []
    await store.succeed(job, TRANSCRIPT, keep_file=True)
    assert await found(store, "grüße 世界") == [job.number]


@pytest.mark.soak  # `test_words_that_take_the_most_space` has almost as many
async def test_very_many_words(store: Store) -> None:
    texts = [f" {number}_{number:x}zz" for number in range(100_000)]
    job = await transcribed(store, *texts)
    assert await found(store, "77 3e7zz") == [job.number]
    await store.delete(job)


@ON_BOTH
async def test_words_that_take_the_most_space(store: Store) -> None:
    """Cuneiform has letters of four bytes: words of four have the longest beginnings for their length.

    PostgreSQL does not check its limit, and would store something else.
    """
    letters = [chr(0x12000 + number) for number in range(900)]
    rng = random.Random(1)
    texts = ["".join(rng.sample(letters, 4)) for _ in range(50_000)]
    kept = len(text_words(" ".join(texts)).split(" "))
    assert 20_000 < kept < len(texts)
    job = await transcribed(store, *(f" {text}" for text in texts), filename="")
    for query in (*texts[: kept : kept // 50], texts[0][:3], texts[0][:2], texts[0][0]):
        assert await found(store, query) == [job.number]


@ON_BOTH
async def test_words_as_long_as_their_indexed_beginnings(store: Store) -> None:
    texts = ("a", "be", "sea", "dear", "天", "天气")
    numbers = {text: (await transcribed(store, f" {text}", filename="")).number for text in texts}
    await transcribed(store, "", filename="")
    for query, expected in {
        "a": ["a"], "b": ["be"], "be": ["be"], "s": ["sea"], "se": ["sea"], "sea": ["sea"], "seas": [],
        "d": ["dear"], "dea": ["dear"], "dear": ["dear"],
        "天": ["天气", "天"], "天气": ["天气"], "气": ["天气"],
    }.items():  # fmt: skip
        assert await found(store, query) == [numbers[text] for text in expected], query


@ON_BOTH
async def test_no_query_is_an_error(store: Store, database: Database) -> None:
    """Neither database may take anything in a query for syntax, or know other letters than this service."""
    text = st.text(
        st.one_of(st.characters(codec="utf-8"), st.sampled_from(string.punctuation + " aA0é天")), max_size=200
    )
    loop = asyncio.get_running_loop()
    await transcribed(store, " Some text.")
    job = await store.add(SUBMISSION)

    @settings(max_examples=60, suppress_health_check=list(HealthCheck), database=None)
    @given(text)
    def check(query: str) -> None:
        async def search() -> list[int]:
            async with database.write() as connection:
                await index_text(connection, job, text_words(query))
            return await found(store, query)

        numbers = asyncio.run_coroutine_threadsafe(search(), loop).result(20)
        assert (job.number in numbers) is bool(text_words(query))

    await asyncio.to_thread(check)
    for query in (
        " ".join(string.ascii_letters * 4)[:200],
        "天气" * 100,
        "' & | ! <-> :* \\'",
        'NEAR("a" b)',
    ):
        await found(store, query)


async def test_jobs_that_transcribe_again_have_no_text_of_their_own(store: Store) -> None:
    parent = await transcribed(store, " The quick brown fox.")
    again = Again(parent.id, parent.revision, keep_corrections=True)
    child = await store.begin(await store.add(submission(file=None, again=again)))
    await store.succeed_again(child, TRANSCRIPT, None, replaces_voices=False)
    await store.add_passages(10)
    assert await found(store, "fox") == [parent.number]
