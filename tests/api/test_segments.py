"""The segments of a job, over HTTP."""

import pytest

from tests.api.fake_service import TRANSCRIPT
from workers.messages import seconds


def get(site, job, **headers):
    return site.client.get(f"/v1/jobs/{job}/segments", headers=headers)


def entry(id, segment):
    """A segment in the document."""
    return {
        "id": id,
        "start": seconds(segment.start),
        "end": seconds(segment.end),
        "text": segment.text.strip(),
        "speaker": None,
        "words": [
            {
                "word": word.text.strip(),
                "start": seconds(word.start),
                "end": seconds(word.end),
                "probability": word.probability,
            }
            for word in segment.words
        ],
    }


@pytest.fixture
def done_job(site):
    return site.finished(site.submitted())["id"]


def test_segments_of_a_transcript_without_clips_are_numbered(site, done_job):
    """Of an earlier version of the service, or of another tool."""
    response = get(site, done_job)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == {
        "revision": 0,
        "complete": True,
        "segments": [entry(f"0-{number}", segment) for number, segment in enumerate(TRANSCRIPT.segments)],
    }


@pytest.mark.parametrize("known", ["{}", "W/{}", '"x", {}', "*"])
def test_unchanged_segments_are_not_sent_again(site, done_job, known):
    tag = get(site, done_job).headers["etag"]
    response = get(site, done_job, **{"if-none-match": known.format(tag)})
    assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", tag)
    assert get(site, done_job, **{"if-none-match": '"x"'}).status_code == 200


def test_unknown_jobs_have_no_segments(site):
    response = get(site, "0" * 32)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "job_not_found")
