"""Formats, fields and errors of the audio endpoints."""

import asyncio
import concurrent.futures
import errno
import hashlib
import math
import os
from dataclasses import replace

import openai
import psutil
import pytest

from app.common import errors
from app.common.options import Options
from tests.api.fake_service import OTHER_MODEL, SECOND_SEGMENT, TRANSCRIPT, segment
from tests.cases import read_cases
from workers.messages import Word

REQUESTS = read_cases("requests")

PARALLEL = 24


def test_json(site):
    response = site.transcribe()
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {
        "text": "The quick brown fox. Über the lazy dog.",
        "usage": {"type": "duration", "seconds": 5},
    }


def test_text(site):
    response = site.transcribe(response_format="text")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text == "The quick brown fox. Über the lazy dog.\n"


@pytest.mark.parametrize(
    ("form", "start"), [("srt", "1\n00:00:00,500 --> "), ("vtt", "WEBVTT\n\n1\n00:00:00.500 --> ")]
)
def test_subtitles(site, form, start):
    response = site.transcribe(response_format=form)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text.startswith(start)
    assert "Über the lazy dog." in response.text
    assert site.service.calls[0].options.word_timestamps


# The document of Word begins as a ZIP.
@pytest.mark.parametrize("path", ["transcriptions", "translations"])
@pytest.mark.parametrize(
    ("form", "kind", "start"),
    [
        ("ass", "text/x-ssa; charset=utf-8", b"[Script Info]"),
        ("ttml", "application/ttml+xml; charset=utf-8", b"<?xml"),
        ("scc", "text/x-scc; charset=utf-8", b"Scenarist_SCC V1.0"),
        ("stl", "application/x-ebu-stl", b"850STL25.01"),
        ("lrc", "text/plain; charset=utf-8", b"[00:00.50]The quick"),
        ("tsv", "text/tab-separated-values; charset=utf-8", b"start\tend\ttext\n500\t2000\tThe"),
        ("md", "text/markdown; charset=utf-8", b"# talk\n\nThe quick"),
        ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"PK"),
    ],
)
def test_files_of_every_format(site, path, form, kind, start):
    response = site.transcribe(path, response_format=form)
    assert (response.status_code, response.headers["content-type"]) == (200, kind)
    assert response.content.startswith(start)


def test_pauses_are_those_between_words(site):
    response = site.transcribe(response_format="txt", mark_pauses_s="0.25", numbered="true")
    assert response.text == "1. The quick brown fox.\n2. (0.3) Über the lazy dog.\n"
    assert site.service.calls[0].options.word_timestamps


def test_a_format_that_cannot_hold_the_text_says_which_can(site):
    site.service.transcript = replace(TRANSCRIPT, segments=(segment("今天天气很好。", 0.5, 2.0),))
    error = site.transcribe(response_format="scc").json()["error"]
    assert error["param"] == "response_format"
    assert "srt" in error["message"]


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
    ("requested", "keys"),
    [
        ([], {"segments"}),
        ([""], {"segments"}),
        (["segment"], {"segments"}),
        (["word"], {"words"}),
        (["word", "segment"], {"words", "segments"}),
        (["word, segment"], {"words", "segments"}),
        (["segment,"], {"segments"}),
    ],
)
def test_granularities(site, name, requested, keys):
    body = site.transcribe(response_format="verbose_json", **{name: requested}).json()
    assert {"words", "segments"} & body.keys() == keys
    assert site.service.calls[0].options.word_timestamps is ("words" in keys)
    if "words" in keys:
        assert body["words"][0] == {"word": "The", "start": 0.5, "end": 0.875}


def test_silence_has_empty_lists(site):
    site.service.transcript = replace(TRANSCRIPT, speech=(), segments=())
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]}
    body = site.transcribe(**fields).json()
    assert (body["text"], body["segments"], body["words"]) == ("", [], [])


def test_every_option_reaches_the_service(site):
    options = Options(
        language="de", multilingual=True, prompt=" Hallo, ", hotwords="Zürich", temperature=0.25, beam_size=3,
        word_timestamps=True, audio_track="spa", start=0.5, end=60,
        vad_threshold=0.4, min_speech_ms=1, min_silence_ms=2, speech_pad_ms=3,
        max_line_chars=20, max_lines=1, max_cps=15, min_cue_s=1, max_cue_s=5, min_gap_s=0.5, profile="bbc",
        fps=23.976, start_offset_s=0.25, word_level=True, srt_bom=True, srt_crlf=True, chinese="simplified",
        allow_partial=True, diarize=True, num_speakers=3, speaker_names="Ann,Bob",
    )  # fmt: skip
    fields = {name: str(value) for name, value in options.model_dump(exclude_none=True).items()}
    assert site.transcribe(**fields).status_code == 200
    assert site.service.calls[0].options == options
    assert type(site.service.calls[0].options) is Options


@pytest.mark.parametrize("suffix", ["[]", ""])
def test_keywords_and_languages_as_openai_names_them(site, suffix):
    fields = {f"keywords{suffix}": ["Maier", "Kubernetes"], f"languages{suffix}": ["en", "German"]}
    response = site.transcribe(**fields, hotwords="Zürich")
    assert "x-whisperfleet-warning" not in response.headers
    assert site.service.calls[0].options == Options(hotwords="Zürich, Maier, Kubernetes", languages="en,de")


def test_too_many_keywords_are_refused(site):
    error = site.transcribe(**{"keywords[]": ["x" * 2000, "y" * 2000]}).json()["error"]
    assert "at most 4000 characters" in error["message"]
    assert not site.service.calls


def test_log_probabilities_of_words(site):
    response = site.transcribe(**{"include[]": "logprobs"})
    answer = openai.types.audio.Transcription.model_validate(response.json())
    assert "".join(part.token for part in answer.logprobs).lstrip() == answer.text
    assert bytes(map(int, answer.logprobs[4].bytes)).decode() == answer.logprobs[4].token == " Über"
    assert answer.logprobs[0].logprob == pytest.approx(math.log(0.9), abs=1e-4)
    assert site.service.calls[0].options.word_timestamps


def test_a_word_that_the_model_held_for_impossible_has_a_number(site):
    impossible = replace(TRANSCRIPT.segments[0], words=(Word(" The", 0, 1, 0.0),))
    site.service.transcript = replace(TRANSCRIPT, segments=(impossible,))
    assert site.transcribe(include="logprobs").json()["logprobs"][0]["logprob"] == -100


def test_blank_fields_count_as_absent_and_unknown_ones_are_ignored(site):
    blank = dict.fromkeys([*Options.model_fields, "response_format", "stream"], "")
    response = site.transcribe(**blank, user="me", chunking_strategy="auto")
    assert response.status_code == 200
    assert site.service.calls[0].options == Options()


def test_options_of_subtitles_left_to_the_profile_and_the_language(site):
    left = ("max_line_chars", "max_lines", "max_cps", "min_cue_s", "max_cue_s", "min_gap_s")
    assert site.transcribe(**dict.fromkeys(left, "Auto"), profile="social").status_code == 200
    assert site.service.calls[0].options == Options(profile="social")


def test_the_language_and_the_profile_shape_the_subtitles(site):
    text = "今天天气很好我们一起去公园散步吧" * 2
    words = tuple(Word(char, 8000 + 2000 * n, 10_000 + 2000 * n, 0.9) for n, char in enumerate(text))
    chinese = replace(TRANSCRIPT.segments[0], text=text, start=8000, end=72_000, words=words)
    site.service.transcript = replace(
        TRANSCRIPT, language="zh", segments=(chinese,), speech=((8000, 72_000),), samples=160_000
    )

    def widest(**options):
        file = site.transcribe(response_format="srt", **options).text
        return max(len(line) for line in file.splitlines() if line[:1] in text)

    assert widest() == 16
    assert widest(profile="social") <= 10
    assert widest(profile="social", max_line_chars="24") in (11, 12)
    assert widest(max_line_chars="64") == 32


def test_lenient_values_are_accepted(site):
    site.transcribe(
        language="Portuguese", multilingual="1", allow_partial="TRUE", stream="false", beam_size=" 2 "
    )
    options = site.service.calls[0].options
    assert options == Options(language="pt", multilingual=True, allow_partial=True, beam_size=2)


def test_translation(site):
    site.service.transcript = replace(TRANSCRIPT, task="translate", language="de")
    response = site.transcribe(
        "translations", response_format="verbose_json", language="klingon", task="transcribe"
    )
    assert (response.json()["task"], response.json()["language"]) == ("translate", "german")
    assert site.service.calls[0].options == Options(task="translate")


@pytest.mark.parametrize("path", ["translations", "transcriptions"])
def test_model_that_cannot_translate(site, path):
    response = site.transcribe(path, model=OTHER_MODEL, task="translate")
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "model"
    assert not site.service.calls


@pytest.mark.parametrize(
    ("fields", "param", "hint"),
    [*REQUESTS["openai"], ({"model": None}, "model", "required"), ({"prompt": "x" * 4001}, "prompt", "4000")],
)
def test_bad_fields(site, fields, param, hint):
    response = site.transcribe(**fields)
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["type"]) == (400, param, "invalid_request_error")
    assert hint in error["message"]
    assert not site.service.calls
    assert not site.uploads


def test_unknown_model(site):
    response = site.transcribe(model="gpt-4o-transcribe")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
    assert not site.uploads


def caused_by(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


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
        (OSError(errno.EMFILE, "Too many open files", "/secret"), 503, "too_many_files"),
        (
            caused_by(errors.ClipFailed("clip 3 failed"), OSError(errno.ENFILE, "secret")),
            503,
            "too_many_files",
        ),
    ],
)
def test_errors_of_the_service(site, error, status, code):
    site.service.error = error
    response = site.transcribe()
    body = response.json()["error"]
    assert (response.status_code, body["code"]) == (status, code)
    assert ("retry-after" in response.headers) == (status in (429, 503))
    known = status >= 500 and code != "internal_error"
    retry = "true" if status in (429, 503) else "false" if known else None
    assert response.headers.get("x-should-retry") == retry
    assert "secret" not in response.text
    if isinstance(error, RuntimeError):
        assert response.headers["x-request-id"] in body["message"]
    assert not site.uploads


def test_cancelled_service_gives_a_503(site):
    site.service.transcribe = _cancelled
    assert site.transcribe().status_code == 503


async def _cancelled(*_args, **_kwargs):
    raise asyncio.CancelledError


def test_parallel_uploads_arrive_complete(site):
    contents = [os.urandom(300_000 + number) for number in range(PARALLEL)]
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        responses = list(pool.map(lambda content: site.transcribe(content=content), contents))
    assert [response.status_code for response in responses] == [200] * PARALLEL
    seen = {(call.sha256, call.upload.sha256, call.upload.size) for call in site.service.calls}
    sums = [hashlib.sha256(content).hexdigest() for content in contents]
    assert seen == {(sha, sha, len(content)) for sha, content in zip(sums, contents, strict=True)}
    assert not site.uploads


def test_large_upload_uses_little_memory(site):
    async def transcribe(upload, options, model, **more):
        return TRANSCRIPT

    site.service.transcribe = transcribe
    process, size = psutil.Process(), 200 << 20
    part = bytes(1 << 20)
    peak = before = process.memory_info().rss

    def body():
        nonlocal peak
        yield b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ntiny\r\n'
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(size // len(part)):
            peak = max(peak, process.memory_info().rss)
            yield part
        yield b"\r\n--b--\r\n"

    kind = {"content-type": "multipart/form-data; boundary=b"}
    assert site.client.post("/v1/audio/transcriptions", content=body(), headers=kind).status_code == 200
    assert peak - before < 60 << 20
