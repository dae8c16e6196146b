"""python transcribe_job.py film.mkv film.srt [language]"""

import os
import sys
import time
import uuid
from functools import partial
from pathlib import Path

import httpx

SERVER = os.environ.get("WHISPERFLEET", "http://localhost:8000")
KEY = os.environ.get("WHISPER_API_KEY", "unused")


def patiently(send):
    """The response to `send()`, repeated while the service is full, restarts or cannot be reached."""
    for pause in [1, 2, 5, 10, 20] + [30] * 120:
        try:
            response = send()
        except httpx.TransportError as error:
            print(f"{SERVER}: {error}; waiting", file=sys.stderr)
        else:
            if response.status_code not in (429, 502, 503, 504):
                break
            pause = int(response.headers.get("Retry-After", pause))
        time.sleep(pause)
    else:
        sys.exit(f"{SERVER} did not answer for an hour")
    if response.is_error:
        sys.exit(response.json()["error"]["message"])
    return response


def transcribe(client, path, **options):
    """The finished job of a recording."""
    # With this header, a repeated request finds its job instead of making a second one.
    headers = {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/octet-stream"}

    def submit():
        with Path(path).open("rb") as recording:
            query = {"filename": Path(path).name, **options}
            return client.post("/v1/jobs", params=query, content=recording, headers=headers)

    job = patiently(submit).json()
    while job["status"] in ("queued", "running"):
        time.sleep(1)
        job = patiently(partial(client.get, f"/v1/jobs/{job['id']}")).json()
        progress = job["progress"]
        print(
            f"{job['status']}: {progress['done_s']:.0f} of {progress['total_s'] or 0:.0f} s", file=sys.stderr
        )
    if job["status"] != "succeeded":
        sys.exit(f"{path}: {job['status']}: {job['error']}")
    return job


if __name__ == "__main__":
    options = {"language": sys.argv[3]} if len(sys.argv) > 3 else {}
    with httpx.Client(base_url=SERVER, headers={"Authorization": f"Bearer {KEY}"}, timeout=300) as client:
        job = transcribe(client, sys.argv[1], **options)
        result = f"/v1/jobs/{job['id']}/result"
        subtitles = patiently(lambda: client.get(result, params={"format": "srt"}))
    Path(sys.argv[2]).write_bytes(subtitles.content)
