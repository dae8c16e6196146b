"""The cost of large uploads, long recordings and many polling clients for the server process.

    python -m bench.endurance [upload] [recording] [polling] [--json FILE]      (default: all three)

Each part starts a service of its own with the demo model on two CPU workers, generates its recording from a
talk of the tests, and prints a line of figures. `--json` also writes them to a file.
"""

import argparse
import asyncio
import json
import tempfile
import threading
import time
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil

from bench.service import running_service

TALK = Path(__file__).parents[1] / "tests" / "data" / "talk.flac"
MIB = 1 << 20
UPLOAD_BYTES = 2 << 30
RECORDING_S = 10 * 3600
CLIENTS = 50
POLLED_S = 4 * 3600
POLLING_S = 60.0
WORKERS = {"WHISPER_GPUS": "0,1", "WHISPER_CPU_THREADS": "1"}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    # Without `choices`: some versions of argparse check the empty list against them.
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--json", type=Path, help="file for the figures")
    parsed = parser.parse_args(arguments)
    unknown = [part for part in parsed.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    figures = {}
    for part in parsed.parts or PARTS:
        figures[part] = PARTS[part]()
        print(part, json.dumps(figures[part]))
    if parsed.json:
        parsed.json.write_text(json.dumps(figures, indent=2))


def upload() -> dict[str, float]:
    """A job with a recording of 2 GiB: 48 kHz stereo, most of it silence."""
    with tempfile.TemporaryDirectory() as folder, running_service(**WORKERS) as client:
        path = Path(folder) / "large.wav"
        write_recording(path, 48_000, 2, UPLOAD_BYTES // (48_000 * 2 * 2), talk_s=60)
        warm_up(client)
        began = time.monotonic()
        with watched(client) as memory:
            job = submit(client, path)
            uploaded_s = time.monotonic() - began
            grown_at_upload = memory.grown_mib
            job = finished(client, job["id"])
        return {
            "GiB": round(path.stat().st_size / (1 << 30), 3),
            "upload_s": round(uploaded_s, 1),
            "total_s": round(time.monotonic() - began, 1),
            "hours": round(job["duration"] / 3600, 2),
            "server_grown_while_uploading_mib": grown_at_upload,
            "server_grown_mib": memory.grown_mib,
        }


def recording() -> dict[str, float]:
    """A job with ten hours of talk, and its subtitles."""
    with tempfile.TemporaryDirectory() as folder, running_service(**WORKERS) as client:
        path = Path(folder) / "long.wav"
        write_recording(path, 16_000, 1, RECORDING_S, talk_s=RECORDING_S)
        warm_up(client)
        began = time.monotonic()
        with watched(client) as memory:
            job = finished(client, submit(client, path)["id"])
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


def polling() -> dict[str, float]:
    """50 clients request `/health` and a job once a second each, while all workers are busy."""
    with tempfile.TemporaryDirectory() as folder, running_service(**WORKERS) as client:
        path = Path(folder) / "long.wav"
        write_recording(path, 16_000, 1, POLLED_S, talk_s=POLLED_S)
        job = submit(client, path)
        while client.get(f"/v1/jobs/{job['id']}").json()["progress"]["clips_done"] < 4:
            time.sleep(0.5)
        took = asyncio.run(poll_all(str(client.base_url), f"/v1/jobs/{job['id']}"))
        assert client.get(f"/v1/jobs/{job['id']}").json()["status"] == "running", "the job was too short"
        client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    figures: dict[str, float] = {"clients": CLIENTS, "seconds": POLLING_S}
    for name, times in took.items():
        figures |= {
            f"{name}_requests": len(times),
            f"{name}_p50_ms": round(1000 * float(np.percentile(times, 50)), 1),
            f"{name}_p99_ms": round(1000 * float(np.percentile(times, 99)), 1),
            f"{name}_max_ms": round(1000 * max(times), 1),
        }
    return figures


async def poll_all(url: str, job_path: str) -> dict[str, list[float]]:
    """The time of each answer (s)."""
    took: dict[str, list[float]] = {"health": [], "job": []}

    async def one(number: int) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
            await asyncio.sleep(number / CLIENTS)
            end = time.monotonic() + POLLING_S
            while time.monotonic() < end:
                second = time.monotonic() + 1
                for name, path in (("health", "/health"), ("job", job_path)):
                    began = time.perf_counter()
                    (await client.get(path)).raise_for_status()
                    took[name].append(time.perf_counter() - began)
                await asyncio.sleep(max(0.0, second - time.monotonic()))

    await asyncio.gather(*(one(number) for number in range(CLIENTS)))
    return took


class Memory:
    """The peak growth of a process's resident memory since this object was created."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._before = self._process.memory_info().rss
        self.peak = self._before

    def sample(self) -> None:
        self.peak = max(self.peak, self._process.memory_info().rss)

    @property
    def grown_mib(self) -> float:
        return round((self.peak - self._before) / MIB, 1)


@contextmanager
def watched(client: httpx.Client) -> Iterator[Memory]:
    """The memory of the server process, sampled ten times a second."""
    worker = client.get("/v1/workers").json()["data"][0]["pid"]
    memory, over = Memory(psutil.Process(worker).ppid()), threading.Event()

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


def warm_up(client: httpx.Client) -> None:
    """Use each part of the service once, so that only the cost of a recording is measured."""
    job = finished(client, submit(client, TALK)["id"])
    client.get(f"/v1/jobs/{job['id']}/result", params={"format": "srt"}).raise_for_status()


def submit(client: httpx.Client, path: Path) -> dict:
    with path.open("rb") as content:
        kind = {"Content-Type": "application/octet-stream"}
        answer = client.post("/v1/jobs", content=content, params={"filename": path.name}, headers=kind)
    return answer.raise_for_status().json()


def finished(client: httpx.Client, job_id: str) -> dict:
    while (job := client.get(f"/v1/jobs/{job_id}").raise_for_status().json())["status"] != "succeeded":
        assert job["status"] in ("queued", "running"), job
        time.sleep(0.5)
    return job


def write_recording(path: Path, rate: int, channels: int, length_s: float, talk_s: float) -> None:
    """Write a WAV file: the talk repeated for `talk_s`, then silence."""
    pcm = read_talk(rate)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        left, talk_left = round(length_s * rate), round(talk_s * rate)
        while left > 0:
            chunk = pcm[:left] if talk_left > 0 else np.zeros(min(left, len(pcm)), np.int16)
            file.writeframes(np.repeat(chunk, channels).astype("<i2").tobytes())
            left -= len(chunk)
            talk_left -= len(chunk)


def read_talk(rate: int) -> np.ndarray:
    """The talk as mono int16 at `rate`, a multiple of 16 kHz, by repeating samples."""
    import av

    with av.open(str(TALK)) as container:
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
    return np.repeat(np.concatenate(frames, axis=1)[0], rate // 16_000)


PARTS = {"upload": upload, "recording": recording, "polling": polling}

if __name__ == "__main__":
    main()
