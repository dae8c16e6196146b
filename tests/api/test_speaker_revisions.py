"""Speakers of a job that are found again, or renamed, as a revision of its transcript."""

import json

import numpy as np
import pytest

from app.api.transcripts import corrections
from app.transcript.speakers.voices import Voices
from tests.api.fake_service import DIALOGUE
from workers.messages import SAMPLE_RATE

FOX, DOG, AMEN = "0-0", "0-1", "0-2"  # ids of the segments of S1, Bob and S2


def unlike(*directions):
    """Embeddings, those of one direction alike."""
    return np.eye(4, dtype=np.float32)[list(directions)]


# Whoever speaks of the fox says Amen.
VOICES = Voices(
    tuple(
        (int(start * SAMPLE_RATE), int(end * SAMPLE_RATE))
        for start, end in [(0.5, 2), (2.3, 3.8), (3.9, 4.1)]
    ),
    unlike(0, 1, 0),
)


@pytest.fixture
def job(site):
    site.service.transcript, site.service.voices = DIALOGUE, VOICES
    return site.finished(site.submitted(diarize="true"))["id"]


@pytest.fixture
def plain_job(site):
    """A job with speakers and without voices, as one with channels."""
    site.service.transcript = DIALOGUE
    return site.finished(site.submitted(channels="separate"))["id"]


def find(site, job, body=None, *, content=None, match="*", **headers):
    headers = {"content-type": "application/json"} | ({} if match is None else {"if-match": match}) | headers
    content = json.dumps(body or {}) if content is None else content
    return site.client.post(f"/v1/jobs/{job}/speakers", content=content, headers=headers)


def segments(site, job):
    return site.client.get(f"/v1/jobs/{job}/segments").raise_for_status()


def speakers(response):
    assert response.status_code == 200, response.text
    return [segment["speaker"] for segment in response.json()["segments"]]


def error(response):
    body = response.json()["error"]
    return response.status_code, body["code"], body["param"]


def test_the_voices_decide_again(site, job):
    before = segments(site, job)
    assert speakers(before) == ["S1", "Bob", "S2"]
    answer = find(site, job, match=before.headers["etag"])
    first, second, third = speakers(answer)
    assert first == third != second
    after = segments(site, job)
    assert (after.json(), after.headers["etag"]) == (answer.json(), answer.headers["etag"])
    assert answer.json()["revision"] == site.job(job)["revision"] == 1
    assert {word["speaker"] for word in answer.json()["segments"][2]["words"]} == {first}
    for segment in (old := before.json()["segments"]) + (new := answer.json()["segments"]):
        for entry in (segment, *segment["words"]):
            del entry["speaker"]
    assert new == old
    original = f"/v1/jobs/{job}/result?format=verbose_json&revision=original"
    assert speakers(site.client.get(original)) == ["S1", "Bob", "S2"]


def test_what_people_know_counts_for_more_than_the_voices(site, job):
    first, second, third = speakers(find(site, job, {"different": [[FOX, AMEN]]}))
    assert first != third
    assert len({first, second, third}) in (2, 3)
    # They stay, as they are chosen by hand now.
    again = speakers(find(site, job, {"num_speakers": 2}))
    assert again[0] != again[2]
    joined = find(site, job, {"same": [[FOX, DOG]]})
    assert joined.status_code == 200, joined.text
    assert speakers(joined)[0] == speakers(joined)[1]


def test_a_number_of_speakers_and_names_for_them(site, job):
    answer = find(site, job, {"num_speakers": 1})
    [label] = set(speakers(answer))
    assert set(speakers(find(site, job, {"max_speakers": 1, "names": {label: " Ann\n"}}))) == {"Ann"}
    assert site.job(job)["revision"] == 2


def test_names_alone_rename_without_voices(site, plain_job):
    answer = find(site, plain_job, {"names": {"S1": "Ann", "S2": "Ann", "Bob": "Robert"}})
    assert speakers(answer) == ["Ann", "Robert", "Ann"]
    for body in ({"names": {"Ann": "Ann"}}, {"names": {}}):
        same = find(site, plain_job, body, match=answer.headers["etag"])
        assert (same.json(), same.headers["etag"]) == (answer.json(), answer.headers["etag"])
    assert site.job(plain_job)["revision"] == 1


def test_the_voices_of_a_job_without_any_are_taken_from_its_recording(site):
    site.service.transcript, site.service.voices = DIALOGUE, VOICES
    job = site.finished(site.submitted())["id"]
    assert len(set(speakers(find(site, job, {"num_speakers": 1})))) == 1
    assert len(set(speakers(find(site, job, {"num_speakers": 2})))) == 2
    assert site.service.media.voices_made == 1  # they are kept


def test_without_its_recording_there_is_nothing_to_compare(serve):
    site = serve(keep_audio=False)
    site.service.transcript, site.service.voices = DIALOGUE, VOICES
    job = site.finished(site.submitted())["id"]
    assert error(find(site, job, {})) == (409, "no_voices", None)


def test_without_voices_there_is_nothing_to_compare(site, plain_job):
    for body in ({}, {"num_speakers": 2}, {"same": [[FOX, DOG]], "names": {"S1": "Ann"}}):
        response = find(site, plain_job, body)
        assert error(response) == (409, "no_voices", None)
        assert "diarize=true" in response.json()["error"]["message"]
    assert site.job(plain_job)["revision"] == 0


def test_a_job_that_is_not_done_has_no_speakers(site):
    site.service.paused = True
    job = site.submitted(diarize="true")
    assert error(find(site, job)) == (409, "job_not_done", None)
    site.service.paused = False
    site.finished(job)
    assert error(find(site, "f" * 32)) == (404, "job_not_found", None)


def test_the_request_says_which_version_it_corrects(site, job):
    assert error(find(site, job, match=None)) == (428, "if_match_required", "If-Match")
    assert error(find(site, job, match='"7"')) == (412, "revision_changed", "If-Match")
    assert error(find(site, job, **{"content-type": "text/plain"})) == (415, "unsupported_content_type", None)


INVALID = [
    ({"nun_speakers": 2}, "nun_speakers", "did you mean `num_speakers`?"),
    ({"num_speakers": 0}, "num_speakers", "greater than or equal to 1"),
    ({"num_speakers": "2"}, "num_speakers", "integer"),
    ({"num_speakers": 2, "max_speakers": 3}, None, "cannot be combined"),
    ({"min_speakers": 3, "max_speakers": 2}, None, "at least `min_speakers`"),
    ({"same": [["0-0", "no-such"]]}, "same", "no-such"),
    ({"same": ["0-0"]}, "same", "array"),
    ({"different": [["0-0"]]}, "different", "at least 2"),
    ({"different": [["0-0", "0-1"]], "same": [["0-0", "0-1"]]}, "different", ""),
    ({"different": [[str(n) for n in range(101)]]}, "different", "at most 100"),
    ({"same": [["0-0"]] * 1001}, "same", "at most 1000"),
    ({"names": {"S7": "Ann"}}, "names", "'S7'"),
    ({"names": {"S1": " \u0007 "}}, "names", "at least 1"),
    ({"names": {"S1": "x" * 101}}, "names", "at most 100"),
    ({"names": ["Ann"]}, "names", "object"),
]  # fmt: skip


def test_a_body_that_is_not_valid_is_refused(site, job):
    for body, param, hint in INVALID:
        response = find(site, job, body)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param), response.text
        assert hint in response.json()["error"]["message"]
    for content in (b"{", b"[]", b"\xff"):
        assert find(site, job, content=content).status_code == 400
    assert find(site, job, content=b'{"same": ["' + b"x" * (1 << 20)).status_code == 413
    assert site.job(job)["revision"] == 0


def test_a_correction_that_comes_between_is_kept(site, job, monkeypatch):
    """With `*`, the speakers of the text that was stored meanwhile are found."""
    times = []
    document = segments(site, job).json()
    document["segments"][2]["text"] = "Hallelujah."
    found = corrections.relabelled

    def late(base, *rest):
        if not times:
            times.append(base.revision)
            headers = {"if-match": "*"}
            site.client.put(f"/v1/jobs/{job}/segments", json=document, headers=headers).raise_for_status()
        return found(base, *rest)

    monkeypatch.setattr(corrections, "relabelled", late)
    answer = find(site, job)
    first, _, third = speakers(answer)
    assert (answer.json()["revision"], answer.json()["segments"][2]["text"]) == (2, "Hallelujah.")
    assert first == third


def test_corrected_speakers_and_texts_keep_what_else_is_known(site, job):
    document = segments(site, job).json()
    document["segments"][0]["speaker"] = "Ann"
    headers = {"if-match": "*"}
    site.client.put(f"/v1/jobs/{job}/segments", json=document, headers=headers).raise_for_status()
    first, second, third = speakers(find(site, job))
    assert first == third == "Ann" != second
