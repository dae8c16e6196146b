"""What Prometheus reads: values, labels that clients cannot choose, and figures that are missing."""

import json
import re
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from starlette.routing import Route

from app.api.operation.metric_list import METRICS, PREFIX
from app.common.errors import InvalidInput
from app.engines.gpu_usage import GpuMonitor, GpuSample
from app.jobs.webhooks.delivery import Attempt
from app.pool.tasks import STATES, Outcome, RestartReason, SlotStatus
from app.server.requests import OTHER, UNMATCHED, RequestCounts
from app.telemetry import sampler
from app.telemetry.sampler import Sampler
from tests.api.conftest import FORM, FORM_END, form
from tests.api.waiting import wait_for

KEY = {"Authorization": "Bearer sk-first"}


def families(site, **headers):
    """The metrics as Prometheus' own parser for Python reads them, by name without the prefix."""
    answer = site.client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def values(site, name, **headers):
    """The samples of a metric: the values of its labels in the order of the list, and the number."""
    metric = next(metric for metric in METRICS if metric.name == name)
    family = families(site, **headers)[PREFIX + name.removesuffix("_total")]
    return {tuple(sample.labels[label] for label in metric.labels): sample.value for sample in family.samples}


def counts_of(site):
    """The counts of a site's requests."""
    every = [middleware.kwargs for middleware in site.server.config.app.user_middleware]
    return next(kwargs["counts"] for kwargs in every if "counts" in kwargs)


@pytest.fixture
def fresh(serve, tmp_path):
    """A site whose counters nobody has used."""
    return serve(data_dir=tmp_path)


def test_the_names_kinds_and_labels_are_those_of_the_list(site, monkeypatch):
    monkeypatch.setattr(site.service.budgets, "_shows_owners", True)
    site.service.fleet.gpus = GpuMonitor(["GPU-aa"], lambda names: [GpuSample(1, 2, 0.5)])
    site.service.fleet.on_nodes = Counter({("gpu-1", "busy"): 1})
    site.client.get("/v1/jobs")
    found = families(site)
    site.service.fleet.on_nodes.clear()
    expected = {PREFIX + metric.name.removesuffix("_total"): metric for metric in METRICS}
    assert found.keys() == expected.keys()
    for name, metric in expected.items():
        family = found[name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        assert family.samples, "no example of it"
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == set(metric.labels)
        for label, known in metric.labels.items():
            assert not known or {sample.labels[label] for sample in family.samples} == set(known)


def test_the_list_is_as_prometheus_recommends():
    for metric in METRICS:
        assert re.fullmatch("[a-z][a-z0-9_]*", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.help.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_the_key_is_needed_where_there_are_keys(serve):
    site = serve(api_keys=("sk-first", "sk-second"))
    refused = site.client.get("/metrics")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert "whisperfleet_" not in refused.text
    assert values(site, "build_info", **KEY)
    # What was refused is counted, too, under its endpoint.
    assert values(site, "http_requests_total", **KEY)["GET", "/metrics", "401"] == 1


def test_requests_by_endpoint(fresh):
    job = fresh.submitted()
    fresh.finished(job)
    for _ in range(3):
        fresh.client.get(f"/v1/jobs/{job}/result")
    fresh.client.get("/v1/jobs/nothing")
    fresh.client.get("/web/page.css")
    fresh.client.put("/v1/jobs")
    fresh.client.get("/v1/jobs/../../etc/passwd?x=1")
    counted = values(fresh, "http_requests_total")
    assert counted["POST", "/v1/jobs", "202"] == 1
    assert counted["GET", "/v1/jobs/{job_id}/result", "200"] == 3
    assert counted["GET", "/v1/jobs/{job_id}", "404"] == 1
    assert counted["GET", "/web/{name}", "404"] == 1
    assert counted["PUT", UNMATCHED, "405"] == 1
    assert counted["GET", UNMATCHED, "404"] == 1
    seconds = families(fresh)["whisperfleet_http_request_seconds"].samples
    counts = {
        (sample.labels["method"], sample.labels["route"]): sample.value
        for sample in seconds
        if sample.name.endswith("_count")
    }
    assert counts["GET", "/v1/jobs/{job_id}/result"] == 3
    assert sum(counts.values()) == sum(counted.values()) + 1, "the scrape before has ended since"


def test_every_documented_endpoint_is_known(site):
    document = json.loads(site.client.get("/openapi.json").text)
    counts = counts_of(site)
    for path, methods in document["paths"].items():
        example = re.sub(r"\{\w+\}", "x", path)
        for method in methods:
            before = counts.requests.copy()
            counts.add(method.upper(), example, 200, 0.1)
            [(_, route, _)] = counts.requests - before
            assert route == re.sub(r":\w+\}", "}", path)
    counts.requests.clear()


def test_a_proxy_that_adds_a_prefix_changes_no_endpoint(serve):
    site = serve(root_path="/whisper")
    site.client.get("/v1/models")
    assert values(site, "http_requests_total")["GET", "/v1/models", "200"] == 1


async def endpoint(request):
    raise AssertionError("the routes are only counted, never asked")


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.integers(100, 599)), max_size=9))
def test_clients_cannot_add_label_values(requests):
    counts = RequestCounts()
    counts.add_routes([Route("/v1/jobs/{id}", endpoint, methods=["GET", "PUT"])])
    for method, path, status in requests:
        counts.add(method, path, status, 0.1)
        counts.add("GET", f"/v1/jobs/{path}", status, 0.1)
    assert {route for _, route, _ in counts.requests} <= {"/v1/jobs/{id}", UNMATCHED}
    methods = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", OTHER}
    assert {method for method, _, _ in counts.requests} <= methods


def test_an_event_stream_counts_when_it_begins(fresh):
    with fresh.client.stream("GET", "/v1/workers/events") as events:
        next(events.iter_lines())
        assert values(fresh, "http_requests_total") == {("GET", "/v1/workers/events", "200"): 1}
        samples = families(fresh)["whisperfleet_http_request_seconds"].samples
        count = sum(sample.value for sample in samples if sample.name.endswith("_count"))
        assert count == 2  # the stream, which is open, and the look at the metrics before
    counts = counts_of(fresh)
    wait_for(lambda: not fresh.server.server_state.tasks)
    assert counts.requests["GET", "/v1/workers/events", "200"] == 1, "not again at its end"


def test_a_client_that_leaves_before_the_answer_has_status_499_and_no_time(fresh):
    fresh.service.paused = True
    body = form(model="whisper-1") + FORM_END
    with fresh.begin("POST /v1/audio/transcriptions", body, **FORM):
        assert fresh.service.started.wait(5)
    assert fresh.service.cancelled.wait(5)
    counts = counts_of(fresh)
    wait_for(lambda: counts.requests["POST", "/v1/audio/transcriptions", "499"])
    assert ("POST", "/v1/audio/transcriptions") not in counts.seconds


def test_jobs_by_status(site):
    first = site.submitted()
    site.finished(first)
    site.service.paused = True
    site.submitted()
    wait_for(lambda: values(site, "jobs")["running",] == 1)
    assert values(site, "jobs")["succeeded",] == 1
    site.client.delete(f"/v1/jobs/{first}")
    assert values(site, "jobs")["succeeded",] == 0


def test_workers_of_a_cluster_have_a_node(fresh):
    fresh.service.fleet.on_nodes = Counter(
        {("gpu-1", "busy"): 2, ("gpu-1", "idle"): 1, ("gpu-2", "loading"): 1}
    )
    found = values(fresh, "node_workers")
    assert len(found) == 2 * len(STATES)
    assert {labels: count for labels, count in found.items() if count} == fresh.service.fleet.on_nodes


def test_the_queue_the_workers_and_what_they_have_done(fresh):
    service = fresh.service
    service.fleet.waiting, service.media.pool.busy_ratio = (7, 12.5), 0.25
    failed = SlotStatus("failed")
    failed.restarts_by[RestartReason.DEVICE] += 3
    service.fleet.statuses = [SlotStatus("busy"), failed]
    service.fleet.ledger.clips[1, Outcome.REQUEUED] += 4
    service.fleet.ledger.samples["tiny"] += 16_000 * 90
    for clips in (1, 8, 8):
        service.fleet.ledger.batch_clips.add(clips)
    assert values(fresh, "queued_clips") == {(): 7}
    assert values(fresh, "queue_oldest_seconds") == {(): 12.5}
    assert values(fresh, "media_busy_ratio") == {(): 0.25}
    assert values(fresh, "audio_seconds_total")["tiny",] == 90
    states = values(fresh, "worker_state")
    assert {labels for labels, is_so in states.items() if is_so} == {("0", "busy"), ("1", "failed")}
    assert len(states) == 2 * len(STATES), "the others are 0, so that averages over time are right"
    restarts = values(fresh, "worker_restarts_total")
    assert (restarts["1", "device"], sum(restarts.values())) == (3, 3)
    assert values(fresh, "clips_total")["1", "requeued"] == 4
    buckets = families(fresh)["whisperfleet_batch_clips"].samples
    counted = {sample.labels["le"]: sample.value for sample in buckets if "le" in sample.labels}
    assert (counted["1.0"], counted["4.0"], counted["8.0"], counted["+Inf"]) == (1, 1, 3, 3)


def test_a_service_without_workers_yet(site):
    site.service.fleet.statuses = []
    assert values(site, "worker_state") == {}
    assert values(site, "queued_clips") == {(): 0}


def test_gpus_by_name_and_those_that_nvml_does_not_know(site):
    usages = [GpuSample(1_000, 80_000, 0.25), GpuSample(1_000, 80_000, 0.25), None, GpuSample(3, 9, None)]
    calls = []

    def read(names):
        calls.append(names)
        return usages

    site.service.fleet.gpus = GpuMonitor(["GPU-aa", "GPU-aa", "GPU-bb", "MIG-1"], read)
    assert values(site, "gpu_memory_bytes") == {
        ("GPU-aa", "used"): 1_000,
        ("GPU-aa", "total"): 80_000,
        ("MIG-1", "used"): 3,
        ("MIG-1", "total"): 9,
    }
    assert values(site, "gpu_utilisation_ratio") == {("GPU-aa",): 0.25}
    for _ in range(5):
        families(site)
    assert len(calls) == 1, "scrapes that follow each other share the figures"


def test_uploads_in_progress(site):
    with site.begin("POST /v1/jobs", b"RIFF", length=1000, content_type="audio/wav"):
        wait_for(lambda: values(site, "uploads_in_progress") == {(): 1})
    wait_for(lambda: values(site, "uploads_in_progress") == {(): 0})


def test_outcomes_of_webhooks_begin_at_0(fresh):
    assert values(fresh, "webhook_deliveries_total") == {(attempt.value,): 0 for attempt in Attempt}


def test_a_disk_that_hangs_holds_nobody_up(site, monkeypatch):
    monkeypatch.setattr(sampler, "_PATIENCE_S", 0.05)
    disk, answers = site.service.media.folder.disk, threading.Event()
    assert values(site, "disk_free_bytes")[()] > 0
    monkeypatch.setattr(disk, "free_bytes", Sampler("the disk", "statvfs", lambda: answers.wait(30) and 1))
    try:
        for _ in range(3):
            assert values(site, "disk_free_bytes") == {}
        assert site.client.get("/health").status_code == 200
    finally:
        answers.set()


@pytest.mark.parametrize("fault", [OSError("stale file handle"), None])
def test_a_disk_that_does_not_say(site, monkeypatch, fault):
    def read():
        if fault is not None:
            raise fault

    monkeypatch.setattr(site.service.media.folder.disk, "free_bytes", Sampler("the disk", "statvfs", read))
    assert values(site, "disk_free_bytes") == {}


def test_live_streams(fresh):
    live = fresh.server.config.app.state.live.metrics
    live.open = 3
    live.drafts_dropped += 1
    for delay_s in (0.6, 0.9, 4):
        live.first_words_s.add(delay_s)
    live.final_s.add(0.3)
    assert values(fresh, "live_streams") == {(): 3}
    assert values(fresh, "live_drafts_dropped_total") == {(): 1}
    found = families(fresh)
    for name, first, count in (("first_words", 2, 3), ("final", 1, 1)):
        samples = found[f"whisperfleet_live_{name}_seconds"].samples
        counted = {sample.labels["le"]: sample.value for sample in samples if "le" in sample.labels}
        assert (counted["1.0"], counted["+Inf"]) == (first, count)
    with fresh.client.stream("GET", "/v1/workers/events") as events:
        lines = (line for line in events.iter_lines() if line.startswith("data: "))
        assert json.loads(next(lines).removeprefix("data: "))["queue"]["streams"] == 3


def test_jobs_count_when_they_end(fresh):
    done = fresh.submitted()
    fresh.finished(done)
    fresh.service.error = InvalidInput("The disk has bad sectors.", code="broken_file")
    fresh.finished(fresh.submitted())
    assert values(fresh, "jobs_ended_total") == {("succeeded",): 1, ("failed",): 1, ("cancelled",): 0}
    samples = families(fresh)["whisperfleet_job_seconds"].samples
    assert [sample.value for sample in samples if sample.name.endswith("_count")] == [1]
    fresh.client.delete(f"/v1/jobs/{done}")
    assert values(fresh, "jobs_ended_total")["succeeded",] == 1
