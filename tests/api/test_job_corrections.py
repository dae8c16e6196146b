"""Corrections of a transcript over HTTP, and its revisions."""

import asyncio
import base64
import json
import multiprocessing
import os
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from app.api.transcripts import correction_steps, corrections
from app.common.errors import ClipFailed
from app.database.connection import FILE_NAME
from app.jobs.corrections import apply_edits
from app.jobs.storage.revisions import KEPT, KEPT_BY_LINKS
from app.pool.helper import LONG_S
from app.server import large_bodies, sending
from app.transcript.formats import FORMATS
from tests.api.fake_service import TRANSCRIPT
from tests.api.waiting import wait_for
from tests.cases import read_cases
from workers.messages import SAMPLE_RATE

REQUESTS = read_cases("requests")
SECRET = f"whsec_{base64.b64encode(b's' * 32).decode()}"

FIRST, SECOND = " The quick brown fox.", " Über the lazy dog."


def get(site, job, revision=None):
    params = {} if revision is None else {"revision": revision}
    return site.client.get(f"/v1/jobs/{job}/segments", params=params)


def put(site, job, document=None, *, content=None, match="*", **headers):
    if match is not None:
        headers["if-match"] = match
    body = json.dumps(document) if content is None else content
    headers = {"content-type": "application/json"} | headers
    return site.client.put(f"/v1/jobs/{job}/segments", content=body, headers=headers)


def begin(site, job, length, **headers):
    """A connection on which the head of a correction was sent."""
    headers = {"content_type": "application/json", "if_match": "*"} | headers
    return site.begin(f"PUT /v1/jobs/{job}/segments", length=length, **headers)


def save(site, job, *texts, match="*"):
    """Give the segments other texts."""
    entries = get(site, job).json()["segments"]
    edited = [{**entry, "text": text} for entry, text in zip(entries, texts, strict=True)]
    response = put(site, job, {"segments": edited}, match=match)
    assert response.status_code == 200, response.text
    return response


def result(site, job, form="srt", revision=None, **headers):
    params = {"format": form} | ({} if revision is None else {"revision": revision})
    return site.client.get(f"/v1/jobs/{job}/result", params=params, headers=headers)


def revisions(site, job):
    body = site.client.get(f"/v1/jobs/{job}/revisions").raise_for_status().json()
    assert body["object"] == "list"
    return body["data"]


def error(response):
    body = response.json()["error"]
    return response.status_code, body["code"], body["param"]


@pytest.fixture
def job(site):
    return site.finished(site.submitted(word_timestamps="true"))["id"]


def test_a_correction_is_the_next_revision(site, job):
    response = get(site, job)
    document = response.json()
    document["segments"][0] |= {"text": "A quick brown cat.", "speaker": "Anna"}
    answer = put(site, job, document, match=response.headers["etag"])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    first, second = answer.json()["segments"]
    assert (first["text"], first["speaker"], first["id"]) == ("A quick brown cat.", "Anna", "0-0")
    assert [word["word"] for word in first["words"]] == ["A", "quick", "brown", "cat."]
    kept = [word | {"speaker": "Anna"} for word in document["segments"][0]["words"][1:3]]
    assert first["words"][1:3] == kept  # with the times and the probabilities
    assert second == document["segments"][1]
    again = get(site, job)
    assert (again.json(), again.headers["etag"]) == (answer.json(), answer.headers["etag"])
    assert again.headers["etag"] != response.headers["etag"]
    assert site.job(job)["revision"] == answer.json()["revision"] == 1
    assert get(site, job, "original").json() == get(site, job, 0).json() == response.json()


def test_segments_are_added_split_moved_and_removed(site, job):
    first, _ = get(site, job).json()["segments"]
    edits = [
        {"id": first["id"], "start": 0.5, "end": 1.0, "text": "The quick"},
        {"start": 1.0, "end": 1.9, "text": "brown fox."},
        {"start": 3, "end": 4, "text": "Amen.", "speaker": " Bob "},
    ]
    body = put(site, job, {"segments": edits}).json()
    assert [
        (entry["start"], entry["end"], entry["text"], entry["speaker"]) for entry in body["segments"]
    ] == [
        (0.5, 1.0, "The quick", None),
        (1.0, 1.9, "brown fox.", None),
        (3.0, 4.0, "Amen.", "Bob"),
    ]
    assert body["segments"][0]["id"] == first["id"]
    assert len({entry["id"] for entry in body["segments"]}) == 3
    assert revisions(site, job)[0]["changed"] == 4  # one differs, two are new, one is gone
    assert put(site, job, {"segments": []}).json()["segments"] == []
    assert result(site, job).text == ""
    assert get(site, job, 1).json() == body


def test_the_same_document_is_no_new_revision(site, job):
    for expected in (0, 0, 1, 1):
        if expected and not site.job(job)["revision"]:
            save(site, job, "One.", "Two.")
        before = get(site, job)
        answer = put(site, job, content=before.content, match=before.headers["etag"])
        assert (answer.status_code, answer.json()) == (200, before.json())
        assert answer.headers["etag"] == before.headers["etag"]
        assert site.job(job)["revision"] == answer.json()["revision"] == expected


def test_every_format_has_the_correction_and_the_former_bytes_stay(site, job):
    before = {form: result(site, job, form).content for form in FORMATS}
    save(site, job, "The slow brown fox.", "Über the lazy dog.")
    for form, content in before.items():
        assert result(site, job, form).status_code == 200
        assert result(site, job, form).content == result(site, job, form, 1).content != content
        assert result(site, job, form, "original").content == result(site, job, form, 0).content == content
    assert "slow" in result(site, job, "srt").text
    assert "slow" not in result(site, job, "srt", 0).text


def test_verbose_json_has_the_scores_of_the_old_segment(site, job):
    old = result(site, job, "verbose_json").json()
    save(site, job, "The slow brown fox.", "Über the lazy dog.")
    new = result(site, job, "verbose_json").json()
    first, second = new["segments"]
    assert second == old["segments"][1]
    # The files of this model are not here: there is nothing to make tokens with.
    assert first == old["segments"][0] | {"text": " The slow brown fox.", "tokens": []}
    assert [word["word"] for word in new["words"][:4]] == ["The", "slow", "brown", "fox."]


def test_tokens_of_corrected_text_come_from_the_model(site):
    from tokenizers import Tokenizer

    from app.engines.model_files import DEMO, DEMO_PATH

    site.service.transcript = replace(TRANSCRIPT, model=DEMO)
    job = site.finished(site.submitted())["id"]
    save(site, job, "The slow <|endoftext|> fox.", "Über the lazy dog.")
    first, second = result(site, job, "verbose_json").json()["segments"]
    tokenizer = Tokenizer.from_file(str(DEMO_PATH / "tokenizer.json"))
    zero = tokenizer.token_to_id("<|notimestamps|>") + 1
    assert (first["tokens"][0], first["tokens"][-1]) == (zero, zero + 75)  # 1.5 s in steps of 20 ms
    assert all(token < tokenizer.token_to_id("<|endoftext|>") for token in first["tokens"][1:-1])
    assert tokenizer.decode(first["tokens"][1:-1]).split() == ["The", "slow", "fox."]
    assert second["tokens"] == [1, 2, 3]


# Conditions


def test_a_correction_says_which_version_it_corrects(site, job):
    body = get(site, job).json()
    assert error(put(site, job, body, match=None)) == (428, "if_match_required", "If-Match")
    for wrong in ('"1"', '"00"', 'W/"1"', '"x"', ""):
        status, _, param = error(put(site, job, body, match=wrong))
        assert (status, param) == (412 if wrong else 400, "If-Match")
    for malformed in (
        "0",
        '"0',
        "'0'",
        '"0" "1"',
        '"0", 1',
        ", ,",
        '"0"' + ", " * 5000 + "x",
        '* , "0"',
        "W/0",
        'w/"0"',
    ):
        assert error(put(site, job, body, match=malformed)) == (400, None, "If-Match")
    weak = ('W/"0"', '"x", W/"0"')  # proxies that compress answers make ETags weak
    for right in (*weak, '"0"', '"x", "0"', '"0" , W/"9",', "*", '"a,b","0"', '"a*b", "0"'):
        assert put(site, job, body, match=right).status_code == 200
    lines = [("if-match", '"x"'), ("if-match", '"0"'), ("content-type", "application/json")]
    response = site.client.put(f"/v1/jobs/{job}/segments", json=body, headers=lines)
    assert response.status_code == 200
    assert revisions(site, job)[0]["revision"] == 0


@pytest.mark.parametrize("match", ["tag", "*"])
def test_writers_at_the_same_time(site, job, match, monkeypatch):
    """They all have read the same version when the first one stores its correction."""
    count = 4
    gate = threading.Barrier(count)

    def together(base, *edits):
        if base.revision == 0:
            gate.wait(10)
        return apply_edits(base, *edits)

    monkeypatch.setattr(correction_steps, "apply_edits", together)
    tag = get(site, job).headers["etag"] if match == "tag" else "*"
    body = {"segments": [{"start": 1, "end": 2}]}
    with ThreadPoolExecutor(count) as writers:
        answers = list(
            writers.map(
                lambda text: put(site, job, {"segments": [{**body["segments"][0], "text": text}]}, match=tag),
                [f"Text {number}." for number in range(count)],
            )
        )
    statuses = sorted(answer.status_code for answer in answers)
    stored = count if match == "*" else 1
    assert statuses == [200] * stored + [412] * (count - stored)
    assert sorted(a.json()["revision"] for a in answers if a.status_code == 200) == [*range(1, stored + 1)]
    newest = max((a for a in answers if a.status_code == 200), key=lambda a: a.json()["revision"])
    assert get(site, job).json() == newest.json()


def test_only_jobs_that_have_succeeded_can_be_corrected(site):
    site.service.paused = True
    running = site.submitted()
    wait_for(lambda: site.job(running)["status"] == "running")
    body = {"segments": []}
    assert error(put(site, running, body)) == (409, "job_not_done", None)
    assert error(site.client.get(f"/v1/jobs/{running}/revisions"))[:2] == (409, "job_not_done")
    site.service.error, site.service.paused = ClipFailed("It failed."), False
    assert site.finished(running)["status"] == "failed"
    assert error(put(site, running, body, match=None)) == (409, "job_not_done", None)
    assert error(put(site, "0" * 32, body)) == (404, "job_not_found", None)


def test_a_job_that_is_deleted_meanwhile(site, job, monkeypatch):
    def delete_first(base, *edits):
        site.client.delete(f"/v1/jobs/{job}").raise_for_status()
        return apply_edits(base, *edits)

    monkeypatch.setattr(correction_steps, "apply_edits", delete_first)
    assert error(put(site, job, {"segments": []})) == (404, "job_not_found", None)


# Revisions


def test_the_list_of_revisions(site, job):
    [original] = revisions(site, job)
    finished_at = site.job(job)["finished_at"]
    of_nobody = dict.fromkeys(("reason", "restored", "owner", "link"))
    assert original == of_nobody | {
        "revision": 0, "created_at": finished_at, "changed": 0, "by_link": False,
    }  # fmt: skip
    save(site, job, "One.", "Two.")
    save(site, job, "One.", "Three.")
    newest, older, last = revisions(site, job)
    assert last == original
    assert [(entry["revision"], entry["changed"]) for entry in (newest, older)] == [(2, 1), (1, 2)]
    assert original["created_at"] < older["created_at"] < newest["created_at"]


def test_an_earlier_revision_is_restored_exactly(site, job):
    original = get(site, job).json()
    before = {form: result(site, job, form).content for form in FORMATS}
    entries = [{**entry, "start": entry["start"] + 0.01} for entry in original["segments"]]
    moved = put(site, job, {"segments": entries}).json()
    tag = save(site, job, "One.", "Two.").headers["etag"]
    restored = put(site, job, {"revision": 1}, match=tag)
    assert restored.status_code == 200
    assert restored.json() == moved | {"revision": 3}
    assert get(site, job).json() == restored.json()
    assert put(site, job, {"revision": "original"}).json() == original | {"revision": 4}
    assert {form: result(site, job, form).content for form in FORMATS} == before
    assert [(entry["revision"], entry["changed"]) for entry in revisions(site, job)] == [
        (4, 2), (3, 2), (2, 2), (1, 2), (0, 0),
    ]  # fmt: skip
    again = put(site, job, {"revision": 0})
    assert again.json() == original | {"revision": 4}
    assert error(put(site, job, {"revision": 1}, match=tag)) == (412, "revision_changed", "If-Match")


def test_revisions_say_why_they_were_made(site, job):
    put(site, job, {"segments": [entry | {"speaker": "Ann"} for entry in get(site, job).json()["segments"]]})
    named = [entry | {"speaker": "Bob"} for entry in get(site, job).json()["segments"]]
    put(site, job, {"segments": [named[0] | {"text": "One."}, *named[1:]]})
    names = {"names": {"Bob": "Bert"}}
    site.client.post(f"/v1/jobs/{job}/speakers", json=names, headers={"If-Match": "*"}).raise_for_status()
    put(site, job, {"revision": 1})
    put(site, job, {"segments": get(site, job).json()["segments"][:1]})
    put(site, job, {"revision": "original"})
    assert [(entry["reason"], entry["restored"]) for entry in revisions(site, job)] == [
        ("restored", 0), ("corrected", None), ("restored", 1), ("speakers", None), ("corrected", None),
        ("speakers", None), (None, None),
    ]  # fmt: skip


def test_some_revisions_are_kept(site, job):
    for number in range(KEPT + 2):
        save(site, job, f"{number}.", "x")
    listed = [entry["revision"] for entry in revisions(site, job)]
    assert (listed[0], listed[-1], len(listed)) == (KEPT + 2, 0, KEPT + 1)
    assert listed == sorted(listed, reverse=True)
    for gone in set(range(KEPT + 4)) - set(listed):
        assert error(get(site, job, gone)) == (404, "revision_not_found", "revision")
        assert error(result(site, job, "srt", gone)) == (404, "revision_not_found", "revision")
        assert error(put(site, job, {"revision": gone})) == (404, "revision_not_found", "revision")


def test_invalid_revisions(site, job):
    for revision in ("", "-1", "x", "Original", "1.5", "null", "9" * 30):
        for response in (get(site, job, revision), result(site, job, "srt", revision)):
            assert error(response) == (400, None, "revision"), revision
        assert error(put(site, job, {"revision": revision}))[0] == 400, revision


def test_results_have_etags(site, job):
    first = result(site, job)
    again = result(site, job, **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    save(site, job, "One.", "Two.")
    new = result(site, job, **{"if-none-match": first.headers["etag"]})
    assert (new.status_code, new.headers["etag"] != first.headers["etag"]) == (200, True)
    assert result(site, job, "srt", 0).headers["etag"] == first.headers["etag"]
    assert result(site, job, "vtt").headers["etag"] != new.headers["etag"]


def test_the_search_finds_the_newest_text(site, job):
    def found(text):
        return bool(site.client.get("/v1/jobs", params={"q": text}).raise_for_status().json()["data"])

    assert (found("quick brown"), found("Siamese"), found("talk")) == (True, False, True)
    save(site, job, "A Siamese cat.", "Über the lazy dog.")
    assert (found("quick brown"), found("siamese"), found("uber lazy"), found("talk")) == (
        False, True, True, True,
    )  # fmt: skip
    put(site, job, {"revision": "original"})
    assert (found("quick brown"), found("Siamese"), found("talk")) == (True, False, True)


# Bodies


def test_the_first_bad_segment_is_named(site, job):
    good = {"start": 0.2, "end": 0.4, "text": "Good."}
    for entry in (
        *REQUESTS["bad_segments"],
        {"start": float("nan"), "end": 2},
        {"start": 1, "end": float("inf")},
        {"start": 1, "end": 10**400},
        {"start": None, "end": 2},
        {"start": 1, "end": 2, "text": None},
        {"start": 1, "end": 2, "text": "x" * 10_001},
        {"start": 1, "end": 2, "speaker": "x" * 101},
        [],
        None,
    ):
        bad = {"text": "Bad."} | entry if isinstance(entry, dict) else entry
        response = put(site, job, {"segments": [good, bad, bad]})
        status, _, param = error(response)
        assert status == 400, entry
        if "valid JSON" not in response.json()["error"]["message"]:
            assert param == "segments[1]", entry
            assert "segments[1]" in response.json()["error"]["message"], entry
    assert site.job(job)["revision"] == 0


def test_a_missing_field_is_named(site, job):
    response = put(site, job, {"segments": [{"start": 0, "text": "No end."}]})
    assert response.json()["error"]["message"] == "`segments[0].end`: is required, and was not sent."


def test_bodies_that_are_no_corrections(site, job):
    for content in (
        b"", b"{", b"[]", b"null", b"5", b'"x"', b"{}", b'{"segments": null}', b'{"segments": {}}',
        b'{"revision": null}', b'{"revision": "0"}', b'{"revision": true}', b'{"revision": 0.0}',
        b'{"revision": -1}', b'{"revision": 1.5}', b'{"segments": []} x',
        b'\xff\xfe{}', b"[" * 100_000,
        b'{"segments": [{"start": 1, "end": 2, "text": "\\ud800"}]}',
        b'{"segments": [{"start": 1, "end": 2, "text": "\xed\xa0\x80"}]}',
        b'{"segments": [' + b"{}," * 100_001 + b"{}]}",
    ):  # fmt: skip
        response = put(site, job, content=content)
        assert response.status_code == 400, content[:50]
        assert len(response.json()["error"]["message"]) < 300, content[:50]
    assert site.job(job)["revision"] == 0


def test_text_is_one_line(site, job):
    entries = get(site, job).json()["segments"]
    entries[0] |= {"text": "\ufeffThe\tquick\r\n\u2028brown\x0b f\0o\x1b\x85x.", "speaker": "A\nB\0"}
    first = put(site, job, {"segments": entries}).json()["segments"][0]
    assert (first["text"].lstrip("\ufeff"), first["speaker"]) == ("The quick brown  fo x.", "A B")


def test_other_content_types_are_refused(site, job):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        response = put(site, job, {"segments": []}, **{"content-type": kind})
        assert error(response)[:2] == (415, "unsupported_content_type")
    kind = "Application/JSON; charset=utf-8"
    assert put(site, job, {"segments": []}, **{"content-type": kind}).status_code == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(site, job):
    with begin(site, job, corrections.MAX_CORRECTION_BYTES + 1) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_body_without_a_length_may_not_be_too_large_either(site, job, monkeypatch):
    monkeypatch.setattr(corrections, "MAX_CORRECTION_BYTES", 1000)
    assert error(put(site, job, content=iter([b" " * 600] * 2)))[:2] == (413, "too_large")
    assert put(site, job, content=iter([b" " * 600, b'{"segments": []}'])).status_code == 200


def test_a_body_that_stalls_is_given_up(serve):
    site = serve(upload_stall_s=0.2)
    job = site.finished(site.submitted())["id"]

    def slow():
        yield b'{"segments": '
        time.sleep(1)
        yield b"[]}"

    assert error(put(site, job, content=slow()))[:2] == (400, "upload_stalled")


def test_corrections_hold_a_place(serve):
    site = serve(max_uploads=1)
    job = site.finished(site.submitted())["id"]
    body = b'{"segments": []}'
    with begin(site, job, len(body), expect="100-continue") as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 100"), "the place is taken, the body awaited"
        connection.sendall(body[:5])
        assert put(site, job, {"segments": []}).status_code == 429
        connection.sendall(body[5:])
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert put(site, job, {"segments": []}).status_code == 200


def test_long_transcripts_and_large_bodies_are_corrected_in_another_process(site, monkeypatch):
    short = site.finished(site.submitted())["id"]
    site.service.transcript = replace(TRANSCRIPT, samples=int(LONG_S * SAMPLE_RATE))
    long = site.finished(site.submitted())["id"]
    threads = []
    to_thread = asyncio.to_thread

    def record(function, *args, **kwargs):
        threads.append(getattr(function, "__name__", ""))
        return to_thread(function, *args, **kwargs)

    monkeypatch.setattr(asyncio, "to_thread", record)
    save(site, long, "One.", "Two.")
    assert put(site, long, {"revision": 0}).status_code == 200
    assert put(site, short, {"segments": [], "words": ["x" * 1000] * 300}).status_code == 200
    assert not {"corrected", "restored"} & set(threads)
    save(site, long, "One.", "Two.")
    monkeypatch.setattr("app.pool.helper.LONG_S", 1e9)
    put(site, long, {"segments": []})
    assert "corrected" in threads


def test_many_words_in_a_small_body_are_found_in_another_process(site, job, monkeypatch):
    monkeypatch.setattr(corrections, "corrected", _corrected_elsewhere)
    answer = put(site, job, {"segments": [{"start": 0, "end": 1, "text": "a " * 4900}] * 2})
    assert error(answer) == (400, None, "segments[1]")  # it overlaps the first one


def _corrected_elsewhere(*args):
    assert multiprocessing.parent_process(), "in the server"
    return correction_steps.corrected(*args)


def _crash(*_):
    assert multiprocessing.parent_process(), "in the server"
    os._exit(1)


def test_a_correction_that_crashes_its_process_does_not_crash_the_server(site, job, monkeypatch):
    monkeypatch.setattr(corrections, "corrected", _crash)
    answer = put(site, job, {"segments": [], "padding": "x" * (1 << 18)})
    assert error(answer) == (503, "helper_failed", None)
    monkeypatch.undo()
    assert put(site, job, {"segments": [], "padding": "x" * (1 << 18)}).status_code == 200


def test_a_correction_fits_the_length_of_its_recording(site, job):
    crowd = [{"start": 0, "end": 4, "text": "a " * 4900, "speaker": f"S{number}"} for number in range(500)]
    began = time.monotonic()
    answer = put(site, job, {"segments": crowd})
    assert error(answer) == (413, "too_large", "segments")
    assert "may have 100,420 for 4.2 s of sound" in answer.json()["error"]["message"]
    with begin(site, job, (8 << 20) + 5000) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    assert time.monotonic() - began < 20
    assert site.job(job)["revision"] == 0


def test_a_correction_has_as_many_speakers_as_a_job_may_list(site, job):
    crowd = [
        {"start": number / 1000, "end": (number + 1) / 1000, "text": "a", "speaker": f"{number:0100}"}
        for number in range(2000)
    ]
    answer = put(site, job, {"segments": crowd})
    assert error(answer) == (413, "too_large", "segments")
    assert "2,000 speakers, and may have 250" in answer.json()["error"]["message"]
    assert put(site, job, {"segments": crowd[:250]}).status_code == 200
    assert len(site.job(job)["speakers"]) == 250


def test_large_documents_of_jobs_are_admitted(site, job, monkeypatch):
    """They wait for slow readers."""
    monkeypatch.setattr(sending, "LARGE_BYTES", 100)
    monkeypatch.setattr(large_bodies, "LARGE_BYTES", 100)
    limiter = site.admission.sending
    limiter._by_owner["somebody"] = 2 * limiter._limit.total
    for path in ("", f"/{job}"):
        assert error(site.client.get(f"/v1/jobs{path}"))[0] == 429
    limiter._by_owner.clear()
    entry = site.client.get(f"/v1/jobs/{job}").raise_for_status().json()
    listed = site.client.get("/v1/jobs").raise_for_status().json()
    assert listed == {"object": "list", "data": [entry | {"matches": []}], "has_more": False}


def test_many_corrections_by_a_link_leave_one_webhook(serve):
    site = serve(api_keys=("alice:sk-alice",), webhook_secret=SECRET, webhook_allow_private=True)
    site.client.headers["authorization"] = "Bearer sk-alice"
    with socket.create_server(("127.0.0.1", 0)) as silent:  # nobody accepts, and nobody answers
        hook = f"http://127.0.0.1:{silent.getsockname()[1]}/hook"
        job = site.finished(site.submitted(webhook_url=hook))["id"]
        token = site.client.post(f"/v1/jobs/{job}/shared", json={"correct": True}).json()["token"]
        site.client.headers["authorization"] = f"Bearer {token}"
        for number in range(30):
            save(site, job, f"{number}.", "x")
        with closing(sqlite3.connect(site.service.settings.data_dir / FILE_NAME)) as database:
            bodies = [json.loads(body) for (body,) in database.execute("SELECT body FROM deliveries")]
        assert sorted((body["type"], body["data"]["revision"]) for body in bodies) == [
            ("job.corrected", 30),
            ("job.succeeded", 0),
        ]
        assert len(revisions(site, job)) == 1 + KEPT_BY_LINKS
