"""Each channel of a recording a speaker: as a request, as a job, and after a kill in mid-way."""

import io
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.e2e.reading import Talk, median_miss, word_error_rate
from tests.e2e.running import DATA, Server, wait_for
from tests.e2e.test_jobs import has_transcribed_clips
from tests.e2e.test_segments_of_running_jobs import ONE_WORKER, Reader
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(120)

DIALOGUE = Talk(DATA / "dialogue_stereo.flac")
END_S = 31  # of the part that is transcribed
CUES = [cue for cue in DIALOGUE.truth["cues"] if cue["end"] < END_S]
TEXT = " ".join(cue["text"] for cue in CUES)
LABELS = {"Cem": "S1", "Bob": "S2"}  # Cem speaks first, on the second channel
SEPARATE = {"channels": "separate", "end": END_S}


@pytest.fixture(scope="module")
def pcm():
    return soundfile.read(DIALOGUE.path, dtype="int16")[0]


def wav(pcm) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, pcm, RATE, format="WAV")
    return file.getvalue()


def check(segments: list[dict[str, Any]]) -> None:
    """The segments have what each speaker says, at its time, and no crosstalk."""
    assert {segment["speaker"] for segment in segments} == set(LABELS.values())
    assert len({segment["id"] for segment in segments}) == len(segments)
    assert is_in_order(segments)
    for name, label in LABELS.items():
        cues = [cue for cue in CUES if cue["speaker"] == name]
        own = [segment for segment in segments if segment["speaker"] == label]
        assert all(before["end"] <= after["start"] for before, after in pairwise(own))
        text = " ".join(segment["text"] for segment in own)
        assert word_error_rate(" ".join(cue["text"] for cue in cues), text) < 0.12, name
        starts = [segment["start"] for segment in own]
        assert median_miss([cue["start"] for cue in cues], starts) < 0.1


def is_in_order(segments: list[dict[str, Any]]) -> bool:
    starts = [segment["start"] for segment in segments]
    return starts == sorted(starts)


def segments_of(server: Server, job: dict[str, Any]) -> list[dict[str, Any]]:
    document = server.client.get(f"/v1/jobs/{job['id']}/segments").raise_for_status().json()
    assert document["complete"]
    return document["segments"]


def test_a_request_has_the_words_of_both_channels_in_order_of_time(emptied, background):
    streamed = background.submit(emptied.post, DIALOGUE.path, stream="true", **SEPARATE)
    answer = emptied.post(DIALOGUE.path, response_format="verbose_json", **SEPARATE)
    document = answer.raise_for_status().json()
    assert "words" not in document, "nobody asked for them"
    assert is_in_order(document["segments"])
    assert word_error_rate(TEXT, document["text"]) < 0.15
    lines = streamed.result().text.splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    text = "".join(event["delta"] for event in events[:-1])
    assert word_error_rate(TEXT, text) < 0.15
    assert events[-1]["text"] == text
    assert not emptied.left_files()


@pytest.fixture(scope="module")
def segments(emptied: Server) -> list[dict[str, Any]]:
    """Those of both channels, on two workers."""
    job = emptied.finished(emptied.submit(DIALOGUE.path, **SEPARATE)["id"])
    assert job["progress"]["done_s"] == job["progress"]["total_s"] == job["duration"] == END_S
    assert {path.parent.name for path in emptied.left_files()} == {"uploads"}
    return segments_of(emptied, job)


def test_a_job_has_what_each_speaker_says(segments):
    check(segments)


@pytest.mark.soak
def test_a_job_shows_both_channels_while_it_runs_and_survives_a_kill(segments, commands):
    server = commands.ready(**ONE_WORKER)
    job = server.submit(DIALOGUE.path, **SEPARATE)
    wait_for(lambda: has_transcribed_clips(server, job["id"]), pause_s=0.01)
    server.die()
    assert {path.name for path in server.left_files()} >= {job["id"], f"{job['id']}.1"}
    server = commands.restart(server, **ONE_WORKER)
    reader = Reader(server, job["id"])
    kinds = list(reader.follow())
    assert kinds[-2:] == ["job.segments", "job.succeeded"]
    assert reader.segments == segments_of(server, job) == segments, "the same on two workers, without a kill"
    assert all(map(is_in_order, reader.states))
    assert [path.parent.name for path in server.left_files()] == ["uploads"]


def test_the_same_sound_on_all_channels_is_one_speaker(emptied, pcm):
    part = pcm[: 6 * RATE].sum(1, dtype="int16")
    for channels in (1, 6):
        recording = wav(np.repeat(part[:, None], channels, 1))
        job = emptied.client.post(
            "/v1/jobs", data={"channels": "separate"}, files={"file": ("call.wav", recording)}
        ).json()
        segments = segments_of(emptied, emptied.finished(job["id"]))
        assert {segment["speaker"] for segment in segments} == {"S1"}
        assert all(segment["id"].count("-") == 1 for segment in segments)


def test_more_than_eight_channels_are_refused(emptied):
    answer = emptied.post(wav(np.zeros((RATE, 9), "int16")), channels="separate")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "channels")
