"""The results of a job: its transcript in every format, and its recording, complete and in ranges."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import anyio
import pytest

from app.api.jobs.results import check_done
from app.common.errors import ClipFailed, JobNotDone
from app.common.options import Options
from app.jobs.job import Status
from app.pool.helper import LONG_S
from app.transcript.formats import FORMATS
from app.transcript.rendering import render_transcript
from tests.api.fake_service import SECOND_SEGMENT, TRANSCRIPT, segment
from tests.api.waiting import wait_for
from workers.messages import SAMPLE_RATE

CONTENT = bytes(range(256)) * 40


def result(site, job, form=None):
    return site.client.get(f"/v1/jobs/{job}/result", params={"format": form} if form else {})


def audio(site, job, **headers):
    return site.client.get(f"/v1/jobs/{job}/audio", headers=headers)


@pytest.fixture
def job(site):
    return site.finished(site.submitted(CONTENT, max_line_chars="12", max_lines="1"))["id"]


@pytest.mark.parametrize("form", sorted(FORMATS.keys() - {"json"}))
def test_every_format_equals_the_command_line(site, job, form):
    response = result(site, job, form)
    assert response.status_code == 200
    charset = "" if form in ("stl", "docx") else "; charset=utf-8"
    assert response.headers["content-type"] == f"{FORMATS[form].media_type}{charset}"
    assert response.headers["content-disposition"] == f"inline; filename*=utf-8''talk.{form}"
    options = Options(max_line_chars=12, max_lines=1)
    assert response.content == render_transcript(TRANSCRIPT, options, form, title="talk")


def test_srt_is_the_default_format(site, job):
    assert result(site, job).text == result(site, job, "srt").text


def test_json(site, job):
    response = result(site, job, "json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {"text": TRANSCRIPT.text, "usage": {"type": "duration", "seconds": 5}}


@pytest.mark.parametrize("words", [False, True])
def test_verbose_json_has_words_on_request(site, words):
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


def test_partial_result_lists_its_failed_spans(site):
    site.service.transcript = replace(TRANSCRIPT, failed_spans=((16_000, 40_000),))
    job = site.finished(site.submitted(allow_partial="true"))
    assert (job["status"], job["failed_spans"]) == ("succeeded", [{"start": 1.0, "end": 2.5}])
    assert result(site, job["id"], "verbose_json").json()["failed_spans"] == job["failed_spans"]


def test_result_is_named_after_the_recording(site):
    for name, expected in (("Füße 1.tar.mkv", "F%C3%BC%C3%9Fe%201.tar.srt"), ("a\"b'c.wav", "a_b%27c.srt")):
        response = site.client.post(
            "/v1/jobs", params={"filename": name}, content=CONTENT, headers={"content-type": "audio/wav"}
        )
        disposition = result(site, site.finished(response.json()["id"])["id"]).headers["content-disposition"]
        assert disposition == f"inline; filename*=utf-8''{expected}"


@pytest.mark.parametrize(("form", "place"), [("text", "`json`"), ("diarized_json", "segments of jobs")])
def test_formats_that_jobs_do_not_have_are_elsewhere(site, job, form, place):
    response = site.client.get(f"/v1/jobs/{job}/result?format={form}")
    assert place in response.json()["error"]["message"]


@pytest.mark.parametrize("form", ["pdf", "SRT", "", "%00"])
def test_unknown_formats(site, job, form):
    response = site.client.get(f"/v1/jobs/{job}/result?format={form}")
    assert (response.status_code, response.json()["error"]["param"]) == (400, "format")


@pytest.mark.parametrize("form", ["scc", "stl"])
@pytest.mark.parametrize("long", [False, True])  # rendered by a thread, and by a process
def test_a_format_that_lacks_a_character_names_it_and_the_transcript_stays(site, form, long):
    site.service.transcript = replace(TRANSCRIPT, segments=(segment("Das Wort 猫 heißt Katze.", 0.5, 2.0),))
    if long:
        site.service.transcript = replace(site.service.transcript, samples=int((LONG_S + 1) * SAMPLE_RATE))
    job = site.finished(site.submitted())["id"]
    response = result(site, job, form)
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error")
    assert (error["param"], error["code"]) == ("format", "unsuitable_format")
    assert "no character '猫' (U+732B)" in error["message"]
    assert "srt" in error["message"]
    assert "猫" in result(site, job, "srt").text


def test_options_of_files_apply(site):
    job = site.finished(site.submitted(word_level="true", srt_bom="true", srt_crlf="true"))["id"]
    assert result(site, job, "srt").content.startswith(b"\xef\xbb\xbf1\r\n")
    assert result(site, job, "vtt").content == render_transcript(TRANSCRIPT, Options(word_level=True), "vtt")


def test_no_result_before_the_job_is_done(site):
    site.service.paused = True
    jobs = [site.submitted() for _ in range(site.service.fleet.jobs_at_once + 1)]
    wait_for(lambda: site.job(jobs[-2])["status"] == "running")
    for job, status in ((jobs[-1], "queued"), (jobs[0], "running")):
        response = result(site, job)
        assert (response.status_code, response.json()["error"]["code"]) == (409, "job_not_done")
        message = response.json()["error"]["message"]
        assert message == f"The job is {status}; ask again when it has succeeded."


def test_no_result_of_a_failed_job(site):
    site.service.error = ClipFailed("The span from 3.00 s to 9.00 s could not be transcribed.")
    job = site.finished(site.submitted())["id"]
    for query in ("", "?allow_partial=true"):
        response = site.client.get(f"/v1/jobs/{job}/result{query}")
        assert (response.status_code, response.json()["error"]["code"]) == (409, "job_not_done")
        message = response.json()["error"]["message"]
        again = f"POST /v1/jobs/{job}/again runs it again;"
        assert message.startswith(f"The job has failed: {site.service.error.message} {again}")


def test_a_cancelled_job_has_no_result():
    job = SimpleNamespace(status=Status.CANCELLED, error=None, submission=SimpleNamespace(again=None))
    with pytest.raises(JobNotDone, match=r"^The job is cancelled and has no result\.$"):
        check_done(job)


# The recording


def test_complete_recording(site, job):
    response = audio(site, job)
    assert (response.status_code, response.content) == (200, CONTENT)
    assert response.headers["accept-ranges"] == "bytes"
    assert response.headers["content-type"].startswith("audio/")
    assert response.headers["x-content-type-options"] == "nosniff"
    for path in (f"{response.url.path.removesuffix('audio')}result?format=vtt", "/nowhere", "/health"):
        assert site.client.get(path).headers["x-content-type-options"] == "nosniff", path
    assert response.headers["content-disposition"] == 'inline; filename="talk.wav"'


def test_recording_is_available_while_the_job_runs(site):
    site.service.paused = True
    assert audio(site, site.submitted(CONTENT)).content == CONTENT


@pytest.mark.parametrize("name", ["page.html", "page.svg", "x.js", "noname"])
def test_no_recording_has_an_executable_type(site, name):
    response = site.client.post("/v1/jobs", files={"file": (name, CONTENT)})
    kind = audio(site, response.json()["id"]).headers["content-type"]
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
def test_range(site, job, asked, start, end):
    response = audio(site, job, range=asked)
    assert (response.status_code, response.content) == (206, CONTENT[start:end])
    assert response.headers["content-range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"


@pytest.mark.parametrize(
    "asked", ["bytes=5-2", "bytes=x-y", "seconds=0-9", "bytes", "bytes=-", "bytes=", "bytes=0-1_0"]
)
def test_invalid_ranges(site, job, asked):
    response = audio(site, job, range=asked)
    assert response.status_code == 400
    assert asked in response.json()["error"]["message"]


@pytest.mark.parametrize("asked", [f"bytes={len(CONTENT)}-", "bytes=99999-100000"])
def test_ranges_beyond_the_end(site, job, asked):
    response = audio(site, job, range=asked)
    assert (response.status_code, response.json()["error"]["type"]) == (416, "invalid_request_error")
    assert response.headers["content-range"] == f"bytes */{len(CONTENT)}"


def test_if_range_of_another_version(site, job):
    response = audio(site, job, range="bytes=0-9", **{"if-range": '"another"'})
    assert (response.status_code, response.content) == (200, CONTENT)


@pytest.mark.parametrize("error", [None, ClipFailed("It failed.")])
def test_recording_that_is_not_kept(serve, error):
    site = serve(keep_audio=False)
    site.service.paused = True
    job = site.submitted(CONTENT)
    assert audio(site, job).content == CONTENT
    site.service.error, site.service.paused = error, False
    site.finished(job)
    wait_for(lambda: not site.left_files)
    response = audio(site, job)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "audio_not_kept")
    assert result(site, job).status_code == (409 if error else 200)


def test_recording_that_is_deleted_before_it_is_opened(site, job, monkeypatch):
    open_file = anyio.open_file

    async def deleted(path, *args, **options):
        await anyio.Path(path).unlink()
        return await open_file(path, *args, **options)

    monkeypatch.setattr("anyio.open_file", deleted)
    response = audio(site, job)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "audio_not_kept")


def test_long_transcripts_are_rendered_in_another_process_and_look_the_same(site, monkeypatch):
    """In this process, rendering ten hours would hold the GIL, and all other clients would wait."""
    fields = {"timestamp_granularities[]": ["segment", "word"]}

    def answers():
        job = site.finished(site.submitted(CONTENT, word_timestamps="true"))["id"]
        yield from (result(site, job, form) for form in ("srt", "txt", "json", "verbose_json"))
        yield from (site.transcribe(response_format=form) for form in ("text", "srt", "json"))
        yield site.transcribe(response_format="verbose_json", **fields)
        for output in ("srt", "json"):
            files = {"audio_file": ("talk.wav", CONTENT)}
            yield site.client.post("/asr", params={"output": output}, files=files)

    site.service.transcript = replace(TRANSCRIPT, samples=int(LONG_S * SAMPLE_RATE))
    with monkeypatch.context() as patches:
        patches.setattr("app.pool.helper.LONG_S", LONG_S + 1)
        here = [(answer.status_code, answer.content) for answer in answers()]
    assert [status for status, _ in here] == [200] * len(here)
    threads = []
    monkeypatch.setattr(asyncio, "to_thread", _recording(asyncio.to_thread, threads))
    assert [(answer.status_code, answer.content) for answer in answers()] == here
    assert not {"_render", "transcript_response", "_body", "pack_with_summary"} & set(threads)


def _recording(to_thread, names):
    def record(function, *args, **kwargs):
        names.append(getattr(function, "__name__", ""))
        return to_thread(function, *args, **kwargs)

    return record
