"""The segments of a job, over HTTP: so far and complete, as a document and as events."""

import asyncio
from dataclasses import replace

import pytest

from app.common.errors import ClipFailed
from app.common.options import Options
from app.jobs.storage.store import Store
from app.pool.helper import LONG_S, Helper
from app.transcript.rendering import clip_segments
from app.transcript.timeline import ClipResult
from tests.api.fake_service import TRANSCRIPT, segment
from tests.api.test_job_events import events, follow, parse
from tests.api.test_segment_documents import fold
from tests.api.waiting import wait_for
from workers.messages import SAMPLE_RATE, seconds

CLIP_S = 10


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


def clip(number, *texts):
    """A clip of ten seconds with a segment of a second for each text."""
    span = (number * CLIP_S * SAMPLE_RATE, (number + 1) * CLIP_S * SAMPLE_RATE)
    segments = [segment(text, second, second + 1) for second, text in enumerate(texts)]
    return span, ClipResult("en", (), tuple(segments)) if texts else None


def transcribe(service, *clips):
    """Make the service transcribe clips, and return the entries of their segments."""
    done = [(span, result) for span, result in clips if result is not None]
    segments = [clip_segments(span, result, Options()) for span, result in done]
    samples = clips[-1][0][1]
    service.clips = clips
    service.transcript = replace(
        TRANSCRIPT,
        samples=samples,
        segments=tuple(segment for of_clip in segments for segment in of_clip),
        clips=tuple(span for span, _ in done),
    )
    return [
        entry(f"{span[0]}-{place}", segment)
        for (span, _), of_clip in zip(done, segments, strict=True)
        for place, segment in enumerate(of_clip)
    ]


def half_done(site, job):
    """The segments of a job, once half of the clips are published."""
    wait_for(lambda: len(get(site, job).json()["segments"]) == 3)
    return get(site, job).json()


def folded(all_events):
    """What a client knows after events."""
    known = []
    for event in all_events:
        if event.type == "job.segments":
            known = fold(known, event.job)
    return known


@pytest.fixture
def entries(site):
    """What the service transcribes: six clips, of which the third is silent and the fourth fails."""
    silent = (clip(2)[0], ClipResult("en", (), ()))
    return transcribe(
        site.service, clip(0, "a", "b"), clip(1, "c"), silent, clip(3), clip(4, "d"), clip(5, "e", "f")
    )


@pytest.fixture
def running_job(site, entries):
    """A job of which half of the clips are transcribed."""
    site.service.paused = True
    return site.submitted()


def test_a_running_job_has_the_segments_so_far(site, entries, running_job):
    assert half_done(site, running_job) == {"revision": 0, "complete": False, "segments": entries[:3]}
    site.service.paused = False
    site.finished(running_job)
    assert get(site, running_job).json() == {"revision": 0, "complete": True, "segments": entries}


def test_the_tag_has_the_id_of_the_last_event_in_the_document(site, entries, running_job):
    segments = half_done(site, running_job)["segments"]
    number = get(site, running_job).headers["etag"].strip('"').split(".")[1]
    site.service.paused = False
    site.finished(running_job)
    later = events(site, running_job, **{"last-event-id": number})
    added = [event.job for event in later if event.type == "job.segments"]
    assert added[0]["from"] > segments[-1]["start"]
    for data in added:
        segments = fold(segments, data)
    assert segments == entries


def test_the_tag_changes_with_the_segments(site, running_job):
    half_done(site, running_job)
    tag = get(site, running_job).headers["etag"]
    assert get(site, running_job, **{"if-none-match": tag}).status_code == 304
    site.service.paused = False
    site.finished(running_job)
    complete = get(site, running_job, **{"if-none-match": tag})
    assert complete.status_code == 200
    assert get(site, running_job, **{"if-none-match": complete.headers["etag"]}).status_code == 304


def test_jobs_that_have_not_started_have_an_empty_list(site, entries):
    site.service.paused = True
    jobs = [site.submitted() for _ in range(site.service.fleet.jobs_at_once + 1)]
    wait_for(lambda: site.job(jobs[-2])["status"] == "running")
    response = get(site, jobs[-1])
    assert response.json() == {"revision": 0, "complete": False, "segments": []}
    assert get(site, jobs[-1], **{"if-none-match": response.headers["etag"]}).status_code == 304


def test_a_failed_job_keeps_what_was_transcribed(site, entries):
    site.service.error = ClipFailed("It failed.")
    job = site.finished(site.submitted())
    assert job["status"] == "failed"
    assert get(site, job["id"]).json() == {"revision": 0, "complete": False, "segments": entries[:3]}
    assert folded(events(site, job["id"])) == entries[:3]


def test_a_job_that_succeeds_while_its_clips_are_read_is_complete(site, entries, running_job, monkeypatch):
    """Its clips are deleted: the list so far must not seem to be empty."""
    half_done(site, running_job)
    version = Store.segments_version

    async def late(store, job):
        number = await version(store, job)
        site.service.paused = False
        while (await store.get(job.id)).status == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return number

    monkeypatch.setattr(Store, "segments_version", late)
    assert get(site, running_job).json() == {"revision": 0, "complete": True, "segments": entries}


def test_events_and_polling_come_to_the_same(site, entries, running_job):
    with follow(site, running_job) as response:
        upcoming = parse(response.iter_lines())
        live = [next(upcoming)]
        while len(folded(live)) < 3:
            live.append(next(upcoming))
        assert folded(live) == half_done(site, running_job)["segments"] == entries[:3]
        site.service.paused = False
        live += upcoming
    assert events(site, running_job) == live, "after the end of the job, too"
    assert [event.number for event in live] == list(range(1, len(live) + 1))
    assert [event.type for event in live][-1] == "job.succeeded"
    new = [event.job for event in live if event.type == "job.segments"]
    assert [data["from"] for data in new] == [0, *(data["to"] for data in new[:-1])]
    assert [entry for data in new for entry in data["segments"]] == entries
    assert folded(live) == entries == get(site, running_job).json()["segments"]


def test_long_transcripts_are_rendered_by_the_helper(site, monkeypatch):
    """And once for all events of a stream: unpacking it for each would take minutes."""
    clips = [clip(number, "text") for number in range(int(LONG_S) // CLIP_S + 1)]
    entries = transcribe(site.service, *clips)
    calls = []
    run = Helper.run

    def counting(helper, length_s, function, *arguments):
        calls.append((length_s > LONG_S, function.__name__))
        return run(helper, length_s, function, *arguments)

    job = site.finished(site.submitted())["id"]
    monkeypatch.setattr(Helper, "run", counting)
    assert get(site, job).json()["segments"] == entries
    new = [event.job for event in events(site, job) if event.type == "job.segments"]
    assert [entry for data in new for entry in data["segments"]] == entries
    assert calls == [(True, "document"), (True, "transcript_events")]


def test_the_stream_of_a_job_that_is_deleted_goes_on_to_its_cancellation(
    site, entries, running_job, monkeypatch
):
    """Its last segments are gone before they are rendered."""
    read = Store.published_clips
    half_done(site, running_job)

    async def late(store, job, span=None):
        await asyncio.sleep(0.3)
        return await read(store, job, span)

    monkeypatch.setattr(Store, "published_clips", late)
    with follow(site, running_job) as response:
        upcoming = parse(response.iter_lines())
        assert next(upcoming).type == "job.queued"
        assert site.client.delete(f"/v1/jobs/{running_job}").status_code == 204
        rest = list(upcoming)
    assert rest[-1].type == "job.cancelled"
    new = [event.job for event in rest if event.type == "job.segments"]
    assert new[-1]["to"] == 30
    assert folded(rest) == []
