"""Server-sent events: the response, and heartbeats while there are no events."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from starlette.responses import StreamingResponse

from app.common.concurrency import end_tasks, run_shielded
from app.server.sending import AdmittedResponse

HEARTBEAT_S = 10.0  # proxies close connections that stay silent
HEARTBEAT = ": heartbeat\n\n"  # a comment, which clients ignore


class EventStreamResponse(AdmittedResponse, StreamingResponse):
    """Sends encoded events as they come. Holds `admitted` meanwhile."""

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[str], admitted: AbstractContextManager[object] | None = None
    ) -> None:
        self.admitted = admitted or nullcontext()
        # Without the second header nginx would buffer the events.
        super().__init__(events, headers={"cache-control": "no-cache", "x-accel-buffering": "no"})


def documented_events(event: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAPI's description of a stream of events, which generated clients get as text.

    `event`: the schema of one; `itemSchema` is of OpenAPI 3.2.
    """
    return {EventStreamResponse.media_type: {"schema": {"type": "string"}, "itemSchema": event}}


async def with_heartbeats(events: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """The events, and a heartbeat after every `HEARTBEAT_S` without one. Closes `events` at the end."""
    upcoming: asyncio.Future[str | None] | None = None

    async def close() -> None:
        await end_tasks(upcoming)
        await events.aclose()

    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(events, None))
            done, _ = await asyncio.wait([upcoming], timeout=HEARTBEAT_S)
            if not done:
                yield HEARTBEAT
                continue
            event, upcoming = upcoming.result(), None
            if event is None:
                return
            yield event
    finally:
        # Shielded: when the client disconnects, Starlette cancels every await of this task.
        await run_shielded(close())
