"""Logging: structlog and the libraries' standard logging in one format."""

import logging
import sys

import structlog

from app.log_writer import LogWriter
from app.settings import Settings
from workers.log_lines import LogFormat, line_formatter, line_keys

child_format: LogFormat | None = None  # of the lines of child processes; None until logs are configured


def configure_logs(settings: Settings, *, in_thread: bool = False, children: bool = True) -> None:
    """Log to standard error as configured. Standard output stays free for transcripts.

    `in_thread`: a thread writes the lines, so nothing waits for a slow terminal. `children`: child processes
    that start from now on log in the same way; otherwise only warnings of libraries are printed.
    """
    global child_format
    form = LogFormat(settings.log_level, settings.log_format == "json", sys.stderr.isatty())
    child_format = form if children else None
    add_context = structlog.contextvars.merge_contextvars
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,  # first: most requests log a line that is below the level
            *line_keys(add_context),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = LogWriter(sys.stderr.fileno()) if in_thread else logging.StreamHandler(sys.stderr)
    handler.setFormatter(line_formatter(form, add_context))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("aiosqlite", "httpx", "httpcore", "huggingface_hub", "asyncio", "urllib3"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
