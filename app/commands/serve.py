"""`whisperfleet serve`"""

import asyncio
import signal
import sys
from contextlib import suppress
from typing import Any

import structlog
import uvicorn

from app.errors import InvalidSetting
from app.fleet.engine import check_compute_type, make_plan
from app.logs import configure_logs
from app.main import create_app
from app.service import Service
from app.settings import load_settings

GRACE_S = 3  # that answers under way have to end once the service is told to stop

log = structlog.get_logger(__name__)


def run_server(overrides: dict[str, Any]) -> int:
    """Serve until told to stop. The exit code: 2 where a setting makes no sense."""
    try:
        settings = load_settings(**overrides)
        check_compute_type(make_plan(settings))
        service = Service(settings)
        service.take_folder()
    except InvalidSetting as error:
        print(f"whisperfleet: {error.message}", file=sys.stderr)
        return 2
    configure_logs(settings)
    config = uvicorn.Config(
        create_app(settings, service),
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
        asyncio.run(uvicorn.Server(config).serve())
    return 0
