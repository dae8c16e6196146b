"""What becomes of a job: its transcript in every format, and its recording, whole and in pieces."""

import email.parser
import email.policy
from dataclasses import replace

import pytest

from app.errors import ClipFailed
from app.options import Options
from app.transcript.formats import FORMATS
from app.transcript.rendering import subtitles
from tests.api.fake_service import SECOND_SEGMENT, TRANSCRIPT
from tests.api.waiting import wait_for

CONTENT = bytes(range(256)) * 40


def result(site, job, form=None):
    return site.client.get(f"/v1/jobs/{job}/result", params={"format": form} if form else {})


def audio(site, job, **headers):
    return site.client.get(f"/v1/jobs/{job}/audio", headers=headers)


@pytest.fixture
def job(site):
    return site.finished(site.submitted(CONTENT, max_line_chars="12", max_lines="1"))["id"]


@pytest.mark.parametrize("form", ["srt", "vtt", "ass", "ttml", "txt", "tsv", "lrc"])
def test_every_format_is_what_the_command_line_would_write(site, job, form):
    answer = result(site, job, form)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{FORMATS[form].media_type}; charset=utf-8"
    assert answer.headers["content-disposition"] == f"inline; filename*=utf-8''talk.{form}"
    assert answer.content == subtitles(TRANSCRIPT, Options(max_line_chars=12, max_lines=1), form)


def test_the_layout_is_the_one_that_was_asked_for(site, job):
    cues = [cue.split("\n")[2:] for cue in result(site, job, "srt").text.strip().split("\n\n")]
    assert len(cues) > 2
    assert all(len(lines) == 1 and len(lines[0]) <= 12 for lines in cues)


def test_subtitles_are_the_default(site, job):
    assert result(site, job).text == result(site, job, "srt").text


def test_json(site, job):
    answer = result(site, job, "json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"text": TRANSCRIPT.text, "usage": {"type": "duration", "seconds": 5}}


@pytest.mark.parametrize("words", [False, True])
def test_verbose_json_has_words_where_they_were_asked_for(site, words):
    job = site.finished(site.submitted(word_timestamps=str(words)))["id"]
    body = result(site, job, "verbose_json").json()
    assert (
        body
        == site.transcribe(
            response_format="verbose_json",
            **{"timestamp_granularities[]": ["segment", "word"] if words else ["segment"]},
        ).json()
    )
    assert body["segments"][1] == SECOND_SEGMENT
    assert ("words" in body) is words


def test_what_is_missing_of_a_partial_result_is_named(site):
    site.service.transcript = replace(TRANSCRIPT, failed_spans=((16_000, 40_000),))
    job = site.finished(site.submitted(allow_partial="true"))
    assert (job["status"], job["failed_spans"]) == ("succeeded", [{"start": 1.0, "end": 2.5}])
    assert result(site, job["id"], "verbose_json").json()["failed_spans"] == job["failed_spans"]


def test_nobody_speaks(site):
    site.service.transcript = replace(TRANSCRIPT, speech=(), segments=())
    job = site.finished(site.submitted())["id"]
    assert result(site, job, "srt").text == ""
    assert result(site, job, "json").json()["text"] == ""


def test_the_result_is_named_after_the_recording(site):
    for name, expected in (("Füße 1.tar.mkv", "F%C3%BC%C3%9Fe%201.tar.srt"), ("a\"b'c.wav", "a%22b%27c.srt")):
        answer = site.client.post(
            "/v1/jobs", params={"filename": name}, content=CONTENT, headers={"content-type": "audio/wav"}
        )
        disposition = result(site, site.finished(answer.json()["id"])["id"]).headers["content-disposition"]
        assert disposition == f"inline; filename*=utf-8''{expected}"


@pytest.mark.parametrize("form", ["docx", "SRT", "", "%00"])
def test_other_formats(site, job, form):
    answer = site.client.get(f"/v1/jobs/{job}/result?format={form}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "format")


def test_there_is_no_result_before_the_job_is_done(site):
    site.service.paused = True
    jobs = [site.submitted() for _ in range(site.service.jobs_at_once + 1)]
    wait_for(lambda: site.job(jobs[-2])["status"] == "running")
    for job, status in ((jobs[-1], "queued"), (jobs[0], "running")):
        answer = result(site, job)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "job_not_done")
        assert status in answer.json()["error"]["message"]


def test_there_is_no_result_of_a_job_that_failed(site):
    site.service.error = ClipFailed("The span from 3.00 s to 9.00 s could not be transcribed.")
    answer = result(site, site.finished(site.submitted())["id"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "job_not_done")
    assert site.service.error.message in answer.json()["error"]["message"]


# The recording


def test_the_whole_recording(site, job):
    answer = audio(site, job)
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-type"].startswith("audio/")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == 'inline; filename="talk.wav"'


def test_the_recording_is_there_while_it_is_worked_on(site):
    site.service.paused = True
    assert audio(site, site.submitted(CONTENT)).content == CONTENT


@pytest.mark.parametrize("name", ["page.html", "page.svg", "x.js", "noname"])
def test_a_browser_runs_no_recording(site, name):
    answer = site.client.post("/v1/jobs", files={"file": (name, CONTENT)})
    kind = audio(site, answer.json()["id"]).headers["content-type"]
    assert kind == "application/octet-stream"


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-99", 0, 100),
        ("bytes=100-", 100, len(CONTENT)),
        ("bytes=-100", len(CONTENT) - 100, len(CONTENT)),
        ("bytes=10000-99999", 10_000, len(CONTENT)),
        ("bytes=0-0", 0, 1),
        ("bytes=0-99, 50-149", 0, 150),
    ],
)
def test_a_range(site, job, asked, start, end):
    answer = audio(site, job, range=asked)
    assert (answer.status_code, answer.content) == (206, CONTENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"


def test_several_ranges(site, job):
    answer = audio(site, job, range="bytes=0-9,500-509,-10")
    assert answer.status_code == 206
    head = f"Content-Type: {answer.headers['content-type']}\r\n\r\n".encode()
    whole = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + answer.content)
    pieces = [(part["content-range"], part.get_payload(decode=True)) for part in whole.iter_parts()]
    assert pieces == [
        (f"bytes {start}-{end - 1}/{len(CONTENT)}", CONTENT[start:end])
        for start, end in ((0, 10), (500, 510), (len(CONTENT) - 10, len(CONTENT)))
    ]


@pytest.mark.parametrize("asked", ["bytes=5-2", "bytes=x-y", "seconds=0-9", "bytes", "bytes=-", "bytes="])
def test_bad_ranges(site, job, asked):
    answer = audio(site, job, range=asked)
    assert answer.status_code == 400
    assert asked in answer.json()["error"]["message"]


@pytest.mark.parametrize("asked", [f"bytes={len(CONTENT)}-", "bytes=99999-100000"])
def test_ranges_beyond_the_end(site, job, asked):
    answer = audio(site, job, range=asked)
    assert (answer.status_code, answer.json()["error"]["type"]) == (416, "invalid_request_error")
    assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"


def test_a_range_of_another_version_is_not_given(site, job):
    answer = audio(site, job, range="bytes=0-9", **{"if-range": '"another"'})
    assert (answer.status_code, answer.content) == (200, CONTENT)


@pytest.mark.parametrize("error", [None, ClipFailed("It failed.")])
def test_a_recording_that_is_not_kept(serve, error):
    site = serve(keep_audio=False)
    site.service.paused = True
    job = site.submitted(CONTENT)
    assert audio(site, job).content == CONTENT
    site.service.error, site.service.paused = error, False
    site.finished(job)
    wait_for(lambda: not site.left_files)
    answer = audio(site, job)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "audio_not_kept")
    assert result(site, job).status_code == (409 if error else 200)
