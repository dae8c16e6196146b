"""The cost of large uploads, long recordings and many polling clients for the server process.

    python -m bench.endurance [upload] [recording] [polling] [--quick] [--json FILE]    (default: all three)

Each part starts a service of its own with the demo model on two CPU workers, generates its recording from a
talk of the tests, and prints a line of figures. `--json` also writes them to a file.
"""

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil

from bench.command import chosen, parser_of
from bench.latency import CLIENTS, poll
from bench.measuring import write_json
from bench.recordings import TALK, write, write_large
from bench.service import finished_job, job_row, running_service, server_process, submit_job, wait_for

MIB = 1 << 20
UPLOAD_BYTES = 2 << 30
RECORDING_S = 10 * 3600
POLLED_S = 4 * 3600
POLLING_S = 60.0
WORKERS = {"WHISPER_GPUS": "0,1", "WHISPER_CPU_THREADS": "1"}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__, PARTS)
    parsed = parser.parse_args(arguments)
    figures = {}
    for part, measure in chosen(parser, parsed.parts, PARTS).items():
        figures[part] = measure(0.01 if parsed.quick else 1.0)
        print(part, json.dumps(figures[part]))
    if parsed.json:
        write_json(parsed.json, figures)


def upload(part: float) -> dict[str, float]:
    """A job with a recording of 2 GiB: 48 kHz stereo, most of it silence."""
    with tempfile.TemporaryDirectory() as folder, running_service(**WORKERS) as client:
        path = Path(folder) / "large.wav"
        write_large(path, round(part * UPLOAD_BYTES), talk=True)
        with watched(client) as memory:
            began = time.monotonic()
            job_id = submit_job(client, path)
            uploaded_s = time.monotonic() - began
            grown_at_upload = memory.grown_mib
            job = finished_job(client, job_id)
        return {
            "GiB": round(path.stat().st_size / (1 << 30), 3),
            "upload_s": round(uploaded_s, 1),
            "total_s": round(time.monotonic() - began, 1),
            "hours": round(job["duration"] / 3600, 2),
            "server_grown_while_uploading_mib": grown_at_upload,
            "server_grown_mib": memory.grown_mib,
        }


def recording(part: float) -> dict[str, float]:
    """A job with ten hours of talk, and its subtitles."""
    with tempfile.TemporaryDirectory() as folder, running_service(**WORKERS) as client:
        path = Path(folder) / "long.wav"
        write(path, part * RECORDING_S)
        with watched(client) as memory:
            began = time.monotonic()
            job = finished_job(client, submit_job(client, path))
            took_s = time.monotonic() - began
            grown_at_work = memory.grown_mib
            subtitles = client.get(f"/v1/jobs/{job['id']}/result", params={"format": "srt"}).text
        return {
            "hours": round(job["duration"] / 3600, 2),
            "took_s": round(took_s, 1),
            "realtime_factor": job["progress"]["realtime_factor"],
            "clips": job["progress"]["clips_done"],
            "cues": subtitles.count(" --> "),
            "server_grown_at_work_mib": grown_at_work,
            "server_grown_mib": memory.grown_mib,
        }


def polling(part: float) -> dict[str, float]:
    """50 clients request `/health` and a job once a second each, while all workers are busy."""
    seconds = max(part * POLLING_S, 2.0)
    with tempfile.TemporaryDirectory() as folder, running_service(**WORKERS) as client:
        path = Path(folder) / "long.wav"
        write(path, max(part, 0.1) * POLLED_S)
        job = submit_job(client, path)
        wait_for(lambda: job_row(client, job)["progress"]["clips_done"] >= 4, 600)
        took = asyncio.run(poll(str(client.base_url), job, seconds, period_s=0.5))
        assert job_row(client, job)["status"] == "running", "the job was too short"
        client.delete(f"/v1/jobs/{job}").raise_for_status()
    figures: dict[str, float] = {"clients": CLIENTS, "seconds": seconds}
    for name, times in took.items():
        figures |= {
            f"{name}_requests": len(times),
            f"{name}_p50_ms": round(1000 * float(np.percentile(times, 50)), 1),
            f"{name}_p99_ms": round(1000 * float(np.percentile(times, 99)), 1),
            f"{name}_max_ms": round(1000 * max(times), 1),
        }
    return figures


class Memory:
    """The peak growth of a process's resident memory since this object was created."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._before = self._process.memory_info().rss
        self.peak = self._before

    def sample(self) -> None:
        self.peak = max(self.peak, self._process.memory_info().rss)

    @property
    def grown_mib(self) -> float:
        return round((self.peak - self._before) / MIB, 1)


@contextmanager
def watched(client: httpx.Client) -> Iterator[Memory]:
    """The memory of the server process, sampled ten times a second.

    Each part of the service is used once before, so that only the cost of a recording is measured.
    """
    job = finished_job(client, submit_job(client, TALK))
    client.get(f"/v1/jobs/{job['id']}/result", params={"format": "srt"}).raise_for_status()
    memory, over = Memory(server_process(client)), threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            memory.sample()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory
    finally:
        over.set()
        thread.join()


PARTS = {"upload": upload, "recording": recording, "polling": polling}

if __name__ == "__main__":
    main()
