"""`whisperfleet serve`"""

import asyncio
import ctypes
import gc
import importlib
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from types import FrameType
from typing import Any, cast

import structlog
import uvicorn
from fastapi import FastAPI

from app.commands.ending import command, print_error
from app.commands.supervisor import Supervisor
from app.common.concurrency import BackgroundTasks, end_tasks
from app.database.connection import Database
from app.engines.devices import usable_cores
from app.engines.plan import Plan, check_compute_type, divided, make_plan, media_workers
from app.intake.data_folder import DataFolder
from app.main import create_app
from app.pool.process import have_all_ended
from app.recording.service import TranscriptionService
from app.server.accepting import (
    ACCEPTED_AT_ONCE,
    Connections,
    HttpConnection,
    handle_loop_error,
    lengthen_queues,
)
from app.server.listening import (
    DRAIN_S,
    GRACE_S,
    check_key_of_commands,
    key_warnings,
    listeners,
    max_connections,
    raise_descriptor_limit,
    service_faults,
)
from app.server.siblings import Siblings, front_end_names
from app.server.web_sockets import MAX_MESSAGE_BYTES, WebSocketConnection
from app.settings import Settings, key_ring, load_settings, unknown_variables
from app.telemetry import traces
from app.telemetry.logs import configure_logs

SWITCH_INTERVAL_S = 0.0005
_READINESS_S = 0.5  # between two looks
_POLL_S = 0.1
_LAST_WAIT_S = 2.0
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
        self._drains = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(handle_loop_error)
        if self._reloads:
            loop.add_signal_handler(signal.SIGHUP, lambda: self._tasks.spawn(self._app.state.reload()))
        await super().startup(sockets)
        lengthen_queues(self.servers)

    def drain(self) -> None:
        """Stop once the requests that have begun are answered. A signal to stop ends the wait for them."""
        self._drains = not self.should_exit
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._drains = False
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._drains:
            await self._end_requests()
        self._app.state.stopping()
        await super().shutdown(sockets)

    async def _end_requests(self) -> None:
        """Accept no more connections, and wait until those that are open have ended, `DRAIN_S` at most."""
        self._app.state.draining()
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        give_up_at = time.monotonic() + DRAIN_S
        while (  # noqa: ASYNC110
            self.server_state.connections and self._drains and time.monotonic() < give_up_at
        ):
            await asyncio.sleep(_POLL_S)


class OneOfSeveral(Server):
    """The server of one process of several. It answers its siblings, too, and ends with its supervisor."""

    def __init__(
        self, app: FastAPI, config: uvicorn.Config, siblings: Siblings, *, reloads: bool = False
    ) -> None:
        super().__init__(app, config, reloads=reloads)
        self._siblings = siblings
        self._accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        loop, supervisor = asyncio.get_running_loop(), multiprocessing.parent_process()
        if supervisor is not None:
            loop.add_reader(supervisor.sentinel, self._end_with_supervisor, supervisor.sentinel)
        config = copy(self.config)
        config.loaded_app = self._app.state.for_siblings
        protocol = self._protocol(config)
        self.servers.append(await loop.create_unix_server(protocol, sock=self._siblings.listen()))
        self._accepting = self._tasks.spawn(self._accept_while_ready(sockets or []))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await end_tasks(self._accepting)
        for listener in sockets or []:  # else clients would wait, if all processes end
            listener.close()
        await super().shutdown(sockets)

    def _end_with_supervisor(self, sentinel: int) -> None:
        asyncio.get_running_loop().remove_reader(sentinel)
        self.handle_exit(signal.SIGTERM, None)

    def _protocol(self, config: uvicorn.Config) -> Callable[[], asyncio.Protocol]:
        make = cast(Callable[..., asyncio.Protocol], config.http_protocol_class)
        return partial(make, config=config, server_state=self.server_state, app_state=self.lifespan.state)

    async def _accept_while_ready(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections while this process can answer requests, or none of the others can."""
        protocol, loop = self._protocol(self.config), asyncio.get_running_loop()
        listeners: list[asyncio.Server] = []
        try:
            while True:
                accepts = self._app.state.readiness() is None or not await self._siblings.are_ready()
                if not accepts:
                    _close(listeners)
                elif not listeners:
                    with suppress(OSError):  # there is no descriptor; later, perhaps
                        for listener in sockets:
                            server = await loop.create_server(
                                protocol, sock=listener.dup(), backlog=ACCEPTED_AT_ONCE
                            )
                            listeners.append(server)
                        lengthen_queues(listeners)
                await asyncio.sleep(_READINESS_S)
        finally:
            _close(listeners)


def _close(listeners: list[asyncio.Server]) -> None:
    for listener in listeners:
        listener.close()
    listeners.clear()


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
    """Serve until a signal stops it, with as many processes as the settings say.

    Returns the exit code: 2 if a setting is invalid, 1 if the service cannot listen on its address.
    """
    with asyncio.Runner() as runner:
        settings = load_settings(**overrides)
        plan = make_plan(settings)
        if settings.processes > 1:
            plan.of_process(0, settings.processes)
        check_compute_type(plan)
        check_key_of_commands(settings, os.environ)
        # Before anything is started: uvicorn would notice only once the workers load.
        for fault in service_faults(settings):
            print_error(f"{fault.message}. {fault.remedy}")
            return 1
        if settings.processes > 1:
            return runner.run(_supervise(settings, overrides))
        _serve(runner, settings, plan)
    return 0


async def _supervise(settings: Settings, overrides: dict[str, Any]) -> int:
    """Run several server processes. Returns as `run_server` does, and raises InvalidSetting."""
    names, folder = front_end_names(settings), DataFolder(settings.data_dir)
    folder.lock(shared=True)
    database = Database(settings.database_url, settings.data_dir, names[0])
    await database.open()  # one process migrates its tables
    await database.close()
    folder.release()
    sockets = listeners(settings.host, settings.port)
    configure_logs(settings, in_thread=True)
    _log_warnings(settings)
    log.info("starting server processes", processes=len(names), port=sockets[0].getsockname()[1])
    serve = partial(serve_process, {**overrides, "processes": settings.processes})
    supervisor = Supervisor(serve, sockets, Siblings(settings.data_dir, "supervisor", names))
    return await supervisor.run([signal.SIGHUP] if settings.api_keys_file is not None else [])


def serve_process(overrides: dict[str, Any], index: int, sockets: Sequence[socket.socket]) -> None:
    """Be one of several server processes: the target of a spawned process.

    Its arguments stay as they are: after an update, the supervisor of the version before starts it.
    """
    gc.disable()
    try:
        sys.exit(_run_process(overrides, index, sockets))
    except SystemExit as leaving:
        if not have_all_ended(_LAST_WAIT_S):  # the interpreter would wait for a process that cannot be killed
            os._exit(leaving.code if isinstance(leaving.code, int) else 1)
        raise


@command()
def _run_process(overrides: dict[str, Any], index: int, sockets: Sequence[socket.socket]) -> int:
    settings = load_settings(**overrides)
    names, plan = front_end_names(settings), make_plan(settings)
    media = divided(media_workers(settings, plan, usable_cores()), index, len(names))
    part = {
        "media_workers": max(1, len(media)),
        "audio_cache_mb": settings.audio_cache_mb // len(names),
        "wyoming_port": settings.wyoming_port if index == 0 else None,
    }
    siblings = Siblings(settings.data_dir, names[index], [*names[:index], *names[index + 1 :]])
    structlog.contextvars.bind_contextvars(front_end=siblings.name)
    with asyncio.Runner() as runner:
        plan = plan.of_process(index, len(names))
        _serve(runner, settings.model_copy(update=part), plan, siblings, sockets)
    return 0


def _serve(
    runner: asyncio.Runner,
    settings: Settings,
    plan: Plan,
    siblings: Siblings | None = None,
    sockets: Sequence[socket.socket] = (),
) -> None:
    """Serve until a signal stops it: alone, or together with `siblings` on `sockets`."""
    raise_descriptor_limit(settings)
    service = TranscriptionService(settings, plan)
    name = settings.front_end if siblings is None else siblings.name
    service.media.folder.lock(shared=name is not None)  # before the database, which may lie in it
    database = Database(settings.database_url, settings.data_dir, name)
    runner.run(database.open())
    app = create_app(settings, service, database, siblings)
    configure_logs(settings, in_thread=True)
    traces.start()
    keep_loop_free()
    keep_some_freed_memory()
    # At the end, uvicorn raises the signal that stopped it again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = uvicorn_config(app, settings)
    reloads = bool(settings.api_keys_file or settings.budgets_file)
    if siblings is None:
        _log_warnings(settings)
        server = Server(app, config, reloads=reloads)
    else:
        server = OneOfSeveral(app, config, siblings, reloads=reloads)
    signal.signal(signal.SIGUSR1, lambda *_: server.drain())
    try:
        with suppress(KeyboardInterrupt):
            runner.run(server.serve(list(sockets) or None))
    finally:
        traces.stop()


def _log_warnings(settings: Settings) -> None:
    for sentence in unknown_variables(os.environ):
        log.warning("unknown setting", reason=sentence)
    for sentence in key_warnings(settings, key_ring(settings)):
        log.warning("strangers could get in", reason=sentence)
    if settings.metrics_key is not None and not settings.needs_key:
        log.warning("WHISPER_METRICS_KEY has no effect: /metrics asks for no key without WHISPER_API_KEYS")


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
