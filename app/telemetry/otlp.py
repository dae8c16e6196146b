"""Records spans with the SDK of OpenTelemetry, and sends them in the background."""

import logging
import re
import threading
import time
from typing import Any

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult
from opentelemetry.trace import Span, SpanContext

_SERVICE = "whisperfleet"
_STOP_S = 2.0  # to send what waits at the end
_QUIET_S = 600.0  # between two log lines about spans that cannot be sent
_ADDRESS = re.compile(r"(with url: |\w+://)\S*")  # may contain a key
_MOST_CHARS = 300

log = structlog.get_logger(__name__)


class SpanSender:
    """The spans of this process. Configured by the variables OTEL_* of the SDK and its OTLP exporter."""

    def __init__(self, processor: BatchSpanProcessor | None = None) -> None:
        """`processor`: receives the spans; by default, it sends them. Raises ValueError for odd variables."""
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [_ExporterLog()], False
        self._ids = _Ids()
        self._provider = TracerProvider(
            resource=_resource(),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        # Over the one that the environment asks for.
        self._provider.sampler = _JobSampler(self._provider.sampler, self._ids)
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self._provider.get_tracer(_SERVICE)

    def start_span_as(self, span: SpanContext, name: str, **options: Any) -> Span:
        """Start a span whose ids are known already, in no other one. It is always recorded."""
        self._ids.next = span
        try:
            return self.tracer.start_span(name, context=Context(), **options)
        finally:
            self._ids.next = None

    def stop(self) -> None:
        """Send what waits, and end. Gives up after `_STOP_S`: the SDK would wait for half a minute."""
        ending = threading.Thread(target=self._provider.shutdown, name="end-of-traces", daemon=True)
        ending.start()
        ending.join(_STOP_S)


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

    def should_sample(self, *args: Any, **options: Any) -> SamplingResult:
        sampler = self._sampler if self._ids.next is None else ALWAYS_ON
        return sampler.should_sample(*args, **options)

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


def _resource() -> Resource:
    """What sends the spans: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, by default the product."""
    resource = Resource.create()
    is_named = not str(resource.attributes[SERVICE_NAME]).startswith("unknown_service")
    return resource if is_named else resource.merge(Resource({SERVICE_NAME: _SERVICE}))
