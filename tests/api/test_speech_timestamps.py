"""Where somebody speaks, asked as clients of speaches ask."""

import hashlib

import pytest

from app.recording.speech import VadParameters
from tests.api.conftest import FORM, RECORDING, form
from tests.cases import read_cases

REQUESTS = read_cases("requests")

PATH = "/v1/audio/speech/timestamps"
DEFAULTS = VadParameters(threshold=0.75, min_speech_ms=0, min_silence_ms=1000, speech_pad_ms=0)


def post(site, **fields):
    return site.client.post(PATH, data=fields, files={"file": ("talk.wav", RECORDING)})


def test_the_answer_and_the_defaults_are_those_of_speaches(site):
    response = post(site)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.json() == [{"start": 500, "end": 18_000}]
    assert site.service.media.parameters == DEFAULTS
    assert site.service.calls[0].sha256 == hashlib.sha256(RECORDING).hexdigest()
    assert not site.uploads


def test_every_field_of_speaches(site):
    response = post(
        site,
        model="silero_vad_v5",
        threshold="0.6",
        neg_threshold="0.2",
        min_speech_duration_ms="250",
        max_speech_duration_s="12.5",
        min_silence_duration_ms="100",
        speech_pad_ms="30",
    )
    assert site.service.media.parameters == VadParameters(0.6, 250, 100, 30, 0.2)
    assert response.json() == [{"start": 500, "end": 10_000}, {"start": 10_000, "end": 18_000}]


@pytest.mark.parametrize("limit", ["", "inf", "Infinity", "1e308", "17.5", "86400"])
def test_speech_that_is_short_enough_is_not_divided(site, limit):
    assert post(site, max_speech_duration_s=limit).json() == [{"start": 500, "end": 18_000}]


def test_blank_fields_count_as_absent(site):
    fields = dict.fromkeys(["model", "threshold", "neg_threshold", "speech_pad_ms"], " ")
    assert post(site, **fields, unknown="x").status_code == 200
    assert site.service.media.parameters == DEFAULTS


@pytest.mark.parametrize(("fields", "param", "hint"), REQUESTS["speech_timestamps"])
def test_wrong_fields_are_named(site, fields, param, hint):
    response = post(site, **fields)
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param)
    assert hint in error["message"]
    assert not site.service.calls
    assert not site.uploads


def test_a_lower_threshold_may_come_before_the_threshold_itself(site):
    parts = {"neg_threshold": (None, "0.8"), "file": ("a", RECORDING), "threshold": (None, "0.9")}
    assert site.client.post(PATH, files=parts).status_code == 200
    assert site.service.media.parameters == VadParameters(0.9, 0, 1000, 0, 0.8)


def test_a_wrong_field_is_refused_before_the_upload(site):
    body = form(model="whisper-1")
    with site.begin(f"POST {PATH}", body, length=1_000_000, **FORM) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert not site.uploads
