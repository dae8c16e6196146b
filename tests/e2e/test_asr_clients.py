"""Requests as Bazarr and Speakr send them to whisper-asr-webservice."""

import httpx
import pytest

from tests.media_files import read_pcm

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def spanish(talk):
    """What Bazarr sends: the sound track as raw PCM."""
    return read_pcm(talk.path.with_name("talk_es.flac")).astype("<i2").tobytes()


def post(server, path, pcm, **query):
    return httpx.post(
        f"{server.url}{path}",
        params=query,
        files={"audio_file": pcm},
        timeout=60,
        trust_env=False,
    )


def test_bazarr_detects_and_transcribes(server, spanish, talk):
    found = post(server, "/detect-language", spanish, encode="false").json()
    assert (found["detected_language"], found["language_code"]) == ("spanish", "es")
    assert 0.9 < found["confidence"] <= 1
    answer = post(
        server, "/asr", spanish, task="transcribe", language="es", output="srt", encode="false", foo="bar"
    )
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == server.srt(talk.path.with_name("talk_es.flac"), language="es")
