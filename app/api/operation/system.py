"""The endpoints for models and health."""

import time
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import APIRouter

from app.api.schemas import Health, Model, ModelList, Ready
from app.common.errors import NotReady, UnknownModel
from app.server.errors import documented_errors

if TYPE_CHECKING:
    from app.database.front_ends import FrontEnd
    from app.recording.fleet import WhisperFleet

VERSION = version("whisperfleet")


def model_routes(fleet: "WhisperFleet") -> APIRouter:
    router = APIRouter(tags=["models"])
    created = int(time.time())

    @router.get("/v1/models", responses=documented_errors(401))
    async def list_models() -> ModelList:
        names = fleet.catalogue.listed().items()
        return ModelList(data=[Model(id=name, created=created, state=state) for name, state in names])

    @router.get("/v1/models/{model:path}", responses=documented_errors(401, 404))
    async def retrieve_model(model: str) -> Model:
        if not model:
            raise UnknownModel("Name a model; GET /v1/models lists them.", param="model")
        state = fleet.catalogue.states()[fleet.catalogue.resolve(model)]
        return Model(id=model, created=created, state=state)

    return router


def probe_routes(fleet: "WhisperFleet", front_end: "FrontEnd") -> APIRouter:
    """`/health` and `/ready`, without an API key."""
    router = APIRouter(tags=["service"])

    @router.get("/health", summary="The process is up", responses=documented_errors())
    async def health() -> Health:
        return Health(demo=fleet.catalogue.is_demo, version=VERSION, front_ends=1 + len(front_end.others))

    @router.get(
        "/ready",
        summary="A worker is loaded, or will be for the next request",
        responses=documented_errors(503),
    )
    async def ready() -> Ready:
        reason = fleet.readiness()
        if reason is not None:
            raise NotReady(reason)
        return Ready(status="asleep" if fleet.is_asleep else "ready")

    return router
