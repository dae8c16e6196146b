"""Where somebody speaks, from the real service: with any model, and without one."""

import itertools
import json
import socket
import time

import numpy as np
import pytest

from tests.e2e.running import wait_for
from tests.media_files import RATE, encode

pytestmark = pytest.mark.timeout(120)


PATH = "/v1/audio/speech/timestamps"
PAUSE_S = 1.15  # shorter ones do not end speech; no pause of the talk is close to it
PAUSES = {"min_silence_duration_ms": str(round(PAUSE_S * 1000))}
TOLERANCE_S = 0.15


@pytest.fixture(scope="module")
def spoken(talk):
    """The spans of the talk in which somebody speaks (s), by its true cues."""
    truth = json.loads(talk.path.with_suffix(".json").read_text())
    spans = []
    for cue in truth["cues"]:
        if spans and cue["start"] - spans[-1][1] < PAUSE_S:
            spans[-1][1] = cue["end"]
        else:
            spans.append([cue["start"], cue["end"]])
    assert truth["duration"] - spans[-1][1] < PAUSE_S  # so the last speech does not end before the recording
    spans[-1][1] = truth["duration"]
    return spans


def find(server, content, name="talk", **fields):
    return server.client.post(PATH, data=fields, files={"file": (name, content)})


def seconds(answer):
    assert answer.status_code == 200, answer.text
    return [[span["start"] / 1000, span["end"] / 1000] for span in answer.json()]


def assert_near(found, spoken):
    assert len(found) == len(spoken)
    for span, truth in zip(found, spoken, strict=True):
        assert span == pytest.approx(truth, abs=TOLERANCE_S)


def test_it_tells_the_true_spans_of_a_talk(emptied, talk, talk_pcm, spoken):
    assert len(spoken) >= 5
    found = seconds(find(emptied, talk.path.read_bytes(), "talk.flac", **PAUSES))
    assert_near(found, spoken)
    mp3 = encode(talk_pcm, "mp3", "libmp3lame")
    assert_near(seconds(find(emptied, mp3, "talk.mp3", **PAUSES)), spoken)
    padded = seconds(find(emptied, talk.path.read_bytes(), speech_pad_ms="100", **PAUSES))
    widened = [[start - 0.1, min(end + 0.1, found[-1][1])] for start, end in found]
    assert padded == [pytest.approx(span, abs=0.002) for span in widened]
    assert not emptied.left_files()


def test_long_speech_is_divided_at_the_limit(emptied, talk):
    whole = seconds(find(emptied, talk.path.read_bytes(), min_silence_duration_ms="100000"))
    assert len(whole) == 1
    pieces = seconds(
        find(emptied, talk.path.read_bytes(), min_silence_duration_ms="100000", max_speech_duration_s="8")
    )
    assert all(end - start <= 8 for start, end in pieces)
    assert [pieces[0][0], pieces[-1][1]] == whole[0]
    assert all(before[1] == after[0] for before, after in itertools.pairwise(pieces))


def test_silence_and_broken_files(emptied):
    assert find(emptied, encode(np.zeros(3 * RATE, np.int16), "wav", "pcm_s16le")).json() == []
    answer = find(emptied, b"no sound at all")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")
    assert not emptied.left_files()


@pytest.mark.soak
def test_it_needs_no_whisper_worker(commands, talk, spoken):
    server = commands.serve(WHISPER_MODEL="small", WHISPER_API_KEYS="sk", key="sk").wait_until_up()
    assert server.client.get("/ready").status_code == 503
    assert_near(seconds(find(server, talk.path.read_bytes(), **PAUSES)), spoken)
    assert server.workers() == []
    assert server.client.get("/ready").status_code == 503
    assert find(server, talk.path.read_bytes(), model="small").status_code == 400
    assert not server.left_files()


def test_a_client_that_goes_away_leaves_nothing(emptied, talk_pcm, half_an_hour):
    content = half_an_hour.read_bytes()
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        + content
        + b"\r\n--b--\r\n"
    )
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", emptied.port), timeout=30) as connection:
        connection.sendall(head.encode() + body)
        wait_for(lambda: any((emptied.data / "pcm").iterdir()))
        began = time.monotonic()
    wait_for(lambda: not emptied.left_files())
    assert time.monotonic() - began < 30
    assert seconds(find(emptied, encode(talk_pcm[: 10 * RATE], "flac", "flac")))
