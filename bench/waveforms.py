"""What waveforms cost: finding peaks while decoding, storing those of ten hours, and answering with them.

    python -m bench.waveforms [--minutes 30] [--repetitions 9] [--json FILE]

CPU time of decoding is that of the media worker's own functions, in this process, step by step, with peaks
and without, alternating. On a busy machine two runs differ by more than the search for peaks takes, so it is
also measured alone. Memory is what Python and numpy allocate. The lateness of the event loop is the longest
time that a callback waited while a thread made the answer.
"""

import asyncio
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from app.api.peaks import _json
from app.media.peaks import PeakCollector
from app.media.pool import STEP_SAMPLES
from bench.command import Options, run_alone
from bench.measuring import Figures, Table, interleaved, median, timed
from bench.recordings import RATE, read, write
from workers.media import tasks
from workers.media.peaks import PeakFinder

FORMATS = (".mp3", ".flac", ".wav")
HOURS = 10
_CHUNK_BYTES = 2 * 576
POINTS = (1000, 100_000)


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure all three."""
    minutes = options.lengths(30)[0]
    decoding = {form: _decoding(form, minutes, folder, options) for form in FORMATS}
    search_ms = _search_ms(read(options.talk), options)
    stored = _stored(1 / 60 if options.quick else HOURS, options)
    rows = [[f"{form[1:]}, {minutes:g} min", *row.values()] for form, row in decoding.items()]
    columns = ["recording", "with peaks, CPU s", "without, CPU s", "ratio of the medians", "of the least"]
    tables = [
        Table("Decoding", columns, rows),
        Table(
            "The search alone", ["", "CPU ms"], [["a minute of audio, in chunks of 576 samples", search_ms]]
        ),
        Table(f"The peaks of {HOURS} hours of speech", ["", "figure"], list(stored.items())),
    ]
    return {"decoding": decoding, "search_ms": search_ms, "ten_hours": stored}, tables


def _find_none(finder: PeakFinder, chunk: bytes) -> None: ...


_FIND = PeakFinder.feed


def _decoding(form: str, minutes: float, folder: Path, options: Options) -> dict[str, float]:
    path, pcm_path = folder / f"talk{form}", folder / "pcm"
    write(path, 60 * minutes, options.talk)
    pcm_path.touch()

    def run(feed: Callable[[PeakFinder, bytes], None]) -> float:
        PeakFinder.feed = feed  # type: ignore[method-assign]
        began = time.process_time()
        while not tasks.decode("bench", str(path), str(pcm_path), STEP_SAMPLES).finished:
            pass
        return time.process_time() - began

    ways = {"with": partial(run, _FIND), "without": partial(run, _find_none)}
    runs_s = interleaved(ways, options.repetitions)
    PeakFinder.feed = _FIND  # type: ignore[method-assign]
    found = {name: median(runs) for name, runs in runs_s.items()}
    least = round(min(runs_s["with"]) / min(runs_s["without"]), 3)
    return found | {"ratio": round(found["with"] / found["without"], 3), "ratio of the least": least}


def _search_ms(talk: np.ndarray, options: Options) -> float:
    """CPU time of finding the peaks of a minute in chunks as MP3 has them, less that of making the chunks."""
    pcm = np.resize(talk, 60 * RATE).astype("<i2").tobytes()

    def run(feed: Callable[[PeakFinder, bytes], None]) -> float:
        finder = PeakFinder()
        began = time.process_time()
        for start in range(0, len(pcm), _CHUNK_BYTES):
            feed(finder, pcm[start : start + _CHUNK_BYTES])
        finder.take(finished=True)
        return time.process_time() - began

    runs_s = interleaved({"with": partial(run, _FIND), "without": partial(run, _find_none)}, 50)
    return round(1000 * (median(runs_s["with"], 6) - median(runs_s["without"], 6)), 2)


def _stored(hours: float, options: Options) -> dict[str, float]:
    """Sizes in MB, times in ms, of a recording that is speech of changing loudness, and noise."""
    collector = _collected(hours, read(options.talk))
    found = {
        "collected while it is decoded, MB": len(collector._pairs) / 1e6,
        "packing, ms": _median_ms(collector.pack, options),
        "packing allocates, MB": _allocated_mb(collector.pack),
        "stored, MB": len(packed := collector.pack()) / 1e6,
    }
    for points in POINTS:
        answer = partial(_json, packed, points)
        found |= {
            f"{points} points: the answer, ms": _median_ms(answer, options),
            f"{points} points: the answer allocates, MB": _allocated_mb(answer),
            f"{points} points: the answer's size, MB": len(answer()) / 1e6,
            f"{points} points: the event loop is late by, ms": asyncio.run(_lateness_ms(answer, options)),
        }
    return {name: round(value, 2) for name, value in found.items()}


def _collected(hours: float, talk: np.ndarray) -> PeakCollector:
    random = np.random.default_rng(1)
    collector, finder, samples = PeakCollector(), PeakFinder(), 0
    while samples < hours * 3600 * RATE:
        minute = np.resize(np.roll(talk, random.integers(len(talk))), 60 * RATE) * random.uniform(0.3, 1)
        minute += random.normal(0, 30, len(minute))
        finder.feed(np.clip(minute, -32_768, 32_767).astype("<i2").tobytes())
        samples += len(minute)
        collector.add(samples, finder.take(finished=False), finished=False)
    return collector


def _median_ms(work: Callable[[], object], options: Options) -> float:
    return 1000 * median([timed(work) for _ in range(options.repetitions)], 6)


def _allocated_mb(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


async def _lateness_ms(work: Callable[[], object], options: Options) -> float:
    """The median of the longest waits, one for each answer."""
    longest = []
    for _ in range(options.repetitions):
        answer = asyncio.create_task(asyncio.to_thread(work))
        waits, last = [0.0], time.perf_counter()
        while not answer.done():
            await asyncio.sleep(0)
            waits.append(time.perf_counter() - last)
            last = time.perf_counter()
        longest.append(max(waits))
    return 1000 * median(longest, 6)


if __name__ == "__main__":
    run_alone("waveforms", measure, __doc__)
