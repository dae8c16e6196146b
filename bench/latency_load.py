"""What clients do to the service while bench.latency polls it. Runs in a process of its own."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.queues import Queue
from pathlib import Path

import httpx

FORMATS = ("srt", "json", "verbose_json", "vtt")
UPLOAD_BYTES = 100 * 10**6
_UPLOAD_BYTES_PER_S = 20 * 10**6
_CHUNK_BYTES = 1 << 18
_NICENESS = 5  # real clients have machines of their own

Times = dict[str, list[float]]  # of requests, by what they ask (s)


@dataclass(frozen=True)
class Targets:
    """The service under load, and what its clients ask for."""

    url: str
    long_job: str  # has a long transcript and many events
    running_job: str
    recording: Path  # of some minutes
    clip: Path  # of some seconds


def run_load(targets: Targets, times: "Queue[Times]", seconds: float) -> None:
    """Send all kinds of requests for so many seconds, and put the times of each kind into the queue."""
    os.nice(_NICENESS)
    times.put(asyncio.run(_Load(targets).run(seconds)))


class _Load:
    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._times: Times = defaultdict(list)

    async def run(self, seconds: float) -> Times:
        targets = self._targets
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=targets.url, timeout=None, trust_env=False, limits=limits
        ) as client:
            self._client = client
            tasks = [
                asyncio.create_task(self._repeat(name, pause_s, work))
                for name, pause_s, work in (
                    ("result of ten hours", 0.5, self._result(cycle(FORMATS))),
                    ("result of ten hours", 0.5, self._result(cycle(FORMATS[::-1]))),
                    ("list of 100 jobs", 0.3, self._get("/v1/jobs?limit=100")),
                    ("list of workers", 1.0, self._get("/v1/workers")),
                    ("upload of 100 MB", 0.5, self._upload),
                    ("events of ten hours", 1.0, self._events),
                    ("4 s of speech", 0.2, self._transcribe(targets.clip, "text")),
                    ("4 s of speech", 0.2, self._transcribe(targets.clip, "verbose_json")),
                    ("5 min of speech", 0.2, self._transcribe(targets.recording, "srt")),
                    ("5 min of speech, stream", 0.2, self._stream),
                    *([("", 1.0, self._follow)] * 5),
                )
            ]
            await asyncio.sleep(seconds)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._times.pop("", None)
        return dict(self._times)

    async def _repeat(self, name: str, pause_s: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            began = time.perf_counter()
            with suppress(httpx.HTTPStatusError):
                await work()
                self._times[name].append(time.perf_counter() - began)
            await asyncio.sleep(pause_s)

    def _get(self, path: str) -> Callable[[], Awaitable[None]]:
        async def get() -> None:
            (await self._client.get(path)).raise_for_status()

        return get

    def _result(self, formats: "cycle[str]") -> Callable[[], Awaitable[None]]:
        async def get() -> None:
            path = f"/v1/jobs/{self._targets.long_job}/result"
            (await self._client.get(path, params={"format": next(formats)})).raise_for_status()

        return get

    async def _upload(self) -> None:
        boundary = "latency"
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="silence.raw"\r\n\r\n'
        chunk = bytes(_CHUNK_BYTES)

        async def body() -> AsyncIterator[bytes]:
            yield head.encode()
            for _ in range(UPLOAD_BYTES // _CHUNK_BYTES):
                yield chunk
                await asyncio.sleep(_CHUNK_BYTES / _UPLOAD_BYTES_PER_S)
            yield f"\r\n--{boundary}--\r\n".encode()

        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        answer = await self._client.post("/v1/jobs", content=body(), headers=kind)
        await self._client.delete(f"/v1/jobs/{answer.raise_for_status().json()['id']}")

    async def _events(self) -> None:
        await self._get(f"/v1/jobs/{self._targets.long_job}/events")()

    async def _follow(self) -> None:
        path = f"/v1/jobs/{self._targets.running_job}/events"
        async with self._client.stream("GET", path) as answer:
            async for _ in answer.aiter_raw():
                pass

    def _transcribe(self, path: Path, response_format: str) -> Callable[[], Awaitable[None]]:
        content = path.read_bytes()

        async def transcribe() -> None:
            answer = await self._client.post(
                "/v1/audio/transcriptions",
                files={"file": (path.name, content)},
                data={"model": "whisper-1", "response_format": response_format},
            )
            answer.raise_for_status()

        return transcribe

    async def _stream(self) -> None:
        recording = self._targets.recording
        async with self._client.stream(
            "POST",
            "/v1/audio/transcriptions",
            files={"file": (recording.name, recording.read_bytes())},
            data={"model": "whisper-1", "stream": "true"},
        ) as answer:
            async for _ in answer.aiter_raw():
                pass
