"""`whisperfleet serve`"""

import asyncio
import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import Any, cast

import structlog
import uvicorn
from fastapi import FastAPI

from app.commands.ending import command, print_error
from app.common.concurrency import BackgroundTasks
from app.database.connection import Database
from app.engines.plan import check_compute_type, make_plan
from app.main import create_app
from app.recording.service import TranscriptionService
from app.server.accepting import (
    ACCEPTED_AT_ONCE,
    Connections,
    HttpConnection,
    handle_loop_error,
    lengthen_queues,
)
from app.server.listening import (
    GRACE_S,
    check_key_of_commands,
    key_warnings,
    max_connections,
    raise_descriptor_limit,
    service_faults,
)
from app.server.web_sockets import MAX_MESSAGE_BYTES, WebSocketConnection
from app.settings import Settings, key_ring, load_settings, unknown_variables
from app.telemetry import traces
from app.telemetry.logs import configure_logs

SWITCH_INTERVAL_S = 0.0005
MAX_HEAD_BYTES = 1 << 16  # of a request: the ids of a thousand jobs take 33 to 39 KB of the URL
LARGE_BYTES = 1 << 20  # larger blocks of memory are the system's again when they are freed
KEPT_BYTES = 8 << 20

# Parameters of `mallopt` (malloc.h).
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3

log = structlog.get_logger(__name__)


class Server(uvicorn.Server):
    """uvicorn's server, for connections that are limited.

    It notifies `app` of a shutdown before it waits for open requests to end: a stream of events would
    otherwise stay open for as long as its job runs.
    """

    def __init__(self, app: FastAPI, config: uvicorn.Config, *, reloads: bool = False) -> None:
        super().__init__(config)
        self._app = app
        self._reloads = reloads
        self._tasks = BackgroundTasks()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(handle_loop_error)
        if self._reloads:
            loop.add_signal_handler(signal.SIGHUP, lambda: self._tasks.spawn(self._app.state.reload()))
        await super().startup(sockets)
        lengthen_queues(self.servers)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping()
        await super().shutdown(sockets)


def keep_loop_free() -> None:
    """Prepare this process to answer at once, whatever its threads do."""
    # The first request that needs it would wait, and all others behind it.
    importlib.import_module("anyio._backends._asyncio")
    # A full collection would stop all threads for a tenth of a second: most objects are those of libraries.
    # None here either: of a quarter of a million objects, few are garbage.
    gc.freeze()
    gc.enable()
    # After each system call, the event loop waits so long for the GIL if a thread computes.
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def keep_some_freed_memory() -> None:
    """Let glibc keep up to `KEPT_BYTES` of freed memory, which it would return to the system after each part.

    The parts of an upload need the same memory one after the other. If the kernel provides and zeroes it each
    time, an upload takes a quarter more CPU time. Without glibc, nothing happens.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TOP_PAD, LARGE_BYTES)


@command()
def run_server(overrides: dict[str, Any]) -> int:
    """Serve until a signal stops it.

    Returns the exit code: 2 if a setting is invalid, 1 if the service cannot listen on its address.
    """
    with asyncio.Runner() as runner:
        settings = load_settings(**overrides)
        plan = make_plan(settings)
        check_compute_type(plan)
        check_key_of_commands(settings, os.environ)
        # Before anything is started: uvicorn would notice only once the workers load.
        for fault in service_faults(settings):
            print_error(f"{fault.message}. {fault.remedy}")
            return 1
        raise_descriptor_limit(settings)
        service = TranscriptionService(settings, plan)
        service.media.folder.lock()  # before the database, which may lie in it
        database = Database(settings.database_url, settings.data_dir)
        runner.run(database.open())
        app = create_app(settings, service, database)
        configure_logs(settings, in_thread=True)
        for sentence in unknown_variables(os.environ):
            log.warning("unknown setting", reason=sentence)
        for sentence in key_warnings(settings, key_ring(settings)):
            log.warning("strangers could get in", reason=sentence)
        if settings.metrics_key is not None and not settings.needs_key:
            log.warning(
                "WHISPER_METRICS_KEY has no effect: /metrics asks for no key without WHISPER_API_KEYS"
            )
        traces.start()
        keep_loop_free()
        keep_some_freed_memory()
        # At the end, uvicorn raises the signal that stopped it again.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        reloads = bool(settings.api_keys_file or settings.budgets_file)
        server = Server(app, uvicorn_config(app, settings), reloads=reloads)
        try:
            with suppress(KeyboardInterrupt):
                runner.run(server.serve())
        finally:
            traces.stop()
    return 0


def uvicorn_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How the server serves `app`."""
    connections = Connections(settings, max_connections(settings))
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        access_log=False,  # the application logs its requests itself
        log_config=None,
        server_header=False,
        proxy_headers=False,  # the application reads them itself, after it knows whose the connection is
        # h11: no other parser has a limit for the head.
        http=cast(
            type[asyncio.Protocol],
            partial(HttpConnection, connections, send_timeout_s=settings.send_timeout_s),
        ),
        ws=WebSocketConnection,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,  # few bytes could become many
        backlog=ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=GRACE_S,
    )
