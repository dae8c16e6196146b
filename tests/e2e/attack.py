"""One owner that does whatever once made a service slow or large, all at once:
`python -m tests.e2e.attack URL KEY JOB RECEIVER SECONDS`, as `tests.e2e.flood`.
"""

import asyncio
import io
import json
import os
import sys
import time
from collections.abc import Awaitable
from functools import partial
from typing import Any

import av
import httpx
import numpy as np

from tests.e2e.flood import SHORT, Flood, main
from tests.media_files import RATE, costly_silence, encode

NAMES = 30_000  # of speakers in a correction
MOST_NAMES = 250  # that one may have
TRACKS = 1000
READERS = 40
STREAMS = 20
COSTLY_S = 120
LARGE_S = 300  # of noise: 10 MB
LARGE_JOBS = 20
ELSEWHERE = 19  # niceness: clients have a machine of their own


def titled_tracks() -> bytes:
    """A film with very many sound tracks, each with a long title."""
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as output:
        for number in range(TRACKS):
            stream: Any = output.add_stream("pcm_s16le", rate=RATE, layout="mono")
            stream.metadata["title"] = f"{number:04}" * 50
        frame = av.AudioFrame.from_ndarray(np.ones((1, RATE), np.int16), format="s16", layout="mono")
        frame.sample_rate = RATE
        output.mux(output.streams[0].encode(frame))  # type: ignore[attr-defined]
    return file.getvalue()


def spoken_by(names: int) -> list[dict[str, Any]]:
    """The segments of a correction: one of a millisecond by each."""
    return [
        {"start": at / 1000, "end": (at + 1) / 1000, "text": "a", "speaker": f"{at:0100}"}
        for at in range(names)
    ]


def recordings() -> dict[str, bytes]:
    noise = np.random.default_rng(1).integers(-3000, 3000, LARGE_S * RATE, np.int16)
    return {
        "costly": costly_silence(COSTLY_S),
        "tracks": titled_tracks(),
        "large": encode(noise, "wav", "pcm_s16le"),
        "short": SHORT.read_bytes(),
    }


class Attack(Flood):
    """The ways of one owner, and of those with whom it has shared its job. `seen`: statuses by way."""

    async def run(self) -> None:
        os.nice(ELSEWHERE)
        began = time.monotonic()
        files = recordings()
        self._ends += time.monotonic() - began
        async with self._client:
            job, segments = self._job, f"/v1/jobs/{self._job}/segments"
            shared = await self._client.post(f"/v1/jobs/{job}/shared", json={"correct": True})
            anonymous = {"Authorization": f"Bearer {shared.raise_for_status().json()['token']}"}

            def post(path: str, name: str, **fields: str) -> Awaitable[httpx.Response]:
                content = {"file": (name, files[name])}
                return self._client.post(path, data={"model": "whisper-1"} | fields, files=content)

            def correct(entries: Any, **headers: str) -> Awaitable[httpx.Response]:
                headers = {"If-Match": "*"} | headers
                return self._client.put(segments, json={"segments": entries}, headers=headers)

            transcribe, submit = partial(post, "/v1/audio/transcriptions"), partial(post, "/v1/jobs")
            crowd, few, one = spoken_by(NAMES), spoken_by(MOST_NAMES), spoken_by(1)
            head, by_link = (
                f"Host: x\r\nAuthorization: {each['Authorization']}\r\n\r\n"
                for each in (self._headers, anonymous)
            )
            held = {
                "document": f"GET /v1/jobs/{job} HTTP/1.1\r\n{by_link}",
                "list": f"GET /v1/jobs?limit=100 HTTP/1.1\r\n{head}",
                "segments by link": f"GET {segments} HTTP/1.1\r\n{by_link}",
            }
            streams = {
                "events": f"GET /v1/workers/events HTTP/1.1\r\n{head}",
                "events of a job by link": f"GET /v1/jobs/{job}/events HTTP/1.1\r\n{by_link}",
            }
            await asyncio.gather(
                self._repeat("names", lambda: correct(crowd)),
                self._repeat("many names", lambda: correct(few)),
                *(
                    self._repeat(f"correction by link {number}", lambda: correct(one, **anonymous))
                    for number in range(4)
                ),
                self._repeat("titled tracks", lambda: submit("tracks")),
                *(self._repeat(f"costly file {number}", lambda: transcribe("costly")) for number in range(8)),
                *(self._repeat(f"costly job {number}", lambda: submit("costly")) for number in range(2)),
                self._repeat("job", lambda: submit("short", webhook_url=self._receiver)),
                self._repeat("large job", lambda: submit("large"), most=LARGE_JOBS),
                self._repeat("documents", lambda: self._client.get("/v1/jobs?limit=100")),
                *(
                    self._hold(name, request.encode(), drips=False)
                    for name, request in held.items()
                    for _ in range(READERS)
                ),
                *(
                    self._hold(name, request.encode(), drips=False)
                    for name, request in streams.items()
                    for _ in range(STREAMS)
                ),
            )


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Attack, *sys.argv[1:]))))
