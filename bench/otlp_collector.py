"""A collector of traces on loopback: takes spans over OTLP/HTTP, and shows them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

# Spans arrive soon after they end.
OFTEN = {"OTEL_BSP_SCHEDULE_DELAY": 100}


@dataclass(frozen=True)
class Span:
    """A span as it arrived. Times in s; ids in hex, empty if there is none."""

    trace: str
    id: str
    parent: str
    name: str
    start: float
    end: float
    attributes: dict[str, Any]
    links: list[tuple[str, str]]  # trace and span
    failed: bool

    def holds(self, other: "Span") -> bool:
        """Whether the other span lies within this one."""
        return self.start <= other.start <= other.end <= self.end


@dataclass
class Collector:
    """Everything that arrived."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    service: str = ""
    posts: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        """The environment of a service that sends its spans here, often."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, **OFTEN}

    def of(self, trace: str) -> list[Span]:
        """The spans of a trace, in the order of their starts."""
        return sorted((span for span in self.spans if span.trace == trace), key=lambda span: span.start)

    def wait_for(self, name: str, trace: str | None = None, count: int = 1) -> list[Span]:
        """The spans of a name, of one trace or of all, once there are so many."""

        def found() -> list[Span]:
            return [span for span in self.spans if span.name == name and trace in (None, span.trace)]

        deadline = time.monotonic() + 30
        while len(found()) < count:
            assert time.monotonic() < deadline, f"no {name!r} among {[span.name for span in self.spans]}"
            time.sleep(0.02)
        return found()

    def take(self, body: bytes) -> None:
        """Store the spans of a request of an exporter."""
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.service = _attributes(group.resource.attributes)["service.name"]
            self.spans += [_span(span) for scope in group.scope_spans for span in scope.spans]


@contextmanager
def collecting(answer: Callable[[], int] = lambda: 200) -> Iterator[Collector]:
    """A collector until the end of the block. `answer`: called for the status of each answer."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.posts += 1
            collector.headers.append(dict(self.headers))
            body = self.rfile.read(int(self.headers["content-length"]))
            status = answer()
            if status == 200:
                collector.take(body)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


def _span(span: Any) -> Span:
    return Span(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
        attributes=_attributes(span.attributes),
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        failed=span.status.code == 2,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
