"""Transcripts as server-sent events in the format of OpenAI's API."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

import structlog
from starlette.requests import Request

from app.api.audio.openai_responses import word_logprobs
from app.api.http.event_streams import EventStreamResponse, with_heartbeats
from app.api.schemas import TranscriptDelta
from app.common.concurrency import end_tasks
from app.common.errors import NotReady, WhisperfleetError, no_descriptor
from app.recording.recording_work import Observer
from app.server.connections import run_unless_disconnected
from app.server.errors import error_response
from app.transcript.timeline import Transcript
from workers.messages import Segment, seconds

_UNEXPECTED = "The service failed unexpectedly; its log has the details."

Transcribe = Callable[[Observer], Coroutine[Any, Any, Transcript]]
# Their data, from the transcript and what was sent of it.
LastEvents = Callable[[Transcript, "Deltas"], Awaitable[Sequence[str]]]

log = structlog.get_logger("whisperfleet.api")


class Deltas(Observer):
    """Queues the deltas of a transcription; None stands for its end. All together are the transcript's text.

    That text has no space at either end. So a space is held back until more text follows.
    """

    wants_segments = True

    def __init__(self, *, with_logprobs: bool = False) -> None:
        self.queue: asyncio.Queue[TranscriptDelta | None] = asyncio.Queue()
        self.tokens = 0  # of the text so far
        self._with_logprobs = with_logprobs
        self._space = ""
        self._parts: list[str] = []

    def transcribed(self, segments: Sequence[Segment]) -> None:
        text = self._space + "".join(segment.text for segment in segments)
        if not self._parts:
            text = text.lstrip()
        delta = text.rstrip()
        self._space = text[len(delta) :]
        self.tokens += sum(len(segment.tokens) for segment in segments)
        self.sent_s += seconds(sum(segment.end - segment.start for segment in segments))
        if delta:
            logprobs = list(word_logprobs(segments)) if self._with_logprobs else None
            self._parts.append(delta)
            self.queue.put_nowait(TranscriptDelta(delta=delta, logprobs=logprobs))

    @property
    def text(self) -> str:
        """The text so far. `Transcript.text` would unpack all segments, and block the event loop."""
        return "".join(self._parts)


async def stream_response(
    request: Request, transcribe: Transcribe, deltas: Deltas, last: LastEvents, clean_up: Callable[[], None]
) -> EventStreamResponse:
    """The events of a transcription: deltas in the order of the recording, then `last`, with all of the text.

    Raises errors that occur before the first event or heartbeat, so their responses have their own status. A
    later error becomes an event. Cancels the transcription if the client disconnects. Calls `clean_up` in a
    thread at the end.
    """
    stream = with_heartbeats(_events(transcribe, deltas, last, clean_up))
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


async def _events(
    transcribe: Transcribe, deltas: Deltas, last: LastEvents, clean_up: Callable[[], None]
) -> AsyncGenerator[str]:
    work = asyncio.ensure_future(transcribe(deltas))
    work.add_done_callback(lambda _: deltas.queue.put_nowait(None))
    try:
        while (delta := await deltas.queue.get()) is not None:
            yield _event(delta.model_dump_json(exclude_none=True))
        if work.cancelled():
            raise NotReady("The service is stopping.")
        for data in await last(work.result(), deltas):
            yield _event(data)
    finally:
        await end_tasks(work)
        await asyncio.to_thread(clean_up)


def _event(data: str) -> str:
    return f"data: {data}\n\n"
