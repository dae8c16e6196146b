"""The document of a job has a limited size, whatever its recording and its clients make of it."""

import json
from dataclasses import replace

import pytest

from app.jobs.document import public
from app.jobs.serialization import identified, summary
from app.jobs.storage.store import Store
from tests.jobs.samples import TRACK, TRANSCRIPT, submission
from workers.messages import MAX_FAILED_SPANS, MAX_LISTED_SPEAKERS, MAX_TRACKS, SAMPLE_RATE

pytestmark = [pytest.mark.anyio]

MANY = 98_000


async def test_lists_have_limits(store: Store) -> None:
    spans = tuple((SAMPLE_RATE * 2 * at, SAMPLE_RATE * (2 * at + 1)) for at in range(MANY))
    job = replace(
        await store.add(submission()),
        speakers=tuple(f"Speaker {number}" for number in range(MANY)),
        audio_tracks=tuple(replace(TRACK, index=index, title="x" * 200) for index in range(1000)),
        failed_spans=spans,
    )
    document = public(job, 0)
    assert document["speakers"] == [f"Speaker {number}" for number in range(MAX_LISTED_SPEAKERS)]
    assert [track["index"] for track in document["audio_tracks"]] == list(range(MAX_TRACKS))
    failed = document["failed_spans"]
    assert len(failed) == MAX_FAILED_SPANS
    assert failed[-2:] == [
        {"start": 1996.0, "end": 1997.0},
        {"start": 1998.0, "end": 2 * MANY - 1.0},
    ], "nothing that failed is left out"
    assert len(json.dumps(document)) < 1 << 17
    assert public(replace(job, failed_spans=spans[:3]), 0)["failed_spans"] == failed[:3]
    assert public(replace(job, failed_spans=()), 0)["failed_spans"] == []


def test_a_summary_has_as_many_speakers() -> None:
    [first, _] = identified(TRANSCRIPT)
    segments = tuple(replace(first, speaker=f"S{number}") for number in range(MAX_LISTED_SPEAKERS + 1))
    found = summary(replace(TRANSCRIPT, segments=segments)).speakers
    assert (len(found), found[-1]) == (MAX_LISTED_SPEAKERS, f"S{MAX_LISTED_SPEAKERS - 1}")
