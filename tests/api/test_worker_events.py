"""The events of the workers over HTTP: who gets them, how many streams, and when they end."""

import asyncio
import json
import time
from contextlib import ExitStack, contextmanager

import pytest

from app.api.http import event_streams as sse
from app.api.operation import worker_events
from app.api.operation.other_fleets import OtherFleets
from app.api.operation.worker_events import WorkerEvents
from app.common.errors import DatabaseUnavailable
from app.engines.ledger import Block, JobName
from app.jobs.storage.store import Store
from app.live.metrics import LiveMetrics
from app.pool.tasks import Outcome
from app.server.siblings import Siblings
from app.settings import Settings
from tests.api.fake_service import FakeService
from tests.api.waiting import wait_for

PATH = "/v1/workers/events"


def parse(lines):
    """The names and data of the events in the lines of a stream."""
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


@contextmanager
def following(site, **headers):
    with site.client.stream("GET", PATH, headers=headers) as response:
        assert response.status_code == 200, response.read()
        yield parse(response.iter_lines())


def add_block(service, outcome=Outcome.OK):
    """Let the service have finished a batch."""
    ledger, now = service.fleet.ledger, time.time()
    ledger.last_block += 1
    ledger._blocks.append(
        Block(ledger.last_block, 0, {JobName("job", "9b2e"): 2}, now - 1, now, 8.0, outcome)
    )


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(worker_events, "_TICK_S", 0.02)
    monkeypatch.setattr(worker_events, "_COUNT_S", 0.02)


def test_a_snapshot_comes_first(site):
    add_block(site.service)
    site.service.fleet.waiting = (7, 12.34)
    with following(site) as events:
        name, fleet = next(events)
    assert name == "fleet"
    assert abs(fleet.pop("time") - time.time()) < 60
    [block] = fleet.pop("blocks")
    assert (block["id"], block["jobs"]) == (1, [{"job": "9b2e", "kind": "job", "clips": 2}])
    assert fleet == {
        "workers": site.service.fleet.workers(),
        "queue": {"clips": 7, "oldest_s": 12.3, "jobs": 0, "streams": 0},
    }


def test_changes_follow(site):
    with following(site) as events:
        next(events)
        site.service.fleet.row = {"state": "restarting", "error": "process 4711 crashed"}
        name, data = next(events)
        assert (name, data["workers"]) == ("workers", site.service.fleet.workers())
        add_block(site.service, Outcome.REQUEUED)
        name, data = next(events)
        assert (name, [block["outcome"] for block in data["blocks"]]) == ("block", ["requeued"])
        site.service.fleet.waiting = (3, 0.5)
        name, data = next(events)
        assert (name, data["queue"]) == ("queue", {"clips": 3, "oldest_s": 0.5, "jobs": 0, "streams": 0})


def test_jobs_that_wait_are_counted(site):
    site.service.paused = True
    for _ in range(site.service.fleet.jobs_at_once + 2):
        site.submitted()
    wait_for(lambda: len(site.client.get("/v1/jobs?status=queued").json()["data"]) == 2)
    with following(site) as events:
        assert next(events)[1]["queue"]["jobs"] == 2


def test_a_database_that_does_not_answer_leaves_the_rest(site, monkeypatch):
    async def gone(store, statuses, owner=None):
        raise DatabaseUnavailable("The service's database does not respond.")

    monkeypatch.setattr(Store, "count", gone)
    with following(site) as events:
        fleet = next(events)[1]
    assert (fleet["queue"]["jobs"], len(fleet["workers"])) == (None, 1)


def test_all_clients_get_the_same(site):
    with ExitStack() as stack:
        streams = [stack.enter_context(following(site)) for _ in range(3)]
        snapshots = [next(events)[1] for events in streams]
        assert [fleet["workers"] for fleet in snapshots] == [site.service.fleet.workers()] * 3
        add_block(site.service)
        first, *others = [next(events) for events in streams]
        assert others == [first] * 2
        # One that comes later starts from there.
        late = stack.enter_context(following(site))
        assert [block["id"] for block in next(late)[1]["blocks"]] == [1]
        site.service.fleet.row = {"state": "failed"}
        assert {next(events)[0] for events in [*streams, late]} == {"workers"}


def test_headers_and_heartbeats(site, monkeypatch):
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.05)
    with site.client.stream("GET", PATH) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["x-accel-buffering"] == "no"
        lines, seen = response.iter_lines(), []
        while seen[-3:] != [": heartbeat", "", ": heartbeat"]:  # nothing has changed
            seen.append(next(lines))
        assert [line.partition(":")[0] for line in seen if line and line[0] != ":"] == ["event", "data"]


def test_streams_are_limited_with_those_of_jobs(serve):
    site = serve(max_event_streams=2)
    site.service.paused = True
    job = site.submitted()
    with ExitStack() as stack:
        streams = [
            stack.enter_context(site.client.stream("GET", path)).iter_lines()
            for path in (PATH, f"/v1/jobs/{job}/events")
        ]
        assert all(next(lines) for lines in streams)
        refused = site.client.get(PATH)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_event_streams")
    wait_for(lambda: not site.server.server_state.tasks)
    with following(site) as events:
        assert next(events)[0] == "fleet"


def test_a_shutdown_ends_the_stream(serve, tmp_path):
    site = serve(data_dir=tmp_path)
    with following(site) as events:
        next(events)
        began = time.monotonic()
        site.server.should_exit = True
        assert list(events) == []
    assert time.monotonic() - began < 2.5, "the server waits 3 s for open requests before it cuts them"


def test_nobody_is_watched_without_clients(site):
    asked = []
    workers = site.service.fleet.workers
    with following(site) as events:
        next(events)
        site.service.fleet.workers = lambda: asked.append(1) or workers()
        wait_for(lambda: asked)
    wait_for(lambda: not site.server.server_state.tasks)
    asked.clear()
    time.sleep(0.2)
    assert not asked
    del site.service.fleet.workers


def test_workers_have_the_figures_of_their_gpus(site, monkeypatch):
    sampled = []

    async def sample():
        sampled.append(1)

    monkeypatch.setattr(site.service.fleet.gpus, "sample", sample)
    assert site.client.get("/v1/workers").json()["data"] == site.service.fleet.workers()
    assert sampled


# A client that does not read


class Jobs:
    """Stands for the job service."""

    class store:
        @staticmethod
        async def count(statuses):
            return 0


@pytest.fixture
def service(tmp_path):
    return FakeService(Settings(data_dir=tmp_path, _env_file=None))


def new_events(service):
    others = OtherFleets(Siblings(service.settings.data_dir), service.fleet.ledger)
    return WorkerEvents(service.fleet, others, Jobs, LiveMetrics())


@pytest.mark.anyio
@pytest.mark.timeout(20)
async def test_a_slow_client_gets_a_new_snapshot_and_holds_nobody_up(service):
    events = new_events(service)
    slow, quick = events.stream(), events.stream()
    assert (await anext(slow)).startswith("event: fleet\n")
    assert (await anext(quick)).startswith("event: fleet\n")
    for number in range(100):
        service.fleet.row = {"state": f"state {number}"}
        async with asyncio.timeout(5):
            assert f'"state {number}"' in await anext(quick)
    assert sum(len(mailbox._events) for mailbox in events._mailboxes) <= worker_events._MOST_WAITING
    again = await anext(slow)
    assert again.startswith("event: fleet\n")
    assert '"state 99"' in again
    service.fleet.row = {"state": "idle"}
    assert (await anext(slow)).startswith("event: workers\n")
    await slow.aclose()
    await quick.aclose()
    assert not events._mailboxes
    assert not events._loops


@pytest.mark.anyio
@pytest.mark.timeout(20)
async def test_a_long_history_is_one_event(service, monkeypatch):
    monkeypatch.setattr(worker_events, "_BLOCKS_AT_ONCE", 3)
    for _ in range(10):
        add_block(service)
    stream = new_events(service).stream()
    event = await anext(stream)
    await stream.aclose()
    assert event.count("\n\n") == 1
    [(name, fleet)] = parse(event.splitlines())
    assert (name, [block["id"] for block in fleet["blocks"]]) == ("fleet", list(range(1, 11)))


@pytest.mark.anyio
@pytest.mark.timeout(20)
async def test_what_changes_while_a_snapshot_is_sent_follows_it(service, monkeypatch):
    monkeypatch.setattr(worker_events, "_BLOCKS_AT_ONCE", 1)
    events = new_events(service)
    first = events.stream()
    await anext(first)
    for _ in range(50):
        add_block(service)
    await anext(first)  # the blocks
    second = events.stream()
    snapshot = asyncio.create_task(anext(second))
    while len(events._mailboxes) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert not snapshot.done(), "it is being encoded"
    add_block(service)
    assert events._state is not None
    events._publish(events._state)
    [(_, fleet)] = parse((await snapshot).splitlines())
    assert [block["id"] for block in fleet["blocks"]] == list(range(1, 51))
    [(name, data)] = parse((await anext(second)).splitlines())
    assert (name, [block["id"] for block in data["blocks"]]) == ("block", [51])
    await first.aclose()
    await second.aclose()


@pytest.mark.anyio
@pytest.mark.timeout(20)
async def test_a_fault_in_one_round_does_not_end_the_events(service):
    events = new_events(service)
    stream = events.stream()
    await anext(stream)
    workers = service.fleet.workers
    faults = []

    def fail_once():
        if not faults:
            faults.append(1)
            raise RuntimeError("a fault")
        return workers()

    service.fleet.workers = fail_once
    service.fleet.row = {"state": "failed"}
    async with asyncio.timeout(5):
        assert '"failed"' in await anext(stream)
    assert faults
    await stream.aclose()
