"""Traces of requests and jobs: a span for each stage, and for each batch of a worker.

Off unless the standard variables of OpenTelemetry ask for them. `app.otel` is imported only then: all else
uses this module, which costs a look at one variable while traces are off.
"""

import importlib.util
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from app.work import current_work

if TYPE_CHECKING:
    from app.otel import OtelTraces

# Of attributes: numbers and short constants. Never names of files, texts, keys or addresses.
Attribute = str | int | float | bool

_MODULES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
# Requests that only read are traced if their client traces them: there are thousands of polls for each job.
_READING = frozenset({"GET", "HEAD", "OPTIONS"})

log = structlog.get_logger(__name__)

_traces: "OtelTraces | None" = None


class Span(AbstractContextManager["Span"], Protocol):
    """A stage. Spans that begin inside the block are its children."""

    def set(self, **attributes: Attribute) -> None:
        """Add attributes. Without a dot, their names get the prefix `whisperfleet.`."""

    def rename(self, name: str) -> None:
        """Change the name."""


class _NoSpan:
    """Stands for every span that is not recorded."""

    def __enter__(self) -> "_NoSpan":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def set(self, **attributes: Attribute) -> None:
        pass

    def rename(self, name: str) -> None:
        pass


_NO_SPAN = _NoSpan()


def start(environ: Mapping[str, str] = os.environ) -> None:
    """Begin to record spans if the environment asks for it. A warning says why not if that is impossible."""
    global _traces
    if not _is_wanted(environ):
        return
    problem = _problem(environ)
    if problem is None:
        try:
            from app.otel import OtelTraces

            _traces = OtelTraces()
        except Exception as error:  # traces must not keep the service from starting
            problem = f"{type(error).__name__}: {error}. Check the variables OTEL_*."
    if problem is None:
        log.info("traces are on")
    else:
        log.warning("traces are off", reason=problem)


def stop() -> None:
    """Send the spans that wait, for two seconds at most."""
    global _traces
    traces, _traces = _traces, None
    if traces is not None:
        traces.stop()


def _is_wanted(environ: Mapping[str, str]) -> bool:
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_disabled and exporter != "none" and bool(exporter or _first(environ, _ENDPOINTS))


def _problem(environ: Mapping[str, str]) -> str | None:
    """Why the spans that the environment asks for cannot be sent, and what to do; None if they can."""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter not in ("", "otlp"):
        return f"OTEL_TRACES_EXPORTER={exporter} is not supported. Use otlp, or none for no traces."
    if (protocol := _first(environ, _PROTOCOLS) or _PROTOCOL) != _PROTOCOL:
        return (
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol} is not supported. Remove it, and name the collector's "
            "port for OTLP over HTTP: usually 4318."
        )
    if any(_is_missing(module) for module in _MODULES):
        return (
            "OpenTelemetry is not installed. In the folder of whisperfleet, run `.venv/bin/pip install "
            "-c constraints.txt -e '.[otel]'`; or remove the variables OTEL_*."
        )
    return None


def _first(environ: Mapping[str, str], names: Iterable[str]) -> str:
    return next((value for name in names if (value := environ.get(name, "").strip())), "")


def _is_missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ImportError:  # not even its parent is there
        return True


def known_method(method: str) -> str:
    """The method of a request; `_OTHER` for what clients invent."""
    return method if method in _METHODS else "_OTHER"


def request(method: str, headers: Callable[[str], str | None]) -> Span:
    """The span of an HTTP request, which continues the client's trace if it has one.

    `headers`: the value of a header.
    """
    if _traces is None or (method in _READING and headers("traceparent") is None):
        return _NO_SPAN
    return _traces.request(known_method(method), headers)


def span(name: str, **attributes: Attribute) -> Span:
    """A stage of what the caller works for. Not recorded if that is not traced."""
    if _traces is None or current_work().span is None:
        return _NO_SPAN
    return _traces.child(name, attributes)


def is_on() -> bool:
    """Whether spans are recorded."""
    return _traces is not None


def add(parent: Any, name: str, start: float, end: float, **attributes: Attribute) -> Any:
    """Record a stage that has ended, from `start` to `end` (Unix seconds).

    `parent`: the span of a `Work`, or what this returned. Returns None if the stage is not recorded.
    """
    if _traces is None or parent is None:
        return None
    return _traces.add(parent, name, start, end, attributes)


def traceparent() -> str | None:
    """The span of the caller's work as W3C writes it, for `job_run`; None if it is not traced."""
    work = current_work()
    return None if _traces is None or work.span is None else _traces.traceparent(work.span)


def job_run(job: str, submitted_in: str | None) -> Span:
    """The span of one run of a job; a restart of the service begins another one in the same trace.

    `submitted_in`: the `traceparent` of the request that submitted the job. Without one, it is not traced.
    """
    if _traces is None or submitted_in is None:
        return _NO_SPAN
    return _traces.job_run(job, submitted_in)


def add_job(
    job: str,
    submitted_in: str | None,
    created_at: float,
    started_at: float | None,
    **attributes: Attribute,
) -> None:
    """Record all of a job that has just ended, from its submission on, and how long it was queued."""
    if _traces is not None and submitted_in is not None:
        _traces.add_job(job, submitted_in, created_at, started_at, time.time(), attributes)
