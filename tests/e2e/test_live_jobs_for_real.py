"""Jobs of live streams, from the microphone to the transcript, and through a kill of the service."""

import base64
import json
import wave
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.e2e.fixtures import Commands
from tests.e2e.live_clients import stream_audio
from tests.e2e.running import Server, wait_for
from tests.media_files import read_pcm

pytestmark = pytest.mark.timeout(120)

RATE, PART = 24_000, 9600  # Hz, bytes


def live_job(server: Server) -> tuple[ClientConnection, str]:
    """A stream with a job, whose id it has told."""
    url = f"{server.url.replace('http', 'ws', 1)}/v1/realtime?job=true"
    client = connect(url, proxy=None).__enter__()
    return client, json.loads(client.recv())["job_id"]


def play(client: ClientConnection, audio: bytes) -> None:
    for start in range(0, len(audio), PART):
        part = base64.b64encode(audio[start : start + PART]).decode()
        client.send(json.dumps({"type": "input_audio_buffer.append", "audio": part}))


def so_far(server: Server, job: str) -> dict[str, Any]:
    document: dict[str, Any] = server.client.get(f"/v1/jobs/{job}/segments").raise_for_status().json()
    return document


def uploaded(server: Server, audio: bytes, folder: Path) -> dict[str, Any]:
    """The segments of a job with a file of this sound."""
    path = folder / "uploaded.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(audio)
    return so_far(server, server.finished(server.submit(path)["id"])["id"])


def test_the_text_of_a_live_job_is_that_of_an_upload_of_its_sound(server, shorts, tmp_path):
    audio = b"".join(stream_audio(read_pcm(path)) for path in shorts)
    client, job = live_job(server)
    play(client, audio)
    document = wait_for(lambda: (found := so_far(server, job))["segments"] and found)
    assert not document["complete"]
    client.close()
    assert server.finished(job)["status"] == "succeeded"
    assert server.client.get(f"/v1/jobs/{job}/audio").content[44:] == audio
    assert so_far(server, job) == uploaded(server, audio, tmp_path)


def test_a_killed_service_has_a_job_with_what_came(commands: Commands, shorts, tmp_path):
    settings = {"WHISPER_GPUS": "0"}
    first = commands.ready(**settings)
    audio = b"".join(stream_audio(read_pcm(path)) for path in shorts[:2])
    audio = audio[: len(audio) // (2 * RATE) * 2 * RATE]  # what is not a whole second may be lost
    client, job = live_job(first)
    play(client, audio)
    recording = first.data / "uploads" / job
    wait_for(lambda: recording.exists() and recording.stat().st_size == 44 + len(audio))
    first.die()
    with suppress(ConnectionClosed):
        client.close()
    second = commands.restart(first, **settings)
    assert second.finished(job)["status"] == "succeeded"
    assert so_far(second, job) == uploaded(second, audio, tmp_path)
