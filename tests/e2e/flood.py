"""One key that uses a service by every way that a client has, as fast as it may:
`python -m tests.e2e.flood URL KEY JOB RECEIVER SECONDS`.

A process of its own, so that the test that measures somebody else keeps its thread. Prints, as JSON, the
statuses that each way got. Loads are bounded: each way is one task, or some that only wait.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import httpx

from tests.e2e.running import DATA

DRIPPING = 20  # uploads, resumable uploads and corrections each that send a byte in a second
STALLED = 12  # readers each of archives, sounds and segments that read nothing
STREAMS = 40
PAUSE_S = 0.02
TUS = {"Tus-Resumable": "1.0.0"}
SHORT = DATA / "short00.flac"

Way = Callable[[], Awaitable[httpx.Response]]


class Flood:
    """The ways of one key. `seen`: statuses by way."""

    def __init__(self, url: str, key: str, job: str, receiver: str, seconds: float) -> None:
        self._url = httpx.URL(url)
        self._headers = {"Authorization": f"Bearer {key}"}
        self._job = job  # which has succeeded
        self._receiver = receiver  # of webhooks: slow
        self._ends = time.monotonic() + seconds
        limits = httpx.Limits(max_connections=None)
        self._client = httpx.AsyncClient(
            base_url=url, headers=self._headers, timeout=60, trust_env=False, verify=False, limits=limits
        )
        self.seen: dict[str, Counter[str]] = {}

    async def run(self) -> None:
        async with self._client:
            job = self._job
            segments = await self._client.get(f"/v1/jobs/{job}/segments")
            link = await self._client.post(f"/v1/jobs/{job}/links", json={"path": "audio", "format": "flac"})
            path = link.raise_for_status().json()["path"]
            correction = segments.json()
            etag = segments.headers["etag"]
            recording = SHORT.read_bytes()

            def upload() -> Awaitable[httpx.Response]:
                files = {"file": ("a.flac", recording)}
                return self._client.post("/v1/audio/transcriptions", data={"model": "whisper-1"}, files=files)

            def submit() -> Awaitable[httpx.Response]:
                files = {"file": ("a.flac", recording)}
                return self._client.post("/v1/jobs", data={"webhook_url": self._receiver}, files=files)

            def correct() -> Awaitable[httpx.Response]:
                body = {"segments": correction["segments"] * 200}
                return self._client.put(f"/v1/jobs/{job}/segments", json=body, headers={"If-Match": etag})

            def create() -> Awaitable[httpx.Response]:
                headers = TUS | {"Upload-Length": str(1 << 30)}
                return self._client.post("/v1/uploads", headers=headers)

            ways: dict[str, Way] = {
                **{f"upload {number}": upload for number in range(16)},
                "job": submit,
                "correction": correct,
                "resumable upload": create,
                "archive": lambda: self._client.get(f"/v1/jobs/archive?ids={job}&format=srt"),
                "search": lambda: self._client.get("/v1/jobs?q=the"),
                "list": lambda: self._client.get("/v1/jobs?limit=100"),
                "link": lambda: self._client.get(f"{path}&start=0&end=2"),
                "new link": lambda: self._client.post(f"/v1/jobs/{job}/links", json={"path": "result"}),
            }
            head = f"Host: x\r\nAuthorization: {self._headers['Authorization']}\r\n"
            form = "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000000\r\n\r\n"
            body = f"Content-Type: application/json\r\nIf-Match: {etag}\r\nContent-Length: 9000000\r\n\r\n"
            dripping = {
                "dripping upload": f"POST /v1/audio/transcriptions HTTP/1.1\r\n{head}{form}",
                "dripping job": f"POST /v1/jobs HTTP/1.1\r\n{head}{form}",
                "dripping correction": f"PUT /v1/jobs/{job}/segments HTTP/1.1\r\n{head}{body}",
            }
            stalled = {
                "stalled archive": f"GET /v1/jobs/archive?ids={job}&format=json HTTP/1.1\r\n{head}\r\n",
                "stalled link": f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n",
                "stalled segments": f"GET /v1/jobs/{job}/segments HTTP/1.1\r\n{head}\r\n",
                "events": f"GET /v1/workers/events HTTP/1.1\r\n{head}\r\n",
                "events of a job": f"GET /v1/jobs/{job}/events HTTP/1.1\r\n{head}\r\n",
            }
            await asyncio.gather(
                *(self._repeat(name, way) for name, way in ways.items()),
                *(
                    self._hold(name, text.encode(), drips=True)
                    for name, text in dripping.items()
                    for _ in range(DRIPPING)
                ),
                *(
                    self._hold(name, text.encode(), drips=False)
                    for name, text in stalled.items()
                    for _ in range(STREAMS if name == "events" else STALLED)
                ),
            )

    async def _repeat(self, name: str, way: Way, most: int = 1_000_000) -> None:
        statuses = self.seen.setdefault(name.rstrip("0123456789 "), Counter())
        while time.monotonic() < self._ends and statuses.total() < most:
            try:
                statuses[str((await way()).status_code)] += 1
            except httpx.TransportError as error:
                statuses[type(error).__name__] += 1
            await asyncio.sleep(PAUSE_S)

    async def _hold(self, name: str, request: bytes, *, drips: bool) -> None:
        """Connections that send a byte in a second, or read nothing: a new one when one is closed."""
        statuses = self.seen.setdefault(name, Counter())
        while time.monotonic() < self._ends:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(self._url.host, self._url.port, limit=1024)
                writer.write(request)
                try:
                    while time.monotonic() < self._ends and not reader.at_eof():
                        await asyncio.sleep(1)
                        if drips:
                            writer.write(b"-")
                            await writer.drain()
                    status = (await reader.read(12) + b" " * 12)[9:12].decode().strip()
                    statuses[status or "none"] += 1
                finally:
                    writer.close()
            await asyncio.sleep(PAUSE_S)


async def main(
    kind: type[Flood], url: str, key: str, job: str, receiver: str, seconds: str
) -> dict[str, Any]:
    flood = kind(url, key, job, receiver, float(seconds))
    await flood.run()
    return {name: dict(statuses) for name, statuses in flood.seen.items()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Flood, *sys.argv[1:]))))
