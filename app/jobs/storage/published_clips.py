"""Published clips: their segments are the transcript so far, without a gap from its start.

The functions run in a transaction of the caller, so clips and events always agree.
"""

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import clips
from app.jobs.events import Event, add_segments_event, last_segments_event
from app.jobs.job import Job
from app.transcription.clip_decoding import ClipKey
from workers.messages import SAMPLE_RATE, Span

_ROUNDING = SAMPLE_RATE // 1000  # samples: times are rounded to 1 ms


class PublishedClip(NamedTuple):
    """A clip whose segments are in the transcript, or that failed and has none."""

    span: Span  # samples
    key: ClipKey | None  # of its result; None if it failed
    channel: int = 0
    until: int | None = None  # the transcript has all segments up to this sample. None: up to the clip's end

    @property
    def complete_until(self) -> int:
        """Up to which sample the transcript has all segments."""
        return self.span[1] if self.until is None else self.until


class PackedClip(NamedTuple):
    """A published clip with its result, for `serialization.unpack_result`."""

    span: Span
    result: bytes
    channel: int = 0
    # Segments that start here or later are not in the transcript yet: another channel lacks what precedes.
    until: int | None = None


async def publish_clips(
    connection: AsyncConnection, job: Job, published: Iterable[PublishedClip]
) -> Event | None:
    """Mark the results of clips as published, and add the event. None if all of this was done before.

    The event begins where the last one ended, or at the first clip that changes the transcript before that.
    It ends where the transcript has a gap: a channel may be ahead of the others.
    """
    _, (_, end) = await last_segments_event(connection, job)
    clips_until = [clip.complete_until for clip in published]
    changed = [clip.span[0] for clip in published if await _mark(connection, job, clip)]
    first, last = min([end, *changed]), max([end, *clips_until])
    return await add_segments_event(connection, job, (first, last)) if first < last else None


async def _mark(connection: AsyncConnection, job: Job, clip: PublishedClip) -> bool:
    """Mark the result of a clip, and no other one of its span. Returns whether that changes anything.

    A clip has several results if its language was outvoted.
    """
    start, end = clip.span
    used = sa.false() if clip.key is None else clips.c.language == (clip.key[2] or "")
    of_clip = (clips.c.job_number == job.number) & (clips.c.start == start) & (clips.c.end == end)
    of_clip &= clips.c.channel == clip.channel
    change = sa.update(clips).where(of_clip, clips.c.published != used).values(published=used)
    return bool((await connection.execute(change)).rowcount)


async def drop_published(connection: AsyncConnection, job: Job) -> Event | None:
    """Delete all clips of a job. Adds an event that says so if a part of the transcript is published."""
    await connection.execute(sa.delete(clips).where(clips.c.job_number == job.number))
    _, (_, end) = await last_segments_event(connection, job)
    return await add_segments_event(connection, job, (0, 0)) if end else None


async def read_published(connection: AsyncConnection, job: Job, span: Span | None) -> list[PackedClip]:
    """The published clips of a job, in order; only those that may have segments in a span if one is given.

    A segment may start just before the span, at the same millisecond.
    """
    _, (_, until) = await last_segments_event(connection, job)
    query = sa.select(clips.c.start, clips.c.end, clips.c.result, clips.c.channel).where(
        clips.c.job_number == job.number, clips.c.published
    )
    if span is not None:
        query = query.where(clips.c.end > span[0] - _ROUNDING, clips.c.start < span[1])
    rows = await connection.execute(query.order_by(clips.c.start, clips.c.channel))
    return [PackedClip((row.start, row.end), row.result, row.channel, until) for row in rows]
