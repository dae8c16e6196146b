"""Jobs that failed for a part of their recording: the rest of the text, and another attempt."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.client.jobs import JobClient
from app.client.service import WATCH, connect
from app.common.errors import ClipFailed, InvalidInput
from app.common.options import Options
from app.settings import Settings
from app.transcript.formats import FORMATS
from app.transcript.rendering import render_transcript
from app.watch import recording, watcher
from tests.api.conftest import Site, serve_site
from tests.api.fake_service import TRANSCRIPT
from tests.api.test_job_events import events
from tests.api.test_transcribe_again import again, child_of, code, done, texts
from tests.api.waiting import wait_for
from tests.watch.watched_folder import Watched, idle, until, written

FAILED = replace(TRANSCRIPT, segments=TRANSCRIPT.segments[:1], failed_spans=((35_000, 64_000),))
MESSAGE = "The span from 2.19 s to 4.00 s could not be transcribed: no text"


def result(site: Site, job: str, headers: Any = None, **query: str) -> httpx.Response:
    return site.client.get(f"/v1/jobs/{job}/result", params=query, headers=headers)


def partial_job(site: Site, headers: Any = None, **fields: Any) -> str:
    """The id of a job of which a part has failed. The next attempt succeeds."""
    site.service.transcript, site.service.failure = FAILED, ClipFailed(MESSAGE, code="clip_failed")
    job = site.finished(site.submit(headers=headers, **fields).raise_for_status().json()["id"])
    assert (job["status"], job["error"]) == ("failed", {"message": MESSAGE, "code": "clip_failed"})
    site.service.transcript, site.service.failure = TRANSCRIPT, None
    return str(job["id"])


@pytest.fixture
def partial(site: Site) -> str:
    return partial_job(site)


@pytest.mark.parametrize("form", sorted(FORMATS.keys() - {"json"}))
def test_the_rest_in_every_format(site: Site, partial: str, form: str) -> None:
    answer = result(site, partial, format=form, allow_partial="true")
    assert answer.status_code == 200
    assert answer.content == render_transcript(FAILED, Options(), form, title="talk")


def test_a_client_that_does_not_ask_for_the_rest_gets_an_error_that_names_it(
    site: Site, partial: str
) -> None:
    for query in ({}, {"allow_partial": "false"}):
        answer = result(site, partial, **query)
        assert code(answer) == (409, "job_not_done")
        message = answer.json()["error"]["message"]
        assert message.startswith(f"The job has failed: {MESSAGE}. POST /v1/jobs/{partial}/again")
        assert "/result?allow_partial=true" in message
    assert code(result(site, partial, allow_partial="perhaps"))[0] == 400


def test_the_failed_spans_are_named(site: Site, partial: str) -> None:
    spans = [{"start": 2.188, "end": 4.0}]
    shown = site.job(partial)
    assert [{name: round(at, 3) for name, at in span.items()} for span in shown["failed_spans"]] == spans
    assert (shown["duration"], shown["excerpt"]) == (4.2, FAILED.text)
    verbose = result(site, partial, format="verbose_json", allow_partial="true").json()
    assert verbose["failed_spans"] == shown["failed_spans"]
    assert verbose["text"] == FAILED.text


def test_a_signed_link_to_the_rest(site: Site, partial: str) -> None:
    wanted = {"path": "result", "format": "txt", "allow_partial": True}
    link = site.client.post(f"/v1/jobs/{partial}/links", json=wanted).json()["path"]
    assert site.client.get(link).text == result(site, partial, format="txt", allow_partial="true").text


def test_it_runs_again_as_the_same_job(site: Site) -> None:
    job = partial_job(site, language="en", prompt="Foxes", title="Fables")
    before, etag = site.job(job), result(site, job, allow_partial="true").headers["etag"]
    last = events(site, job)[-1]
    site.service.paused = True
    answer = again(site, job)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/jobs/{job}"
    queued = answer.json()
    assert (queued["id"], queued["status"], queued["error"]) == (job, "queued", None)
    assert (queued["finished_at"], queued["expires_at"], queued["progress"]["done_s"]) == (None, None, 0)
    assert code(again(site, job))[0] == 409, "one attempt at a time"
    assert code(result(site, job, allow_partial="true")) == (409, "job_not_done")
    site.service.paused = False
    ended = site.finished(job)
    assert (ended["status"], ended["failed_spans"], ended["revision"]) == ("succeeded", [], 0)
    for name in ("options", "title", "filename", "created_at"):
        assert ended[name] == before[name]
    assert ended["started_at"] > before["finished_at"]
    srt = result(site, job, headers={"if-none-match": etag}, allow_partial="true")
    assert (srt.status_code, srt.text) == (200, render_transcript(TRANSCRIPT, Options(), "srt").decode())
    first, second = site.service.calls[-2:]
    assert first.options == second.options
    assert first.sha256 == second.sha256

    shown = events(site, job)
    assert not [event for event in shown if event.type == "job.failed"], "no client takes it for the end"
    assert shown[-1].type == "job.succeeded"
    assert all(before.number < after.number for before, after in pairwise(shown))
    missed, *_ = events(site, job, **{"last-event-id": str(last.number)})
    assert (last.type, missed.number, missed.type) == ("job.failed", last.number + 1, "job.queued")


def test_it_may_fail_again_and_keeps_what_it_has(site: Site, partial: str) -> None:
    site.service.paused = True
    again(site, partial).raise_for_status()
    site.service.error = InvalidInput("The disk has bad sectors.", code="broken_file")
    site.service.paused = False
    ended = site.finished(partial)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "broken_file")
    assert len(ended["failed_spans"]) == 1
    assert result(site, partial, format="txt", allow_partial="true").text.strip() == FAILED.text
    site.service.error = None
    again(site, partial).raise_for_status()
    assert site.finished(partial)["status"] == "succeeded"


def test_it_does_not_run_again_with_other_options(site: Site, partial: str) -> None:
    answer = again(site, partial, beam_size=10)
    assert code(answer) == (409, "job_not_done")
    error = answer.json()["error"]
    assert error["param"] == "beam_size"
    assert "submit its recording as a new job" in error["message"]
    assert site.job(partial)["status"] == "failed"


def test_the_idempotency_key_still_finds_the_job(site: Site) -> None:
    key = {"idempotency-key": "a key"}
    job = partial_job(site, key)
    assert site.submit(headers=key).json()["status"] == "failed"
    again(site, job).raise_for_status()
    found = site.submit(headers=key).json()
    assert (found["id"], found["status"] == "failed") == (job, False)
    site.finished(job)
    assert site.submit(headers=key).json()["status"] == "succeeded"


def test_a_recording_that_is_not_kept(tmp_path: Path) -> None:
    with serve_site(Settings(data_dir=tmp_path, keep_audio=False, _env_file=None)) as site:
        job = partial_job(site)
        wait_for(lambda: not site.left_files)
        assert result(site, job, format="txt", allow_partial="true").text.strip() == FAILED.text
        assert code(again(site, job)) == (409, "audio_not_kept")


def failed_child(site: Site, job: str) -> str:
    """The id of a job that has failed to transcribe another one again. So do the next ones."""
    site.service.paused = True
    child: str = child_of(site, job)["id"]
    site.service.failure = ClipFailed(MESSAGE, code="clip_failed")
    site.service.paused = False
    assert site.finished(child)["status"] == "failed"
    return child


def test_a_child_that_fails_runs_again(site: Site) -> None:
    job = done(site)
    child = failed_child(site, job)
    other = texts(site, job)
    site.service.failure = None
    answer = again(site, child)
    assert (answer.status_code, answer.json()["id"]) == (202, child)
    assert site.finished(child)["status"] == "succeeded"
    assert (site.job(job)["revision"], texts(site, job) != other) == (1, True)


def test_a_child_whose_parent_has_changed_does_not_run_again(site: Site) -> None:
    job = done(site)
    child = failed_child(site, job)
    site.service.failure = None
    assert site.finished(child_of(site, job)["id"])["status"] == "succeeded"
    assert code(again(site, child)) == (412, "revision_changed")
    assert site.job(child)["status"] == "failed"


def test_its_place_in_the_queue_counts(serve: Any) -> None:
    site = serve(max_queued_jobs=1)
    job = partial_job(site)
    site.service.paused = True
    for _ in range(site.service.fleet.jobs_at_once + 1):
        site.submitted()
    assert code(again(site, job)) == (429, "queue_full")
    assert site.job(job)["status"] == "failed"


@pytest.mark.anyio
async def test_a_watch_has_its_job_run_again(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error of the service; a file that is no recording is given up."""
    monkeypatch.setattr(watcher, "_RETRY_S", 0.2)
    monkeypatch.setattr(recording, "_FIRST_PAUSE_S", 0.1)
    watched = Watched(tmp_path / "films", tmp_path / "recordings.db")
    watched.folder.mkdir()
    site.service.error = RuntimeError("unexpected")
    async with JobClient(connect(site.url, None, WATCH), WATCH) as client:
        watched.jobs = client  # type: ignore[assignment]
        async with watched.watch() as watching:
            watched.add("film.mkv")
            await until(lambda: watched.report.notices)
            [failed] = await asyncio.to_thread(jobs_of, site)
            assert (failed["status"], failed["error"]["code"]) == ("failed", "internal_error")
            site.service.error = None
            await written(watched, watching)
            assert len(site.service.calls) > 1
            assert len({call.upload.path for call in site.service.calls}) == 1, "it is sent once"

            site.service.error = InvalidInput("The file is text.", code="not_audio")
            watched.add("notes.mkv")
            await until(lambda: len(watched.report.lines) == 2)
            calls = len(site.service.calls)
            await idle(watching)
            await asyncio.sleep(0.5)
    assert [line.split()[:2] for line in watched.report.lines] == [
        ["done", "film.mkv"],
        ["failed", "notes.mkv"],
    ]
    assert len(site.service.calls) == calls
    assert jobs_of(site) == []


def jobs_of(site: Site) -> list[dict[str, Any]]:
    return list(site.client.get("/v1/jobs").raise_for_status().json()["data"])
