"""The event stream of a job. Stored events about segments have only a span: their data is rendered here."""

import zlib
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing

from starlette.responses import Response

from app.api.http.event_streams import EventStreamResponse, with_heartbeats
from app.api.transcripts.segment_documents import published_event, transcript_events
from app.common.errors import UnknownJob, UnknownRevision
from app.jobs.events import SEGMENTS, Event
from app.jobs.job import Job
from app.jobs.service import JobService
from app.pool.helper import work_s
from app.recording.service import TranscriptionService
from app.transcript.terms import Term
from workers.messages import seconds


async def events_response(
    service: TranscriptionService,
    jobs: JobService,
    job: Job,
    after: int,
    admitted: AbstractContextManager[None],
    *,
    for_link: bool,
) -> Response:
    """Server-sent events with numbers above `after`, until the job ends or the service stops.

    Holds `admitted` meanwhile. If that raises, the client gets its error.
    """
    if job.status.is_terminal and not await jobs.store.has_events(job, after):
        return Response(status_code=204)  # an EventSource does not reconnect after this
    return EventStreamResponse(with_heartbeats(_events(service, jobs, job, after, for_link)), admitted)


async def _events(
    service: TranscriptionService, jobs: JobService, job: Job, after: int, for_link: bool
) -> AsyncGenerator[str]:
    segments = SegmentEvents(service, jobs, job, for_link=for_link)
    async with aclosing(jobs.subscribe(job, after)) as events:
        async for event in events:
            data = await segments.data(event) if event.type == SEGMENTS else event.data
            yield f"id: {event.number}\nevent: {event.type}\ndata: {data}\n\n"


class SegmentEvents:
    """Renders the events about segments of one job for one client."""

    def __init__(
        self, service: TranscriptionService, jobs: JobService, job: Job, *, for_link: bool = False
    ) -> None:
        self._for_link = for_link
        self._helper = service.helper
        self._store = jobs.store
        self._job = job
        self._terms: tuple[Term, ...] | None = None
        self._rendered: dict[int, bytes] = {}  # once the job has succeeded: compressed, by number

    async def data(self, event: Event) -> str:
        """The data of an event as clients get it: JSON with the segments of its span."""
        try:
            data = await self._data(event)
        # Deleted meanwhile, and the stream goes on until its cancellation; or its text is its parent's now.
        except (UnknownJob, UnknownRevision):
            data = published_event(event.span, (), self._job.submission.options)
        return data.decode()

    async def _data(self, event: Event) -> bytes:
        if event.number not in self._rendered:
            start, end = event.span
            clips = await self._store.published_clips(self._job, (start, end))
            if clips is not None:
                if self._terms is None:
                    self._terms = await self._store.terms(self._job)
                wanted = ((start, end), clips, self._job.submission.options, self._terms, self._for_link)
                corrected = (clip.result for clip in clips if clip.is_corrected)
                length_s = work_s(seconds(end - start), *corrected)
                return await self._helper.run(length_s, published_event, *wanted)
            # All at once: unpacking a long transcript for each event would take minutes.
            job = await self._store.get(self._job.id)
            # What people corrected while it ran is a revision as old as the original.
            revisions = await self._store.revisions(job)
            first = max(each.number for each in revisions if each.created_at <= (job.finished_at or 0))
            packed = (await self._store.transcript(job, first)).content
            spans = await self._store.segments_events(self._job, event.number)
            if event.number not in spans:
                raise UnknownJob(f"Job {self._job.id} has been deleted.")
            length_s = seconds(max(end for _, end in spans.values()))
            wanted_all = (packed, spans, self._for_link)
            self._rendered = await self._helper.run(length_s, transcript_events, *wanted_all)
        return zlib.decompress(self._rendered.pop(event.number))
