"""What Prometheus costs: the time of a scrape, and of transcripts while it scrapes once a second.

    python -m bench.metrics [--minutes 5] [--threads 1] [--repetitions 5] [--quick] [--json FILE]

*A scrape*: a service with 10,000 jobs and as many slots as a machine with 8 or with 64 GPUs has, whose every
endpoint was used, also with wrong requests. *Transcripts*: a recording of some minutes, one worker
with the demo model, with and without a scrape each second, alternating.
"""

import asyncio
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import sqlalchemy as sa

from app.jobs.database import Database
from app.jobs.search import index_text
from app.jobs.search_terms import text_words
from app.jobs.tables import jobs
from bench.command import Options, run_alone
from bench.measuring import Figures, Table, interleaved, ratio, timed
from bench.recordings import write
from bench.search import job_row
from bench.service import ROOT, running_service, started_service
from bench.throughput import one_worker, request_srt

JOBS = 10_000
SLOTS = (8, 64)
SCRAPES = 200
PERIOD_S = 1.0
AT_ONCE = 1000  # jobs in one transaction, while the database is filled


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure scrapes (ms) for each number of slots, and transcripts with and without them (s)."""
    scrapes = {slots: _scrapes(folder / str(slots), slots, options.quick) for slots in SLOTS}
    transcripts = _transcripts(options, folder)
    cost = ratio(transcripts["scraped"], transcripts["alone"])
    rows = [
        [slots, *(found[name] for name in ("series", "kib", "median_ms", "slowest_ms", "server_ms"))]
        for slots, found in scrapes.items()
    ]
    columns = ["slots", "series", "KiB", "median, ms", "95 % are faster, ms", "CPU of the server, ms"]
    medians = [f"{statistics.median(transcripts[name]):.2f}" for name in ("alone", "scraped")]
    return {"scrapes": scrapes, "transcripts_s": transcripts, "ratio": cost}, [
        Table(f"A scrape, {JOBS:,} jobs, every endpoint used", columns, rows),
        Table(
            "Transcripts, s",
            ["alone", "with a scrape each second", "ratio, median of pairs"],
            [[*medians, f"{cost:.3f}"]],
        ),
    ]


def _scrapes(folder: Path, slots: int, quick: bool) -> Figures:
    folder.mkdir()
    asyncio.run(_fill(folder, JOBS))
    settings = {
        "WHISPER_ENGINE": "simulated",
        "WHISPER_DEVICE": "auto",
        "WHISPER_MODEL": "auto",
        "WHISPER_GPUS": ",".join(map(str, range(slots))),
        "WHISPER_DATA_DIR": str(folder),
        "WHISPER_LOG_LEVEL": "error",
    }
    with started_service((sys.executable, "-m", "app.cli"), ROOT, **settings) as (client, process):
        _use_every_endpoint(client)
        server = psutil.Process(process.pid)
        client.get("/metrics")
        cpu_before = sum(server.cpu_times()[:2])
        times_ms, text = [], ""
        for _ in range(10 if quick else SCRAPES):
            began = time.perf_counter()
            text = client.get("/metrics").raise_for_status().text
            times_ms.append(1000 * (time.perf_counter() - began))
        cpu_ms = 1000 * (sum(server.cpu_times()[:2]) - cpu_before)
    assert f'whisperfleet_jobs{{status="failed"}} {JOBS / 10}' in text
    return {
        "series": sum(not line.startswith("#") for line in text.splitlines()),
        "kib": round(len(text) / 1024),
        "median_ms": round(statistics.median(times_ms), 2),
        "slowest_ms": round(statistics.quantiles(times_ms, n=20)[-1], 2),
        "server_ms": round(cpu_ms / len(times_ms), 2),
    }


async def _fill(folder: Path, count: int) -> None:
    database = Database(None, folder)
    await database.open()
    try:
        for first in range(1, count + 1, AT_ONCE):
            rows = [
                job_row(number) | {"finished_at": time.time()} for number in range(first, first + AT_ONCE)
            ]
            async with database.write() as connection:
                await connection.execute(sa.insert(jobs), rows)
                for row, number in zip(rows, range(first, first + AT_ONCE), strict=True):
                    await index_text(connection, number, text_words(str(row["filename"])))
    finally:
        await database.close()


def _use_every_endpoint(client: httpx.Client) -> None:
    """Send each documented request, for things that do not exist, with odd values, and by an odd method."""
    paths = client.get("/openapi.json").json()["paths"]
    undocumented = dict.fromkeys(("/", "/docs", "/web/icon.svg", "/docs/assets/x", "/nothing"), ("get",))
    for path, methods in {**paths, **undocumented}.items():
        for method in (*methods, "brew"):
            for name in ("0" * 32, "x"):
                url = re.sub(r"\{\w+\}", name, path)
                with client.stream(method, f"{url}?limit={name}", headers={"Origin": "null"}):
                    pass  # event streams do not end, so no answer is read
                with client.stream(method, url):
                    pass


def _transcripts(options: Options, folder: Path) -> dict[str, list[float]]:
    """The times of transcripts (s), alone and while the service is scraped."""
    [minutes] = options.lengths(5)
    recording = folder / "talk.flac"
    write(recording, 60 * minutes, options.talk)
    with running_service(**one_worker(options.threads)) as client:

        def alone() -> float:
            return timed(lambda: request_srt(client, recording))

        def scraped() -> float:
            with _scraping(str(client.base_url)):
                return alone()

        return interleaved({"alone": alone, "scraped": scraped}, options.repetitions)


@contextmanager
def _scraping(url: str) -> Iterator[None]:
    """Scrape once a second until the end of the block."""
    ended = threading.Event()

    def scrape() -> None:
        with httpx.Client(base_url=url, trust_env=False) as client:
            while not ended.wait(PERIOD_S):
                client.get("/metrics").raise_for_status()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    run_alone("metrics", measure, __doc__)
