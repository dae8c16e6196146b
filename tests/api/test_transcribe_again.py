"""Transcribing a job again over HTTP: its child, what becomes of its transcript, and who may do what."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.database.connection import FILE_NAME
from app.settings import Settings
from tests.api.conftest import Site, serve_site
from tests.api.fake_service import TRANSCRIPT, segment
from tests.api.test_job_corrections import put, save
from tests.api.waiting import wait_for

# What the service transcribes the second time, and in the second segment alone.
OTHER = replace(TRANSCRIPT, segments=(segment("A quick fox.", 0.5, 2.0), segment("A lazy cat.", 2.3, 3.9)))
SECOND = replace(TRANSCRIPT, segments=OTHER.segments[1:])
FIRST_TEXT, SECOND_TEXT = "The quick brown fox.", "Über the lazy dog."


def again(site: Site, job: str, headers: Any = None, **fields: Any) -> httpx.Response:
    return site.client.post(f"/v1/jobs/{job}/again", json=fields, headers=headers)


def child_of(site: Site, job: str, headers: Any = None, **fields: Any) -> Any:
    answer = again(site, job, headers, **fields)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    return answer.json()


def done(site: Site, **fields: Any) -> str:
    """The id of a job that has succeeded. The service transcribes something else from now on."""
    job = site.submitted(**fields)
    assert site.finished(job)["status"] == "succeeded"
    site.service.transcript = OTHER
    return job


def texts(site: Site, job: str, revision: int | str | None = None) -> list[str]:
    params = {} if revision is None else {"revision": revision}
    answer = site.client.get(f"/v1/jobs/{job}/segments", params=params).raise_for_status()
    return [segment["text"] for segment in answer.json()["segments"]]


def code(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["code"]


def test_all_of_it_again_is_a_revision_of_the_parent(site: Site) -> None:
    job = done(site, language="en", prompt="Foxes")
    save(site, job, FIRST_TEXT, "Above the lazy dog.")
    child = child_of(site, job, prompt="Cats", beam_size=1)
    assert (child["parent"], child["filename"]) == (job, "talk.wav")
    ended = site.finished(child["id"])
    assert (ended["status"], ended["error"]) == ("succeeded", None)
    options = site.service.calls[-1].options
    assert (options.language, options.prompt, options.beam_size) == ("en", "Cats", 1)
    assert site.service.calls[-1].sha256 == site.service.calls[0].sha256
    assert texts(site, job) == ["A quick fox.", "Above the lazy dog."]
    assert texts(site, job, "original") == [FIRST_TEXT, SECOND_TEXT]
    assert texts(site, job, 1) == [FIRST_TEXT, "Above the lazy dog."]
    parent = site.job(job)
    assert (parent["revision"], parent["parent"], parent["excerpt"]) == (
        2, None, "A quick fox. Above the lazy dog.",
    )  # fmt: skip
    assert "A quick fox" in site.client.get(f"/v1/jobs/{job}/result?format=srt").text


def test_in_another_language_corrections_stay_only_in_the_revisions(site: Site) -> None:
    job = done(site)
    save(site, job, FIRST_TEXT, "Above the lazy dog.")
    for fields in ({"language": "de"}, {"task": "translate"}, {"language": "de", "keep_corrections": True}):
        answer = again(site, job, **fields)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "keep_corrections"
    site.service.transcript = replace(OTHER, language="de")
    child = child_of(site, job, language="de", keep_corrections=False)
    site.finished(child["id"])
    assert texts(site, job) == ["A quick fox.", "A lazy cat."]
    assert site.job(job)["language"] == "de"
    put(site, job, {"revision": 1}).raise_for_status()
    assert (texts(site, job)[1], site.job(job)["language"]) == ("Above the lazy dog.", "en")


def test_a_part_again_replaces_that_part_alone(site: Site) -> None:
    job = done(site)
    before = site.client.get(f"/v1/jobs/{job}/segments").json()["segments"]
    site.service.transcript = SECOND
    child = child_of(site, job, start=2.3, end=3.9)
    site.finished(child["id"])
    options = site.service.calls[-1].options
    assert (options.start, options.end, options.language) == (2.3, 3.9, "en")
    after = site.client.get(f"/v1/jobs/{job}/segments").json()["segments"]
    assert after[0] == before[0]
    assert [segment["text"] for segment in after] == [FIRST_TEXT, "A lazy cat."]
    assert [(each["changed"], each["reason"]) for each in revisions(site, job)] == [
        (2, "transcribed_again"), (0, None),
    ]  # fmt: skip


def test_a_part_of_a_recording_in_several_languages_is_detected_as_before(site: Site) -> None:
    first, second = TRANSCRIPT.segments
    site.service.transcript = replace(TRANSCRIPT, segments=(first, replace(second, language="fr")))
    job = done(site)
    languages = site.job(job)["languages"]
    assert list(languages) == ["fr", "en"]
    site.service.transcript = replace(SECOND, language="fr")  # as of a part that is in one language
    assert site.finished(child_of(site, job, start=2.3, end=3.9)["id"])["language"] == "fr"
    options = site.service.calls[-1].options
    assert (options.language, options.languages) == (None, "fr,en")
    segments = site.client.get(f"/v1/jobs/{job}/segments").json()["segments"]
    assert [(each["text"], each.get("language")) for each in segments] == [
        (FIRST_TEXT, None), ("A lazy cat.", "fr"),
    ]  # fmt: skip
    assert (site.job(job)["language"], site.job(job)["languages"]) == ("en", languages)
    for fields in (
        {"language": "de", "keep_corrections": False},
        {"languages": "de"},
        {"multilingual": True},
    ):
        site.finished(child_of(site, job, start=2.3, end=3.9, **fields)["id"])
        options = site.service.calls[-1].options
        names = ("language", "languages", "multilingual")
        assert [getattr(options, name) for name in names] == [fields.get(name) for name in names]


def revisions(site: Site, job: str) -> Any:
    return site.client.get(f"/v1/jobs/{job}/revisions").json()["data"]


def test_a_correction_meanwhile_stays_and_the_child_says_so(site: Site) -> None:
    job = done(site)
    site.service.paused = True
    child = child_of(site, job)["id"]
    site.service.started.wait(10)
    save(site, job, FIRST_TEXT, "Above the lazy dog.")
    assert texts(site, job) == [FIRST_TEXT, "Above the lazy dog."], "it can be read and corrected"
    site.service.paused = False
    ended = site.finished(child)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "revision_changed")
    assert "was corrected meanwhile" in ended["error"]["message"]
    assert texts(site, job) == [FIRST_TEXT, "Above the lazy dog."]
    assert site.finished(child_of(site, job)["id"])["status"] == "succeeded"
    assert texts(site, job) == ["A quick fox.", "Above the lazy dog."]


def test_the_request_may_name_the_version_that_it_means(site: Site) -> None:
    job = done(site)
    save(site, job, FIRST_TEXT, "Above the lazy dog.")
    assert code(again(site, job, {"If-Match": '"0"'})) == (412, "revision_changed")
    assert again(site, job, {"If-Match": "nonsense"}).status_code == 400
    key = {"If-Match": '"1"', "Idempotency-Key": "once"}
    child = child_of(site, job, key)["id"]
    site.finished(child)
    assert child_of(site, job, key)["id"] == child, "the same request, although the version is another now"
    assert code(again(site, job, key, beam_size=2)) == (409, "idempotency_key_reused")


def test_a_child_is_cancelled_alone_or_with_its_parent(site: Site) -> None:
    job = done(site)
    site.service.paused = True
    child = child_of(site, job)["id"]
    assert code(again(site, job)) == (409, "transcribed_again"), "one at a time"
    site.client.delete(f"/v1/jobs/{child}").raise_for_status()
    assert texts(site, job) == [FIRST_TEXT, SECOND_TEXT]
    assert site.client.get(f"/v1/jobs/{job}/audio").status_code == 200
    child = child_of(site, job)["id"]
    with site.client.stream("GET", f"/v1/jobs/{child}/events") as events:
        lines = events.iter_lines()
        wait_for(lambda: next(lines) == "event: job.running")
        site.client.delete(f"/v1/jobs/{job}").raise_for_status()
        assert "event: job.cancelled" in list(lines)
    assert site.client.get(f"/v1/jobs/{child}").status_code == 404
    wait_for(lambda: not site.left_files)


def test_a_job_without_a_recording_or_a_transcript_has_nothing_to_transcribe(site: Site) -> None:
    site.service.paused = True
    job = site.submitted()
    assert code(again(site, job)) == (409, "job_not_done")
    site.service.paused = False
    site.finished(job)
    child = child_of(site, job)["id"]
    site.finished(child)
    for path in ("result", "segments", "revisions"):
        answer = site.client.get(f"/v1/jobs/{child}/{path}")
        assert code(answer) == (409, "no_transcript")
        assert job in answer.json()["error"]["message"]
    assert code(again(site, child)) == (409, "no_transcript")
    [recording] = site.uploads
    recording.unlink()
    assert code(again(site, job)) == (409, "audio_not_kept")


def test_a_recording_that_vanishes_fails_the_child(site: Site) -> None:
    job = done(site)
    site.service.fleet.jobs_at_once = 0  # no job starts
    child = child_of(site, job)["id"]
    [recording] = site.uploads
    recording.unlink()
    site.service.fleet.jobs_at_once = 4
    site.submitted()
    assert site.finished(child)["error"]["code"] == "file_gone"
    assert texts(site, job) == [FIRST_TEXT, SECOND_TEXT]


def test_lists_have_children_only_if_asked(site: Site) -> None:
    job = done(site)
    child = child_of(site, job)["id"]
    site.finished(child)

    def listed(query: str) -> list[str]:
        return [each["id"] for each in site.client.get(f"/v1/jobs?{query}").json()["data"]]

    assert listed("") == listed("q=talk") == [job]
    assert listed(f"parent={job}") == listed(f"ids={child}") == [child]
    assert site.client.get("/v1/jobs?parent=nonsense").status_code == 404


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_line_chars": 20}, "max_line_chars"),
        ({"audio_track": "1"}, "audio_track"),
        ({"nonsense": 1}, "nonsense"),
        ({"start": 9}, "start"),
        ({"start": 2, "end": 1}, "end"),
        ({"keep_corrections": "perhaps"}, "keep_corrections"),
        ({"webhook_url": "https://receiver.example"}, "webhook_url"),
    ],
)
def test_what_cannot_be_is_refused(site: Site, fields: dict[str, Any], param: str) -> None:
    answer = again(site, done(site), **fields)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_counts_and_channels_replace_those_of_the_parent(site: Site) -> None:
    job = done(site, diarize="true", min_speakers="2")
    site.finished(child_of(site, job, num_speakers=3)["id"])
    options = site.service.calls[-1].options
    assert (options.num_speakers, options.min_speakers, options.diarize) == (3, None, True)
    site.finished(child_of(site, job, channels="separate")["id"])
    assert (site.service.calls[-1].options.channels, site.service.calls[-1].options.diarize) == (
        "separate",
        False,
    )


def test_a_restart_in_the_middle_goes_on_and_nothing_expires_meanwhile(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, result_ttl_s=0.2, _env_file=None)
    with serve_site(Settings(data_dir=tmp_path, _env_file=None)) as site:
        job = done(site)
        site.service.paused = True
        child = child_of(site, job)["id"]
        wait_for(lambda: site.job(child)["status"] == "running")
    with sqlite3.connect(tmp_path / FILE_NAME) as database:
        database.execute("UPDATE jobs SET retained_since = 1 WHERE id = ?", (job,))
    with serve_site(settings) as site:
        site.service.paused = True
        site.service.transcript = OTHER
        wait_for(site.service.started.is_set)
        assert texts(site, job) == [FIRST_TEXT, SECOND_TEXT], "although its time is over"
        assert len(site.uploads) == 1
        with site.client.stream("GET", f"/v1/jobs/{child}/events") as events:
            site.service.paused = False
            assert "event: job.succeeded" in list(events.iter_lines())
        wait_for(lambda: site.client.get(f"/v1/jobs/{job}").status_code == 404)
        wait_for(lambda: not site.left_files)
