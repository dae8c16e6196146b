"""The endpoints for the workers: what they do, now or as it happens."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.api.http.admission import Admission
from app.api.http.errors import documented_errors
from app.api.http.event_streams import EventStreamResponse, with_heartbeats
from app.api.operation.worker_events import WorkerEvents
from app.api.schemas import ChangedQueue, ChangedWorkers, EndedBlocks, Fleet, WorkerList
from app.transcription.fleet import WhisperFleet


def _schema(model: type[BaseModel]) -> Any:
    """A model's schema without references: the parts are in no other place of the document."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def resolved(node: Any) -> Any:
        if isinstance(node, list):
            return [resolved(entry) for entry in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return resolved(parts[node["$ref"].rpartition("/")[2]])
        return {name: resolved(entry) for name, entry in node.items()}

    return resolved(schema)


_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["fleet", "workers", "block", "queue"]},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {
                "anyOf": [_schema(model) for model in (Fleet, ChangedWorkers, EndedBlocks, ChangedQueue)]
            },
        },
    },
    "required": ["event", "data"],
}


def worker_routes(fleet: WhisperFleet, events: WorkerEvents, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/workers", tags=["service"])

    @router.get("", response_model=WorkerList, responses=documented_errors(401))
    async def list_workers() -> Response:
        await fleet.gpus.sample()
        # Not validated: a diagnosis must not fail because a row does not match the schema.
        return JSONResponse({"object": "list", "data": fleet.workers()})

    @router.get(
        "/events",
        summary="Follow the workers",
        responses={
            200: {"content": {"text/event-stream": {"schema": _EVENT}}},
            **documented_errors(401, 429),
        },
        response_class=StreamingResponse,
    )
    async def follow_workers(request: Request) -> Response:
        """First all of the fleet (`fleet`), then what changes: `workers`, `block` and `queue`.

        A reconnect begins with the fleet again, and so does a client that reads too slowly.
        """
        return EventStreamResponse(with_heartbeats(events.stream()), admission.streams.hold(request))

    return router
