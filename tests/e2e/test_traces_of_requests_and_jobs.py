"""What a collector of traces gets from the real service, and whose ids its log lines have."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.otlp_collector import Collector, Span, collecting
from tests.e2e.fixtures import Commands
from tests.e2e.reading import Talk
from tests.e2e.running import DATA, Server, wait_for

KEY = "the-key-of-a-client"
TRACE = "0af7651916cd43dd8448eb211c80319c"
CLIENT_SPAN = "b7ad6b7169203331"
TRACED = {"traceparent": f"00-{TRACE}-{CLIENT_SPAN}-01"}
FILE = "the-name-of-a-file.flac"


class Traced(NamedTuple):
    server: Server
    collector: Collector

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log so far."""
        return [json.loads(line) for line in self.server.stderr.splitlines()]


@pytest.fixture(scope="module")
def traced(module_commands: Commands) -> Iterator[Traced]:
    settings = {"WHISPER_LOG_LEVEL": "debug", "WHISPER_LOG_FORMAT": "json", "WHISPER_API_KEYS": KEY}
    with collecting() as collector:
        server = module_commands.ready(key=KEY, **settings, **collector.settings)
        yield Traced(server, collector)
        module_commands.end()


def names(spans: list[Span]) -> list[str]:
    return [span.name for span in spans]


def named(spans: list[Span], name: str) -> Span:
    [span] = [span for span in spans if span.name == name]
    return span


def check_batches(spans: list[Span], transcription: Span) -> None:
    """Every batch and every wait lies in the transcription, and what a worker measured in its batch."""
    batches = [span for span in spans if span.name == "batch"]
    waits = [span for span in spans if span.name == "wait for a worker"]
    assert batches
    assert waits
    for span in [*batches, *waits]:
        assert span.parent == transcription.id
        assert transcription.holds(span)
    assert sum(batch.attributes["whisperfleet.windows"] for batch in batches) == len(waits)
    ends = {wait.attributes["whisperfleet.batch"]: wait.end for wait in waits}
    for batch in batches:
        assert batch.attributes["whisperfleet.slot"] in (0, 1)
        assert batch.attributes["whisperfleet.outcome"] == "ok"
        assert ends[batch.attributes["whisperfleet.batch"]] == pytest.approx(batch.start)
        parts = [span for span in spans if span.parent == batch.id]
        assert names(parts)[:2] == ["features", "encode"]
        assert "generate text" in names(parts)
        for part in parts:
            assert batch.holds(part)
            assert part.attributes["whisperfleet.slot"] == batch.attributes["whisperfleet.slot"]


def test_a_request_is_one_trace_down_to_the_worker(traced: Traced, talk: Talk) -> None:
    answer = traced.server.post(talk.path, response_format="srt", headers=TRACED | {"x-request-id": "mine"})
    assert answer.status_code == 200
    traced.collector.wait_for("POST /v1/audio/transcriptions", TRACE)
    spans = traced.collector.of(TRACE)
    request = spans[0]
    assert request.name == "POST /v1/audio/transcriptions"
    assert request.parent == CLIENT_SPAN
    assert request.attributes == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "http.route": "/v1/audio/transcriptions",
        "whisperfleet.request_id": "mine",
    }
    stages = [span for span in spans if span.parent == request.id]
    assert names(stages) == ["receive upload", "transcribe", "render"]
    assert all(before.end <= after.start for before, after in pairwise(stages))
    assert all(request.holds(stage) for stage in stages)
    upload, transcription, rendering = stages
    assert upload.attributes == {"whisperfleet.bytes": talk.path.stat().st_size}
    assert transcription.attributes["whisperfleet.audio_s"] == pytest.approx(62.9, abs=0.1)
    assert rendering.attributes == {"whisperfleet.format": "srt"}
    media = [span for span in spans if span.name in ("decode recording", "detect speech")]
    assert {"decode recording", "detect speech"} == {span.name for span in media}
    assert all(span.parent == transcription.id and transcription.holds(span) for span in media)
    check_batches(spans, transcription)
    assert traced.collector.service == "whisperfleet"


def test_a_job_is_a_trace_of_its_own_linked_to_its_request(traced: Traced, shorts: list[Path]) -> None:
    job = traced.server.submit(shorts[1])
    traced.server.finished(job["id"])
    [whole] = traced.collector.wait_for("job", job["id"])
    spans = traced.collector.of(job["id"])
    requests = traced.collector.wait_for("POST /v1/jobs")
    request = next(span for span in requests if (span.trace, span.id) == whole.links[0])
    assert whole.parent == ""
    assert whole.attributes["whisperfleet.status"] == "succeeded"
    assert whole.attributes["whisperfleet.request_id"] == request.attributes["whisperfleet.request_id"]
    waiting, run = (named(spans, name) for name in ("wait in the queue", "run"))
    assert waiting.parent == run.parent == whole.id
    assert run.links == whole.links
    stages = [span for span in spans if span.parent == run.id]
    assert names(stages) == ["transcribe", "store result"]
    for span in [waiting, run, *stages]:
        assert whole.holds(span)
    assert waiting.end <= run.start
    check_batches(spans, stages[0])


def test_requests_that_fail_say_so_without_the_message(traced: Traced) -> None:
    assert traced.server.post(b"no recording at all", headers=TRACED_ELSEWHERE).status_code == 400
    trace = TRACED_ELSEWHERE["traceparent"].split("-")[1]
    [request] = traced.collector.wait_for("POST /v1/audio/transcriptions", trace)
    assert request.attributes["http.response.status_code"] == 400
    assert not request.failed  # the client's fault
    failed = named(traced.collector.of(trace), "transcribe")
    assert failed.failed
    assert failed.attributes == {"error.type": "InvalidInput"}


TRACED_ELSEWHERE = {"traceparent": f"00-{'5' * 32}-{CLIENT_SPAN}-01"}


def test_polls_are_traced_only_for_clients_that_trace(traced: Traced) -> None:
    client = traced.server.client
    trace = "7" * 32
    client.get("/v1/models")
    client.get("/v1/workers", headers={"traceparent": f"00-{trace}-{CLIENT_SPAN}-01"})
    client.get("/health", headers={"traceparent": f"00-{trace}-{CLIENT_SPAN}-00"})  # not sampled
    client.get("/ready", headers={"traceparent": "nonsense"})
    client.request("INVENTED", "/v1/jobs", headers={"traceparent": f"00-{trace}-{CLIENT_SPAN}-01"})
    wait_for(lambda: len(traced.collector.of(trace)) == 2)
    reading = [span.name for span in traced.collector.spans if span.name.startswith("GET")]
    # A client that sends nonsense has no trace to go on: its request begins one.
    assert set(reading) <= {"GET /v1/workers", "GET /ready"}
    collected = traced.collector.of(trace)
    assert {span.name.split()[0] for span in collected} == {"GET", "_OTHER"}


def test_spans_have_no_names_texts_keys_or_addresses(traced: Traced, tmp_path: Path) -> None:
    recording = tmp_path / FILE
    recording.write_bytes((DATA / "short00.flac").read_bytes())
    fields = {"prompt": "a-secret-prompt", "hotwords": "a-secret-word"}
    text = traced.server.text(recording, **fields)
    job = traced.server.submit(recording, **fields)
    traced.server.finished(job["id"])
    traced.collector.wait_for("job", job["id"])
    traced.server.client.get(f"/v1/jobs/{job['id']}/result?format=txt&signature=hunter2", headers=TRACED)
    traced.collector.wait_for("GET /v1/jobs/{job_id}/result")
    sent = repr([(span.name, span.attributes) for span in traced.collector.spans])
    for secret in (FILE, "a-secret", KEY, "hunter2", str(traced.server.data), *text.split()[:3]):
        assert secret not in sent


def test_lines_of_the_log_have_the_ids_down_to_the_workers(traced: Traced, shorts: list[Path]) -> None:
    traced.server.post(shorts[0], headers={"x-request-id": "mine-too"})
    job = traced.server.submit(shorts[1], headers={"x-request-id": "submits"})
    traced.server.finished(job["id"])
    wait_for(lambda: any(line["event"] == "job succeeded" for line in traced.log()))
    pids = {row["pid"] for row in traced.server.workers()}
    lines = traced.log()

    def events(**ids: str) -> set[str]:
        return {line["event"] for line in lines if ids.items() <= line.items()}

    of_request, of_job = events(request_id="mine-too"), events(request_id="submits", job=job["id"])
    assert {"request", "batch decoded"} <= of_request
    assert {"job submitted", "batch decoded", "job succeeded"} <= of_job
    in_workers = [line for line in lines if line.get("pid") in pids and line["event"].startswith("decoded ")]
    assert {line["request_id"] for line in in_workers} >= {"mine-too", "submits"}
    in_media_workers = [line for line in lines if "pid" in line and line["pid"] not in pids]
    assert {line.get("request_id") for line in in_media_workers} >= {"mine-too", "submits"}
