"""Formats, fields and errors of the audio endpoints."""

import asyncio
import concurrent.futures
import hashlib
import os
from dataclasses import replace

import psutil
import pytest

from app import errors
from app.options import Options
from tests.api.fake_service import OTHER_MODEL, SECOND_SEGMENT, TRANSCRIPT

PARALLEL = 24


def test_json(site):
    answer = site.transcribe()
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "text": "The quick brown fox. Über the lazy dog.",
        "usage": {"type": "duration", "seconds": 5},
    }


def test_text(site):
    answer = site.transcribe(response_format="text")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "The quick brown fox. Über the lazy dog.\n"


def test_srt(site):
    answer = site.transcribe(response_format="srt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith("1\n00:00:00,")
    assert " --> " in answer.text
    assert "Über the lazy dog." in answer.text
    assert site.service.calls[0].options.word_timestamps


def test_vtt(site):
    answer = site.transcribe(response_format="vtt")
    assert answer.text.startswith("WEBVTT\n\n")
    assert "00:00.500 --> " in answer.text
    assert site.service.calls[0].options.word_timestamps


def test_verbose_json(site):
    body = site.transcribe(response_format="verbose_json").json()
    assert "words" not in body
    assert {name: body[name] for name in ("task", "language", "duration", "text", "usage")} == {
        "task": "transcribe",
        "language": "english",
        "duration": 4.2,
        "text": "The quick brown fox. Über the lazy dog.",
        "usage": {"type": "duration", "seconds": 5},
    }
    assert body["segments"][1] == SECOND_SEGMENT
    assert not site.service.calls[0].options.word_timestamps


@pytest.mark.parametrize("name", ["timestamp_granularities[]", "timestamp_granularities"])
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ([], {"segments"}),
        ([""], {"segments"}),
        (["segment"], {"segments"}),
        (["word"], {"words"}),
        (["word", "segment"], {"words", "segments"}),
    ],
)
def test_granularities(site, name, asked, given):
    body = site.transcribe(response_format="verbose_json", **{name: asked}).json()
    assert {"words", "segments"} & body.keys() == given
    assert site.service.calls[0].options.word_timestamps is ("words" in given)
    if "words" in given:
        assert body["words"][0] == {"word": "The", "start": 0.5, "end": 0.875}


def test_silence_has_empty_lists_not_missing_ones(site):
    site.service.transcript = replace(TRANSCRIPT, speech=(), segments=())
    asked = {"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]}
    body = site.transcribe(**asked).json()
    assert (body["text"], body["segments"], body["words"]) == ("", [], [])


def test_every_option_reaches_the_service(site):
    options = Options(
        language="de", multilingual=True, prompt=" Hallo, ", hotwords="Zürich", temperature=0.25, beam_size=3,
        word_timestamps=True, vad_threshold=0.4, min_speech_ms=1, min_silence_ms=2, speech_pad_ms=3,
        max_line_chars=20, max_lines=1, max_cps=15, min_cue_s=1, max_cue_s=5, chinese="simplified",
        allow_partial=True,
    )  # fmt: skip
    fields = {name: str(value) for name, value in options.model_dump().items()}
    assert site.transcribe(**fields).status_code == 200
    assert site.service.calls[0].options == options
    assert type(site.service.calls[0].options) is Options


def test_blank_fields_are_absent_and_unknown_ones_ignored(site):
    blank = dict.fromkeys([*Options.model_fields, "response_format", "stream"], "")
    answer = site.transcribe(**blank, include="logprobs", chunking_strategy="auto")
    assert answer.status_code == 200
    assert site.service.calls[0].options == Options()


def test_lenient_values(site):
    site.transcribe(
        language="Portuguese", multilingual="1", allow_partial="TRUE", stream="false", beam_size=" 2 "
    )
    options = site.service.calls[0].options
    assert options == Options(language="pt", multilingual=True, allow_partial=True, beam_size=2)


def test_translation(site):
    site.service.transcript = replace(TRANSCRIPT, task="translate", language="de")
    answer = site.transcribe(
        "translations", response_format="verbose_json", language="klingon", task="transcribe"
    )
    assert (answer.json()["task"], answer.json()["language"]) == ("translate", "german")
    assert site.service.calls[0].options == Options(task="translate")


@pytest.mark.parametrize("path", ["translations", "transcriptions"])
def test_a_model_that_cannot_translate(site, path):
    answer = site.transcribe(path, model=OTHER_MODEL, task="translate")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "model"
    assert not site.service.calls


@pytest.mark.parametrize(
    ("fields", "param", "hint"),
    [
        ({"model": None}, "model", "required"),
        ({"model": " "}, "model", "required"),
        ({"response_format": "ass"}, "response_format", "'verbose_json' or 'vtt'"),
        ({"timestamp_granularities[]": "letter"}, "timestamp_granularities[]", "'segment' or 'word'"),
        ({"timestamp_granularities[]": ["word"]}, "timestamp_granularities[]", "verbose_json"),
        ({"temperature": "1.5"}, "temperature", "less than or equal to 1"),
        ({"temperature": "nan"}, "temperature", "less than or equal to 1"),
        ({"temperature": "warm"}, "temperature", "number"),
        ({"multilingual": "perhaps"}, "multilingual", "boolean"),
        ({"language": "klingon"}, "language", "ISO 639-1"),
        ({"stream": "perhaps"}, "stream", "valid boolean"),
        ({"prompt": "x" * 4001}, "prompt", "4000"),
    ],
)
def test_bad_fields(site, fields, param, hint):
    answer = site.transcribe(**fields)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["type"]) == (400, param, "invalid_request_error")
    assert hint in error["message"]
    assert not site.service.calls
    assert not site.uploads


def test_unknown_model(site):
    answer = site.transcribe(model="gpt-4o-transcribe")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert not site.uploads


def test_missing_file(site):
    answer = site.client.post("/v1/audio/transcriptions", data={"model": "tiny"}, files={"other": b"x"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")


@pytest.mark.parametrize("kind", ["json", "data", "content"])
def test_wrong_content_type(site, kind):
    answer = site.client.post(
        "/v1/audio/transcriptions", **{kind: b"x" if kind == "content" else {"model": "tiny"}}
    )
    assert answer.status_code == 415
    assert "multipart/form-data" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.InvalidInput("no audio", param="file"), 400, None),
        (errors.TooLarge("too long"), 413, "too_large"),
        (errors.QueueFull("wait"), 429, "queue_full"),
        (errors.ClipFailed("clip 3 failed"), 500, "clip_failed"),
        (errors.NotReady("no worker"), 503, "not_ready"),
        (errors.ModelUnavailable("no model"), 503, "model_unavailable"),
        (errors.DiskFull("full"), 507, "disk_full"),
        (errors.WhisperfleetError("other", code="odd"), 500, "odd"),
        (RuntimeError("secret"), 500, "internal_error"),
    ],
)
def test_errors_of_the_service(site, error, status, code):
    site.service.error = error
    answer = site.transcribe()
    body = answer.json()["error"]
    assert (answer.status_code, body["code"]) == (status, code)
    assert ("retry-after" in answer.headers) == (status in (429, 503))
    known = status >= 500 and code != "internal_error"
    told = "true" if status in (429, 503) else "false" if known else None
    assert answer.headers.get("x-should-retry") == told
    assert "secret" not in answer.text
    if isinstance(error, RuntimeError):
        assert answer.headers["x-request-id"] in body["message"]
    assert not site.uploads


def test_a_cancelled_service_answers(site):
    site.service.transcribe = _cancelled
    assert site.transcribe().status_code == 503


async def _cancelled(*_args):
    raise asyncio.CancelledError


def test_uploads_arrive_whole_in_parallel(site):
    contents = [os.urandom(300_000 + number) for number in range(PARALLEL)]
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(lambda content: site.transcribe(content=content), contents))
    assert [answer.status_code for answer in answers] == [200] * PARALLEL
    seen = {(call.sha256, call.upload.sha256, call.upload.size) for call in site.service.calls}
    sums = [hashlib.sha256(content).hexdigest() for content in contents]
    assert seen == {(sha, sha, len(content)) for sha, content in zip(sums, contents, strict=True)}
    assert not site.uploads


def test_declared_too_large(serve):
    site = serve(max_upload_mb=1)
    answer = site.transcribe(content=bytes(30_000_000))
    assert answer.status_code == 413
    assert "1 MB" in answer.json()["error"]["message"]
    assert not site.uploads


def test_chunked_too_large(serve):
    site = serve(max_upload_mb=1)
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    chunks = (chunk for chunk in [head, *[bytes(100_000)] * 100, b"\r\n--b--\r\n"])
    kind = {"content-type": "multipart/form-data; boundary=b"}
    answer = site.client.post("/v1/audio/transcriptions", content=chunks, headers=kind)
    assert answer.status_code == 413
    assert not site.uploads


def test_a_file_just_under_the_limit_passes(serve):
    assert serve(max_upload_mb=1).transcribe(content=bytes(1_000_000)).status_code == 200


def test_a_large_upload_needs_little_memory(site):
    async def forget(upload, options, model):
        return TRANSCRIPT

    site.service.transcribe = forget
    process, size = psutil.Process(), 200 << 20
    piece = bytes(1 << 20)
    peak = before = process.memory_info().rss

    def body():
        nonlocal peak
        yield b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ntiny\r\n'
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(size // len(piece)):
            peak = max(peak, process.memory_info().rss)
            yield piece
        yield b"\r\n--b--\r\n"

    kind = {"content-type": "multipart/form-data; boundary=b"}
    assert site.client.post("/v1/audio/transcriptions", content=body(), headers=kind).status_code == 200
    assert peak - before < 60 << 20
