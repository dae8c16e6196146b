"""The endpoints of whisper-asr-webservice, called as its clients do."""

import csv
import hashlib
import json
from dataclasses import replace

import pytest

from app.common.options import Options
from tests.api.fake_service import DIALOGUE, OTHER_MODEL, SECOND_SEGMENT, TRANSCRIPT, catalogue
from tests.cases import read_cases

REQUESTS = read_cases("requests")

PCM = bytes(range(256)) * 64


def post(site, path="/asr", *, filename="audio_file", content=PCM, **query):
    return site.client.post(path, params=query, files={"audio_file": (filename, content)})


def post_unnamed(site, path, **query):
    """Send the file without a name and a type, as some clients do."""
    body = b'--b\r\nContent-Disposition: form-data; name="audio_file"\r\n\r\n' + PCM + b"\r\n--b--\r\n"
    kind = {"content-type": "multipart/form-data; boundary=b"}
    return site.client.post(path, params=query, content=body, headers=kind)


def test_text_is_the_default_format(site):
    response = post(site)
    assert response.status_code == 200
    assert response.text == "The quick brown fox.\nÜber the lazy dog.\n"
    assert site.service.calls[0].options == Options()
    assert site.service.calls[0].model == "tiny"
    assert not site.service.calls[0].upload.raw_pcm


@pytest.mark.parametrize("output", ["txt", "vtt", "srt", "tsv", "json"])
def test_headers(site, output):
    response = post(site, filename="Füße.mkv", output=output)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["asr-engine"] == "faster_whisper"
    name = f"F%C3%BC%C3%9Fe.mkv.{output}"
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_bazarr(site):
    query = {"task": "transcribe", "language": "de", "output": "srt", "encode": "false"}
    response = post(site, **query, video_file="/films/Der Film.mkv")
    assert response.text.startswith("1\n00:00:00,500 --> 00:00:0")
    call = site.service.calls[0]
    assert call.options == Options(language="de", word_timestamps=True)
    assert call.upload.raw_pcm
    assert call.sha256 == hashlib.sha256(PCM).hexdigest()
    assert not site.uploads


def test_options_of_subtitles_in_the_query(site):
    query = {"output": "srt", "profile": "bbc", "max_line_chars": "Auto", "max_cps": "12.5", "fps": "23.976"}
    assert post(site, **query, min_gap_s="", start_offset_s="0.2").status_code == 200
    assert site.service.calls[0].options == Options(
        profile="bbc", max_cps=12.5, fps=23.976, start_offset_s=0.2, word_timestamps=True
    )


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ({"max_line_chars": "wide"}, "or `auto`"),
        ({"max_cps": "inf"}, "less than or equal to 100, or `auto`"),
        ({"profile": "arte"}, "'social'"),
        ({"fps": "9"}, "greater than or equal to 10"),
    ],
)
def test_wrong_options_of_subtitles_are_named(site, query, hint):
    response = post(site, **query)
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, next(iter(query)))
    assert hint in error["message"]
    assert not site.service.calls


def test_bazarr_detects_the_language(site):
    site.service.detected = ("de", 0.98765)
    response = post(site, "/detect-language", encode="false", video_file="")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {"detected_language": "german", "language_code": "de", "confidence": 0.9877}
    assert site.service.calls[0].upload.raw_pcm
    assert not site.uploads


def test_speakr(site):
    """It sends each number of speakers that is set, and both names of the option."""
    site.service.transcript = DIALOGUE
    query = {"encode": True, "task": "transcribe", "output": "json", "language": "en"}
    also = {"diarize": True, "enable_diarization": True, "min_speakers": 2, "max_speakers": 5}
    own = {"initial_prompt": "Fuchs", "hotwords": "Reineke", "model": OTHER_MODEL}
    body = post(site, filename="talk.webm", **query, **also, **own).json()
    assert body.keys() == {"text", "segments", "language"}
    assert (body["text"], body["language"]) == ("The quick brown fox. Über the lazy dog. Amen.", "en")
    assert [(segment["speaker"], segment["text"]) for segment in body["segments"]] == [
        ("SPEAKER_00", " The quick brown fox."),
        ("Bob", " Über the lazy dog."),
        ("SPEAKER_01", " Amen."),
    ]
    assert "words" not in body["segments"][0]
    call = site.service.calls[0]
    assert call.options == Options(
        language="en", prompt="Fuchs", hotwords="Reineke", diarize=True, min_speakers=2, max_speakers=5,
        word_timestamps=True,  # speakers change between words
    )  # fmt: skip
    assert call.model == OTHER_MODEL


@pytest.mark.parametrize("output", ["txt", "srt", "vtt"])
def test_speakers_in_text(site, output):
    site.service.transcript = DIALOGUE
    text = post(site, output=output, diarize="true").text
    assert [line for line in text.splitlines() if line.endswith(".")] == [
        "[SPEAKER_00]: The quick brown fox.",
        "[Bob]: Über the lazy dog.",
        "[SPEAKER_01]: Amen.",
    ]


def test_words_of_speakers(site):
    site.service.transcript = DIALOGUE
    segments = post(site, output="json", diarize="true", word_timestamps="true").json()["segments"]
    assert [[word["speaker"] for word in segment["words"]] for segment in segments] == [
        ["SPEAKER_00"] * 4,
        ["Bob"] * 4,
        ["SPEAKER_01"],
    ]


def test_segments(site):
    site.service.transcript = replace(TRANSCRIPT, language="de")
    body = post(site, output="json").json()
    assert body["language"] == "de"
    assert body["segments"][1] == SECOND_SEGMENT


def test_words(site):
    body = post(site, output="json", word_timestamps="true").json()
    assert site.service.calls[0].options.word_timestamps
    assert body["segments"][0]["words"][1] == {
        "word": " quick",
        "start": 0.875,
        "end": 1.25,
        "probability": 0.9,
    }


def test_tsv(site):
    rows = list(csv.reader(post(site, output="tsv").text.splitlines(), delimiter="\t"))
    assert rows == [
        ["start", "end", "text"],
        ["500", "2000", "The quick brown fox."],
        ["2300", "3900", "Über the lazy dog."],
    ]


@pytest.mark.parametrize(
    ("output", "body"), [("txt", ""), ("srt", ""), ("vtt", "WEBVTT\n\n"), ("tsv", "start\tend\ttext\n")]
)
def test_silence(site, output, body):
    site.service.transcript = replace(TRANSCRIPT, speech=(), segments=())
    assert post(site, output=output).text == body


def test_silence_has_no_segments_and_no_language_confidence(site):
    site.service.transcript = replace(TRANSCRIPT, speech=(), segments=())
    assert json.loads(post(site, output="json").text) == {"text": "", "segments": [], "language": "en"}
    site.service.detected = ("en", 0.0)
    assert post(site, "/detect-language").json()["confidence"] == 0.0


def test_blank_values_count_as_absent(site):
    names = [
        "task",
        "language",
        "initial_prompt",
        "encode",
        "vad_filter",
        "word_timestamps",
        "output",
        "model",
    ]
    assert post(site, **dict.fromkeys(names, "")).status_code == 200
    assert site.service.calls[0].options == Options()


@pytest.mark.parametrize("vad_filter", ["true", "false"])
def test_speech_detection_is_always_on(site, vad_filter):
    assert post(site, vad_filter=vad_filter).status_code == 200
    assert site.service.calls[0].options == Options()


@pytest.mark.parametrize("path", ["/asr", "/detect-language"])
def test_file_without_a_name(site, path):
    response = post_unnamed(site, path, encode="false", output="srt")
    assert response.status_code == 200
    assert site.service.calls[0].sha256 == hashlib.sha256(PCM).hexdigest()
    if path == "/asr":
        assert response.headers["content-disposition"] == 'attachment; filename="audio_file.srt"'


def test_translation_uses_a_model_that_can_translate(site):
    site.service.fleet.catalogue = catalogue("tiny.en", "Systran/faster-whisper-tiny")
    site.service.transcript = replace(TRANSCRIPT, task="translate", language="de")
    body = post(site, task="translate", output="json").json()
    assert body["language"] == "de"
    assert site.service.calls[0].model == "Systran/faster-whisper-tiny"
    assert site.service.calls[0].options.task == "translate"


@pytest.mark.parametrize(("model", "other"), [("", OTHER_MODEL), ("tiny.en", "Systran/faster-whisper-tiny")])
def test_translation_without_a_model_that_can_translate(site, model, other):
    site.service.fleet.catalogue = catalogue("tiny.en", other)
    response = post(site, task="translate", model=model)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "task")
    assert "WHISPER_MODELS=large-v3" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("query", "param", "hint"), [*REQUESTS["asr"], ({"initial_prompt": "x" * 4001}, "initial_prompt", "4000")]
)
def test_bad_values(site, query, param, hint):
    response = post(site, **query)
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["type"]) == (400, param, "invalid_request_error")
    assert hint in error["message"]
    assert not site.service.calls
    assert not site.uploads


def test_bad_value_for_language_detection(site):
    response = post(site, "/detect-language", encode="perhaps")
    assert (response.status_code, response.json()["error"]["param"]) == (400, "encode")


def test_unknown_model(site):
    response = post(site, model="gpt-4o-transcribe")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")
