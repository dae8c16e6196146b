"""A client whose time-out cut it off sends the same again, and does not pay twice."""

import subprocess

import httpx
import pytest

from tests.e2e.running import wait_for

pytestmark = pytest.mark.timeout(120)


def test_only_the_missing_clips_are_heard(commands, two_minutes):
    server = commands.ready(WHISPER_BATCH_SIZE=1)
    undisturbed = server.srt(two_minutes)
    whole = clips(server)
    cut_off_midway(server, two_minutes)
    cut_off = clips(server) - whole
    assert 0 < cut_off < whole

    assert ask(server, two_minutes, response_format="srt").text == undisturbed
    assert clips(server) == 2 * whole

    assert ask(server, two_minutes, response_format="srt").text == undisturbed
    assert clips(server) == 3 * whole, "an answered recording is heard anew"


@pytest.mark.soak
def test_other_options_are_another_question(commands, two_minutes):
    server = commands.ready(WHISPER_BATCH_SIZE=1)
    cut_off_midway(server, two_minutes)
    before = clips(server)
    ask(server, two_minutes, response_format="srt", beam_size=1)
    other = clips(server) - before
    ask(server, two_minutes, response_format="srt")
    assert clips(server) == other * 2


def cut_off_midway(server, path):
    """Ask for subtitles, and go away once a clip of them has been heard."""
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


def ask(server, path, **fields):
    answer = httpx.post(
        f"{server.url}/v1/audio/transcriptions",
        data={"model": "whisper-1"} | fields,
        files={"file": (path.name, path.read_bytes())},
        timeout=100,
        trust_env=False,
    )
    answer.raise_for_status()
    return answer
