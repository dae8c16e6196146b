"""One of a film's sound tracks, and a part of a recording."""

import io

import numpy as np
import pytest
import soundfile

from tests.e2e.reading import Talk, read_srt, word_error_rate
from tests.e2e.running import DATA
from tests.media_files import RATE, film, read_pcm

pytestmark = pytest.mark.timeout(120)

TALKS = {"ger": "talk_de", "spa": "talk_es", "eng": "talk"}
PCM = {language: read_pcm(DATA / f"{name}.flac")[: 22 * RATE] for language, name in TALKS.items()}
PART_S = (20.0, 41.0)


def truth(language: str) -> str:
    """What is said in the film."""
    cues = Talk(DATA / f"{TALKS[language]}.flac").truth["cues"]
    return " ".join(cue["text"] for cue in cues if cue["end"] < 22)


@pytest.fixture(scope="module")
def film_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "film.mkv"
    path.write_bytes(film(PCM, default=2))
    return path


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"audio_track": "fr"}, "0 (ger), 1 (spa), 2 (eng)"), ({"start": 9000}, "ends at ")],
)
def test_what_the_file_does_not_have_is_refused(server, film_path, fields, said):
    answer = server.post(film_path, **fields)
    error = answer.json()["error"]
    assert (answer.status_code, [error["param"]]) == (400, list(fields))
    assert said in error["message"]


@pytest.mark.parametrize(
    ("asked", "language"),
    [("de", "ger"), ("Spanish", "spa"), ("spa", "spa"), ("0", "ger"), ("1", "spa"), ("", "eng")],
)
def test_a_film_is_transcribed_from_the_track_that_is_asked_for(server, film_path, asked, language):
    text = server.text(film_path, audio_track=asked)
    assert word_error_rate(truth(language), text) < 0.2


def test_a_job_shows_the_tracks_and_plays_the_one_of_its_transcript(server, film_path):
    job = server.finished(server.submit(film_path, audio_track="es")["id"])
    shown = [(track["index"], track["language"], track["default"]) for track in job["audio_tracks"]]
    assert shown == [(0, "ger", False), (1, "spa", False), (2, "eng", True)]
    for span in ({}, {"start": 1, "end": 2}):
        answer = server.client.get(f"/v1/jobs/{job['id']}/audio", params={"format": "flac"} | span)
        copy, _ = soundfile.read(io.BytesIO(answer.content), dtype="int16")
        first = RATE if span else 0
        assert np.array_equal(copy[:RATE], PCM["spa"][first : first + RATE])


def test_a_part_has_the_words_and_times_of_all_of_it(server, talk):
    start, end = PART_S
    expected = [cue for cue in talk.truth["cues"] if start <= cue["start"] and cue["end"] <= end]
    cues = read_srt(server.srt(talk.path, start=start, end=end))
    assert start <= cues[0].start
    assert cues[-1].end <= end
    text = " ".join(cue.text for cue in cues)
    assert word_error_rate(" ".join(cue["text"] for cue in expected), text) < 0.35  # the edges cut words
    for cue in expected[1:-1]:
        assert min(abs(cue["start"] - other.start) for other in cues) < 0.2


def test_a_job_for_a_part(server, talk):
    job = server.finished(server.submit(talk.path, start=40)["id"])
    progress = job["progress"]
    assert job["status"] == "succeeded"
    assert job["duration"] == pytest.approx(62.915, abs=0.01)
    assert progress["total_s"] == pytest.approx(22.915, abs=0.01)
    assert progress["done_s"] <= progress["total_s"]
    segments = server.client.get(f"/v1/jobs/{job['id']}/segments").json()["segments"]
    assert min(segment["start"] for segment in segments) >= 40
    answer = server.post(talk.path, response_format="verbose_json", start=40, end=50)
    assert answer.json()["usage"]["seconds"] == 10
