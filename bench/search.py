"""How fast `GET /v1/jobs?q=` finds jobs among many.

    python -m bench.search [--jobs 10000] [--url URL] [--repetitions 20] [--json FILE]

Each job is an hour of talk: 9,000 words, of which 1,750 are distinct; every tenth is 15,000 Chinese
characters. The words come from a made-up vocabulary of 60,000, with the frequencies of Zipf's law: a common
part, and a topic for each job. `--url`: an empty PostgreSQL database; the default is a new SQLite file.

The times are those of `Store.page`: what the service does between the request and its answer in JSON.
"""

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from app.jobs.database import Database
from app.jobs.job import JobProgress, Status, Submission
from app.jobs.search import index_text
from app.jobs.search_terms import text_words
from app.jobs.store import Store
from app.jobs.tables import jobs, progress_row, submission_row
from app.options import Options
from bench.measuring import Figures, Table, machine, write_json

COMMON = """
the of and to a in that is it was for on are as with they be at this have from or one had by but not what all
were we when your can there an each which their if will do how about up out them then these so some would make
like him into time two more no way could people than first been who its now find long down day did get come
made may part think thing things those though through three thank third thousand throw
"""
SYLLABLES = "ba re con ti ment ver so lan ing er pro mi sta the tri qua lo nu gra fi"
HAN = [chr(0x4E00 + number) for number in range(3000)]
WORDS, TOPIC, CHARACTERS = 9000, 2500, 15_000  # of one job
VOCABULARY = 60_000
BATCH = 50  # jobs in one transaction, while the database is filled
QUERIES = {
    "one rare word": "job4321",
    "a frequent prefix": "th",
    "one letter": "t",
    "three frequent words": "the that this",
    "three words of a topic": "proment conti verso",
    "Chinese": "一丁丂",
    "a word that no job has": "zzzz",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--url", help="of an empty PostgreSQL database")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures, table = asyncio.run(_measure(Path(folder), parsed.url, parsed.jobs, parsed.repetitions))
    print(table)
    if parsed.json:
        write_json(parsed.json, {"machine": machine(), **figures})


async def _measure(folder: Path, url: str | None, count: int, repetitions: int) -> tuple[Figures, Table]:
    database = Database(url, folder)
    await database.open()
    try:
        fill_ms, slowest_ms = await _fill(database, count)
        store = Store(database)
        times = {name: await _times_ms(store, query, count, repetitions) for name, query in QUERIES.items()}
        size_mb = await _size_bytes(database, folder) / 1e6
    finally:
        await database.close()
    figures: Figures = {
        "jobs": count,
        "fill_ms": fill_ms,
        "slowest_ms": slowest_ms,
        "size_mb": size_mb,
        "ms": times,
    }
    title = (
        f"{'SQLite' if url is None else 'PostgreSQL'}, {count:,} jobs, {size_mb:,.0f} MB; a job is stored in "
        f"{fill_ms:.1f} ms, {BATCH} at once in {slowest_ms:,.0f} ms at most (ms: median / slowest)"
    )
    columns = ["query", "first page", "second page", "with a status"]
    rows = [
        [name, *(f"{middle:.1f} / {most:.1f}" for middle, most in of.values())] for name, of in times.items()
    ]
    return figures, Table(title, columns, rows)


async def _fill(database: Database, count: int) -> tuple[float, float]:
    """Store jobs. Returns the time of each, without that of its text, and of the slowest batch (ms)."""
    texts = _texts()
    times_s = []
    for first in range(1, count + 1, BATCH):
        numbers = range(first, min(first + BATCH, count + 1))
        rows = [job_row(number) for number in numbers]
        words = [text_words(row["filename"], next(texts)) for row in rows]
        began = time.perf_counter()
        async with database.write() as connection:
            await connection.execute(sa.insert(jobs), rows)
            for number, found_by in zip(numbers, words, strict=True):
                await index_text(connection, number, found_by)
        times_s.append(time.perf_counter() - began)
    return 1000 * sum(times_s) / count, 1000 * max(times_s)


async def _times_ms(store: Store, query: str, count: int, repetitions: int) -> dict[str, tuple[float, float]]:
    """The median and the slowest time of each kind of page (ms)."""
    last = (await store.page(None, 1, None))[0][0]
    pages, _ = await store.page(None, 20, None, query)
    after = pages[-1] if pages else last
    kinds = {"first": (None, None), "second": (None, after), "status": (Status.FAILED, None)}
    times = {}
    for name, (status, page_after) in kinds.items():
        runs = []
        for _ in range(repetitions):
            began = time.perf_counter()
            await store.page(status, 20, page_after, query)
            runs.append(1000 * (time.perf_counter() - began))
        times[name] = (statistics.median(runs), max(runs))
    return times


async def _size_bytes(database: Database, folder: Path) -> int:
    if database.is_sqlite:
        return await asyncio.to_thread(lambda: sum(path.stat().st_size for path in folder.iterdir()))
    async with database.read() as connection:
        return int(await connection.scalar(sa.text("SELECT pg_database_size(current_database())")) or 0)


def job_row(number: int) -> dict[str, object]:
    submission = Submission(
        filename=f"job{number}.mp3", file=None, size=10**7, sha256="ab" * 32, url=None, model="demo",
        options=Options(), webhook_url=None, owner="", idempotency_key=None, fingerprint="f" * 64,
    )  # fmt: skip
    return {
        **submission_row(submission),
        **progress_row(JobProgress()),
        "id": f"{number:032x}",
        "status": Status.FAILED.value if number % 10 == 5 else Status.SUCCEEDED.value,
        "created_at": float(number),
        "failed_spans": [],
    }


def _texts() -> Iterator[str]:
    """Endless made-up transcripts, the same in each run."""
    rng = random.Random(1)
    common, vocabulary = COMMON.split(), _vocabulary(rng)
    han = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(HAN))))
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(common) + TOPIC)))
    for number in itertools.count(1):
        if number % 10 == 0:
            yield "".join(rng.choices(HAN, cum_weights=han, k=CHARACTERS))
        else:
            known = [*common, *rng.sample(vocabulary, TOPIC)]
            yield " ".join(rng.choices(known, cum_weights=weights, k=WORDS))


def _vocabulary(rng: random.Random) -> list[str]:
    syllables = SYLLABLES.split()
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(rng.choices(syllables, k=rng.randint(2, 4)))] = None
    return list(words)


if __name__ == "__main__":
    main()
