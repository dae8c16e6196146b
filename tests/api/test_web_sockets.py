"""WebSockets of the server, before and behind any endpoint: what they take, and when they end."""

import asyncio
import resource
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from app.commands.serve import Server, uvicorn_config
from app.server import web_sockets
from app.server.handshakes import WEB_SOCKET, UpgradeResponse, split_key
from app.server.listening import STREAM_PATH
from app.settings import Settings
from tests.api.waiting import wait_for

HEAD = "\r\n".join(
    [
        "GET {path} HTTP/1.1",
        "Host: localhost",
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "",
        "",
    ]
)


class Pausable(UpgradeResponse):
    """Counts messages, unless it is paused, and repeats those that say so."""

    def __init__(self, scope, site):
        super().__init__(scope, "realtime")
        self.site = site

    async def run(self, web_socket):
        self.site.open += 1
        try:
            while (message := await web_socket.receive()) is not None:
                self.site.messages.append(len(message))
                while self.site.paused:  # noqa: ASYNC110 (another thread sets it)
                    await asyncio.sleep(0.005)
                if message.startswith(b"echo"):
                    await web_socket.send(message.decode())
                if message == b"fail":
                    raise RuntimeError("for a test")
        finally:
            self.site.open -= 1


class PlainSite:
    """A server that has nothing but WebSockets."""

    def __init__(self):
        self.messages = []
        self.paused = False
        self.open = 0
        self.server = None
        self.port = 0
        self.state = type("State", (), {"stopping": staticmethod(lambda: None)})

    async def app(self, scope, receive, send):
        if scope["type"] != "http":
            return
        if WEB_SOCKET not in scope:
            await send({"type": "http.response.start", "status": 426, "headers": []})
            await send({"type": "http.response.body", "body": b"plain"})
            return
        scope["state"]["request_id"] = "req_1"
        await Pausable(scope, self)(scope, receive, send)

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)

    def connect(self, **options):
        return connect(f"ws://127.0.0.1:{self.port}{STREAM_PATH}", proxy=None, **options)

    @contextmanager
    def raw(self, path=STREAM_PATH):
        """A connection whose handshake was accepted."""
        with socket.create_connection(("127.0.0.1", self.port), 15) as connection:
            connection.sendall(HEAD.format(path=path).encode())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(1)
            assert b" 101 " in head, head
            yield connection


@pytest.fixture
def serve_sockets(tmp_path):
    stops = []

    def start(**options):
        settings = Settings(data_dir=tmp_path, _env_file=None, **options)
        site = PlainSite()
        config = uvicorn_config(site, settings)
        config.lifespan = "off"
        site.server = Server(site, config)
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        site.port = listener.getsockname()[1]
        thread = threading.Thread(target=site.server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_for(lambda: site.server.started)

        def stop():
            site.server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()

        stops.append(stop)
        return site

    yield start
    for stop in stops:
        stop()


def frame(data=b"", opcode=1, *, fin=True):
    """A frame of a client. Its mask changes nothing."""
    head = bytes([opcode | (0x80 if fin else 0)])
    size = len(data)
    length = (
        bytes([0x80 | size])
        if size < 126
        else b"\xfe" + struct.pack("!H", size)
        if size < 65536
        else b"\xff" + struct.pack("!Q", size)
    )
    return head + length + bytes(4) + data


def code_after(client, message):
    """The code with which the server closes after a message."""
    with suppress(ConnectionClosed):
        client.send(message)
        client.recv()
    return client.close_code


def send_forever(connection, data, most=1 << 28):
    """Send until the server takes no more, and raise OSError then."""
    for _ in range(most // len(data)):
        connection.sendall(data)


def close_code(connection):
    """The code of the close frame that comes, after any other frames."""
    received = b""
    while part := connection.recv(65536):
        received += part
    at = 0
    while received[at] != 0x88:
        at += 2 + (
            received[at + 1] if received[at + 1] < 126 else 2 + int.from_bytes(received[at + 2 : at + 4])
        )
    return int.from_bytes(received[at + 2 : at + 4])


def test_a_message_may_have_a_mebibyte_and_no_byte_more(serve_sockets):
    site = serve_sockets()
    with site.connect(max_size=None) as client:
        client.send("x" * (1 << 20))
        client.send(["y" * 700_000, "z" * 300_000])  # in two fragments
        client.send("echo")
        assert client.recv() == "echo"
        assert code_after(client, ["y" * 700_000, "z" * 700_000]) == 1009
    with site.connect() as client:
        assert code_after(client, "x" * ((1 << 20) + 1)) == 1009
    assert site.messages == [1 << 20, 1_000_000, 4]
    wait_for(lambda: not site.open)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (frame(b"", fin=False) + frame(b"", 0, fin=False) * 2000, 1009),
        (frame(b"x", 0), 1002),  # continues nothing
        (b"\xc1\x80\0\0\0\0", 1002),  # compressed
        (b"\x81\x01x", 1002),  # without a mask
        (frame(bytes(200), 9), 1002),  # a ping that is too long
        (frame(struct.pack("!H", 1000), 8), 1000),
    ],
    ids=["fragments", "continuation", "compressed", "unmasked", "ping", "close"],
)
def test_malformed_frames_close_the_connection_with_the_reason(serve_sockets, frames, code):
    site = serve_sockets()
    with site.raw() as connection:
        connection.sendall(frames)
        assert close_code(connection) == code
    wait_for(lambda: not site.open)
    wait_for(lambda: not site.server.server_state.connections)


def test_a_client_that_sends_faster_has_to_wait(serve_sockets):
    site = serve_sockets()
    site.paused = True
    with site.raw() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        connection.settimeout(1)
        with pytest.raises(TimeoutError):
            send_forever(connection, frame(b"a" * 50_000))
        [protocol] = site.server.server_state.connections
        assert len(protocol._unread) + len(protocol.conn.reader.buffer) < 1 << 19
        assert len(protocol.queue._queue) <= 2
        site.paused = False
        wait_for(lambda: len(site.messages) > 3)


def test_many_short_messages_wait_as_bytes(serve_sockets):
    site = serve_sockets()
    site.paused = True
    with site.raw() as connection:
        connection.sendall(frame(b"a") * 20_000)
        wait_for(lambda: site.messages)
        [protocol] = site.server.server_state.connections
        wait_for(lambda: protocol._unread)
        assert len(protocol.queue._queue) < web_sockets.STEP_BYTES / len(frame(b"a"))
        site.paused = False
        wait_for(lambda: len(site.messages) == 20_000)


def test_a_client_that_asks_and_never_reads_is_closed(serve_sockets):
    site = serve_sockets(send_timeout_s=0.5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for flood in (frame(b"echo" + b"x" * 60_000), frame(b"x" * 125, 9) * 100):
        with site.raw() as connection, pytest.raises(OSError, match=r"reset|Broken pipe"):
            send_forever(connection, flood, 1 << 40)
        wait_for(lambda: not site.open)
    # Pongs, too, wait for the client (KiB).
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_dead_client_is_found(serve_sockets):
    site = serve_sockets()
    # A busy machine may take some tenths for an answer.
    site.server.config.ws_ping_interval = site.server.config.ws_ping_timeout = 0.5
    with site.raw() as dead, site.connect() as living:
        assert close_code(dead) == 1011
        wait_for(lambda: site.open == 1)
        living.send("echo")
        assert living.recv() == "echo"
        # One whose audio waits here cannot answer yet.
        site.paused = True
        living.send("late")
        time.sleep(1.5)
        site.paused = False
        living.send("echo 2")
        assert living.recv() == "echo 2"


def test_an_open_stream_counts_as_a_connection(serve_sockets):
    site = serve_sockets(max_connections=1, header_timeout_s=0.2)
    with site.raw() as stream:
        time.sleep(0.4)  # no deadline of HTTP runs
        stream.sendall(frame(b"echo"))
        assert stream.recv(65536) == b"\x81\x04echo"
        assert len(site.server.server_state.connections) == 1
        others = [socket.create_connection(("127.0.0.1", site.port), 10) for _ in range(3)]
        for other in others:
            other.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answers = [other.recv(65536)[:12] for other in others]
        for other in others:
            other.close()
        # The address has a stream, so no place is reserved for it.
        assert b"HTTP/1.1 503" in answers


def test_an_error_of_the_endpoint_closes_with_the_id_of_its_log_line(serve_sockets):
    site = serve_sockets()
    with site.connect() as client:
        client.send("fail")
        with pytest.raises(ConnectionClosed) as closed:
            client.recv()
    assert (closed.value.rcvd.code, "req_1" in closed.value.rcvd.reason) == (1011, True)


@pytest.mark.parametrize(
    "change",
    [
        ("GET", "POST"),
        ("Version: 13", "Version: 8"),
        ("Key: AAAA", "Key: AAA"),
        ("Sec-WebSocket-Key", "X-Key"),
        ("Upgrade: websocket", "Upgrade: h2c"),
        ("keep-alive, Upgrade", "keep-alive"),
        ("Host: localhost", "Host: localhost\r\nTransfer-Encoding: chunked"),
        ("Host: localhost", "Host: localhost\r\nX-Long: " + "x" * 9000),
        ("Host: localhost", "Host: localhost" + "\r\nX: y" * 200),
        ("{path}", "/elsewhere"),
    ],
    ids=lambda change: change[1][:24],
)
def test_a_request_that_is_no_handshake_is_one_of_http(serve_sockets, change):
    site = serve_sockets()
    head = HEAD.replace(*change).format(path=STREAM_PATH)
    with socket.create_connection(("127.0.0.1", site.port), 10) as connection:
        connection.sendall(head.encode() + (b"0\r\n\r\n" if "chunked" in head else b""))
        assert connection.recv(65536).startswith(b"HTTP/1.1 426")


@pytest.mark.parametrize(
    ("offered", "key", "others"),
    [
        ([], None, []),
        (["realtime", "openai-insecure-api-key.sk-1"], b"sk-1", ["realtime"]),
        (["openai-insecure-api-key.", "realtime"], b"", ["realtime"]),
        (["openai-insecure-api-key.a", "openai-insecure-api-key.b"], b"a", []),
        (["openai-insecure-api-key.a%2Fb%3D+%C3%BC"], "a/b=+ü".encode(), []),
        (["openai-insecure-api-key.a/b=+\udcff%"], b"a/b=+\xff%", []),
    ],
)
def test_the_key_among_subprotocols(offered, key, others):
    assert split_key(offered) == (key, others)
