"""When spans are recorded, and what the log says about it."""

import logging
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import INVALID_SPAN
from structlog.testing import capture_logs

from app.telemetry import traces
from app.telemetry.otlp import SpanSender, _ExporterLog
from app.telemetry.work import Work, working_for

COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
JOB = "0123456789abcdef" * 2


def parent(value: str) -> dict[str, str]:
    return {"traceparent": value}


@pytest.fixture(autouse=True)
def untouched_log() -> Iterator[None]:
    logger = logging.getLogger("opentelemetry")
    before = logger.handlers, logger.propagate
    yield
    logger.handlers, logger.propagate = before


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Receives all spans."""
    found = InMemorySpanExporter()
    monkeypatch.setattr(traces, "_sender", SpanSender(SimpleSpanProcessor(found)))
    return found


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_SERVICE_NAME": "whisper"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        COLLECTOR | {"OTEL_SDK_DISABLED": "True"},
        COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_traces_are_off_unless_asked_for(environ: dict[str, str]) -> None:
    with capture_logs() as lines:
        traces.start(environ)
    assert not traces.is_on()
    assert lines == []
    first = traces.request("POST", parent(f"00-{'1' * 32}-{'2' * 16}-01"))
    assert (
        first is traces.span("transcribe") is traces.job_run(JOB, "anything") is INVALID_SPAN
    )  # nothing is made
    assert traces.traceparent() is None


@pytest.mark.parametrize(
    ("environ", "cure"),
    [
        (COLLECTOR | {"OTEL_TRACES_EXPORTER": "zipkin"}, "Use otlp"),
        (COLLECTOR | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "usually 4318"),
        (COLLECTOR | {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "usually 4318"),
    ],
)
def test_what_is_not_supported_is_a_warning(environ: dict[str, str], cure: str) -> None:
    with capture_logs() as lines:
        traces.start(environ)
    assert not traces.is_on()
    [line] = lines
    assert (line["event"], line["log_level"]) == ("traces are off", "warning")
    assert cure in line["reason"]


@pytest.mark.parametrize(
    "module", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"]
)
def test_a_collector_without_the_extra_is_a_warning(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "app.telemetry.otlp")
    with capture_logs() as lines:
        traces.start(COLLECTOR)
    assert not traces.is_on()
    assert "'.[otel]'" in lines[0]["reason"]


def test_odd_variables_keep_traces_off_and_the_service_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    with capture_logs() as lines:
        traces.start(COLLECTOR)
    assert not traces.is_on()
    assert "Check the variables OTEL_*" in lines[0]["reason"]


def test_spans_are_those_of_the_work_and_nest(exporter: InMemorySpanExporter) -> None:
    with working_for(Work("mine")):
        with traces.request("POST", {}), traces.span("outer") as outer:
            outer.set_attribute("clips", 3)
            with traces.span("inner"):
                pass
        with traces.span("after the request"):
            pass
    inner, outermost, request = exporter.get_finished_spans()
    assert [span.name for span in (inner, outermost, request)] == ["inner", "outer", "POST"]
    assert inner.parent == outermost.context
    assert outermost.parent == request.context
    assert dict(outermost.attributes or {}) == {"clips": 3}


def test_a_client_that_does_not_sample_gets_no_spans(exporter: InMemorySpanExporter) -> None:
    with traces.request("POST", parent(f"00-{'1' * 32}-{'2' * 16}-00")), traces.span("stage"):
        assert traces.traceparent() is None  # nor does its job
    assert exporter.get_finished_spans() == ()


def test_jobs_are_sampled_as_their_requests_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    found = InMemorySpanExporter()
    monkeypatch.setattr(traces, "_sender", SpanSender(SimpleSpanProcessor(found)))
    with traces.request("POST", {}):
        assert traces.traceparent() is None
    with traces.request("POST", parent(f"00-{'1' * 32}-{'2' * 16}-01")):
        submitted_in = traces.traceparent()
    with traces.job_run(JOB, submitted_in):
        pass
    traces.add_job(JOB, submitted_in, 1.0, 2.0, {"status": "succeeded"})
    request, run, waiting, job = found.get_finished_spans()
    assert [span.name for span in (run, waiting, job)] == ["run", "wait in the queue", "job"]
    assert format(job.context.trace_id, "032x") == JOB
    assert run.parent is not None
    assert run.parent.span_id == job.context.span_id
    assert [link.context.span_id for link in job.links] == [request.context.span_id]
    assert (waiting.start_time, waiting.end_time) == (10**9, 2 * 10**9)


@given(value=st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True))
def test_any_traceparent_of_a_client_is_harmless(value: str) -> None:
    found = InMemorySpanExporter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traces, "_sender", SpanSender(SimpleSpanProcessor(found)))
        with traces.request("POST", parent(value)):
            pass
    assert all(span.context.is_valid for span in found.get_finished_spans())


def test_errors_of_an_exporter_are_one_line_without_addresses() -> None:
    handler = _ExporterLog()
    record = logging.makeLogRecord(
        {
            "levelno": logging.ERROR,
            "msg": "Failed: %s\nat https://me:hunter2@host/?key=hunter2 with url: /v1?key=hunter2 "
            + "x" * 1000,
            "args": ("refused",),
        }
    )
    with capture_logs() as lines:
        for _ in range(100):
            handler.handle(record)
    [line] = lines
    assert line["reason"].startswith("Failed: refused at https://… with url: … x")
    assert len(line["reason"]) <= 300
