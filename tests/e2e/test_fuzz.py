"""Damaged files of every kind: each gets an answer, other requests are unaffected, and no file stays."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.e2e.running import DATA, Server, wait_for
from tests.media_files import GOOD, RATE, read_pcm
from tests.media_mutations import damaged

CLIENTS = 4
FEW = 8
ANSWERS = {"200", "400", "413", "job succeeded", "job failed"}


def mutations(count: int) -> Iterator[bytes]:
    """So many damaged files, of one kind after the other."""
    speech = read_pcm(DATA / "short00.flac")[: 4 * RATE]
    kinds = list(GOOD.values())
    for seed in range(count):
        yield damaged(kinds[seed % len(kinds)].encode(speech), seed)


def send(server: Server, number: int, content: bytes) -> str:
    """The outcome of a file. Odd ones are sent as requests, even ones as jobs."""
    if number % 2:
        answer = server.post(content)
        assert answer.headers["content-type"].startswith("application/json"), answer.text
        return str(answer.status_code)
    answer = server.client.post("/v1/jobs", files={"file": ("recording", content)})
    if answer.status_code != 202:
        return str(answer.status_code)
    address = answer.headers["location"]
    wait_for(lambda: server.client.get(address).json()["finished_at"], 120)
    job = server.client.get(address).json()
    assert "unexpectedly" not in str(job["error"])
    assert server.client.delete(address).status_code == 204
    return f"job {job['status']}"


def memory(server: Server) -> tuple[float, float]:
    """Resident memory of the server itself and of its media processes (MB)."""
    children = sum(child.memory_info().rss for child in server.media_workers())
    return psutil.Process(server.pid).memory_info().rss / 1e6, children / 1e6


def check(server: Server, good: Path, count: int) -> None:
    """Send so many damaged files, and print the outcomes."""
    silence = np.zeros(2 * RATE, np.int16)
    for made in GOOD.values():  # loads every decoder once
        assert server.text(made.encode(silence)).strip() == ""
    with ThreadPoolExecutor(CLIENTS) as clients:  # starts every media worker
        [expected] = set(clients.map(server.text, [good] * CLIENTS))
    media_workers = len(server.media_workers())
    before, began = memory(server), time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = Counter(clients.map(lambda file: send(server, *file), enumerate(mutations(count))))
    took = time.perf_counter() - began
    assert answers.keys() <= ANSWERS, answers
    assert answers.total() == count
    assert server.text(good) == expected, "a good file is transcribed as before"
    wait_for(lambda: len(server.media_workers()) == media_workers)
    after = memory(server)
    assert server.process.poll() is None
    assert not server.left_files()
    assert [row["restarts"] for row in server.workers()] == [0, 0]
    summary = (
        f"{count} files in {took:.1f} s: {dict(sorted(answers.items()))}; server {before[0]:.0f} → "
        f"{after[0]:.0f} MB, media processes {before[1]:.0f} → {after[1]:.0f} MB"
    )
    print(summary)
    assert after[0] - before[0] < 40, summary
    assert after[1] - before[1] < 150, summary


def test_damaged_files(emptied):
    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = clients.map(lambda file: send(emptied, *file), enumerate(mutations(FEW)))
    assert set(answers) <= ANSWERS
    wait_for(lambda: not emptied.left_files())


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_damaged_files(commands, shorts):
    check(commands.ready(WHISPER_LOG_LEVEL="error"), shorts[0], 500)
