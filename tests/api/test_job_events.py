"""The events of a job, from the start or from where a client was cut off."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from app.api import sse
from app.errors import ClipFailed
from app.jobs.service import JobService
from app.jobs.store import Store
from tests.api.waiting import wait_for

LIVES = {
    "succeeded": ["job.queued", "job.running", "job.progress", "job.succeeded"],
    "failed": ["job.queued", "job.running", "job.progress", "job.failed"],
}


class Told(NamedTuple):
    number: int
    type: str
    job: dict


def told(lines):
    """The events among the lines of a stream."""
    fields = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Told(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}


def follow(site, job, **headers):
    return site.client.stream("GET", f"/v1/jobs/{job}/events", headers=headers)


def events(site, job, **headers):
    """All that a stream tells until it ends."""
    with follow(site, job, **headers) as answer:
        assert answer.status_code == 200
        return list(told(answer.iter_lines()))


@pytest.mark.parametrize("status", LIVES)
def test_a_job_from_its_start_to_its_end(site, status):
    if status == "failed":
        site.service.error = ClipFailed("It failed.")
    job = site.finished(site.submitted())
    all_told = events(site, job["id"])
    assert [event.number for event in all_told] == list(range(1, len(all_told) + 1))
    assert [event.type for event in all_told] == LIVES[status]
    assert [event.job["status"] for event in all_told] == ["queued", "running", "running", status]
    assert all_told[-1].job == job
    done = [event.job["progress"]["done_s"] for event in all_told]
    assert done == sorted(done)


def test_the_stream_is_one_that_browsers_and_proxies_pass_on(site):
    job = site.finished(site.submitted())["id"]
    with follow(site, job) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"


def test_events_come_as_they_happen(site):
    site.service.paused = True
    job = site.submitted()
    with follow(site, job) as answer:
        coming = told(answer.iter_lines())
        assert [next(coming).type for _ in range(3)] == ["job.queued", "job.running", "job.progress"]
        assert site.job(job)["status"] == "running"
        site.service.paused = False
        assert [event.type for event in coming][-1] == "job.succeeded"


def test_every_place_to_go_on_from(site):
    job = site.finished(site.submitted())["id"]
    whole = events(site, job)
    for seen in range(len(whole)):
        assert events(site, job, **{"last-event-id": str(seen)}) == whole[seen:]
    for seen in (len(whole), len(whole) + 1, 2**31 - 1):
        answer = site.client.get(f"/v1/jobs/{job}/events", headers={"last-event-id": str(seen)})
        assert (answer.status_code, answer.content) == (204, b""), "so that an EventSource comes no more"


def test_a_client_that_is_cut_off_again_and_again_sees_each_event_once(site):
    site.service.paused = True
    job = site.submitted()
    wait_for(lambda: site.job(job)["progress"]["done_s"])
    seen = []
    for _ in range(3):
        with follow(site, job, **{"last-event-id": str(seen[-1].number if seen else 0)}) as answer:
            seen.append(next(told(answer.iter_lines())))
    site.service.paused = False
    site.finished(job)
    seen += events(site, job, **{"last-event-id": str(seen[-1].number)})
    assert seen == events(site, job)


@pytest.mark.parametrize("garbage", ["x", "-1", "1.5", "2147483648", "9" * 5000, "1 2", "0x1", "\xff"])
def test_garbage_for_the_last_event(site, garbage):
    job = site.submitted()
    headers = {"last-event-id": garbage.encode("latin-1")}
    answer = site.client.get(f"/v1/jobs/{job}/events", headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "last-event-id")


def test_silence_is_filled_with_heartbeats(site, monkeypatch):
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.05)
    site.service.paused = True
    job = site.submitted()
    wait_for(lambda: site.job(job)["progress"]["done_s"])
    with follow(site, job) as answer:
        lines = answer.iter_lines()
        while not (line := next(lines)).startswith(":"):
            pass
        assert [line, next(lines), next(lines)] == [": heartbeat", "", ": heartbeat"]
        site.service.paused = False
        assert [event.type for event in told(lines)][-1] == "job.succeeded", "which a heartbeat has not cost"


@pytest.mark.parametrize("running", [True, False])
def test_followers_of_a_deleted_job_are_told(site, running):
    site.service.paused = True
    others = [] if running else [site.submitted() for _ in range(site.service.jobs_at_once)]
    job = site.submitted()
    with follow(site, job) as answer:
        coming = told(answer.iter_lines())
        assert next(coming).type == "job.queued"
        if running:
            assert next(coming).type == "job.running"
            assert site.service.started.wait(5)
        assert site.client.delete(f"/v1/jobs/{job}").status_code == 204
        last = list(coming)[-1]
    assert (last.type, last.job["status"]) == ("job.cancelled", "cancelled")
    assert site.client.get(f"/v1/jobs/{job}").status_code == 404
    assert len(site.client.get("/v1/jobs").json()["data"]) == len(others)


def test_many_followers_are_told_the_same(site):
    site.service.paused = True
    job = site.submitted()
    with ThreadPoolExecutor(10) as threads:
        following = [threads.submit(events, site, job) for _ in range(10)]
        wait_for(lambda: len(site.server.server_state.tasks) >= 10)
        site.service.paused = False
        streams = [stream.result() for stream in following]
    assert streams == [events(site, job)] * 10


def test_a_follower_that_leaves_is_forgotten(site):
    site.service.paused = True
    job = site.submitted()
    with follow(site, job) as answer:
        assert next(told(answer.iter_lines())).type == "job.queued"
    wait_for(lambda: not site.server.server_state.tasks)


def test_following_a_job_that_is_deleted_at_that_moment_ends(site, monkeypatch):
    """Between being looked up and being followed."""
    site.service.paused = True
    job = site.submitted()
    follow_job = JobService.follow

    async def late(jobs, followed, after):
        await jobs.delete(followed.id)
        async for event in follow_job(jobs, followed, after):
            yield event

    monkeypatch.setattr(JobService, "follow", late)
    assert events(site, job) == []


def test_a_job_that_is_begun_while_it_is_deleted_is_stopped(site, monkeypatch):
    site.service.paused = True
    ready, cancel = site.service.ready, Store.cancel
    begin, deleting = threading.Event(), asyncio.Event()

    async def ready_late(*arguments):
        begin.set()
        await deleting.wait()
        return await ready(*arguments)

    async def cancel_late(store, job):
        deleting.set()
        while (await store.get(job.id)).status != "running":  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return await cancel(store, job)

    site.service.ready = ready_late
    monkeypatch.setattr(Store, "cancel", cancel_late)
    job = site.submitted()
    assert begin.wait(5)
    assert site.client.delete(f"/v1/jobs/{job}").status_code == 204
    assert site.service.cancelled.is_set() or not site.service.started.is_set()
    assert not site.left_files


def test_a_server_that_stops_ends_its_streams_at_once(serve):
    """Whole, so that the client knows to come again, and before answers under way run out of time."""
    site = serve()
    site.service.paused = True
    job = site.submitted()
    site.server.config.timeout_graceful_shutdown = 60
    with follow(site, job) as answer:
        coming = told(answer.iter_lines())
        assert next(coming).type == "job.queued"
        site.server.should_exit = True
        assert all(event.type in ("job.running", "job.progress") for event in coming)


def test_a_server_that_stops_takes_no_more_jobs(site, monkeypatch):
    submit = JobService.submit

    async def late(jobs, submission):
        jobs.close_to_clients()
        try:
            return await submit(jobs, submission)
        finally:
            jobs._stopping = False

    monkeypatch.setattr(JobService, "submit", late)
    answer = site.submit()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
    assert not site.left_files
