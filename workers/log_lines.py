"""Log lines in one format, of the front end and of its child processes."""

import logging
import os
import re
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers import calls

if TYPE_CHECKING:
    from structlog.types import EventDict, Processor, WrappedLogger

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")  # but tabs and line breaks
_STDERR = 2
_WRITABLE_WITHIN_S = 0.1


@dataclass(frozen=True, slots=True)
class LogFormat:
    """How lines look, and from which level on there are any."""

    level: str
    json: bool
    colors: bool


def line_formatter(form: LogFormat, add_context: "Processor") -> logging.Formatter:
    """Formats the records of standard logging, and those of structlog. `add_context` adds keys to a line."""
    import structlog

    renderers: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if form.json
        # Not rich's tracebacks: rendering one blocks the event loop for seconds.
        else [
            structlog.dev.ConsoleRenderer(
                colors=form.colors, exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=line_keys(add_context),
        processors=[
            *(structlog.stdlib.ProcessorFormatter.remove_processors_meta, _escape_controls, *renderers)
        ],
    )


def _escape_controls(logger: "WrappedLogger", method: str, event: "EventDict") -> "EventDict":
    """Escapes what could move a terminal's cursor: clients choose paths, and proxies pass on addresses."""
    texts = {key: value for key, value in event.items() if isinstance(value, str)}
    return {**event, **{key: _CONTROLS.sub(lambda c: ascii(c[0])[1:-1], text) for key, text in texts.items()}}


def line_keys(add_context: "Processor") -> "list[Processor]":
    """Adds the keys that each line has."""
    import structlog

    return [
        add_context,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def initialise(form: LogFormat | None, initializer: Callable[..., None], *args: object) -> None:
    """Initialise a child process whose lines have a format, the ids of its call and its pid.

    None: the process logs as Python does by default.
    """
    if form is not None:
        root = logging.getLogger()
        root.handlers = [_LineHandler(form)]
        root.setLevel(form.level.upper())
        logging.captureWarnings(True)
    initializer(*args)


class _LineHandler(logging.Handler):
    """Writes lines to standard error. Drops them if nobody reads it: a worker must not wait for that."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        if self.formatter is None:
            self.setFormatter(line_formatter(self._form, _add_ids))  # takes a while, and most never log
        try:
            data = f"{self.format(record)}\n".encode(errors="backslashreplace")
            # A pipe that can be written takes so much without waiting, and lines do not mix.
            for start in range(0, len(data), select.PIPE_BUF):
                if not select.select([], [_STDERR], [], _WRITABLE_WITHIN_S)[1]:
                    return
                os.write(_STDERR, data[start : start + select.PIPE_BUF])
        except Exception:
            self.handleError(record)


def _add_ids(logger: "WrappedLogger", method: str, event: "EventDict") -> "EventDict":
    return {**event, **calls.current().ids, "pid": os.getpid()}
