"""The transcript so far, and the events that announce its parts."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.common.errors import UnknownJob
from app.database.connection import Database
from app.jobs.events import SEGMENTS, Event
from app.jobs.job import Job, JobProgress, Stage
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.published_clips import PublishedClip
from app.jobs.storage.store import Store
from app.recording.clip_decoding import ClipKey
from app.transcript.packed import pack_result, unpack_result
from tests.jobs.samples import RESULT, SUBMISSION, TRANSCRIPT
from workers.messages import Span

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

# Clips with a pause between them.
SPANS = [(1000 + 10_000 * number, 9000 + 10_000 * number) for number in range(5)]


class Publisher:
    """A job, as its runner stores it, and the spans of its events."""

    def __init__(self, store: Store, clips: ClipStore, job: Job) -> None:
        self.store = store
        self.clips = clips
        self.job = job
        self.live: list[Event] = []
        store.on_event = lambda job_id, event: self.live.append(event)

    async def transcribe(
        self, span: Span, language: str | None = None, text: str = " text", channel: int = 0
    ) -> ClipKey:
        """Store the result of a clip."""
        result = replace(RESULT, segments=(replace(RESULT.segments[0], text=text),))
        key = (*span, language, channel)
        self.clips.put(self.job.number, key, 0, pack_result(result))
        await self.clips.flush()
        return key

    async def publish(self, *clips: tuple[Span, ClipKey | None]) -> None:
        published = [PublishedClip(span, key) for span, key in clips]
        await self.store.store_progress({}, {self.job.id: published})

    async def transcribe_and_publish(self, *spans: Span) -> None:
        await self.publish(*[(span, await self.transcribe(span)) for span in spans])

    async def texts(self, span: Span | None = None) -> dict[Span, str]:
        """The text of each published clip."""
        published = await self.store.published_clips(self.job, span)
        assert published is not None
        assert [clip.span for clip in published] == sorted(clip.span for clip in published)
        return {clip.span: unpack_result(clip.result).segments[0].text for clip in published}

    async def spans(self) -> list[Span]:
        """The spans of the job's events about segments."""
        stored = await self.store.events(self.job, 0)
        assert [event for event in self.live if event.type == SEGMENTS] == [
            event for event in stored if event.type == SEGMENTS
        ]
        return [event.span for event in stored if event.type == SEGMENTS]


@pytest.fixture
async def publisher(database: Database, store: Store) -> AsyncIterator[Publisher]:
    clips = ClipStore(database)
    clips.start()
    job = await store.begin(await store.add(SUBMISSION))
    yield Publisher(store, clips, await store.set_result_digest(job, "digest"))
    await clips.stop()


async def test_the_event_comes_with_the_progress_and_has_no_text(publisher: Publisher) -> None:
    clip = (SPANS[0], await publisher.transcribe(SPANS[0]))
    progress = JobProgress(Stage.TRANSCRIBING, 0.5)
    await publisher.store.store_progress(
        {publisher.job.id: progress}, {publisher.job.id: [PublishedClip(*clip)]}
    )
    events = await publisher.store.events(publisher.job, 0)
    assert [event.type for event in events] == ["job.queued", "job.running", SEGMENTS, "job.progress"]
    assert json.loads(events[2].data) == {"from": 0, "to": 9000}
    assert json.loads(events[3].data)["progress"]["done_s"] == 0.5
    assert await publisher.store.events(publisher.job, 3) == events[3:]
    await publisher.store.store_progress({publisher.job.id: progress}, {})
    assert json.loads((await publisher.store.events(publisher.job, 4))[0].data)["status"] == "running", (
        "events after it are restored"
    )


async def test_nothing_is_announced_twice(publisher: Publisher) -> None:
    """A restarted job publishes its clips again, also those that fail again."""
    clips = [(span, await publisher.transcribe(span)) for span in SPANS[:3]]
    await publisher.publish(*clips, (SPANS[3], None))
    await publisher.publish(*clips, (SPANS[3], None))
    await publisher.publish((SPANS[3], None), (SPANS[4], await publisher.transcribe(SPANS[4])))
    assert await publisher.spans() == [(0, 39_000), (39_000, 49_000)]


async def test_a_restarted_job_knows_what_is_published(publisher: Publisher) -> None:
    await publisher.transcribe_and_publish(*SPANS[:2])
    await publisher.transcribe(SPANS[2])
    recording = await publisher.clips.load(publisher.job)
    assert recording.published == {(*span, None, 0) for span in SPANS[:2]}


async def test_a_clip_that_failed_before_and_succeeds_after_a_restart_is_announced(
    publisher: Publisher,
) -> None:
    others = [(span, await publisher.transcribe(span)) for span in (SPANS[0], SPANS[2], SPANS[3])]
    await publisher.publish(others[0], (SPANS[1], None), *others[1:])
    await publisher.transcribe_and_publish(SPANS[1])
    assert await publisher.spans() == [(0, 39_000), (11_000, 39_000)]
    assert list(await publisher.texts()) == SPANS[:4]


async def test_a_restarted_job_that_elects_another_language_replaces_its_text(publisher: Publisher) -> None:
    await publisher.transcribe_and_publish(*SPANS[:3])
    await publisher.publish((SPANS[1], await publisher.transcribe(SPANS[1], "de", " anders")))
    assert await publisher.texts() == {SPANS[0]: " text", SPANS[1]: " anders", SPANS[2]: " text"}
    assert await publisher.spans() == [(0, 29_000), (11_000, 29_000)]
    await publisher.publish((SPANS[1], None))
    assert list(await publisher.texts()) == [SPANS[0], SPANS[2]]
    assert (await publisher.spans())[-1] == (11_000, 29_000)


async def test_another_digest_begins_anew(publisher: Publisher) -> None:
    await publisher.transcribe_and_publish(*SPANS[:3])
    publisher.job = await publisher.store.set_result_digest(publisher.job, "another")
    assert await publisher.texts() == {}
    assert await publisher.spans() == [(0, 29_000), (0, 0)], "clients drop what they have"
    await publisher.transcribe_and_publish(SPANS[0])
    assert (await publisher.spans())[-1] == (0, 9000)
    publisher.job = await publisher.store.set_result_digest(publisher.job, "third")
    publisher.job = await publisher.store.set_result_digest(publisher.job, "fourth")
    assert len(await publisher.spans()) == 4, "nothing was published in between"


async def test_the_version_grows_with_every_change(publisher: Publisher) -> None:
    store, versions = publisher.store, [0]
    for change in (
        publisher.transcribe_and_publish(SPANS[0]),
        publisher.transcribe_and_publish(SPANS[1]),
        store.set_result_digest(publisher.job, "another"),
    ):
        assert await store.segments_version(publisher.job) == versions[-1]
        await change
        versions.append(await store.segments_version(publisher.job))
    assert versions == sorted(set(versions))
    await store.store_progress({publisher.job.id: JobProgress(Stage.TRANSCRIBING, 9.0)}, {})
    assert await store.segments_version(publisher.job) == versions[-1]


async def test_the_clips_of_other_jobs_go_with_their_end(publisher: Publisher) -> None:
    store, job = publisher.store, publisher.job
    await publisher.transcribe_and_publish(*SPANS[:2])
    await store.succeed(job, TRANSCRIPT, keep_file=True)
    assert await store.published_clips(job) is None, "its transcript has them"
    assert not (await publisher.clips.load(job)).results
    publisher.job = await store.begin(await store.add(SUBMISSION))
    await publisher.transcribe_and_publish(SPANS[0])
    await store.cancel(publisher.job)
    assert await publisher.texts() == {}
    await store.delete(publisher.job)
    with pytest.raises(UnknownJob):
        await store.published_clips(publisher.job)


async def test_jobs_that_do_not_run_publish_nothing(publisher: Publisher) -> None:
    key = await publisher.transcribe(SPANS[0])
    publisher.job = await publisher.store.requeue(publisher.job)
    await publisher.publish((SPANS[0], key))
    assert (await publisher.texts(), await publisher.spans()) == ({}, [])


async def test_the_clips_of_a_span(publisher: Publisher) -> None:
    await publisher.transcribe_and_publish(*SPANS)
    for first in range(5):
        for last in range(first, 5):
            span = (SPANS[first - 1][1] + 16 if first else 0, SPANS[last][1])
            assert list(await publisher.texts(span)) == SPANS[first : last + 1]
    assert list(await publisher.texts((19_000, 39_000))) == SPANS[1:4], (
        "the second one may have a segment in the last millisecond before the span"
    )


async def test_the_transcript_ends_where_a_channel_has_a_gap(publisher: Publisher) -> None:
    job = publisher.job

    async def publish(span: Span, channel: int, until: int) -> None:
        key = await publisher.transcribe(span, text=f" {channel}", channel=channel)
        clip = PublishedClip(span, key, channel, until)
        await publisher.store.store_progress({}, {job.id: [clip]})

    await publish((0, 1000), 0, 0)
    await publish((2000, 9000), 0, 0)
    assert await publisher.spans() == [], "nothing is known of the other channel"
    await publish((0, 3000), 1, 3000)
    assert await publisher.spans() == [(0, 3000)]
    published = await publisher.store.published_clips(job)
    assert [(clip.span, clip.channel, clip.until) for clip in published or ()] == [
        ((0, 1000), 0, 3000),
        ((0, 3000), 1, 3000),
        ((2000, 9000), 0, 3000),
    ]
    await publish((5000, 8000), 1, 8000)
    assert await publisher.spans() == [(0, 3000), (3000, 8000)], "with what the first channel has there"


async def test_a_clip_is_marked_in_its_own_channel_only(publisher: Publisher) -> None:
    keys = [await publisher.transcribe(SPANS[0], channel=channel) for channel in range(2)]
    failed = PublishedClip(SPANS[0], None, 1)
    await publisher.store.store_progress({}, {publisher.job.id: [PublishedClip(SPANS[0], keys[0]), failed]})
    published = await publisher.store.published_clips(publisher.job)
    assert [clip.channel for clip in published or ()] == [0]
    assert (await publisher.clips.load(publisher.job)).published == {keys[0]}
