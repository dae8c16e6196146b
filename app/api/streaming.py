"""A transcript as server-sent events, clip by clip, as OpenAI's API words them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.api.answers import usage
from app.api.disconnect import run_unless_disconnected
from app.api.errors import answer
from app.api.schemas import TranscriptDelta, TranscriptDone
from app.errors import NotReady, WhisperfleetError
from app.transcript.timeline import Transcript
from workers.messages import Segment

HEARTBEAT_S = 10.0  # proxies close connections on which nothing is said
HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # nginx would collect the events

_UNEXPECTED = "The service failed unexpectedly; its log has the details."

Told = Callable[[Sequence[Segment]], None]

log = structlog.get_logger("whisperfleet.api")


class Deltas:
    """Turns segments into pieces of the whole text.

    The pieces concatenated are the transcript's text. That has no space at either end, so a space is held
    back until more text follows it.
    """

    def __init__(self) -> None:
        self._held = ""
        self._begun = False

    def of(self, segments: Sequence[Segment]) -> str:
        """The text to send for further segments; may be empty."""
        text = self._held + "".join(segment.text for segment in segments)
        if not self._begun:
            text = text.lstrip()
        said = text.rstrip()
        self._held = text[len(said) :]
        self._begun = self._begun or bool(said)
        return said


async def stream_response(
    request: Request,
    transcribe: Callable[[Told], Coroutine[Any, Any, Transcript]],
    clean_up: Callable[[], None],
) -> Response:
    """The events of a transcription: deltas in the order of the timeline, and then the whole text.

    What goes wrong before there is anything to tell is raised, and has a status of its own; after that an
    error is an event. A client that goes away cancels the work. `clean_up` is called in the end, in a thread.
    """
    deltas = Deltas()
    waiting: asyncio.Queue[str | None] = asyncio.Queue()  # None: there is nothing more to come

    def tell(segments: Sequence[Segment]) -> None:
        if delta := deltas.of(segments):
            waiting.put_nowait(delta)

    work = asyncio.ensure_future(transcribe(tell))
    work.add_done_callback(lambda _: waiting.put_nowait(None))
    events = _events(work, waiting, clean_up)
    try:
        first = await run_unless_disconnected(request, _first(events))
    except BaseException:
        await events.aclose()
        raise
    return StreamingResponse(_continued(first, events), media_type="text/event-stream", headers=HEADERS)


async def _first(events: AsyncGenerator[str]) -> str:
    return await anext(events)


async def _continued(first: str, events: AsyncGenerator[str]) -> AsyncGenerator[str]:
    try:
        yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()


async def _events(
    work: asyncio.Future[Transcript], waiting: asyncio.Queue[str | None], clean_up: Callable[[], None]
) -> AsyncGenerator[str]:
    told = False
    try:
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    delta = await waiting.get()
            except TimeoutError:
                told = True
                yield ": still transcribing\n\n"
                continue
            if delta is None:
                break
            told = True
            yield _event(TranscriptDelta(delta=delta).model_dump_json())
        error = NotReady("The service is stopping.") if work.cancelled() else work.exception()
        if error is not None:
            if not told:
                raise error
            log.warning("transcription failed mid-stream", error=repr(error), exc_info=error)
            known = error if isinstance(error, WhisperfleetError) else WhisperfleetError(_UNEXPECTED)
            yield _event(bytes(answer(known).body).decode())
        else:
            transcript = work.result()
            yield _event(TranscriptDone(text=transcript.text, usage=usage(transcript)).model_dump_json())
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.to_thread(clean_up)


def _event(data: str) -> str:
    return f"data: {data}\n\n"
