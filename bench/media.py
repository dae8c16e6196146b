"""Decoding and speech detection of an hour of mp3, by one media worker and by two.

    python -m bench.media [--minutes 60] [--repetitions 5] [--json FILE]

Runs the service's own media workers without the rest of the service: decoding and speech probabilities, as
for a job. Also measures the CPU time of the two stages on one core.
"""

import asyncio
import multiprocessing
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from app.media.clip_search import ClipSearch
from app.media.disk import DiskSpace
from app.media.pool import MediaPool
from app.media.speech import CHUNK_FRAMES, VadParameters
from app.media.uploads import Upload
from app.media.worker_slot import Call
from bench.command import Options, run_alone
from bench.measuring import Figures, Table, interleaved, median
from bench.recordings import write
from workers import runtime
from workers.media import tasks as work
from workers.messages import FRAME_SAMPLES

STEP_SAMPLES = 10**9  # the entire file in one step
_CEILING_ROUNDS = 2  # of the comparison with two independent processes


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure wall times, their ratio, and CPU time by stage, for each length."""
    figures: Figures = {}
    rows = []
    for minutes in options.lengths(60):
        path = folder / f"media-{minutes:g}.mp3"
        write(path, 60 * minutes, options.talk)
        runs_s, busy = asyncio.run(_compare(path, options.repetitions))
        one, two = median(runs_s["one worker"]), median(runs_s["two workers"])
        ratios = [a / b for a, b in zip(runs_s["one worker"], runs_s["two workers"], strict=True)]
        cpu = cpu_s(path, folder / "pcm")
        ceiling = _ceiling(path, folder, min(options.repetitions, _CEILING_ROUNDS))
        figures[f"{minutes:g} min"] = {
            "runs_s": runs_s,
            "median_s": {"one worker": one, "two workers": two},
            "ratio": median(ratios),
            "busy": {name: median(fractions) for name, fractions in busy.items()},
            "cpu_s": cpu,
            "ratio_of_two_lone_processes": ceiling,
        }
        real_time = [f"{60 * minutes / seconds:.0f}" for seconds in cpu.values()]
        rows.append(
            [
                f"{minutes:g} min",
                f"{one:.2f}",
                f"{two:.2f}",
                f"{median(ratios):.2f}",
                f"{ceiling:.2f}",
                f"{100 * median(busy['two workers']):.0f} %",
                *real_time,
            ]
        )
    columns = [
        "mp3",
        "one worker, s",
        "two, s",
        "ratio",
        "two independent processes",
        "each of two is busy",
        "decoding, x real time per core",
        "speech, same",
    ]
    return figures, [Table("Decoding and speech detection", columns, rows)]


async def _compare(path: Path, repetitions: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """The wall times (s) by pool, and the fraction of each in which a worker had a task in flight.

    The measurements run in a thread; the event loop here serves the workers of both pools.
    """
    disk = DiskSpace(Path(tempfile.gettempdir()))
    pools = {"one worker": MediaPool(1, disk), "two workers": MediaPool(2, disk)}
    loop = asyncio.get_running_loop()

    def run(name: str) -> float:
        busy.clear()
        seconds = asyncio.run_coroutine_threadsafe(_process(pools[name], path), loop).result()
        fractions[name].append(sum(busy) / seconds / len(pools[name]._dispatcher.slots))
        return seconds

    busy: list[float] = []
    fractions: dict[str, list[float]] = defaultdict(list)
    for pool in pools.values():
        for slot in pool._dispatcher.slots:
            slot.run = partial(_clocked, slot.run, busy)  # type: ignore[method-assign]
        pool.start()
    try:
        ways = {name: partial(run, name) for name in pools}
        return await asyncio.to_thread(interleaved, ways, repetitions), fractions
    finally:
        await asyncio.gather(*(pool.stop() for pool in pools.values()))


async def _clocked(
    run: Callable[[Sequence[Call], float | None], Awaitable[list[Any]]],
    busy: list[float],
    calls: Sequence[Call],
    expected_s: float | None,
) -> list[Any]:
    began = time.perf_counter()
    try:
        return await run(calls, expected_s)
    finally:
        busy.append(time.perf_counter() - began)


async def _process(pool: MediaPool, path: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        upload = Upload(path, path.name, 0, "")
        search = ClipSearch(folder, upload, pool, Path(folder) / "pcm", VadParameters())
        began = time.perf_counter()
        frames = sum([len(found) async for found in search.probabilities()])
        assert frames > 0
        return time.perf_counter() - began


def _ceiling(path: Path, folder: Path, repetitions: int) -> float:
    """How much more work two independent processes do on this machine than one.

    Each decodes the file and detects its speech. Cores with common caches, memory or clock keep this below 2.
    The service cannot be better.
    """
    pcm_paths = [folder / "pcm-0", folder / "pcm-1"]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn, runtime.initialise, ("",)) as processes:

        def run(count: int) -> float:
            began = time.perf_counter()
            list(processes.map(cpu_s, [path] * count, pcm_paths[:count]))
            return time.perf_counter() - began

        run(2)
        runs_s = interleaved({"one": partial(run, 1), "two": partial(run, 2)}, repetitions)
    return median([2 * one / two for one, two in zip(runs_s["one"], runs_s["two"], strict=True)], 2)


def cpu_s(path: Path, pcm_path: Path) -> dict[str, float]:
    """CPU time (s) of decoding the file and of detecting its speech span by span, in this process."""
    pcm_path.touch()
    work.speech_probabilities(str(pcm_path), 0, 1)  # loads the detector
    began = time.process_time()
    samples = work.decode("bench", str(path), str(pcm_path), STEP_SAMPLES).samples
    decoded = time.process_time()
    frames = -(-samples // FRAME_SAMPLES)
    found = []
    for start in range(0, frames, CHUNK_FRAMES):
        span = min(CHUNK_FRAMES, frames - start)
        found.append(np.frombuffer(work.speech_probabilities(str(pcm_path), start, span), "<f4"))
    assert sum(map(len, found)) == frames
    return {"decoding": round(decoded - began, 3), "speech": round(time.process_time() - decoded, 3)}


if __name__ == "__main__":
    run_alone("media", measure, __doc__)
