"""`whisperfleet serve`"""

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI

from app.engines.plan import check_compute_type, make_plan
from app.errors import InvalidSetting
from app.jobs.database import Database
from app.logs import configure_logs
from app.main import create_app
from app.settings import Settings, load_settings
from app.transcription.service import TranscriptionService

GRACE_S = 3  # that answers under way have to end once the service is told to stop

log = structlog.get_logger(__name__)


class Server(uvicorn.Server):
    """uvicorn, which tells `app` that it stops before it waits for answers to end.

    A stream of events would go on for as long as its job.
    """

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping()
        await super().shutdown(sockets)


def run_server(overrides: dict[str, Any]) -> int:
    """Serve until told to stop. The exit code: 2 where a setting makes no sense."""
    try:
        settings = load_settings(**overrides)
        plan = make_plan(settings)
        check_compute_type(plan)
        service = TranscriptionService(settings, plan)
        service.folder.lock()
        asyncio.run(_try_database(settings))
        app = create_app(settings, service)
    except InvalidSetting as error:
        print(f"whisperfleet: {error.message}", file=sys.stderr)
        return 2
    configure_logs(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        access_log=False,  # the application logs its requests itself
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal that stopped it once more when all is done: that is to be a clean end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with suppress(KeyboardInterrupt):
        asyncio.run(Server(app, config).serve())
    return 0


async def _try_database(settings: Settings) -> None:
    """Bring the database up to date. Raises InvalidSetting where it cannot be used."""
    database = Database(settings.database_url, settings.data_dir)
    await database.open()
    await database.close()
