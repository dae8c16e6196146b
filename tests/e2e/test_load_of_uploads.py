"""One key floods the service, and another key's recordings come through as if nothing happened."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median

import httpx
import pytest

from tests.e2e.burden import burden
from tests.e2e.fixtures import Commands
from tests.e2e.running import KEY, KEYED, OTHER_KEY, Server, wait_for

pytestmark = [pytest.mark.timeout(300), pytest.mark.soak]

TUS = {"Tus-Resumable": "1.0.0"}
PART = TUS | {"Content-Type": "application/offset+octet-stream"}
MINE, OTHERS = ({"Authorization": f"Bearer {key}"} for key in (KEY, OTHER_KEY))
LARGE, SMALL = 4_000_000_000, 1_000_000
DRIPPING = 100  # as many as `WHISPER_MAX_UPLOADS`
FORMS = 20  # of those that drip beside a flood of clips: these need places, too
SENDING = 40  # clients that send one short clip after the other
# Two GPUs with a large model: a batch costs little more than a single window.
GPUS = {"WHISPER_CPU_WORKERS": 2, "WHISPER_SIMULATED": "fixed_ms=800,clip_ms=40,token_ms=4,batch=8"}
TRIES = 7


def uploads(server: Server) -> httpx.Client:
    """A client of the key that floods."""
    return httpx.Client(base_url=server.url, headers=MINE | TUS, timeout=60, trust_env=False, verify=False)


def create(client: httpx.Client, size: int = LARGE) -> httpx.Response:
    return client.post("/v1/uploads", headers={"Upload-Length": str(size)})


@contextmanager
def drip(server: Server, requests: list[str], content: bytes = b"") -> Iterator[Callable[[], int]]:
    """Begin requests, given by their lines without those that all have, and send a byte of each now and then.

    Yields a function that says how many are open.
    """
    done = threading.Event()
    with ExitStack() as stack:
        connections = []
        for request in requests:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(
                f"{request}\r\nHost: localhost\r\nAuthorization: {MINE['Authorization']}\r\n"
                f"Content-Length: {SMALL}\r\n\r\n".encode()
                + content
            )
            connection.setblocking(False)
            connections.append(connection)

        def is_open(connection: socket.socket) -> bool:
            try:
                connection.send(b"x")
                connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return True
            except OSError:
                return False
            return False  # answered

        def keep_dripping() -> None:
            while not done.wait(0.5):
                for connection in connections:
                    is_open(connection)

        dripping = threading.Thread(target=keep_dripping)
        dripping.start()
        try:
            yield lambda: sum(map(is_open, connections))
        finally:
            done.set()
            dripping.join()


def dripping_parts(paths: list[str]) -> list[str]:
    lines = "".join(f"\r\n{name}: {value}" for name, value in PART.items())
    return [f"PATCH {path} HTTP/1.1{lines}\r\nUpload-Offset: 0" for path in paths]


def test_empty_and_dripping_uploads_leave_space_and_places_to_others(
    commands: Commands, shorts: list[Path]
) -> None:
    server = commands.ready(**KEYED)
    content = shorts[0].read_bytes()
    others = httpx.Client(base_url=server.url, headers=OTHERS, timeout=60, trust_env=False, verify=False)
    with uploads(server) as client, others, burden(server, memory_mib=150, disk_mib=50):
        made, statuses = [], []
        for size in (*[LARGE] * 100, *[SMALL] * 1100):
            answer = create(client, size)
            statuses.append(answer.status_code)
            if answer.status_code == 201:
                made.append(answer.headers["location"])
        assert set(statuses) == {201, 429}
        assert statuses.count(201) <= 1000
        with drip(server, dripping_parts(made[:DRIPPING])) as count_open:
            for _ in range(5):
                answer = others.post("/v1/uploads", headers=TUS | {"Upload-Length": str(len(content))})
                assert answer.status_code == 201, answer.text
                path = answer.headers["location"]
                sent = others.patch(path, content=content, headers=PART | {"Upload-Offset": "0"})
                assert sent.status_code == 204, sent.text
                job = others.post("/v1/jobs", json={"upload": path.rpartition("/")[2]})
                assert job.status_code == 202, job.text
                time.sleep(1)
            assert count_open() >= DRIPPING // 2


def transcribe(client: httpx.Client, content: bytes) -> httpx.Response:
    return client.post(
        "/v1/audio/transcriptions",
        data={"model": "whisper-1"},
        files={"file": ("clip.flac", content)},
    )


@contextmanager
def flooded(server: Server, contents: list[bytes]) -> Iterator[list[int]]:
    """Clients of one key send clips, one after the other. Yields the statuses of their answers so far."""
    done, statuses = threading.Event(), list[int]()

    def send() -> None:
        with httpx.Client(
            base_url=server.url, headers=MINE, timeout=60, trust_env=False, verify=False
        ) as own:
            for content in cycle(contents):
                if done.is_set():
                    break
                statuses.append(transcribe(own, content).status_code)
                if statuses[-1] == 429:
                    time.sleep(0.5)

    threads = [threading.Thread(target=send) for _ in range(SENDING)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_short_clip_beside_a_flood_takes_at_most_twice_as_long(
    commands: Commands, shorts: list[Path]
) -> None:
    server = commands.ready(**KEYED | GPUS)
    contents = [path.read_bytes() for path in shorts]
    others = httpx.Client(base_url=server.url, headers=OTHERS, timeout=60, trust_env=False, verify=False)

    def took_s() -> float:
        began = time.perf_counter()
        assert transcribe(others, contents[0]).status_code == 200
        return time.perf_counter() - began

    with others:
        took_s()
        undisturbed = [took_s() for _ in range(TRIES)]
        forms = [
            "POST /v1/audio/transcriptions HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b"
        ] * FORMS
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        with drip(server, forms, head) as count_open, flooded(server, contents) as statuses:
            wait_for(lambda: len(statuses) > SENDING)
            disturbed = []
            for _ in range(TRIES):
                disturbed.append(took_s())
                time.sleep(0.3)
            assert count_open() > 0
    print(f"undisturbed {median(undisturbed):.2f} s, beside a flood {median(disturbed):.2f} s")
    print(f"{statuses.count(200)} clips of the flood were answered, {statuses.count(429)} refused")
    assert set(statuses) <= {200, 429}
    assert median(disturbed) <= 2 * median(undisturbed), (undisturbed, disturbed)
