"""Records spans with the SDK of OpenTelemetry, and sends them in the background."""

import logging
import re
import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from dataclasses import replace
from types import TracebackType

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    TraceState,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Span as RecordedSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import Attributes

from app.work import Work, current_work, enter_work, leave_work

_SERVICE = "whisperfleet"
_STOP_S = 2.0  # to send what waits at the end
_QUIET_S = 600.0  # between two log lines about spans that cannot be sent
_SERVER_ERROR = 500
_ADDRESS = re.compile(r"(with url: |\w+://)\S*")  # may contain a key
_MOST_CHARS = 300

log = structlog.get_logger(__name__)


class OtelTraces:
    """The spans of this process. Configured by the variables OTEL_* of the SDK and its OTLP exporter."""

    def __init__(self, processor: BatchSpanProcessor | None = None) -> None:
        """`processor`: receives the spans; by default, it sends them. Raises ValueError for odd variables."""
        _limit_log()
        self._ids = _Ids()
        self._provider = TracerProvider(
            resource=_resource(),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        # Over the one that the environment asks for.
        self._provider.sampler = _JobSampler(self._provider.sampler, self._ids)
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(_SERVICE)
        self._w3c = TraceContextTextMapPropagator()

    def stop(self) -> None:
        """Send what waits, and end. Gives up after `_STOP_S`: the SDK would wait for half a minute."""
        ending = threading.Thread(target=self._provider.shutdown, name="end-of-traces", daemon=True)
        ending.start()
        ending.join(_STOP_S)

    def request(self, method: str, headers: Callable[[str], str | None]) -> "LiveSpan":
        """See `tracing.request`."""
        sent = {name: headers(name) for name in ("traceparent", "tracestate")}
        carrier = {name: value for name, value in sent.items() if value is not None}
        span = self._tracer.start_span(
            method,
            context=self._w3c.extract(carrier, context=Context()),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method},
        )
        if current_work().request_id is not None:
            span.set_attribute(f"{_SERVICE}.request_id", current_work().request_id or "")
        return LiveSpan(span)

    def child(self, name: str, attributes: Attributes) -> "LiveSpan":
        """See `tracing.span`."""
        context = _inside(current_work().span)
        return LiveSpan(self._tracer.start_span(name, context=context, attributes=_named(attributes)))

    def add(
        self,
        parent: SpanContext,
        name: str,
        start: float,
        end: float,
        attributes: Attributes,
        links: Sequence[Link] = (),
    ) -> SpanContext:
        """See `tracing.add`."""
        span = self._tracer.start_span(
            name,
            context=_inside(parent),
            attributes=_named(attributes),
            links=links,
            start_time=_nanoseconds(start),
        )
        span.end(_nanoseconds(max(start, end)))
        return span.get_span_context()

    def traceparent(self, span: SpanContext) -> str:
        """See `tracing.traceparent`."""
        carrier: dict[str, str] = {}
        self._w3c.inject(carrier, context=_inside(span))
        return carrier["traceparent"]

    def job_run(self, job: str, submitted_in: str) -> "LiveSpan":
        """See `tracing.job_run`."""
        span = self._tracer.start_span(
            "run",
            context=_inside(_job_span(job)),
            attributes=_named({"job": job}),
            links=self._link(submitted_in),
        )
        return LiveSpan(span)

    def add_job(
        self,
        job: str,
        submitted_in: str,
        created_at: float,
        started_at: float | None,
        ended_at: float,
        attributes: Mapping[str, str | int | float | bool],
    ) -> None:
        """See `tracing.add_job`."""
        root = _job_span(job)
        self._ids.next = root
        try:
            span = self._tracer.start_span(
                "job",
                context=Context(),
                attributes=_named({"job": job, **attributes}),
                links=self._link(submitted_in),
                start_time=_nanoseconds(created_at),
            )
        finally:
            self._ids.next = None
        self.add(root, "wait in the queue", created_at, started_at or ended_at, {})
        span.end(_nanoseconds(max(created_at, ended_at)))

    def _link(self, traceparent: str) -> list[Link]:
        context = get_current_span(self._w3c.extract({"traceparent": traceparent}, context=Context()))
        span = context.get_span_context()
        return [Link(span)] if span.is_valid else []


class LiveSpan:
    """A span that ends with its block."""

    def __init__(self, span: RecordedSpan) -> None:
        self._span = span
        self._token: Token[Work] | None = None

    def __enter__(self) -> "LiveSpan":
        context = self._span.get_span_context()
        # What is not sampled has no children either.
        parent = context if context.trace_flags.sampled else None
        self._token = enter_work(replace(current_work(), span=parent))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            leave_work(self._token)
        if kind is not None:
            # Not the message: it may contain a name or a text.
            self._span.set_attribute("error.type", kind.__qualname__)
            if not issubclass(kind, (CancelledError, GeneratorExit)):
                self._span.set_status(StatusCode.ERROR)
        self._span.end()

    def set(self, **attributes: str | int | float | bool) -> None:
        """See `tracing.Span`."""
        self._span.set_attributes(_named(attributes) or {})
        if int(attributes.get("http.response.status_code", 0)) >= _SERVER_ERROR:
            self._span.set_status(StatusCode.ERROR)

    def rename(self, name: str) -> None:
        """See `tracing.Span`."""
        self._span.update_name(name)


class _Ids(RandomIdGenerator):
    """Random ids, but for the span of a job: the spans of its runs know it before it is recorded."""

    def __init__(self) -> None:
        self.next: SpanContext | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.next is None else self.next.trace_id

    def generate_span_id(self) -> int:
        return super().generate_span_id() if self.next is None else self.next.span_id


class _JobSampler(Sampler):
    """Decides as another sampler does, but for jobs: they are sampled if their request was."""

    def __init__(self, sampler: Sampler, ids: _Ids) -> None:
        self._sampler = sampler
        self._ids = ids

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        sampler = self._sampler if self._ids.next is None else ALWAYS_ON
        return sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)

    def get_description(self) -> str:
        return f"jobs as their requests, else {self._sampler.get_description()}"


class _ExporterLog(logging.Handler):
    """Logs that spans are lost: at once, and then every `_QUIET_S` while it goes on."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._quiet_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record of the SDK or its exporter, unless another was logged shortly before."""
        if time.monotonic() < self._quiet_until:
            return
        self._quiet_until = time.monotonic() + _QUIET_S
        reason = " ".join(_ADDRESS.sub(r"\1…", record.getMessage()).split())[:_MOST_CHARS]
        log.warning(
            "spans are lost: the collector of traces does not take them. Check OTEL_EXPORTER_OTLP_ENDPOINT",
            reason=reason,
            next_line_in_s=int(_QUIET_S),
        )


def _limit_log() -> None:
    logger = logging.getLogger("opentelemetry")
    logger.handlers = [_ExporterLog()]
    logger.propagate = False


def _resource() -> Resource:
    """What sends the spans: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, by default the product."""
    resource = Resource.create()
    is_named = not str(resource.attributes[SERVICE_NAME]).startswith("unknown_service")
    return resource if is_named else resource.merge(Resource({SERVICE_NAME: _SERVICE}))


def _inside(span: SpanContext) -> Context:
    return set_span_in_context(NonRecordingSpan(span), Context())


def _job_span(job: str) -> SpanContext:
    """The span of a job. Its trace has the id of the job, so that it needs no other note to be found."""
    return SpanContext(
        int(job, 16), int(job[:16], 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _named(attributes: Attributes) -> Attributes:
    return {
        name if "." in name else f"{_SERVICE}.{name}": value for name, value in (attributes or {}).items()
    }
