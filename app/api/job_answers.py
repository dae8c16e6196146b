"""What the paths of one job answer: its events, its result and its recording."""

import asyncio
import mimetypes
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.answers import brief_response, verbose_response
from app.api.errors import answer, envelope
from app.api.streaming import HEADERS, HEARTBEAT_S
from app.errors import JobNotDone, UnknownJob
from app.jobs.job import Job, JobStatus
from app.transcript.formats import FORMATS
from app.transcript.rendering import render_transcript

if TYPE_CHECKING:
    from app.jobs.service import JobService
    from app.transcription.service import TranscriptionService

ResultFormat = Literal["srt", "vtt", "ass", "ttml", "txt", "tsv", "lrc", "json", "verbose_json"]


async def events_response(jobs: "JobService", job: Job, after: int) -> Response:
    """Server-sent events with higher numbers than `after`, until the job or the service ends."""
    if job.status.is_terminal and not await jobs.store.has_events(job, after):
        return Response(status_code=204)  # which ends the reconnecting of an EventSource

    async def stream() -> AsyncGenerator[str]:
        events = jobs.subscribe(job, after)
        coming = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(events, None))
                done, _ = await asyncio.wait([coming], timeout=HEARTBEAT_S)
                if not done:
                    yield ": nothing new\n\n"
                    continue
                event, coming = coming.result(), None
                if event is None:
                    return
                yield f"id: {event.number}\nevent: {event.type}\ndata: {event.data}\n\n"
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
            await events.aclose()

    return StreamingResponse(stream(), media_type="text/event-stream", headers=HEADERS)


async def result_response(jobs: "JobService", job: Job, form: ResultFormat) -> Response:
    """The transcript in a format. Raises JobNotDone where there is none."""
    if job.status is not JobStatus.SUCCEEDED:
        why = f": {job.error.message}" if job.error else ""
        raise JobNotDone(f"The job is {job.status}{why}" + ("" if why else "; its result is not there yet."))
    transcript = await jobs.store.transcript(job)
    options = job.submission.options
    if form == "json":
        return brief_response(transcript)
    if form == "verbose_json":
        render = partial(verbose_response, transcript, segments=True, words=options.word_timestamps)
        return await asyncio.to_thread(render)
    text = await asyncio.to_thread(render_transcript, transcript, options, form)
    name = quote(f"{PurePath(job.submission.filename).stem or job.id}.{form}")
    return Response(
        text,
        media_type=f"{FORMATS[form].media_type}; charset=utf-8",
        headers={"Content-Disposition": f"inline; filename*=utf-8''{name}"},
    )


async def audio_response(service: "TranscriptionService", job: Job) -> Response:
    """The recording, or the ranges of it that are asked for. Raises UnknownJob where it is not kept."""
    submission = job.submission
    path = service.folder.uploads / (submission.file or "")
    if not await asyncio.to_thread(path.is_file):
        raise _not_kept()
    guessed = mimetypes.guess_type(submission.filename)[0] or ""
    # Nothing that a browser would run: the file is whatever somebody sent.
    media_type = guessed if guessed.startswith(("audio/", "video/")) else "application/octet-stream"
    return Recording(
        path,
        media_type=media_type,
        filename=submission.filename or job.id,
        content_disposition_type="inline",
        headers={"X-Content-Type-Options": "nosniff"},
    )


def _not_kept() -> UnknownJob:
    return UnknownJob("The recording of this job is not kept here.", code="audio_not_kept")


class Recording(FileResponse):
    """A file response whose refusals are in the shape of every other error."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused: Response | None = None

        async def watch(message: Any) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] in (400, 416):
                kept = {
                    name.decode(): value.decode()
                    for name, value in message["headers"]
                    if name == b"content-range"
                }
                wanted = dict(scope["headers"]).get(b"range", b"").decode("latin-1")
                refused = envelope(
                    message["status"], f"The range {wanted!r} is not one of this file.", headers=kept
                )
            if refused is None:
                await send(message)

        try:
            await super().__call__(scope, receive, watch)
        except (RuntimeError, FileNotFoundError):
            if await asyncio.to_thread(Path(self.path).exists):
                raise
            refused = answer(_not_kept())  # deleted since it was looked for
        if refused is not None:
            await refused(scope, receive, send)
