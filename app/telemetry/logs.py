"""Logging: structlog and the libraries' standard logging in one format.

A thread writes the lines of the service: a terminal or a pipe that takes no more must not stop it.
"""

import logging
import os
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue

import structlog

from app.settings import Settings
from workers.log_lines import LogFormat, line_formatter, line_keys

MAX_LINES = 10_000  # waiting; further ones are dropped
FLUSH_S = 1.0

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


class LogWriter(logging.Handler):
    """Writes to a file descriptor in a thread. Drops lines, and counts them, while too many wait."""

    def __init__(self, descriptor: int, max_lines: int = MAX_LINES) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._max_lines = max_lines
        self._dropped = 0
        # Not a `Queue`: a signal handler that logs could wait for a lock that its own thread holds.
        self._waiting: SimpleQueue[str | threading.Event] = SimpleQueue()
        threading.Thread(target=self._write_forever, name="log-writer", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line. It is formatted here: the context of the caller belongs to it."""
        if self._waiting.qsize() >= self._max_lines:
            self._dropped += 1
            return
        try:
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self._waiting.put(self.format(_notice(dropped)))
            self._waiting.put(self.format(record))
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Wait until all lines so far are written, `FLUSH_S` at most. `logging` calls this at the exit."""
        written = threading.Event()
        self._waiting.put(written)
        written.wait(FLUSH_S)

    def _write_forever(self) -> None:
        while True:
            line = self._waiting.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            # Not `sys.stderr`: at the exit, the interpreter would wait for its lock.
            data = memoryview(f"{line}\n".encode(errors="backslashreplace"))
            with suppress(OSError):  # nobody reads the log any more
                while data:
                    data = data[os.write(self._descriptor, data) :]


def _notice(dropped: int) -> logging.LogRecord:
    message = (
        "%d log lines were dropped: nothing read standard error. Check the terminal or the log collector."
    )
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (dropped,), None)
