"""Published clips: their segments are the transcript so far, without a gap from its start.

The functions run in a transaction of the caller, so clips and events always agree.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import clips
from app.jobs.events import Event, NewEvents, last_segments_event
from app.jobs.job import Job
from app.recording.clip_decoding import ClipKey
from workers.messages import SAMPLE_RATE, Span

_ROUNDING = SAMPLE_RATE // 1000  # samples: times are rounded to 1 ms
LIVE_CHANNEL = -1  # of clips of a live stream: the transcript so far until all of its job is transcribed
# Of one that is no clip: a packed transcript, with the clips that people have corrected so far.
CORRECTED_CHANNEL = -2
# Marks the result of a clip, and no other one of its span; none if its language is NULL. A clip has several
# results if its language was outvoted.
_IS_USED = sa.func.coalesce(clips.c.language == sa.bindparam("of_language"), sa.false())
_MARK = (
    sa.update(clips)
    .where(
        clips.c.job_number == sa.bindparam("of_job"),
        clips.c.start == sa.bindparam("of_start"),
        clips.c.end == sa.bindparam("of_end"),
        clips.c.channel == sa.bindparam("of_channel"),
        clips.c.published != _IS_USED,
    )
    .values(published=_IS_USED)
)


class PublishedClip(NamedTuple):
    """A clip whose segments are in the transcript, or that failed and has none."""

    span: Span  # samples
    key: ClipKey | None  # of its result; None if it failed
    channel: int = 0
    until: int | None = None  # the transcript has all segments up to this sample. None: up to the clip's end


class PackedClip(NamedTuple):
    """A published clip with its result, for `packed.unpack_result`; or what people have corrected."""

    span: Span
    result: bytes
    channel: int = 0  # or `LIVE_CHANNEL`, or `CORRECTED_CHANNEL`
    # Segments that start here or later are not in the transcript yet: another channel lacks what precedes.
    until: int | None = None

    @property
    def is_corrected(self) -> bool:
        """Whether it is what people have corrected, as a packed transcript."""
        return self.channel == CORRECTED_CHANNEL


async def publish_clips(
    connection: AsyncConnection, new: NewEvents, published: Sequence[tuple[Job, Sequence[PublishedClip]]]
) -> dict[int, Event]:
    """Mark the results of clips of jobs as published, and add the events, which this returns by job number.

    A job has none if all of this was done before. The event begins where the last one ended, or at the first
    clip that changes the transcript before that. It ends where the transcript has a gap: a channel may be
    ahead of the others.
    """
    following: list[dict[str, Any]] = []
    announced = {}
    for job, of_job in published:
        end = new.segments_end(job)
        ends = [clip.span[1] if clip.until is None else clip.until for clip in of_job]
        first, last = end, max([end, *ends])
        for clip in of_job:
            if clip.span[0] >= end:  # the event begins before it, whether or not its mark changes
                following.append(_mark_of(job, clip))
            elif (await connection.execute(_MARK, _mark_of(job, clip))).rowcount:
                first = min(first, clip.span[0])
        if first < last:
            announced[job.number] = new.add_segments(job, (first, last))
    if following:
        await connection.execute(_MARK, following)
    return announced


def _mark_of(job: Job, clip: PublishedClip) -> dict[str, Any]:
    """The parameters of `_MARK`."""
    language = None if clip.key is None else clip.key[2] or ""
    values = (job.number, *clip.span, clip.channel, language)
    return dict(zip(("of_job", "of_start", "of_end", "of_channel", "of_language"), values, strict=True))


async def drop_published(connection: AsyncConnection, job: Job) -> Event | None:
    """Delete all clips of a job. Adds an event that says so if a part of the transcript is published.

    The text of a live stream stays.
    """
    of_job, is_live = clips.c.job_number == job.number, clips.c.channel <= LIVE_CHANNEL
    await connection.execute(sa.delete(clips).where(of_job, sa.not_(is_live)))
    stays = await connection.scalar(sa.select(sa.exists().where(of_job, is_live)))
    new = await NewEvents.after_stored(connection, [job])
    event = new.add_segments(job, (0, 0)) if new.segments_end(job) and not stays else None
    await new.store(connection)
    return event


async def read_published(connection: AsyncConnection, job: Job, span: Span | None) -> list[PackedClip]:
    """The published clips of a job, in order; only those that may have segments in a span if one is given.

    A segment may start just before the span, at the same millisecond.
    """
    _, (_, until) = await last_segments_event(connection, job)
    query = sa.select(clips.c.start, clips.c.end, clips.c.result, clips.c.channel).where(
        clips.c.job_number == job.number, clips.c.published
    )
    if span is not None:
        is_inside = sa.and_(clips.c.end > span[0] - _ROUNDING, clips.c.start < span[1])
        query = query.where(sa.or_(is_inside, clips.c.channel == CORRECTED_CHANNEL))
    rows = await connection.execute(query.order_by(clips.c.start, clips.c.channel))
    return [PackedClip((row.start, row.end), row.result, row.channel, until) for row in rows]


async def read_corrected(connection: AsyncConnection, job: Job) -> bytes | None:
    """The packed transcript with the clips of a live job that people have corrected, if they have."""
    query = sa.select(clips.c.result).where(*_corrected(job))
    return await connection.scalar(query)


async def put_corrected(connection: AsyncConnection, job: Job, content: bytes) -> None:
    """Store such a transcript instead of the one before."""
    await connection.execute(sa.delete(clips).where(*_corrected(job)))
    row = {"job_number": job.number, "channel": CORRECTED_CHANNEL, "result": content, "published": True}
    nothing = {"start": 0, "end": 0, "language": "", "crash_count": 0}
    await connection.execute(sa.insert(clips).values(row | nothing))


def _corrected(job: Job) -> tuple[sa.ColumnElement[bool], ...]:
    return clips.c.job_number == job.number, clips.c.channel == CORRECTED_CHANNEL
