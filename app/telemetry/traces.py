"""Traces of requests and jobs: a span for each stage, and for each batch of a worker.

Off unless the standard variables of OpenTelemetry ask for them. Only then `otlp` is imported, and with it the
SDK. While traces are off, every span is `INVALID_SPAN`, which records nothing.

Attributes are numbers and short constants: never names of files, texts, keys or addresses.
"""

import contextvars
import os
import time
from asyncio import CancelledError
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import structlog
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from app.telemetry.work import current_work

if TYPE_CHECKING:
    from app.telemetry.otlp import SpanSender

Attributes = Mapping[str, AttributeValue]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
# Requests that only read are traced if their client traces them: there are thousands of polls for each job.
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_SERVER_ERROR = 500
_W3C = TraceContextTextMapPropagator()

log = structlog.get_logger(__name__)

_sender: "SpanSender | None" = None


def start(environ: Mapping[str, str] = os.environ) -> None:
    """Begin to record spans if the environment asks for it. A warning says why not if that is impossible."""
    global _sender
    if not _is_wanted(environ):
        return
    problem = _unsupported(environ)
    if problem is None:
        try:
            from app.telemetry.otlp import SpanSender

            _sender = SpanSender()
        except ImportError:
            problem = (
                "OpenTelemetry is not installed. In the folder of whisperfleet, run `.venv/bin/pip install "
                "-c constraints.txt -e '.[otel]'`; or remove the variables OTEL_*."
            )
        except Exception as error:  # traces must not keep the service from starting
            problem = f"{type(error).__name__}: {error}. Check the variables OTEL_*."
    if problem is None:
        log.info("traces are on")
    else:
        log.warning("traces are off", reason=problem)


def stop() -> None:
    """Send the spans that wait, for two seconds at most."""
    global _sender
    sender, _sender = _sender, None
    if sender is not None:
        sender.stop()


def _is_wanted(environ: Mapping[str, str]) -> bool:
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_disabled and exporter != "none" and bool(exporter or _first(environ, _ENDPOINTS))


def _unsupported(environ: Mapping[str, str]) -> str | None:
    """What the environment asks for and this service cannot do, with a remedy; None if it can do all."""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter not in ("", "otlp"):
        return f"OTEL_TRACES_EXPORTER={exporter} is not supported. Use otlp, or none for no traces."
    if (protocol := _first(environ, _PROTOCOLS) or _PROTOCOL) != _PROTOCOL:
        return (
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol} is not supported. Remove it, and name the collector's "
            "port for OTLP over HTTP: usually 4318."
        )
    return None


def _first(environ: Mapping[str, str], names: Iterable[str]) -> str:
    return next((value for name in names if (value := environ.get(name, "").strip())), "")


def is_on() -> bool:
    """Whether spans are recorded."""
    return _sender is not None


def request(method: str, headers: Mapping[str, str]) -> AbstractContextManager[Span]:
    """The span of an HTTP request, which continues the client's trace if it has one."""
    if _sender is None or (method in _READING and "traceparent" not in headers):
        return INVALID_SPAN
    span = _sender.tracer.start_span(
        method,
        context=_W3C.extract(headers, Context()),
        kind=SpanKind.SERVER,
        attributes={
            "http.request.method": method,
            "whisperfleet.request_id": current_work().request_id or "",
        },
    )
    return _current(span)


def describe_answer(span: Span, method: str, route: str | None, status: int) -> None:
    """Name the span of a request by its route: paths contain ids, and would be as many names."""
    span.set_attribute("http.response.status_code", status)
    if status >= _SERVER_ERROR:
        span.set_status(StatusCode.ERROR)
    if route is not None:
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)


def span(name: str, attributes: Attributes | None = None) -> AbstractContextManager[Span]:
    """A stage of what the caller works for. Not recorded if that is not traced."""
    if _sender is None or not _is_sampled(get_current_span()):
        return INVALID_SPAN
    return _current(_sender.tracer.start_span(name, attributes=attributes))


def span_in(context: contextvars.Context) -> Span:
    """The span of the code that copied this context."""
    return context.run(get_current_span)


def add(parent: Span, name: str, start: float, end: float, attributes: Attributes | None = None) -> Span:
    """Record a stage that has ended, from `start` to `end` (Unix seconds). Not if `parent` is not traced."""
    if _sender is None or not _is_sampled(parent):
        return INVALID_SPAN
    context = set_span_in_context(parent, Context())
    span = _sender.tracer.start_span(
        name, context=context, attributes=attributes, start_time=_nanoseconds(start)
    )
    span.end(_nanoseconds(max(start, end)))
    return span


def traceparent() -> str | None:
    """The caller's span as W3C writes it, for `job_run`; None if it is not traced."""
    if not _is_sampled(get_current_span()):
        return None
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier["traceparent"]


def job_run(job: str, submitted_in: str | None) -> AbstractContextManager[Span]:
    """The span of one run of a job; a restart of the service begins another one in the same trace.

    `submitted_in`: the `traceparent` of the request that submitted the job. Without one, it is not traced.
    """
    if _sender is None or submitted_in is None:
        return INVALID_SPAN
    span = _sender.tracer.start_span(
        "run",
        context=set_span_in_context(_job_span(job), Context()),
        attributes={"whisperfleet.job": job},
        links=_links(submitted_in),
    )
    return _current(span)


def add_job(
    job: str, submitted_in: str | None, created_at: float, started_at: float | None, attributes: Attributes
) -> None:
    """Record all of a job that has just ended, from its submission on, and how long it was queued."""
    if _sender is None or submitted_in is None:
        return
    now = time.time()
    root = _job_span(job)
    span = _sender.start_span_as(
        root.get_span_context(),
        "job",
        attributes={"whisperfleet.job": job, **attributes},
        links=_links(submitted_in),
        start_time=_nanoseconds(created_at),
    )
    add(root, "wait in the queue", created_at, started_at or now)
    span.end(_nanoseconds(max(created_at, now)))


@contextmanager
def _current(span: Span) -> Iterator[Span]:
    """Make a span the parent of those that begin in the block, and end it with the block."""
    with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield span
        except BaseException as error:
            # Not the message: it may contain a name or a text.
            span.set_attribute("error.type", type(error).__qualname__)
            if not isinstance(error, (CancelledError, GeneratorExit)):
                span.set_status(StatusCode.ERROR)
            raise


def _is_sampled(span: Span) -> bool:
    """Whether a span is recorded. If it is not, no span inside of it is."""
    return span.get_span_context().trace_flags.sampled


def _job_span(job: str) -> Span:
    """The span of a job. Its trace has the id of the job, so that it needs no other note to be found."""
    context = SpanContext(
        int(job, 16), int(job[:16], 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
    return NonRecordingSpan(context)


def _links(traceparent: str) -> list[Link]:
    found = get_current_span(_W3C.extract({"traceparent": traceparent}, Context())).get_span_context()
    return [Link(found)] if found.is_valid else []


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
