"""Where somebody speaks, from the real service: with any model, and without one."""

import json

import pytest

from tests.media_files import encode

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
