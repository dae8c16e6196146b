"""Traces of jobs that outlive a process, and collectors that are dead, slow or refuse."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from bench.otlp_collector import OFTEN, Collector, collecting
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, SIMULATED, Server, free_port, wait_for

# Four windows one after the other.
SLOW = SIMULATED | {"WHISPER_SIMULATED": "clip_ms=800,batch=1", "WHISPER_CPU_WORKERS": 1}
FAST = SIMULATED | {"WHISPER_SIMULATED": "clip_ms=1", "WHISPER_CPU_WORKERS": 1}
LOST = "spans are lost"
MODULES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http", "app.telemetry.otlp")


def check_cancelled(server: Server, collector: Collector) -> None:
    """A job that its client deletes is traced until then."""
    job = server.submit(DATA / "talk.flac")["id"]
    wait_for(lambda: server.job(job)["status"] == "running")
    server.client.delete(f"/v1/jobs/{job}")
    [whole] = collector.wait_for("job", job)
    [run] = collector.wait_for("run", job)
    assert whole.attributes["whisperfleet.status"] == "cancelled"
    assert run.attributes["error.type"] == "CancelledError"
    assert not run.failed


@pytest.mark.soak
def test_a_job_goes_on_in_its_trace_after_a_kill(commands: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "service"
    with collecting() as collector:
        server = commands.ready(folder=folder, **SLOW, **collector.settings)
        job = server.submit(DATA / "talk.flac")["id"]
        [request] = collector.wait_for("POST /v1/jobs")
        collector.wait_for("batch", job)
        server.process.kill()
        server.process.wait()
        again = commands.serve(folder=folder, **SLOW, **collector.settings).wait_until_up()
        again.finished(job)
        [whole] = collector.wait_for("job", job)
        [run] = collector.wait_for("run", job)
        spans = collector.of(job)
        check_cancelled(again, collector)
    assert whole.links == run.links == [(request.trace, request.id)]
    assert whole.attributes["whisperfleet.request_id"] == request.attributes["whisperfleet.request_id"]
    before = [span for span in spans if span.name == "batch" and span.end < run.start]
    after = [span for span in spans if span.name == "batch" and span.start > run.start]
    assert before
    assert after
    assert all(whole.holds(span) for span in spans if span.id != whole.id)


@pytest.fixture
def hung() -> Iterator[Event]:
    """Set at the end: collectors that hang go on then."""
    event = Event()
    yield event
    event.set()


@pytest.mark.soak
def test_a_collector_that_hangs_costs_spans_alone(commands: Commands, hung: Event) -> None:
    def hang() -> int:
        hung.wait(60)
        return 200

    with collecting(hang) as collector:
        server = commands.ready(
            **FAST, **collector.settings, OTEL_BSP_MAX_QUEUE_SIZE=20, OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10
        )
        for _ in range(20):
            assert server.post(DATA / "short00.flac").status_code == 200
        assert collector.posts == 1
        server.process.terminate()
        assert server.wait(20) == 0  # the exporter alone would wait for half a minute
        hung.set()
    assert server.stderr.count(LOST) == 1
    assert "Queue full" in server.stderr


def test_a_dead_collector_is_one_line(commands: Commands) -> None:
    url = f"http://me:hunter2@127.0.0.1:{free_port()}"
    settings = OFTEN | {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "PYTHONPROFILEIMPORTTIME": 1}
    server = commands.ready(**FAST, **settings)
    for _ in range(3):
        assert server.post(DATA / "short00.flac").status_code == 200
    wait_for(lambda: LOST in server.stderr)
    server.end()
    assert server.stderr.count(LOST) == 1
    assert "hunter2" not in server.stderr
    for module in MODULES:
        # Once: in the server, not in the processes that decode recordings and find speech.
        assert server.stderr.count(f" {module}\n") == 1


def test_without_a_collector_in_the_settings_nothing_is_imported(commands: Commands) -> None:
    """FastAPI itself imports the interface of OpenTelemetry; that has no exporter and no threads."""
    server = commands.ready(**FAST, PYTHONPROFILEIMPORTTIME=1)
    assert server.post(DATA / "short00.flac").status_code == 200
    assert " app.telemetry.traces\n" in server.stderr
    for module in MODULES:
        assert f" {module}\n" not in server.stderr
