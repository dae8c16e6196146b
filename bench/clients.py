"""64 clients with four seconds of speech each: all at once, against one at a time.

    python -m bench.clients [--threads 1] [--repetitions 5] [--json FILE]

Two workers. Both ways send the same clips and wait for the text. Times are those of single requests.
"""

import asyncio
import time
from pathlib import Path

import httpx
import numpy as np

from bench.command import Options, run_alone
from bench.measuring import Figures, Table, interleaved, median
from bench.recordings import clips_of
from bench.scaling import two_workers
from bench.service import running_service

CLIENTS = 64
CLIP_S = 4.0
AT_ONCE, IN_TURN = "all at once", "one at a time"


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure clips per second and the times of single requests, both ways."""
    clips = clips_of(CLIP_S, 8 if options.quick else CLIENTS)
    waits: dict[str, list[list[float]]] = {AT_ONCE: [], IN_TURN: []}
    with running_service(**two_workers(options.threads)) as client:
        url = str(client.base_url)

        def run(name: str) -> float:
            began = time.perf_counter()
            waits[name].append(asyncio.run(_send_all(url, clips, len(clips) if name == AT_ONCE else 1)))
            return time.perf_counter() - began

        runs_s = interleaved(
            {AT_ONCE: lambda: run(AT_ONCE), IN_TURN: lambda: run(IN_TURN)}, options.repetitions
        )
    ratios = [slow / fast for slow, fast in zip(runs_s[IN_TURN], runs_s[AT_ONCE], strict=True)]
    found = {
        name: {
            "clips_per_s": median([len(clips) / seconds for seconds in runs_s[name]], 2),
            "p50_s": median([float(np.percentile(run, 50)) for run in waits[name][1:]]),
            "p99_s": median([float(np.percentile(run, 99)) for run in waits[name][1:]]),
        }
        for name in runs_s
    }
    rows = [[name, *(f"{value:.2f}" for value in row.values())] for name, row in found.items()]
    rows.append(["ratio of clips per second", f"{median(ratios):.2f}", "", ""])
    figures = {"clients": len(clips), "clip_s": CLIP_S, "runs_s": runs_s, "ratio": median(ratios)} | found
    columns = ["", "clips per s", "p50, s", "p99, s"]
    return figures, [Table(f"{len(clips)} clips of {CLIP_S:g} s, two workers", columns, rows)]


async def _send_all(url: str, clips: list[bytes], at_once: int) -> list[float]:
    """The time of each request (s), with at most `at_once` requests at a time."""
    limit = asyncio.Semaphore(at_once)
    limits = httpx.Limits(max_connections=at_once)
    async with httpx.AsyncClient(base_url=url, timeout=None, trust_env=False, limits=limits) as client:

        async def send(clip: bytes) -> float:
            async with limit:
                began = time.perf_counter()
                answer = await client.post(
                    "/v1/audio/transcriptions",
                    files={"file": ("clip.wav", clip)},
                    data={"model": "whisper-1", "response_format": "text"},
                )
                answer.raise_for_status()
                return time.perf_counter() - began

        return await asyncio.gather(*(send(clip) for clip in clips))


if __name__ == "__main__":
    run_alone("clients", measure, __doc__)
