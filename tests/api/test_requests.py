"""The log lines of requests."""

import structlog
from structlog.testing import capture_logs

from tests.api.waiting import wait_for


def test_one_line_for_each_request(site):
    with capture_logs() as lines:
        site.client.post("/v1/models?secret=1", headers={"x-request-id": "mine"})
        site.client.get("/nowhere")
        wait_for(lambda: len(lines) == 2)  # a line is written after its response
    (first, second) = [line for line in lines if line["event"] == "request"]
    assert first.pop("ms") >= 0
    assert first == {
        "event": "request",
        "log_level": "info",
        "method": "POST",
        "path": "/v1/models",
        "status": 405,
        "client": "127.0.0.1",
        "request_id": "mine",
    }
    assert (second["status"], second["log_level"]) == (404, "info")


def test_probes_and_pollers_are_logged_at_debug_level(site):
    with capture_logs() as lines:
        site.client.get("/health")
        site.client.get("/v1/workers")
        wait_for(lambda: len(lines) == 2)
    assert [line["log_level"] for line in lines] == ["debug", "debug"]


def test_log_lines_of_a_request_have_its_id(site):
    seen = {}
    site.service.fleet.workers = lambda: seen.update(structlog.contextvars.get_contextvars()) or []
    site.client.get("/v1/workers", headers={"x-request-id": "mine"})
    assert seen["request_id"] == "mine"


def test_unexpected_errors_are_logged_with_a_traceback(site):
    site.service.error = RuntimeError("boom")
    with capture_logs() as lines:
        site.transcribe()
    (line,) = [line for line in lines if line["event"] == "unexpected error"]
    assert line["exc_info"]
