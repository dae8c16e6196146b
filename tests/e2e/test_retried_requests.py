"""A client that timed out sends the same request again, and gets the finished clips from the cache."""

import subprocess

import httpx
import pytest

from tests.e2e.running import SIMULATED, wait_for

pytestmark = pytest.mark.timeout(120)


def test_only_the_missing_clips_are_transcribed(commands, one_window_each):
    server = commands.ready(**SIMULATED, WHISPER_SIMULATED="clip_ms=100,batch=1")
    undisturbed = server.srt(one_window_each)
    complete = clips(server)
    cut_off_midway(server, one_window_each)
    cut_off = clips(server) - complete
    assert 0 < cut_off < complete

    post(server, one_window_each, response_format="srt", beam_size=1)
    assert clips(server) == 2 * complete + cut_off, "other options are another request"

    assert post(server, one_window_each, response_format="srt").text == undisturbed
    assert clips(server) == 3 * complete

    assert post(server, one_window_each, response_format="srt").text == undisturbed
    assert clips(server) == 4 * complete, "an answered recording is transcribed anew"


def cut_off_midway(server, path):
    """Request subtitles, and disconnect once a clip of them has been transcribed."""
    before = clips(server)
    form = ["-F", f"file=@{path}", "-F", "model=whisper-1", "-F", "response_format=srt"]
    client = subprocess.Popen(["curl", "-s", *form, f"{server.url}/v1/audio/transcriptions"])
    try:
        wait_for(lambda: clips(server) > before)
    finally:
        client.kill()
        client.wait()
    wait_for(lambda: all(row["state"] == "idle" for row in server.workers()))


def clips(server):
    return sum(row["clips"] for row in server.workers())


def post(server, path, **fields):
    answer = httpx.post(
        f"{server.url}/v1/audio/transcriptions",
        data={"model": "whisper-1"} | fields,
        files={"file": (path.name, path.read_bytes())},
        timeout=100,
        trust_env=False,
    )
    answer.raise_for_status()
    return answer
