"""The events of a job: from the start, and resumed after a disconnect."""

import asyncio
import json
import threading
from typing import NamedTuple

import pytest

from app.api.http import event_streams as sse
from app.common.errors import ClipFailed
from app.jobs.service import JobService
from app.jobs.storage.store import Store
from tests.api.waiting import wait_for

TYPES = {
    "succeeded": ["job.queued", "job.running", "job.progress", "job.succeeded"],
    "failed": ["job.queued", "job.running", "job.progress", "job.failed"],
}


class Event(NamedTuple):
    number: int
    type: str
    job: dict


def parse(lines):
    """The events in the lines of a stream."""
    fields = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}


def follow(site, job, **headers):
    return site.client.stream("GET", f"/v1/jobs/{job}/events", headers=headers)


def events(site, job, **headers):
    """All events of a stream, once it has ended."""
    with follow(site, job, **headers) as response:
        assert response.status_code == 200
        return list(parse(response.iter_lines()))


@pytest.fixture
def done_job(site):
    return site.finished(site.submitted())["id"]


@pytest.mark.parametrize("status", TYPES)
def test_events_of_a_job_from_start_to_end(site, status):
    if status == "failed":
        site.service.error = ClipFailed("It failed.")
    job = site.finished(site.submitted())
    all_events = events(site, job["id"])
    assert [event.number for event in all_events] == list(range(1, len(all_events) + 1))
    assert [event.type for event in all_events] == TYPES[status]
    assert [event.job["status"] for event in all_events] == ["queued", "running", "running", status]
    assert all_events[-1].job == job
    done = [event.job["progress"]["done_s"] for event in all_events]
    assert done == sorted(done)


def test_headers_keep_proxies_from_buffering(site, done_job):
    with follow(site, done_job) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"


def test_events_arrive_as_they_happen(site):
    site.service.paused = True
    job = site.submitted()
    with follow(site, job) as response:
        upcoming = parse(response.iter_lines())
        assert [next(upcoming).type for _ in range(3)] == ["job.queued", "job.running", "job.progress"]
        assert site.job(job)["status"] == "running"
        site.service.paused = False
        assert [event.type for event in upcoming][-1] == "job.succeeded"


def test_resume_after_every_event(site, done_job):
    everything = events(site, done_job)
    for seen in range(len(everything)):
        assert events(site, done_job, **{"last-event-id": str(seen)}) == everything[seen:]
    for seen in (len(everything), len(everything) + 1, 2**31 - 1):
        response = site.client.get(f"/v1/jobs/{done_job}/events", headers={"last-event-id": str(seen)})
        assert (response.status_code, response.content) == (204, b""), "so an EventSource does not reconnect"


@pytest.mark.parametrize("garbage", ["x", "-1", "1.5", "2147483648", "9" * 5000, "1 2", "0x1", "\xff"])
def test_invalid_last_event_ids(site, garbage):
    job = site.submitted()
    headers = {"last-event-id": garbage.encode("latin-1")}
    response = site.client.get(f"/v1/jobs/{job}/events", headers=headers)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "last-event-id")


def test_heartbeats_while_there_are_no_events(site, monkeypatch):
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.05)
    site.service.paused = True
    job = site.submitted()
    wait_for(lambda: site.job(job)["progress"]["done_s"])
    with follow(site, job) as response:
        lines, seen = response.iter_lines(), []
        while seen[-3:] != [": heartbeat", "", ": heartbeat"]:
            seen.append(next(lines))
        site.service.paused = False
        assert [event.type for event in parse(lines)][-1] == "job.succeeded", (
            "a heartbeat must not lose an event"
        )


@pytest.mark.parametrize("running", [True, False])
def test_deleting_a_job_publishes_its_cancellation(site, running):
    site.service.paused = True
    others = [] if running else [site.submitted() for _ in range(site.service.fleet.jobs_at_once)]
    job = site.submitted()
    with follow(site, job) as response:
        upcoming = parse(response.iter_lines())
        assert next(upcoming).type == "job.queued"
        if running:
            assert next(upcoming).type == "job.running"
            assert site.service.started.wait(5)
        assert site.client.delete(f"/v1/jobs/{job}").status_code == 204
        last = list(upcoming)[-1]
    assert (last.type, last.job["status"]) == ("job.cancelled", "cancelled")
    assert site.client.get(f"/v1/jobs/{job}").status_code == 404
    assert len(site.client.get("/v1/jobs").json()["data"]) == len(others)


def test_disconnect_ends_the_stream(site):
    site.service.paused = True
    job = site.submitted()
    with follow(site, job) as response:
        assert next(parse(response.iter_lines())).type == "job.queued"
    wait_for(lambda: not site.server.server_state.tasks)


def test_stream_of_a_job_that_is_deleted_meanwhile_ends(site, monkeypatch):
    """Deleted after the look-up and before the subscription."""
    site.service.paused = True
    job = site.submitted()
    follow_job = JobService.subscribe

    async def late(jobs, followed, after):
        await jobs.delete(followed.id)
        async for event in follow_job(jobs, followed, after):
            yield event

    monkeypatch.setattr(JobService, "subscribe", late)
    assert events(site, job) == []


def test_job_that_starts_while_it_is_deleted_is_cancelled(site, monkeypatch):
    site.service.paused = True
    ready, cancel = site.service.fleet.ready, Store.cancel
    starting, deleting = threading.Event(), asyncio.Event()

    async def ready_late(*arguments):
        starting.set()
        await deleting.wait()
        return await ready(*arguments)

    async def cancel_late(store, job):
        deleting.set()
        while (await store.get(job.id)).status != "running":  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return await cancel(store, job)

    site.service.fleet.ready = ready_late
    monkeypatch.setattr(Store, "cancel", cancel_late)
    job = site.submitted()
    assert starting.wait(5)
    assert site.client.delete(f"/v1/jobs/{job}").status_code == 204
    assert site.service.cancelled.is_set() or not site.service.started.is_set()
    assert not site.left_files


def test_stopping_the_server_ends_streams_at_once(serve, tmp_path):
    """Ended cleanly, so clients reconnect, and before the timeout of running requests."""
    site = serve(data_dir=tmp_path)
    site.service.paused = True
    job = site.submitted()
    site.server.config.timeout_graceful_shutdown = 60
    with follow(site, job) as response:
        upcoming = parse(response.iter_lines())
        assert next(upcoming).type == "job.queued"
        site.server.should_exit = True
        assert all(event.type in ("job.running", "job.progress") for event in upcoming)


def test_stopping_server_accepts_no_jobs(site, monkeypatch):
    submit = JobService.submit

    async def late(jobs, *submission):
        jobs.begin_shutdown()
        try:
            return await submit(jobs, *submission)
        finally:
            jobs._stopping = False

    monkeypatch.setattr(JobService, "submit", late)
    response = site.submit()
    assert (response.status_code, response.json()["error"]["code"]) == (503, "not_ready")
    assert not site.left_files
