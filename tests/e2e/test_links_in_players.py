"""Links to audio and results, from the real service with keys: in players, after a restart, in its log."""

import base64
import io
import re
import signal
import socket
import sqlite3

import httpx
import numpy as np
import pytest
import soundfile

from tests.e2e.running import SIMULATED

pytestmark = pytest.mark.timeout(180)

KEY = "sk-of-nobody-else"
DEBUG = SIMULATED | {"key": KEY, "WHISPER_API_KEYS": KEY, "WHISPER_LOG_LEVEL": "debug"}


@pytest.fixture
def stranger():
    """A client without a key, as a player in a browser."""
    with httpx.Client(timeout=60, trust_env=False) as client:
        yield client


def link(server, job, **body):
    """The URL of a new link."""
    response = server.client.post(f"/v1/jobs/{job}/links", json=body)
    assert response.status_code == 201, response.text
    return server.url + response.json()["path"]


def send(server, request: bytes) -> bytes:
    """The start of the answer to bytes that may be no HTTP."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request)
        return connection.recv(64)


def signature(url: str) -> str:
    return url.partition("signature=")[2]


def stored_secret(server) -> bytes:
    database = sqlite3.connect(server.data / "whisperfleet.db")
    ((value,),) = database.execute("SELECT value FROM link_secrets").fetchall()
    database.close()
    return value


def write_garbage(server) -> None:
    """Spoil all transcripts: reading one is an unexpected error."""
    database = sqlite3.connect(server.data / "whisperfleet.db")
    with database:
        database.execute("UPDATE transcripts SET content = x'00'")
    database.close()


def spellings(secret: bytes) -> set[str]:
    """A secret as a log might have it."""
    return {
        secret.hex(),
        repr(secret)[2:-1],
        base64.b64encode(secret).decode(),
        base64.urlsafe_b64encode(secret).decode(),
    }


def test_links_in_a_player_after_a_restart_and_in_the_log(commands, shorts, stranger, tmp_path):
    server = commands.ready(**DEBUG, folder=tmp_path)
    job = server.submit(shorts[0])["id"]
    server.finished(job)

    # A player asks for all of a copy, and then seeks in it.
    flac = link(server, job, path="audio", format="flac")
    whole = stranger.get(flac, headers={"Range": "bytes=0-"})
    assert (whole.status_code, whole.headers["content-type"]) == (206, "audio/flac")
    later = {"Range": f"bytes={len(whole.content) // 2}-", "If-Range": whole.headers["etag"]}
    assert whole.content.endswith(stranger.get(flac, headers=later).content)
    original = stranger.get(link(server, job, path="audio"))
    assert original.content == shorts[0].read_bytes()
    span = stranger.get(link(server, job, path="audio", format="flac", start=0.5, end=1))
    samples, rate = soundfile.read(io.BytesIO(span.content))
    assert np.shape(samples)[0] == rate // 2

    # What comes before the restart, and fails.
    srt = link(server, job, path="result", format="srt")
    assert stranger.get(srt).text == server.result(job)
    withdrawn = link(server, job, path="result", format="txt")
    secret = stored_secret(server)
    given = [flac, srt, withdrawn]
    for url in given:
        refused = [stranger.get(url + "x"), stranger.delete(url), stranger.get(url.replace("/v1", "/v2"))]
        assert [response.status_code for response in refused] == [403, 403, 403]
        referred = stranger.get(f"{server.url}/v1/workers", headers={"Referer": url})
        assert referred.status_code == 401
        path = url.removeprefix(server.url).encode()
        assert b"400" in send(server, b"GET " + path + b" HTTP/1.1\r\nbroken header\r\n\r\n")
        assert b"400" in send(server, b"GET " + path + b" a b HTTP/1.1\r\nHost: x\r\n\r\n")
        send(
            server,
            b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        )
        with stranger.stream("GET", flac):
            pass  # a player that goes away
    assert server.client.delete("/v1/links").status_code == 204
    assert stranger.get(withdrawn).json()["error"]["code"] == "link_refused"
    assert stored_secret(server) != secret

    kept = link(server, job, path="result", format="vtt")
    given += [kept]
    secrets = [secret, stored_secret(server)]
    logs = [stop(server)]

    server = commands.ready(**DEBUG, WHISPER_LOG_FORMAT="json", folder=tmp_path)
    moved = kept.replace(kept.partition("/v1")[0], server.url)
    assert stranger.get(moved).text.startswith("WEBVTT")
    assert stranger.get(moved.replace("vtt", "srt")).status_code == 403
    write_garbage(server)
    failed = stranger.get(moved)
    assert failed.status_code == 500
    logs.append(stop(server))

    assert failed.headers["x-request-id"] in logs[1]
    assert "Traceback" in logs[1], "the log has the error"
    for log in logs:
        assert re.search(rf"{job}/(audio|result)", log), "the log has the requests"
        for text in [KEY, *map(signature, given), *(text for one in secrets for text in spellings(one))]:
            assert text not in log
            assert text[:20] not in log


def stop(server) -> str:
    """All output of a server, once it has stopped."""
    server.process.send_signal(signal.SIGTERM)
    server.wait()
    return server.stdout + server.stderr
