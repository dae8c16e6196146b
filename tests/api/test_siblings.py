"""Two server processes of one service: each answers for both."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from app.api.operation import worker_events
from app.engines.ledger import Block, JobName
from app.live.events import Agreed
from app.pool.tasks import Outcome, SlotStatus
from app.server.listening import STREAM_PATH
from app.server.siblings import Siblings
from app.settings import Settings
from tests.api.conftest import Site, serve_site
from tests.api.fake_live import FakeLiveService
from tests.api.waiting import wait_for

KEYS = ("ann:sk-ann", "bob:sk-bob", "root:sk-root:operator")
OPERATOR = {"Authorization": "Bearer sk-root"}
AUDIO = base64.b64encode(b"\1\0" * 2400).decode()


class Pair:
    """The second process has the worker 1."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        (folder / "shared").mkdir()
        self.first, self.second = self.start("a"), self.start("b")
        fleet = self.second.service.fleet
        fleet.row = {"slot": 1}
        fleet.slot_statuses = lambda: {1: SlotStatus("idle")}  # type: ignore[method-assign]

    def start(self, name: str) -> Site:
        siblings = Siblings(self.folder / "shared", name, ["b" if name == "a" else "a"])
        settings = Settings(
            data_dir=self.folder / name, api_keys=KEYS, processes=2, max_uploads=9, _env_file=None
        )
        return self._stack.enter_context(serve_site(settings, siblings))


@pytest.fixture(scope="module")
def live() -> Iterator[FakeLiveService]:
    made = FakeLiveService(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.main.LiveService", lambda service: made)
        yield made


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, live: FakeLiveService) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(tmp_path_factory.mktemp("pair"), stack)


def samples(site: Site, name: str) -> dict[str, float]:
    """The samples of a metric without labels of its own, by process."""
    text = site.client.get("/metrics", headers=OPERATOR).raise_for_status().text
    [family] = [
        found for found in text_string_to_metric_families(text) if found.name == f"whisperfleet_{name}"
    ]
    return {sample.labels.get("front_end", ""): sample.value for sample in family.samples}


def test_the_socket_is_for_the_user_alone(pair: Pair) -> None:
    folder = pair.folder / "shared" / "front_ends"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600, 0o600]


def test_metrics_are_those_of_both_processes_and_what_they_share_is_there_once(pair: Pair) -> None:
    pair.second.service.fleet.waiting = (7, 1.5)
    for site in (pair.first, pair.second):
        assert samples(site, "queued_clips") == {"a": 0.0, "b": 7.0}
        assert samples(site, "disk_free_bytes").keys() == {""}


def test_workers_are_those_of_both_processes(pair: Pair) -> None:
    for site in (pair.first, pair.second):
        rows = site.client.get("/v1/workers", headers=OPERATOR).raise_for_status().json()["data"]
        assert [(row["slot"], row["front_end"]) for row in rows] == [(0, "a"), (1, "b")]


def test_a_client_follows_the_workers_of_both(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_events, "_TICK_S", 0.02)
    pair.second.service.fleet.waiting = (7, 1.5)
    ledger = pair.second.service.fleet.ledger
    with pair.first.client.stream("GET", "/v1/workers/events", headers=OPERATOR) as response:
        events = (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: "))
        fleet = next(events)
        assert [row["slot"] for row in fleet["workers"]] == [0, 1]
        assert fleet["queue"]["clips"] == 7
        clips = {JobName("job", "9b2e"): 2, JobName("request", "77"): 1}
        ledger._enter(1, clips, 1e9, 1e9 + 1, 8.0, Outcome.OK)
        block = next(event for event in events if "blocks" in event)["blocks"][0]
        assert block == Block(1, 1, clips, 1e9, 1e9 + 1, 8.0, Outcome.OK).public()
        pair.second.service.fleet.waiting = (9, 1.5)
        assert next(events)["queue"]["clips"] == 9, "and no block twice"


def test_a_process_that_is_gone_is_left_out(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pair = Pair(tmp_path, stack)
        pair.second.server.should_exit = True
        wait_for(lambda: samples(pair.first, "queued_clips").keys() == {"a"})
        rows = pair.first.client.get("/v1/workers", headers=OPERATOR).json()["data"]
        assert [row["front_end"] for row in rows] == ["a"]


def test_limits_are_divided(pair: Pair) -> None:
    limit = pair.first.admission.uploads._limit
    assert (limit.total, limit.setting) == (4, "1/2 of WHISPER_MAX_UPLOADS")


def test_connections_are_accepted_while_the_process_is_ready_or_none_is(pair: Pair) -> None:
    def accepts(site: Site) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", site.port), 1) as connection:
            connection.settimeout(0.3)
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(12) == b"HTTP/1.1 200"
        return False

    assert accepts(pair.second)
    pair.second.service.fleet.reason = "the model is being loaded"
    wait_for(lambda: not accepts(pair.second))
    pair.first.service.fleet.reason = "the model is being loaded"
    wait_for(lambda: accepts(pair.second) and accepts(pair.first))
    pair.second.service.fleet.reason = pair.first.service.fleet.reason = None


@contextmanager
def stream(site: Site, query: str = "", key: str = "sk-ann") -> Iterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {key}"}
    url = f"ws://127.0.0.1:{site.port}{STREAM_PATH}{query}"
    with connect(url, proxy=None, additional_headers=headers) as connection:
        yield connection


def received(client: ClientConnection) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(client.recv(5))
    return event


def broken_stream(site: Site) -> tuple[str, str]:
    """A stream whose connection broke: its id, and its last event."""
    with stream(site) as client:
        created = received(client)
        client.send(json.dumps({"type": "input_audio_buffer.append", "audio": AUDIO}))
        client.socket.shutdown(socket.SHUT_RDWR)
    return created["session"]["id"], created["event_id"]


def test_a_live_stream_goes_on_by_way_of_another_process(pair: Pair, live: FakeLiveService) -> None:
    session, seen = broken_stream(pair.second)
    query = f"?session={session}&last_event_id={seen}"
    with stream(pair.first, query) as client:
        assert received(client)["session"]["id"] == session
        live.streams[-1].tell(Agreed(0, " word"))
        assert received(client)["delta"] == " word"
        client.send(json.dumps({"type": "input_audio_buffer.append", "audio": AUDIO}))
        wait_for(lambda: len(live.streams[-1].audio) == 9600)
        client.socket.shutdown(socket.SHUT_RDWR)  # again: the stream still waits
    with stream(pair.first, query) as client:
        received(client)
    with pytest.raises(InvalidStatus) as refused, stream(pair.first, query):
        pass
    error = json.loads(refused.value.response.body)["error"]
    assert (refused.value.response.status_code, error["code"]) == (404, "stream_not_found"), "it was closed"


@pytest.mark.parametrize(
    ("key", "event", "status", "code"),
    [("sk-bob", "", 404, "stream_not_found"), ("sk-ann", "event_99", 400, None)],
)
def test_a_live_stream_that_is_refused(
    pair: Pair, key: str, event: str, status: int, code: str | None
) -> None:
    session, _ = broken_stream(pair.second)
    query = f"?session={session}&last_event_id={event}"
    with pytest.raises(InvalidStatus) as refused, stream(pair.first, query, key):
        pass
    answer = refused.value.response
    assert (answer.status_code, json.loads(answer.body)["error"]["code"]) == (status, code)


def test_an_owner_is_withdrawn_from_both_processes(pair: Pair) -> None:
    with stream(pair.second) as client:
        received(client)
        answer = pair.first.client.post("/v1/owners/ann/withdraw", headers=OPERATOR)
        assert answer.status_code == 204, answer.text
        with pytest.raises(ConnectionClosed):
            client.recv(5)
        assert client.close_code == 1008


def test_a_process_that_does_not_answer_a_withdrawal_is_an_error(pair: Pair) -> None:
    path = Siblings(pair.folder / "shared", "a", ["b"]).path("c")
    pair.first.server._siblings.others = ("b", "c")  # type: ignore[attr-defined]
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        threading.Thread(target=lambda: silent.accept()[0].close()).start()
        answer = pair.first.client.post("/v1/owners/ann/withdraw", headers=OPERATOR)
    pair.first.server._siblings.others = ("b",)  # type: ignore[attr-defined]
    assert answer.status_code == 503


def test_a_long_path_of_a_folder_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    one = Siblings(folder, "one", ["two"])
    with one.listen() as listener:
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(Siblings(folder, "two", ["one"]).path("one"))
        one.listen().close()  # as after a kill
