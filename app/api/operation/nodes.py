"""The endpoints for the nodes of a Ray cluster: which there are, and how to drain one."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.api.http.errors import documented_errors
from app.api.schemas import Node, NodeList
from app.transcription.fleet import WhisperFleet


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
