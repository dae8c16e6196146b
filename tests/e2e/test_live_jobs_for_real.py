"""Jobs of live streams, from the microphone to the transcript, and through a kill of the service."""

import base64
import json
import socket
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


def opened(server: Server, query: str = "job=true") -> tuple[ClientConnection, dict[str, Any]]:
    """A stream, and its first event."""
    client = connect(
        f"{server.url.replace('http', 'ws', 1)}/v1/realtime?{query}", proxy=None, max_queue=None
    ).__enter__()
    created: dict[str, Any] = json.loads(client.recv())
    return client, created


def live_job(server: Server) -> tuple[ClientConnection, str]:
    """A stream with a job, whose id it has told."""
    client, created = opened(server)
    return client, created["job_id"]


def play(client: ClientConnection, audio: bytes) -> None:
    for start in range(0, len(audio), PART):
        part = base64.b64encode(audio[start : start + PART]).decode()
        client.send(json.dumps({"type": "input_audio_buffer.append", "audio": part}))


def acknowledged(client: ClientConnection) -> tuple[int, str]:
    """How many bytes of sound the service has, and the id of the event that says so."""
    client.send(json.dumps({"type": "session.update", "session": {"type": "transcription"}}))
    while (event := json.loads(client.recv()))["type"] != "session.updated":
        pass
    return event["session"]["received_bytes"], event["event_id"]


def so_far(server: Server, job: str) -> dict[str, Any]:
    document: dict[str, Any] = server.client.get(f"/v1/jobs/{job}/segments").raise_for_status().json()
    return document


def uploaded(server: Server, audio: bytes, folder: Path, **form: str) -> dict[str, Any]:
    """The segments of a job with a file of this sound."""
    path = folder / "uploaded.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(audio)
    return so_far(server, server.finished(server.submit(path, **form)["id"], 900)["id"])


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


@pytest.mark.parametrize(
    "times", [1, pytest.param(35, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="40 minutes")]
)
def test_corrections_and_sound_outlive_broken_connections_and_a_kill(
    commands: Commands, dialogue, tmp_path, times
):
    """The client sends what the service has not got, after each cut, and after the restart."""
    settings = {"WHISPER_GPUS": "0"}
    first = commands.ready(**settings)
    audio = stream_audio(read_pcm(dialogue.path)) * times
    client, created = opened(first, "job=true&diarize=true")
    job, session, sent = created["job_id"], created["session"]["id"], 0
    for part in (1, 2, 3):
        middle, until = (2 * part - 1) * len(audio) // 10, part * len(audio) // 5
        play(client, audio[sent:middle])
        received, seen = acknowledged(client)
        assert received == middle
        play(client, audio[middle:until])
        client.socket.shutdown(socket.SHUT_RDWR)  # what is on its way is lost
        client, created = opened(first, f"session={session}&last_event_id={seen}")
        sent = created["session"]["received_bytes"]
        assert middle <= sent <= until
    play(client, audio[sent : 4 * len(audio) // 5])
    acknowledged(client)
    wait_for(lambda: len(so_far(first, job)["segments"]) > 1)
    seen_text = first.client.get(f"/v1/jobs/{job}/segments")
    document, headers = seen_text.json(), {"if-match": seen_text.headers["etag"]}
    named, corrected = document["segments"][:2]
    named["speaker"], corrected["text"] = "Ann", "The corrected car remains new."
    first.client.put(f"/v1/jobs/{job}/segments", json=document, headers=headers).raise_for_status()
    first.die()
    with suppress(ConnectionClosed, OSError):
        client.close()
    second = commands.restart(first, **settings)
    client, created = opened(second, f"job=true&diarize=true&job_id={job}")
    assert created["job_id"] == job
    play(client, audio[created["session"]["received_bytes"] :])
    client.close()
    assert second.finished(job, 900)["status"] == "succeeded"
    assert second.client.get(f"/v1/jobs/{job}/audio").content[44:] == audio
    upload = uploaded(second, audio, tmp_path, diarize="true")
    original = second.client.get(f"/v1/jobs/{job}/segments?revision=original").json()
    assert original == upload
    names = {upload["segments"][0]["speaker"]: "Ann"}
    expected = [(each["text"], names.get(each["speaker"], each["speaker"])) for each in upload["segments"]]
    expected[1] = (corrected["text"], expected[1][1])
    assert [(each["text"], each["speaker"]) for each in so_far(second, job)["segments"]] == expected
