"""The web application: the one place where the parts are wired together."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI
from fastapi.params import Depends as Dependency
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from app.api.asr import asr_routes
from app.api.auth import ApiKeys
from app.api.errors import CatchAll, handle_errors
from app.api.jobs import job_routes
from app.api.openai import openai_routes
from app.api.requests import Linger, RequestLog
from app.api.system import VERSION, model_routes, probe_routes, serve_docs, worker_routes
from app.settings import Settings

if TYPE_CHECKING:
    from app.jobs.database import Database
    from app.transcription.service import TranscriptionService


def create_app(
    settings: Settings,
    service: "TranscriptionService | None" = None,
    database: "Database | None" = None,
) -> FastAPI:
    """The application around `service`, by default the real one; its lifespan starts and stops it.

    `state.stopping()` is to be called as soon as it is known that it will be stopped.

    Raises InvalidSetting where the settings make no sense.
    """
    from app.engines.plan import make_plan
    from app.jobs.database import Database
    from app.jobs.service import JobService
    from app.transcription.service import TranscriptionService

    running = service or TranscriptionService(settings, make_plan(settings))
    database = database or Database(settings.database_url, settings.data_dir)
    jobs = JobService(running, settings, database)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await running.start()
        try:
            await jobs.start()
            try:
                yield
            finally:
                await jobs.stop()
        finally:
            await running.stop()

    app = FastAPI(
        title="whisperfleet",
        description="Audio in, subtitles out, on every GPU.",
        version=VERSION,
        lifespan=lifespan,
        middleware=_middleware(settings, running),
        generate_unique_id_function=lambda route: route.name,  # generated clients call them so
        docs_url=None,
        redoc_url=None,
    )
    app.state.stopping = jobs.begin_shutdown
    handle_errors(app)
    app.include_router(openai_routes(running), dependencies=_documented_key(settings))
    app.include_router(job_routes(running, jobs), dependencies=_documented_key(settings))
    app.include_router(asr_routes(running), dependencies=_documented_key(settings))
    app.include_router(model_routes(running), dependencies=_documented_key(settings))
    app.include_router(worker_routes(running), dependencies=_documented_key(settings))
    app.include_router(probe_routes(running))
    serve_docs(app)
    return app


def _middleware(settings: Settings, service: "TranscriptionService") -> list[Middleware]:
    """Outermost first. CORS stands before the keys: a browser's preflight carries none."""
    cors = Middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "x-whisperfleet-model", "retry-after"],
    )
    return [
        Middleware(RequestLog, demo=lambda: service.catalogue.is_demo),
        *([cors] if settings.cors_origins else []),
        Middleware(Linger),
        Middleware(ApiKeys, keys=settings.api_keys),
        Middleware(CatchAll),
    ]


def _documented_key(settings: Settings) -> Sequence[Dependency]:
    """For the OpenAPI document alone; `ApiKeys` does the checking, before the body is read."""
    return [Depends(HTTPBearer(auto_error=False))] if settings.api_keys else []
