"""The web application, assembled from its parts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.api.audio.asr import asr_routes
from app.api.audio.openai import openai_routes
from app.api.audio.realtime import realtime_routes
from app.api.audio.realtime_sessions import RealtimeSessions
from app.api.audio.speech_timestamps import speech_routes
from app.api.http.hosts import AllowedHosts, BrowserGuard
from app.api.http.keys import Authentication, UserHeader, operators_only
from app.api.http.unused import note_unknown_parameters, refuse_unknown_parameters
from app.api.jobs.again import again_routes
from app.api.jobs.archive import archive_routes
from app.api.jobs.links import link_routes
from app.api.jobs.peaks import peak_routes
from app.api.jobs.routes import job_routes, job_webhooks
from app.api.jobs.shared import shared_routes
from app.api.jobs.terms import term_routes
from app.api.jobs.tus import EXPOSED_HEADERS
from app.api.jobs.uploads import upload_routes
from app.api.operation.for_siblings import ForSiblings
from app.api.operation.metric_list import Sources
from app.api.operation.metrics import MetricTexts, metric_routes
from app.api.operation.other_fleets import OtherFleets
from app.api.operation.owners import Owners, owner_routes
from app.api.operation.system import VERSION, model_routes, probe_routes
from app.api.operation.usage import usage_routes
from app.api.operation.worker_events import WorkerEvents
from app.api.operation.workers import node_routes, worker_routes
from app.api.page.pages import add_docs, add_pages
from app.api.transcripts.corrections import correction_routes
from app.api.transcripts.cues import cue_routes
from app.api.transcripts.segments import segment_routes
from app.api.wyoming.server import WyomingServer
from app.database.connection import Database
from app.database.front_ends import FrontEnd
from app.engines.plan import make_plan
from app.intake.limits import Admission
from app.jobs.service import JobService
from app.live.service import LiveService
from app.recording.service import TranscriptionService
from app.server.connections import EnsureResponse
from app.server.errors import add_error_handlers
from app.server.requests import WARNING_HEADER, RequestCounts, RequestLog, RootPath
from app.server.siblings import Siblings
from app.settings import Settings, key_ring


def create_app(
    settings: Settings,
    service: TranscriptionService | None = None,
    database: Database | None = None,
    siblings: Siblings | None = None,
) -> FastAPI:
    """The application with `service`, by default the real one. Its lifespan starts and stops the service.

    `siblings`: the processes that serve it together with this one; None: there are none. They are answered by
    the application `state.for_siblings`. The server calls `state.stopping()` when it begins to stop, before
    that `state.draining()` if requests may end first, and on SIGHUP `state.reload()`. Raises InvalidSetting
    if the settings do not fit.
    """
    running = service or TranscriptionService(settings, make_plan(settings))
    database = database or Database(settings.database_url, settings.data_dir)
    keys = key_ring(settings)
    siblings = siblings or Siblings(settings.data_dir)
    jobs = JobService(running, settings, database, FrontEnd(database, siblings.address))
    admission = Admission(settings, running.fleet.jobs_at_once)
    live = LiveService(running)
    wyoming = WyomingServer(settings, live.open, running.fleet.catalogue, admission.live_streams)
    others = OtherFleets(siblings, running.fleet.ledger)
    worker_events = WorkerEvents(running.fleet, others, jobs, live.metrics)
    requests = RequestCounts()
    streams = RealtimeSessions()
    authentication = Authentication(settings, keys, jobs)
    jobs.on_links_ended = authentication.end
    owners = Owners(keys, authentication, streams, jobs, settings.trusted_user_header is not None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await running.start()
        try:
            await jobs.start()
            try:
                await owners.load()
                await wyoming.start()
                yield
            finally:
                try:
                    await wyoming.stop()
                    await streams.stop()
                    await live.stop()
                    await siblings.close()
                finally:
                    await jobs.stop()
        finally:
            await running.stop()

    def draining() -> None:
        worker_events.close()
        streams.begin_shutdown()
        wyoming.begin_shutdown()
        jobs.end_event_streams()

    def stopping() -> None:
        draining()
        jobs.begin_shutdown()

    app = FastAPI(
        title="whisperfleet",
        description="Audio in, subtitles out, on every GPU.",
        version=VERSION,
        lifespan=lifespan,
        middleware=_middleware(settings, running, requests, authentication),
        generate_unique_id_function=lambda route: route.name,  # the function names in generated clients
        openapi_url=None,  # `add_docs` answers it
        docs_url=None,
        redoc_url=None,
        webhooks=job_webhooks(),
        servers=[{"url": settings.root_path}] if settings.root_path else None,
        # `telemetry.traces` makes the spans. FastAPI's have whole addresses, and the errors their messages.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.stopping, app.state.draining = stopping, draining
    app.state.readiness = running.fleet.readiness
    app.state.live = live
    app.state.reload = owners.reload
    add_error_handlers(app)
    of_other_programs = (  # whose clients may send what this service does not know
        openai_routes(running, admission, jobs.terms),
        realtime_routes(running, live, streams, siblings, jobs, admission),
        speech_routes(running, admission),
        asr_routes(running, admission, jobs.terms),
        model_routes(running.fleet),
    )
    routers = (
        archive_routes(running, jobs, admission),
        job_routes(running, jobs, admission),
        again_routes(running, jobs),
        link_routes(running, jobs),
        segment_routes(running, jobs, admission),
        cue_routes(running, jobs, admission),
        upload_routes(running, jobs, admission),
        correction_routes(running, jobs, admission),
        peak_routes(jobs, admission),
        shared_routes(running, jobs, settings),
        term_routes(running, jobs),
        usage_routes(running, jobs),
    )
    workers = worker_routes(running.fleet, others, worker_events, admission)
    for_operators = (workers, node_routes(running.fleet), owner_routes(owners, siblings))
    metric_texts = MetricTexts(Sources(running, jobs, admission, requests, live.metrics), siblings)
    app.state.for_siblings = ForSiblings(running.fleet, live.metrics, streams, owners, metric_texts).app()
    metrics = metric_routes(metric_texts)
    # For OpenAPI alone: `Authentication` checks the key, before the body is read.
    key = [Depends(HTTPBearer(auto_error=False))] if settings.needs_key else []
    noting, refusing = Depends(note_unknown_parameters), Depends(refuse_unknown_parameters)
    for router in of_other_programs:
        app.include_router(router, dependencies=[*key, noting])
    for router in routers:
        app.include_router(router, dependencies=[*key, refusing])
    for router in for_operators:
        app.include_router(router, dependencies=[*key, Depends(operators_only), refusing])
    app.include_router(metrics, dependencies=[*key, Depends(operators_only)])
    probes = probe_routes(running.fleet, jobs.front_end)
    app.include_router(probes)
    add_pages(app, settings)
    add_docs(app)
    # FastAPI's own router hides the routes of those that it includes.
    for known in (*of_other_programs, *routers, *for_operators, metrics, probes, app):
        requests.add_routes(known.routes)
    return app


def _middleware(
    settings: Settings,
    service: TranscriptionService,
    requests: RequestCounts,
    authentication: Authentication,
) -> list[Middleware]:
    """Outermost first. CORS comes before the keys: a browser's preflight request has no key.

    With keys alone, hosts are not checked: a page that got here by DNS rebinding has no key. In a browser on
    a trusted machine, it could name a user.
    """
    knows_keys_alone = settings.needs_key and settings.trusted_user_header is None
    hosts = None if knows_keys_alone else AllowedHosts([settings.host, *settings.allowed_hosts])
    cors = Middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=[
            *("x-request-id", "x-whisperfleet-model", WARNING_HEADER, "retry-after", "etag"),
            *EXPOSED_HEADERS,
        ],
    )
    user = settings.trusted_user_header and Middleware(
        UserHeader, header=settings.trusted_user_header, proxies=settings.trusted_proxies
    )
    return [
        *([user] if user else []),
        Middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies)),
        *([Middleware(RootPath, root=settings.root_path)] if settings.root_path else []),
        Middleware(RequestLog, is_demo=lambda: service.fleet.catalogue.is_demo, counts=requests),
        *([cors] if settings.cors_origins else []),
        Middleware(EnsureResponse),
        Middleware(BrowserGuard, hosts=hosts, origins=settings.cors_origins, has_links=settings.needs_key),
        *([Middleware(authentication.middleware)] if settings.needs_key else []),
    ]
