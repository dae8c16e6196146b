"""Logging: structlog and the libraries' standard logging in one format."""

import logging
import sys

import structlog

from app.log_writer import LogWriter
from app.settings import Settings


def configure_logs(settings: Settings, *, in_thread: bool = False) -> None:
    """Log to standard error as configured. Standard output stays free for transcripts.

    `in_thread`: a thread writes the lines, so nothing waits for a slow terminal.
    """
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,  # first: most requests log a line that is below the level
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderers: list[structlog.types.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if settings.log_format == "json"
        # Not rich's tracebacks: rendering one blocks the event loop for seconds.
        else [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    handler = LogWriter(sys.stderr.fileno()) if in_thread else logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("aiosqlite", "httpx", "httpcore", "huggingface_hub", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
