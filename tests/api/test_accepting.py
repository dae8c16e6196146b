"""Connections on which no request ends, and more connections than there may be."""

import asyncio
import errno
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from structlog.testing import capture_logs

from app.api.http import receiving
from app.commands.doctor import machine
from app.commands.doctor.finding import Severity
from app.server import accepting, listening
from app.server import connections as early_responses
from app.server.accepting import handle_loop_error
from app.settings import Settings
from app.telemetry.rare_warnings import RareWarning
from tests.api.waiting import wait_for

HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
INCOMPLETE = HEALTH[:-4]
ELSEWHERE = ("10.0.0.0/8",)  # so that no client of a test counts as a proxy


@pytest.fixture
def connect():
    with ExitStack() as stack:

        def start(site, content=b"", source="127.0.0.1"):
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", site.port), 10, (source, 0))
            )
            connection.sendall(content)
            return connection

        yield start


def received(connection):
    """Everything that the server sends until it closes the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def responses(connection, count=1):
    """What the server sends, with as many JSON objects, unless it closes the connection before."""
    response = b""
    while response.count(b"HTTP/1.1 ") < count or not response.endswith(b"}"):
        if not (part := connection.recv(65536)):
            break
        response += part
    return response


def responds(connection, request=HEALTH, count=1):
    """Whether as many requests are answered."""
    connection.sendall(request)
    return responses(connection, count).count(b"HTTP/1.1 200") == count


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    finally:
        connection.settimeout(10)


def until_accepted(site, count):
    wait_for(lambda: len(site.server.server_state.connections) == count)


def drip(connection, text, pause_s):
    """Send a byte now and then, until the server closes the connection."""
    try:
        for byte in text:
            connection.sendall(bytes([byte]))
            time.sleep(pause_s)
    except OSError:
        pass


# Deadlines


def test_a_connection_without_a_byte(serve, connect):
    connection = connect(serve(header_timeout_s=0.2))
    began = time.monotonic()
    assert received(connection) == b""
    assert time.monotonic() - began < 5


def test_a_head_that_comes_byte_by_byte(serve, connect):
    connection = connect(serve(header_timeout_s=0.3))
    with ThreadPoolExecutor(1) as threads:
        threads.submit(drip, connection, HEALTH[:-1] + b"x" * 1000, 0.02)
        response = received(connection)
    assert response.startswith(b"HTTP/1.1 408")
    assert b"WHISPER_HEADER_TIMEOUT_S" in response


def test_the_next_head_on_a_connection(serve, connect):
    connection = connect(serve(header_timeout_s=0.3))
    assert responds(connection)
    time.sleep(0.4)
    assert responds(connection)  # no byte of a head came meanwhile, so only the time of idle connections ran
    connection.sendall(INCOMPLETE)
    assert received(connection).startswith(b"HTTP/1.1 408")


def test_a_slow_body_and_a_long_response_need_no_head(serve):
    site = serve(header_timeout_s=0.2)
    site.service.paused = True
    fields = b'--b\r\nContent-Disposition: form-data; name="audio_file"; filename="a"\r\n\r\nRIFF'
    end = b"\r\n--b--\r\n"
    content_type = "multipart/form-data; boundary=b"
    with site.begin("POST /asr", fields, length=len(fields + end), content_type=content_type) as connection:
        time.sleep(0.4)
        connection.sendall(end)
        assert site.service.started.wait(5)
        time.sleep(0.4)
        site.service.paused = False
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_requests_in_one_packet(serve, connect):
    """The server answers them in their order, and waits for the end of the last one."""
    connection = connect(serve(header_timeout_s=1))
    assert responds(connection, HEALTH + HEALTH + INCOMPLETE, 2)
    connection.sendall(b"\r\n")
    assert responds(connection, b"\r\n")
    time.sleep(1.2)
    assert responds(connection)


# Limits


def test_a_new_connection_takes_the_place_of_the_oldest_incomplete_head(serve, connect):
    site = serve(max_connections=4)
    with capture_logs() as lines:
        waiting = [connect(site, INCOMPLETE)]
        for count in range(2, 21):
            waiting.append(connect(site, INCOMPLETE))
            until_accepted(site, min(count, 4))
        assert responds(connect(site))
        assert received(waiting[0]) == b""
        wait_for(lambda: [is_open(connection) for connection in waiting] == [False] * 17 + [True] * 3)
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == [
        "connections without a request were closed to make place for others"
    ]


def test_a_new_connection_takes_the_place_of_an_idle_one(serve, connect):
    site = serve(max_connections=3)
    idle = []
    for _ in range(3):
        idle.append(connect(site))
        assert responds(idle[-1])
    assert responds(connect(site))
    wait_for(lambda: not is_open(idle[0]))
    assert [is_open(connection) for connection in idle] == [False, True, True]


@pytest.fixture
def busy(serve):
    """A site whose two connections have requests that are transcribed."""
    site = serve(max_connections=2)
    site.service.paused = True
    site.client.close()
    with ExitStack() as stack:
        fields = (
            b'--b\r\nContent-Disposition: form-data; name="audio_file"; filename="a"\r\n\r\nRIFF\r\n--b--\r\n'
        )
        for _ in range(2):
            stack.enter_context(
                site.begin("POST /asr", fields, content_type="multipart/form-data; boundary=b")
            )
        wait_for(lambda: len(site.server.server_state.tasks) == 2)
        yield site
        site.service.paused = False


def test_requests_are_not_closed_for_new_connections(busy, connect):
    with capture_logs() as lines:
        for _ in range(20):
            response = received(connect(busy, HEALTH))
            assert response == b"" or response.startswith(b"HTTP/1.1 503")
        until_accepted(busy, 2)
        assert received(connect(busy)).startswith(b"HTTP/1.1 503")
    assert len([line for line in lines if "WHISPER_MAX_CONNECTIONS" in line["event"]]) == 1
    assert len(busy.server.server_state.tasks) == 2


def test_places_are_left_for_addresses_without_a_connection(busy, connect):
    first = connect(busy, source="127.0.0.2")
    assert responds(first)
    assert responds(connect(busy, source="127.0.0.3"))
    assert received(first) == b""  # it was idle, and gave way
    until_accepted(busy, 3)


def test_an_address_closes_its_own_heads_only(serve, connect, monkeypatch):
    monkeypatch.setattr(accepting, "HEADS_PER_ADDRESS", 3)
    site = serve(trusted_proxies=ELSEWHERE)
    other = connect(site, INCOMPLETE, source="127.0.0.2")
    waiting = [connect(site, INCOMPLETE) for _ in range(10)]
    until_accepted(site, 4)
    assert responds(connect(site))
    assert [is_open(connection) for connection in waiting[-2:]] == [True, True]
    assert responds(other, b"\r\n\r\n")


def test_a_proxy_has_the_clients_of_many_addresses(serve, connect, monkeypatch):
    monkeypatch.setattr(accepting, "HEADS_PER_ADDRESS", 3)
    site = serve()
    waiting = [connect(site, INCOMPLETE) for _ in range(10)]
    assert all(responds(connection, b"\r\n\r\n") for connection in waiting)


def test_nothing_is_left_of_connections_that_ended(serve, connect):
    site = serve(header_timeout_s=0.2, max_connections=8)
    for content in (b"", INCOMPLETE, b"nonsense\r\n\r\n", HEALTH, HEALTH + INCOMPLETE):
        for source in ("127.0.0.1", "127.0.0.2"):
            connect(site, content, source).close()
            connect(site, content, source)
    site.client.close()
    wait_for(lambda: not site.server.server_state.connections)
    [kept] = site.server.config.http.args
    assert not kept._heads
    assert not kept._heads_of
    assert not kept._idle
    assert not kept._held


# Descriptors


def test_errors_of_accept_are_one_line(monkeypatch):
    loop = asyncio.new_event_loop()
    others = []
    monkeypatch.setattr(loop, "default_exception_handler", others.append)
    monkeypatch.setattr(accepting, "_not_accepted", RareWarning(accepting.log, "not accepted"))
    context = {
        "message": "socket.accept() out of system resource",
        "exception": OSError(errno.EMFILE, "Too many open files"),
    }
    try:
        with capture_logs() as lines:
            for _ in range(1000):
                handle_loop_error(loop, context)
            handle_loop_error(loop, {"message": "another"})
    finally:
        loop.close()
    assert [(line["event"], line["count"]) for line in lines] == [("not accepted", 1)]
    assert others == [{"message": "another"}]


@pytest.mark.parametrize(
    ("limits", "wanted", "connections", "raised_to"),
    [
        ((1024, 1024), None, 384, None),
        ((1024, 4096), None, 1920, 4096),
        ((1024, 1 << 20), None, 4096, 8448),
        ((1024, resource.RLIM_INFINITY), None, 4096, 8448),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None, 4096, None),
        ((65536, 1 << 20), None, 4096, None),
        ((1024, 1 << 20), 10_000, 10_000, 20_256),
        ((1024, 4096), 10_000, 1920, 4096),
        ((1024, 4096), 10, 10, None),
        ((100, 100), None, 1, None),
    ],
)
def test_connections_leave_descriptors_for_the_rest(monkeypatch, limits, wanted, connections, raised_to):
    raised = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, values: raised.append(values))
    settings = Settings(max_connections=wanted, _env_file=None)
    assert listening.max_connections(settings) == connections
    listening.raise_descriptor_limit(settings)
    assert raised == ([] if raised_to is None else [(raised_to, limits[1])])
    finding = machine.check_connections(settings)
    assert (finding.severity is Severity.OK) == (connections == (wanted or 4096))


# Bodies


@pytest.mark.parametrize(("bytes_per_s", "is_late"), [(1e6, True), (30.0, False)])
def test_a_json_document_that_drips(serve, monkeypatch, bytes_per_s, is_late):
    """It may take longer if it is large, but not if it comes too slowly."""
    monkeypatch.setattr(receiving, "DOCUMENT_S", 0.3)
    monkeypatch.setattr(receiving, "DOCUMENT_BYTES_PER_S", bytes_per_s)
    site = serve()
    body = b'{"other": 1' + b" " * 50 + b"}"
    with (
        site.begin("POST /v1/jobs", length=len(body), content_type="application/json") as connection,
        ThreadPoolExecutor(1) as threads,
    ):
        threads.submit(drip, connection, body, 0.02)
        response = responses(connection)
    assert response.startswith(b"HTTP/1.1 400"), response
    assert (b"upload_too_slow" in response) == is_late, response


def test_few_bodies_are_drained_at_a_time(serve, monkeypatch):
    """Without a key, each connection could be held by a body that never comes."""
    monkeypatch.setattr(early_responses, "DRAINS", 2)
    site = serve(api_keys=("sk-secret",))
    with ExitStack() as stack:
        for _ in range(5):
            connection = stack.enter_context(site.begin("POST /asr", length=1_000_000))
            assert connection.recv(65536).startswith(b"HTTP/1.1 401")
        until_accepted(site, 2)
