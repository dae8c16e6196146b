"""What users get for a talk, in every format, language and task."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.reading import Talk, median_miss, read_srt, read_vtt, word_error_rate, words
from tests.e2e.running import DATA, Server

ES, DE = Talk(DATA / "talk_es.flac"), Talk(DATA / "talk_de.flac")
FORMATS = ["srt", "vtt", "text", "json", "verbose_json"]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def answers(server: Server, talk: Talk) -> dict[str, str]:
    """The talk in every format. It is transcribed once for requests that come at once."""
    requests: dict[str, dict[str, Any]] = {name: {"response_format": name} for name in FORMATS}
    requests["narrow"] = {"response_format": "srt", "max_line_chars": 20, "max_lines": 1}
    requests["words"] = {"response_format": "verbose_json", "timestamp_granularities[]": ["word"]}
    with ThreadPoolExecutor(len(requests)) as clients:
        texts = clients.map(lambda fields: server.text(talk.path, **fields), requests.values())
        return dict(zip(requests, texts, strict=True))


def spoken(answers: dict[str, str], name: str) -> str:
    if name in ("json", "verbose_json"):
        return str(json.loads(answers[name])["text"])
    if name == "text":
        return answers[name]
    return " ".join(cue.text for cue in (read_srt if name == "srt" else read_vtt)(answers[name]))


@pytest.mark.parametrize("name", FORMATS)
def test_the_words_are_correct(answers, talk, name):
    assert word_error_rate(talk.text, spoken(answers, name)) <= 0.05


@pytest.mark.parametrize(("name", "read"), [("srt", read_srt), ("vtt", read_vtt)])
def test_cues_have_the_times_of_the_speech(answers, talk, name, read):
    cues = read(answers[name])
    assert median_miss(talk.starts, [cue.start for cue in cues]) <= 0.15
    spans = [(cue["start"], cue["end"]) for cue in talk.truth["cues"]]
    for cue in cues:
        assert any(start - 0.5 < cue.start < end and start < cue.end for start, end in spans), cue
        assert cue.end <= talk.truth["duration"]


def test_srt_and_vtt_have_the_same_cues(answers):
    assert read_srt(answers["srt"]) == read_vtt(answers["vtt"])


def test_cues_are_short_enough_to_read(answers):
    for cue in read_srt(answers["srt"]):
        assert len(cue.lines) <= 2
        assert max(map(len, cue.lines)) <= 42
        assert cue.end - cue.start <= 7.001


def test_verbose_json_has_segments_and_metadata(answers, talk):
    verbose = json.loads(answers["verbose_json"])
    assert (verbose["task"], verbose["language"]) == ("transcribe", "english")
    assert verbose["duration"] == pytest.approx(talk.truth["duration"], abs=0.01)
    assert verbose["usage"] == {"type": "duration", "seconds": 63}
    assert "words" not in verbose
    assert [segment["id"] for segment in verbose["segments"]] == list(range(len(verbose["segments"])))
    assert median_miss(talk.starts, [segment["start"] for segment in verbose["segments"]]) <= 0.15
    for segment in verbose["segments"]:
        assert 0 <= segment["start"] < segment["end"] <= verbose["duration"]
        assert segment["tokens"]
        assert segment["avg_logprob"] < 0


def test_words_have_times(answers):
    verbose = json.loads(answers["words"])
    assert "segments" not in verbose
    times = [time for word in verbose["words"] for time in (word["start"], word["end"])]
    assert times == sorted(times)
    assert words(" ".join(word["word"] for word in verbose["words"])) == words(verbose["text"])


@pytest.mark.parametrize(("recording", "language"), [(ES, "spanish"), (DE, "german")])
def test_the_language_is_detected(server, recording, language):
    verbose = json.loads(server.text(recording.path, response_format="verbose_json"))
    assert verbose["language"] == language
    assert word_error_rate(recording.text, verbose["text"]) <= 0.05
    assert median_miss(recording.starts, [segment["start"] for segment in verbose["segments"]]) <= 0.15


@pytest.mark.parametrize("recording", [ES, DE], ids=["es", "de"])
def test_a_talk_is_translated(server, background, recording):
    srt = background.submit(server.text, recording.path, "translations", response_format="srt")
    verbose = json.loads(server.text(recording.path, "translations", response_format="verbose_json"))
    assert verbose["task"] == "translate"
    assert word_error_rate(recording.english, verbose["text"]) <= 0.1
    cues = read_srt(srt.result())
    assert median_miss(recording.starts, [cue.start for cue in cues]) <= 0.15


def test_each_part_of_a_multilingual_talk_is_in_its_language(server):
    import numpy as np

    from tests.media_files import RATE, encode, read_pcm

    silence = np.zeros(4 * RATE, np.int16)
    pcm = np.concatenate([read_pcm(ES.path), silence, read_pcm(DE.path)])
    text = server.text(encode(pcm, "wav", "pcm_s16le"), multilingual="true")
    assert word_error_rate(f"{ES.text} {DE.text}", text) <= 0.05


@pytest.fixture(scope="module")
def lesson(talk: Talk) -> tuple[bytes, list[dict[str, Any]]]:
    """Two sentences in each of three languages in turn, with half a second between them; and what is said."""
    import numpy as np

    from tests.media_files import RATE, encode, read_pcm

    parts, cues = [np.zeros(RATE // 2, np.int16)], []
    talks = [("en", talk), ("es", ES), ("de", DE)]
    for turn in range(3):
        for language, each in talks:
            pcm = read_pcm(each.path)
            for cue in each.truth["cues"][2 * turn : 2 * turn + 2]:
                start, end = round(cue["start"] * RATE), round(cue["end"] * RATE)
                at = sum(map(len, parts)) / RATE
                length = (end - start) / RATE
                cues.append({"start": at, "end": at + length, "language": language, "text": cue["text"]})
                parts += [pcm[start:end], np.zeros(RATE // 2, np.int16)]
    return encode(np.concatenate(parts), "wav", "pcm_s16le"), cues


def test_people_are_transcribed_in_the_language_that_they_speak(server, lesson):
    recording, cues = lesson
    verbose = json.loads(server.text(recording, response_format="verbose_json"))
    assert word_error_rate(" ".join(cue["text"] for cue in cues), verbose["text"]) <= 0.05
    right = 0.0
    for cue in cues:
        middle = (cue["start"] + cue["end"]) / 2
        spoken = [each for each in verbose["segments"] if each["start"] <= middle < each["end"]]
        right += sum(cue["end"] - cue["start"] for each in spoken if each["language"] == cue["language"])
    assert right >= 0.9 * sum(cue["end"] - cue["start"] for cue in cues)
    assert verbose["languages"].keys() == {"en", "es", "de"}
    assert sum(verbose["languages"].values()) == pytest.approx(1, abs=0.001)


def test_one_language_may_be_wanted_for_all(server, lesson):
    verbose = json.loads(server.text(lesson[0], response_format="verbose_json", multilingual="false"))
    assert verbose["language"] == "spanish"
    assert "languages" not in verbose
    assert all("language" not in segment for segment in verbose["segments"])


def test_the_languages_of_a_recording_may_be_limited(server, lesson):
    verbose = json.loads(server.text(lesson[0], response_format="verbose_json", languages="de,English"))
    assert {segment["language"] for segment in verbose["segments"]} == {"de", "en"}


def test_a_lesson_is_translated_into_one_language(server, lesson):
    vtt = server.text(lesson[0], "translations", response_format="vtt")
    assert "<lang" not in vtt
    original = server.text(lesson[0], response_format="vtt")
    assert {"en", "de"} == set(re.findall("<lang ([a-z]+)>", original)), "most of it is Spanish"
