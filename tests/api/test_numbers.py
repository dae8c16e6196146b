"""Numbers in headers, queries and forms: digits, and nothing that only Python reads as a number."""

import pytest

from app.api.audio.speech_timestamps import SpeechForm
from app.api.http.forms import JobForm, parse
from app.common.errors import InvalidInput
from tests.api.test_tus import PART, TUS

pytestmark = pytest.mark.timeout(60)

ODD = ["1_000", "+5", "1.0", "5e0", "0x5", "-0", "nan", "inf", "\u00b2"]
WHOLE = ["beam_size", "min_speech_ms", "num_speakers", "max_line_chars", "max_lines"]
NUMBERS = ["temperature", "start", "fps", "max_cps", "min_gap_s", "vad_threshold"]


def header(name: str, value: str) -> dict[str, bytes]:
    return {name: value.encode("latin-1")}


@pytest.mark.parametrize("odd", ODD)
def test_headers(site, odd):
    job = site.finished(site.submitted())["id"]
    upload = site.client.post("/v1/uploads", headers=TUS | {"Upload-Length": "9"}).headers["location"]
    answers = [
        site.client.post("/v1/uploads", headers=TUS | header("Upload-Length", odd)),
        site.client.patch(upload, content=b"x", headers=PART | header("Upload-Offset", odd)),
        site.client.get(f"/v1/jobs/{job}/events", headers=header("Last-Event-ID", odd)),
    ]
    for answer, name in zip(answers, ("upload-length", "upload-offset", "last-event-id"), strict=True):
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)
    assert site.client.head(upload, headers=TUS).headers["upload-offset"] == "0"
    site.client.delete(upload, headers=TUS).raise_for_status()


@pytest.mark.parametrize("odd", [*ODD, "\u0663"])
def test_queries(site, odd):
    job = site.finished(site.submitted())["id"]
    for path, name in (
        ("/v1/jobs", "limit"),
        (f"/v1/jobs/{job}/peaks", "points"),
        (f"/v1/jobs/{job}/segments", "revision"),
    ):
        answer = site.client.get(path, params={name: odd})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_of_forms(name):
    for odd in (*ODD, "\u0663"):
        with pytest.raises(InvalidInput) as caught:
            parse(JobForm, {name: [odd], "file": ["?"]}, None)
        wanted = f"`{name}`: must be a whole number, written in digits such as 1000"
        assert wanted in caught.value.message, odd


@pytest.mark.parametrize("name", NUMBERS)
def test_other_numbers_of_forms(name):
    for odd in ("1_0", "0_0.5", "nan", "-inf", "\u0663", "0x1", "1,5"):
        with pytest.raises(InvalidInput) as caught:
            parse(JobForm, {name: [odd], "file": ["?"]}, None)
        assert f"`{name}`: " in caught.value.message, odd


@pytest.mark.parametrize("name", ["threshold", "neg_threshold", "max_speech_duration_s", "speech_pad_ms"])
@pytest.mark.parametrize("odd", ["1_0", "0_1", "nan", "\u0661"])
def test_numbers_of_speech(name, odd):
    with pytest.raises(InvalidInput) as caught:
        parse(SpeechForm, {name: [odd], "file": ["?"]}, None)
    assert f"`{name}`: " in caught.value.message


def test_usual_notations():
    options = {"beam_size": " 05 ", "temperature": "+.5", "max_cps": "1e1", "audio_track": "2", "start": "0"}
    with pytest.raises(InvalidInput, match=r"^`file`: is required, and was not sent$"):
        parse(JobForm, {name: [value] for name, value in options.items()}, None)
