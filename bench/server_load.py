"""How busy one server keeps its slots, how fast it answers meanwhile, and what it takes.

See `load` in bench/scale.py. The workers have no model, and recordings are replayed (bench/stub_service.py).
Jobs of an hour arrive as fast as they are transcribed.
"""

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.queues import Queue
from pathlib import Path

import httpx
import numpy as np

from bench.latency import poll
from bench.measuring import Figures
from bench.server_costs import Replay, StubService, stub_service
from bench.service import submit_job, wait_for, workers

CASES = ((1, 100), (4, 100), (8, 100), (8, 150))  # slots, times real time of each
SECONDS = 20
POLL_S = 1.0  # between two requests of each of the clients of bench.latency
STREAMS = 8
QUEUED = 2  # jobs that wait
MB = 10**6


def measure(checkout: Path, replay: Replay, slots: int, speed: float, seconds: float) -> Figures:
    """Keep slots busy, with clients that poll and follow events."""
    with stub_service(checkout, replay, slots, speed, polite=True) as service, _fed(service, replay) as jobs:
        wait_for(lambda: all(row["batches"] >= 2 for row in workers(service.client)), 120)
        service.read_report()
        before_s, began = _transcribed_s(service), time.monotonic()
        times = _poll_and_follow(str(service.client.base_url), jobs[0], seconds)
        took_s, audio_s = time.monotonic() - began, _transcribed_s(service) - before_s
        cpu_s = service.read_report()["process_s"]
        health = 1000 * np.array(times["/health"])
        return {
            "slots": slots,
            "speed": speed,
            "busy_slots": round(audio_s / speed / took_s, 2),
            "times_real_time": round(audio_s / took_s),
            "server_cores": round(cpu_s / took_s, 3),
            "health_p50_ms": round(float(np.percentile(health, 50)), 1),
            "health_p99_ms": round(float(np.percentile(health, 99)), 1),
            "server_mib": round(service.peak_mib()),
            "disk_mb": round(disk_bytes(service.data) / MB),
        }


@contextmanager
def _fed(service: StubService, replay: Replay) -> Iterator[list[str]]:
    """Submit jobs while the block runs: as many as the service runs at once, and some that wait."""
    jobs: list[str] = []
    over = threading.Event()
    at_once = 2 * len(workers(service.client)) + QUEUED
    client = httpx.Client(base_url=service.client.base_url, timeout=None, trust_env=False)

    def feed() -> None:
        while not over.wait(0.2):
            done = _transcribed_s(service) / replay.seconds
            if len(jobs) - done < at_once:
                jobs.append(submit_job(client, replay.upload))

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        wait_for(lambda: len(jobs) >= at_once, 300)
        yield jobs
    finally:
        over.set()
        thread.join()


def _transcribed_s(service: StubService) -> float:
    return sum(row["audio_s"] for row in workers(service.client))


def _poll_and_follow(url: str, job: str, seconds: float) -> dict[str, list[float]]:
    """The times of the answers to clients in a process of their own, by path (s)."""
    spawn = multiprocessing.get_context("spawn")
    queue: Queue[dict[str, list[float]]] = spawn.Queue()
    process = spawn.Process(target=_run_clients, args=(url, job, seconds, queue))
    process.start()
    times = queue.get(timeout=seconds + 120)
    process.join()
    return times


def _run_clients(url: str, job: str, seconds: float, queue: "Queue[dict[str, list[float]]]") -> None:
    queue.put(asyncio.run(_clients(url, job, seconds)))


async def _clients(url: str, job: str, seconds: float) -> dict[str, list[float]]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=None, trust_env=False, limits=limits) as client:
        streams = [asyncio.create_task(_follow(client, number)) for number in range(STREAMS)]
        times = await poll(url, job, seconds, period_s=POLL_S)
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
    return dict(times)


async def _follow(client: httpx.AsyncClient, number: int) -> None:
    """Follow the events of one running job after the other."""
    while True:
        answer = await client.get("/v1/jobs", params={"status": "running"})
        running = answer.raise_for_status().json()["data"]
        if not running:
            await asyncio.sleep(0.5)
            continue
        job = running[number % len(running)]["id"]
        async with client.stream("GET", f"/v1/jobs/{job}/events") as events:
            async for _ in events.aiter_raw():
                pass


def disk_bytes(folder: Path) -> int:
    """What the files of a folder take on the disk."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(path) / name).stat().st_blocks * 512
    return total
