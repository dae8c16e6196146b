"""Decoding and speech detection of an hour of mp3, by one media worker and by two.

    whisperfleet bench media [--minutes 60] [--repetitions 5] [--json FILE]

Runs the service's own media workers without the rest of the service: decoding and speech probabilities, as
for a job. Also measures the CPU time of the two stages on one core.
"""

import asyncio
import tempfile
import time
from functools import partial
from pathlib import Path

from app.intake.disk import DiskSpace
from app.intake.uploads import Upload
from app.media.pool import MediaPool
from app.recording.clip_search import ClipSearch, RecordingWork
from app.recording.speech import VadParameters
from bench.command import Options
from bench.measuring import Figures, Table, interleaved, median, ratio
from bench.recordings import write
from bench.speech_samples import decode, speech_in
from workers.messages import FRAME_SAMPLES


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure wall times, their ratio, and CPU time by stage, for each length."""
    figures: Figures = {}
    rows = []
    for minutes in options.lengths(60):
        path = folder / f"media-{minutes:g}.mp3"
        write(path, 60 * minutes, options.talk)
        one, two = asyncio.run(_compare(path, options.repetitions)).values()
        cpu = cpu_s(path, folder / "pcm")
        figures[f"{minutes:g} min"] = {"runs_s": [one, two], "ratio": round(ratio(one, two), 3), "cpu_s": cpu}
        real_time = [f"{60 * minutes / seconds:.0f}" for seconds in cpu.values()]
        rows.append(
            [
                f"{minutes:g} min",
                *(f"{median(runs):.2f}" for runs in (one, two)),
                f"{ratio(one, two):.2f}",
                *real_time,
            ]
        )
    columns = ["mp3", "one worker, s", "two, s", "ratio", "decoding, x real time per core", "speech, same"]
    return figures, [Table("Decoding and speech detection", columns, rows)]


async def _compare(path: Path, repetitions: int) -> dict[str, list[float]]:
    """The wall times (s) by pool. They are measured in a thread; the event loop here serves both pools."""
    disk = DiskSpace(Path(tempfile.gettempdir()))
    pools = {"one worker": MediaPool(1, disk), "two workers": MediaPool(2, disk)}
    loop = asyncio.get_running_loop()

    def run(pool: MediaPool) -> float:
        return asyncio.run_coroutine_threadsafe(_process(pool, path), loop).result()

    for pool in pools.values():
        pool.start()
    try:
        ways = {name: partial(run, pool) for name, pool in pools.items()}
        return await asyncio.to_thread(interleaved, ways, repetitions)
    finally:
        await asyncio.gather(*(pool.stop() for pool in pools.values()))


async def _process(pool: MediaPool, path: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        upload = Upload(path, path.name, 0, "")
        work = RecordingWork(job=folder, upload=upload, media_pool=pool, pcm_path=Path(folder) / "pcm")
        search = ClipSearch(work, VadParameters())
        began = time.perf_counter()
        frames = sum([len(found) async for found in search.probabilities()])
        assert frames > 0
        return time.perf_counter() - began


def cpu_s(path: Path, pcm_path: Path) -> dict[str, float]:
    """CPU time (s) of decoding the file and of detecting its speech span by span, in this process."""
    pcm_path.touch()
    speech_in(pcm_path, 1)  # loads the detector
    began = time.process_time()
    samples = decode(path, pcm_path)
    decoded = time.process_time()
    assert speech_in(pcm_path, samples).size == -(-samples // FRAME_SAMPLES)
    return {"decoding": round(decoded - began, 3), "speech": round(time.process_time() - decoded, 3)}
