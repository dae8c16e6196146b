"""Transcripts as server-sent events in the format of OpenAI's API."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

import structlog
from starlette.requests import Request

from app.api.audio.openai_responses import done_data
from app.api.http.event_streams import EventStreamResponse, with_heartbeats
from app.api.schemas import TranscriptDelta
from app.common.concurrency import end_tasks
from app.common.errors import NotReady, WhisperfleetError, no_descriptor
from app.recording.recording_work import Observer
from app.server.connections import run_unless_disconnected
from app.server.errors import error_response
from app.transcript.timeline import Transcript
from workers.messages import Segment

_UNEXPECTED = "The service failed unexpectedly; its log has the details."

Transcribe = Callable[[Observer], Coroutine[Any, Any, Transcript]]
LastEvent = Callable[[Transcript, str], Awaitable[str]]  # its data, from the transcript and its text

log = structlog.get_logger("whisperfleet.api")


class Deltas(Observer):
    """Queues the deltas of a transcription; None stands for its end. All together are the transcript's text.

    That text has no space at either end. So a space is held back until more text follows.
    """

    wants_segments = True

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._space = ""
        self._parts: list[str] = []

    def transcribed(self, segments: Sequence[Segment]) -> None:
        text = self._space + "".join(segment.text for segment in segments)
        if not self._parts:
            text = text.lstrip()
        delta = text.rstrip()
        self._space = text[len(delta) :]
        if delta:
            self._parts.append(delta)
            self.queue.put_nowait(delta)

    @property
    def text(self) -> str:
        """The text so far. `Transcript.text` would unpack all segments, and block the event loop."""
        return "".join(self._parts)


async def stream_response(
    request: Request, transcribe: Transcribe, last: LastEvent, clean_up: Callable[[], None]
) -> EventStreamResponse:
    """The events of a transcription: deltas in the order of the recording, then `last`, with all of the text.

    Raises errors that occur before the first event or heartbeat, so their responses have their own status. A
    later error becomes an event. Cancels the transcription if the client disconnects. Calls `clean_up` in a
    thread at the end.
    """
    stream = with_heartbeats(_events(transcribe, last, clean_up))
    try:
        first = await run_unless_disconnected(request, anext(stream))
    except BaseException:
        await stream.aclose()
        raise
    return EventStreamResponse(_with_errors(first, stream))


async def _with_errors(first: str, stream: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """All of the stream, which starts with `first`. An error becomes the last event."""
    try:
        yield first
        async for event in stream:
            yield event
    except Exception as error:
        log.warning("transcription failed mid-stream", error=repr(error), exc_info=error)
        known = error if isinstance(error, WhisperfleetError) else no_descriptor(error)
        known = known or WhisperfleetError(_UNEXPECTED)
        yield _event(bytes(error_response(known).body).decode())
    finally:
        await stream.aclose()


async def done_event(transcript: Transcript, text: str) -> str:
    """The last event without speakers."""
    return done_data(transcript, text)


async def _events(
    transcribe: Transcribe, last: LastEvent, clean_up: Callable[[], None]
) -> AsyncGenerator[str]:
    deltas = Deltas()
    work = asyncio.ensure_future(transcribe(deltas))
    work.add_done_callback(lambda _: deltas.queue.put_nowait(None))
    try:
        while (delta := await deltas.queue.get()) is not None:
            yield _event(TranscriptDelta(delta=delta).model_dump_json())
        if work.cancelled():
            raise NotReady("The service is stopping.")
        yield _event(await last(work.result(), deltas.text))
    finally:
        await end_tasks(work)
        await asyncio.to_thread(clean_up)


def _event(data: str) -> str:
    return f"data: {data}\n\n"
