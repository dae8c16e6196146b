"""The endpoints for the workers: what they do, now or as it happens; and for the nodes of a Ray cluster."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.api.http.event_streams import EventStreamResponse, documented_events, with_heartbeats
from app.api.operation.other_fleets import OtherFleets
from app.api.operation.worker_events import WorkerEvents
from app.api.schemas import ChangedQueue, ChangedWorkers, EndedBlocks, Fleet, Node, NodeList, WorkerList
from app.intake.limits import Admission
from app.recording.fleet import WhisperFleet
from app.server.errors import documented_errors
from app.server.requests import client_of


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


def worker_routes(
    fleet: WhisperFleet, others: OtherFleets, events: WorkerEvents, admission: Admission
) -> APIRouter:
    router = APIRouter(prefix="/v1/workers", tags=["service"])

    @router.get("", response_model=WorkerList, responses=documented_errors(401))
    async def list_workers() -> Response:
        await fleet.gpus.sample()
        await others.refresh()
        # Not validated: a diagnosis must not fail because a row does not match the schema.
        return JSONResponse({"object": "list", "data": others.beside(fleet.workers())})

    @router.get(
        "/events",
        summary="Follow the workers",
        responses={
            200: {"content": documented_events(_EVENT)},
            **documented_errors(401, 429),
        },
        response_class=StreamingResponse,
    )
    async def follow_workers(request: Request) -> Response:
        """First all of the fleet (`fleet`), then what changes: `workers`, `block` and `queue`.

        A reconnect begins with the fleet again, and so does a client that reads too slowly.
        """
        return EventStreamResponse(
            with_heartbeats(events.stream()), admission.streams.hold(client_of(request))
        )

    return router


def node_routes(fleet: WhisperFleet) -> APIRouter:
    router = APIRouter(prefix="/v1/nodes", tags=["service"])

    @router.get("", response_model=NodeList, responses=documented_errors(401))
    async def list_nodes() -> Response:
        """The nodes of the Ray cluster that are alive. None with other engines than `ray`."""
        # Not validated: a diagnosis must not fail because a row does not match the schema.
        return JSONResponse({"object": "list", "data": fleet.nodes()})

    @router.post(
        "/{node:path}/drain",
        summary="Drain a node",
        status_code=202,
        response_model=Node,
        responses=documented_errors(401, 404, 409, 503),
    )
    async def drain_node(node: str) -> Response:
        """Its workers become `draining`: they finish their batches, take no more, and end.

        `node` is an id or a name. The node gets no new workers until it joins the cluster again, under a new
        id. A repetition changes nothing, and shows how far it is.
        """
        return JSONResponse(fleet.drain_node(node), 202)

    @router.delete(
        "/{node:path}/drain",
        summary="Use a drained node again",
        response_model=Node,
        responses=documented_errors(401, 404, 409, 503),
    )
    async def undrain_node(node: str) -> Response:
        """The node gets new workers. Those that are draining end all the same."""
        return JSONResponse(fleet.drain_node(node, undo=True))

    return router
