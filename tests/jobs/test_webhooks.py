"""Webhooks with a receiver on loopback, an outbox in memory, and a clock that the test sets."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpcore
import pytest
from standardwebhooks import Webhook

from app.common.errors import InvalidInput
from app.jobs.webhooks import client, delivery
from app.jobs.webhooks.client import check_webhook_url
from app.jobs.webhooks.delivery import RETRY_AFTER_S, Attempt, Webhooks
from app.jobs.webhooks.outbox import Delivery, host_of
from tests.cases import read_cases
from tests.event_loop import Clock, let_tasks_run, until
from tests.internet import MEDIA, Internet

REQUESTS = read_cases("requests")

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = json.dumps({"type": "job.succeeded", "data": {"id": "job-1", "filename": "Rede über Äpfel.mp3"}})


@dataclass
class Row:
    delivery: Delivery
    next_at: float


class MemoryOutbox:
    """An outbox with an event that is set at each write."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.failures = 0  # the number of calls that will fail
        self.changed = asyncio.Event()

    def put(self, delivery: Delivery, next_at: float) -> None:
        self.rows[delivery.id] = Row(replace(delivery, host=host_of(delivery.url)), next_at)

    async def due(
        self,
        now: float,
        in_flight: Collection[str] = (),
        owners: Collection[str] = (),
        hosts: Collection[tuple[str, str]] = (),
    ) -> list[Delivery]:
        await self._fail()
        rows = sorted(self.rows.values(), key=lambda row: row.next_at)
        due = [row.delivery for row in rows if row.next_at <= now]
        return [
            one
            for one in due
            if one.id not in in_flight and one.owner not in owners and (one.owner, one.host) not in hosts
        ][:20]

    async def claim(self, id: str, now: float) -> bool:
        return True

    async def release(self, id: str, now: float) -> None: ...

    async def next_due(self) -> float | None:
        return min((row.next_at for row in self.rows.values()), default=None)

    async def remove(self, id: str) -> None:
        await self._fail()
        del self.rows[id]
        self.changed.set()

    async def postpone(self, id: str, attempts: int, next_at: float) -> None:
        await self._fail()
        self.rows[id] = Row(replace(self.rows[id].delivery, attempts=attempts), next_at)
        self.changed.set()

    async def _fail(self) -> None:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the database is gone")

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes
    client_port: int


class Receiver(ThreadingHTTPServer):
    """Answers with the given statuses, and then with 204."""

    daemon_threads = True

    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__((address, 0), Handler)
        self.requests: list[Request] = []
        self.statuses: list[int] = []
        self.requested = threading.Event()
        self.released = threading.Event()  # /slow waits for it
        self.busy = 0
        self.busiest = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]}:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"  # keeps connections open

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.lock:
            self.server.requests.append(Request(self.path, headers, body, self.client_address[1]))
            self.server.busy += 1
            self.server.busiest = max(self.server.busy, self.server.busiest)
        self.server.requested.set()
        if self.path == "/slow":
            self.server.released.wait()
        with self.server.lock:
            self.server.busy -= 1
            status = self.server.statuses.pop(0) if self.server.statuses else 204
        self.send_response(status)
        if status in (301, 302, 307, 308):
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(1000 << 20 if status == 200 else 0))
        self.end_headers()
        if status == 200:
            with suppress(OSError):
                for _ in range(1000):  # MiB, more than any buffer holds
                    self.wfile.write(bytes(1 << 20))
                self.server.requests.append(Request("read to the end", {}, b"", 0))

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving("127.0.0.1") as server:
        yield server


@contextmanager
def receiving(address: str) -> Iterator[Receiver]:
    with Receiver(address) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _short_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_OUTBOX_RETRY_S", 0.01)
    monkeypatch.setattr(delivery, "_OVERDUE_POLL_S", 0.01)


@asynccontextmanager
async def delivering(
    outbox: MemoryOutbox, clock: Callable[[], float] = time.time, secret: str | None = SECRET, **options: Any
) -> AsyncIterator[Webhooks]:
    options = {"allow_private": True} | options
    running = Webhooks(outbox, secret, clock=clock, **options)
    running.start()
    try:
        yield running
    finally:
        await running.stop()


@pytest.fixture
def outbox() -> MemoryOutbox:
    return MemoryOutbox()


async def test_receivers_can_verify_the_signature(receiver: Receiver, outbox: MemoryOutbox) -> None:
    outbox.put(Delivery("msg_1", receiver.url + "?key=1#part", BODY, 0), 0)
    async with delivering(outbox):
        await outbox.wait_until(lambda: not outbox.rows)

    [request] = receiver.requests
    assert request.path == "/hook?key=1"
    assert Webhook(SECRET).verify(request.body, request.headers) == json.loads(BODY)
    assert request.body == BODY.encode()
    assert request.headers["webhook-id"] == "msg_1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("whisperfleet/")
    assert request.headers["host"] == f"127.0.0.1:{receiver.server_port}"


async def test_without_a_secret_there_is_no_signature(receiver: Receiver, outbox: MemoryOutbox) -> None:
    outbox.put(Delivery("msg_1", receiver.url, BODY, 0), 0)
    async with delivering(outbox, secret=None):
        await outbox.wait_until(lambda: not outbox.rows)

    [request] = receiver.requests
    assert "webhook-signature" not in request.headers
    assert request.headers["webhook-id"] == "msg_1"


async def test_all_retries(receiver: Receiver, outbox: MemoryOutbox) -> None:
    hours = 3600
    expected = [5, 300, 1800, 2 * hours, 5 * hours, 10 * hours, 24 * hours]
    assert list(RETRY_AFTER_S) == expected
    receiver.statuses = [500, 404, 302, 429, 400, 503, 301, 500, 204]

    clock = Clock(1_800_000_000.7)
    outbox.put(Delivery("msg_1", receiver.url, BODY, 0), clock.now)
    waits = []
    async with delivering(outbox, clock) as running:
        for attempts in range(1, 8):
            await outbox.wait_until(lambda: outbox.rows["msg_1"].delivery.attempts == attempts)  # noqa: B023
            assert len(receiver.requests) == attempts
            waits.append(outbox.rows["msg_1"].next_at - clock.now)
            clock.now = outbox.rows["msg_1"].next_at
            running.wake()
        await outbox.wait_until(lambda: not outbox.rows)
    assert running.attempts == {Attempt.RETRIED: 7, Attempt.GIVEN_UP: 1}
    assert waits == pytest.approx(expected)
    assert outbox.rows == {}

    assert len(receiver.requests) == 8
    assert {request.path for request in receiver.requests} == {"/hook"}, "a redirect was followed"
    assert {request.headers["webhook-id"] for request in receiver.requests} == {"msg_1"}
    assert len({request.headers["webhook-timestamp"] for request in receiver.requests}) == 8
    assert len({request.headers["webhook-signature"] for request in receiver.requests}) == 8
    assert len({request.client_port for request in receiver.requests}) == 8, "a connection was kept"


async def test_a_webhook_is_sent_once_it_is_due(receiver: Receiver, outbox: MemoryOutbox) -> None:
    outbox.put(Delivery("soon", receiver.url, BODY, 0), time.time() + 0.1)
    async with delivering(outbox):
        await outbox.wait_until(lambda: not outbox.rows)


async def test_status_410_ends_the_retries(receiver: Receiver, outbox: MemoryOutbox) -> None:
    receiver.statuses = [410]

    outbox.put(Delivery("msg_1", receiver.url, BODY, 0), 0)
    async with delivering(outbox) as running:
        await outbox.wait_until(lambda: not outbox.rows)

    assert running.attempts == {Attempt.GIVEN_UP: 1}
    assert len(receiver.requests) == 1


async def test_the_body_of_the_answer_is_not_read(receiver: Receiver, outbox: MemoryOutbox) -> None:
    receiver.statuses = [200]

    outbox.put(Delivery("msg_1", receiver.url, BODY, 0), 0)
    async with delivering(outbox):
        await outbox.wait_until(lambda: not outbox.rows)

    assert [request.path for request in receiver.requests] == ["/hook"]


async def test_a_slow_receiver_times_out(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, outbox: MemoryOutbox
) -> None:
    monkeypatch.setattr(client, "TIMEOUT_S", 0.2)

    outbox.put(Delivery("msg_1", receiver.url.replace("/hook", "/slow"), BODY, 0), 0)
    async with delivering(outbox, Clock(1000)):
        await outbox.wait_until(lambda: outbox.rows["msg_1"].delivery.attempts == 1)


NAMES_OF_LOOPBACK = ["127.0.0.1", "localhost", "LocalHost", "127.1", "[::ffff:127.0.0.1]", "0x7f.1"]


@pytest.mark.parametrize("owner", ["", "another"])
async def test_a_slow_receiver_delays_no_other_whatever_its_names_are(
    receiver: Receiver, outbox: MemoryOutbox, owner: str
) -> None:
    for number in range(60):
        name = NAMES_OF_LOOPBACK[number % len(NAMES_OF_LOOPBACK)]
        slow = receiver.url.replace("/hook", "/slow").replace("127.0.0.1", name)
        outbox.put(Delivery(f"slow {number}", slow, BODY, 0), 900 + number)
    with receiving("127.0.0.2") as other:
        for number in range(30):
            outbox.put(Delivery(f"quick {number}", other.url, BODY, 0, owner), 970 + number)
        async with delivering(outbox, Clock(1000)):
            await outbox.wait_until(lambda: not any(id.startswith("quick") for id in outbox.rows))
            assert len(outbox.rows) == 60
            assert len(other.requests) == 30
            assert receiver.busy == 4
            receiver.released.set()
            await outbox.wait_until(lambda: not outbox.rows)
    assert len(receiver.requests) == 60
    assert receiver.busiest <= 4


async def test_dead_receivers_leave_places_for_a_healthy_one_of_their_owner(
    receiver: Receiver, outbox: MemoryOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TIMEOUT_S", 0.3)
    with receiving("127.0.0.2") as healthy, receiving("127.0.0.3") as other:
        dead = [receiver, other]
        for number in range(60):
            url = dead[number % 2].url.replace("/hook", "/slow")
            outbox.put(Delivery(f"dead {number}", url, BODY, 0), 900)
        outbox.put(Delivery("healthy 0", healthy.url, BODY, 0), 990)
        async with delivering(outbox, Clock(1000)) as running:
            for number, tries in enumerate((12, 16)):  # the first eight, before anybody knows, and four more
                await outbox.wait_until(lambda: not any(id.startswith("healthy") for id in outbox.rows))
                assert sum(len(one.requests) for one in dead) <= tries
                outbox.put(Delivery(f"healthy {number + 1}", healthy.url, BODY, 0), 990)
                running.wake()
            other.released.set()  # it has recovered
            await outbox.wait_until(lambda: "dead 59" not in outbox.rows)


async def test_slow_names_of_one_owner_delay_no_other(receiver: Receiver, outbox: MemoryOutbox) -> None:
    """A name that does not resolve, and many addresses of one machine, which look like many receivers."""
    released = threading.Event()

    def resolver(host: str, *rest: Any, **options: Any) -> Any:
        if host.endswith(".slow"):
            released.wait()
        return socket.getaddrinfo("127.0.0.1", *rest, **options)

    for number in range(100):
        outbox.put(Delivery(f"slow {number}", f"http://{number}.slow/", BODY, 0, "flood"), number)
    outbox.put(Delivery("quick", receiver.url, BODY, 0, "victim"), 950)
    async with delivering(outbox, Clock(1000), resolver=resolver):
        await outbox.wait_until(lambda: "quick" not in outbox.rows)
        released.set()
    assert len(outbox.rows) == 100


async def test_receivers_of_all_owners_have_a_limit(receiver: Receiver, outbox: MemoryOutbox) -> None:
    for number in range(60):
        url = receiver.url.replace("/hook", "/slow")
        outbox.put(Delivery(f"slow {number}", url, BODY, 0, f"owner {number % 6}"), number)
    async with delivering(outbox, Clock(1000)):
        await until(lambda: receiver.busy == 8)
        receiver.released.set()
        await outbox.wait_until(lambda: not outbox.rows)
    assert receiver.busiest == 8


async def test_unreachable_receivers(outbox: MemoryOutbox) -> None:
    with Receiver() as closed:
        url = closed.url

    outbox.put(Delivery("msg_1", url, BODY, 0), 0)
    outbox.put(Delivery("msg_2", "http://[broken", BODY, 0), 0)
    outbox.put(Delivery("msg_3", "gopher://example/", BODY, 0), 0)
    async with delivering(outbox, Clock(1000)):
        await outbox.wait_until(lambda: all(row.delivery.attempts == 1 for row in outbox.rows.values()))


async def test_errors_of_the_outbox_are_retried(receiver: Receiver, outbox: MemoryOutbox) -> None:
    outbox.failures = 3
    outbox.put(Delivery("msg_1", receiver.url.replace("/hook", "/slow"), BODY, 0), 0)
    async with delivering(outbox):
        await asyncio.to_thread(receiver.requested.wait)
        outbox.failures = 3
        receiver.released.set()
        await outbox.wait_until(lambda: not outbox.rows)

    assert len(receiver.requests) == 1, "a delivered webhook was sent again"


async def test_a_webhook_in_flight_at_the_stop_is_sent_again(
    receiver: Receiver, outbox: MemoryOutbox
) -> None:
    outbox.put(Delivery("msg_1", receiver.url.replace("/hook", "/slow"), BODY, 0), 0)
    async with delivering(outbox):
        await asyncio.to_thread(receiver.requested.wait)
    assert outbox.rows["msg_1"].delivery.attempts == 0
    receiver.released.set()
    async with delivering(outbox):
        await outbox.wait_until(lambda: not outbox.rows)

    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "msg_1"


class OvertakenOutbox(MemoryOutbox):
    """An answer arrives late: the attempt in flight has ended, and its outcome is stored, before it does."""

    def __init__(self, receiver: Receiver) -> None:
        super().__init__()
        self._receiver = receiver
        self.is_late = False

    async def due(self, now: float, *without: Any) -> list[Delivery]:
        rows = await super().due(now, *without)
        if self.is_late:
            self.is_late = False
            self._receiver.released.set()
            await self.wait_until(lambda: self.outcome_stored)
            await let_tasks_run()
        return rows

    @property
    def outcome_stored(self) -> bool:
        return "msg_1" not in self.rows or self.rows["msg_1"].delivery.attempts > 0


@pytest.mark.parametrize("status", [204, 500])
async def test_a_webhook_is_not_sent_again_because_the_outbox_was_read_before_its_outcome_was_stored(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(delivery, "_OVERDUE_POLL_S", 3600.0)
    receiver.statuses = [status, 204]
    outbox = OvertakenOutbox(receiver)
    clock = Clock(1000)
    outbox.put(Delivery("msg_1", receiver.url.replace("/hook", "/slow"), BODY, 0), 990)
    async with delivering(outbox, clock) as running:
        await asyncio.to_thread(receiver.requested.wait)
        # To the same receiver, which may be busy, and earlier in the list.
        outbox.put(Delivery("msg_2", receiver.url, BODY, 0), 900)
        outbox.is_late = True
        running.wake()
        await outbox.wait_until(lambda: outbox.outcome_stored)
        await let_tasks_run()
        clock.now += 3  # the second one is due again at the latest
        running.wake()
        await outbox.wait_until(lambda: "msg_2" not in outbox.rows)
        while running._in_flight:
            await asyncio.wait(running._in_flight.values())
    assert [request.headers["webhook-id"] for request in receiver.requests] == ["msg_1", "msg_2"]
    assert outbox.rows.keys() == ({"msg_1"} if status == 500 else set())


class NoNetwork(httpcore.AsyncNetworkBackend):
    """Records connection attempts and refuses them. An attempt to a private address fails the test."""

    def __init__(self) -> None:
        self.connected: list[tuple[str, int]] = []

    async def connect_tcp(self, host: str, port: int, *_: Any) -> httpcore.AsyncNetworkStream:
        if host != MEDIA:
            pytest.fail(f"a connection to {host} was attempted")
        self.connected.append((host, port))
        raise httpcore.ConnectError("no network here")


NAMES = {
    "media.example": [MEDIA],
    "private.example": ["10.0.0.1"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "mixed.example": [MEDIA, "127.0.0.1"],
}


@pytest.mark.parametrize("url", REQUESTS["private_webhooks"])
async def test_no_webhook_reaches_the_private_network(url: str, outbox: MemoryOutbox) -> None:
    backend = NoNetwork()

    outbox.put(Delivery("msg_1", url, BODY, 0), 0)
    resolver = Internet(dict(NAMES), {}).resolver
    async with delivering(outbox, Clock(1000), allow_private=False, resolver=resolver, backend=backend):
        await outbox.wait_until(lambda: outbox.rows["msg_1"].delivery.attempts == 1)
    with pytest.raises(InvalidInput) as error:
        await check_webhook_url(url, False, resolver)
    assert (error.value.param, error.value.code) == ("webhook_url", "url_refused")

    assert backend.connected == []


async def test_a_refusal_names_the_setting_that_allows_private_addresses() -> None:
    with pytest.raises(InvalidInput, match="WHISPER_WEBHOOK_ALLOW_PRIVATE"):
        await check_webhook_url("http://127.0.0.1:9000/", allow_private=False)


async def test_a_name_is_checked_at_each_attempt(outbox: MemoryOutbox) -> None:
    backend = NoNetwork()
    resolver = Internet({"media.example": iter([[MEDIA], ["10.0.0.1"]])}, {}).resolver

    clock = Clock(1000)
    outbox.put(Delivery("msg_1", "https://media.example/hook", BODY, 0), 0)
    async with delivering(outbox, clock, allow_private=False, resolver=resolver, backend=backend) as running:
        for attempts in (1, 2):
            await outbox.wait_until(lambda: outbox.rows["msg_1"].delivery.attempts == attempts)  # noqa: B023
            clock.now += 10_000
            running.wake()

    assert backend.connected == [(MEDIA, 443)], "another address, or not exactly one connection"


@pytest.mark.parametrize(
    ("url", "allow_private", "passes"),
    [
        ("https://media.example/hook", False, True),
        ("https://nowhere.example/hook", False, True),
        ("http://10.0.0.1/hook", True, True),
        ("http://localhost:9000/hook", True, True),
        ("http://receiver/hook", True, True),
        ("ftp://media.example/hook", True, False),
        ("file:///etc/passwd", True, False),
        ("http://user:secret@receiver/hook", True, False),
        ("hook", True, False),
        ("https://media.example/" + "a" * 2048, False, False),
    ],
)
async def test_urls_are_checked_on_submission(url: str, allow_private: bool, passes: bool) -> None:
    resolver = Internet(dict(NAMES), {}).resolver
    with nullcontext() if passes else pytest.raises(InvalidInput):
        await check_webhook_url(url, allow_private, resolver)
