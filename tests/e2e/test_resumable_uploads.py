"""Resumable uploads with other projects' clients: connections are cut, and the service is killed."""

import hashlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from tusclient.client import TusClient

from tests.e2e.fixtures import Commands
from tests.e2e.running import ONE_SIMULATED, Server
from tests.media_files import wav_header

pytestmark = pytest.mark.timeout(180)

TUS_JS = "tus-js-client@4.3.1"
TUS = {"Tus-Resumable": "1.0.0"}
MB = 10**6


class Proxy:
    """A TCP proxy on a loopback port. It does something once so many bytes have come from its clients."""

    def __init__(self, target: int, actions: Sequence[tuple[int, Callable[["Proxy"], None]]]) -> None:
        self.target = target
        self.received = 0
        self.failures: list[BaseException] = []
        self._actions = list(actions)
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def is_done(self) -> bool:
        return not self._actions and not self.failures

    def close(self) -> None:
        for connection in [self._listener, *self._open]:
            connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    client.close()
                    continue
                self._open += [client, server]
                threading.Thread(target=self._forward_up, args=(client, server), daemon=True).start()
                threading.Thread(target=self._forward_down, args=(server, client), daemon=True).start()

    def _forward_up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
                self.received += len(data)
                with self._lock:
                    if self._actions and self.received >= self._actions[0][0]:
                        self._act(client, server)
                        return
            server.shutdown(socket.SHUT_WR)

    def _forward_down(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _act(self, client: socket.socket, server: socket.socket) -> None:
        """Do what is next, and cut the client off. Every second time, the server does not learn of it."""
        _, action = self._actions[0]
        try:
            action(self)
        except BaseException as error:
            self.failures.append(error)
        self._actions.pop(0)
        client.close()  # a client that still sends learns of it
        if len(self._actions) % 2:
            server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tus-js-client and the program that uses it."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not on this machine")
    made = tmp_path_factory.mktemp("node")
    (made / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", TUS_JS]
    subprocess.run(command, cwd=made, check=True, capture_output=True, timeout=120)
    shutil.copy(Path(__file__).with_name("tus.mjs"), made)
    return made


def upload_with_tus_js(endpoint: str, path: Path, request: pytest.FixtureRequest) -> str:
    done = subprocess.run(
        ["node", "tus.mjs", endpoint, str(path)],
        cwd=request.getfixturevalue("node"),
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def upload_with_tuspy(endpoint: str, path: Path, request: pytest.FixtureRequest) -> str:
    uploader = TusClient(endpoint).uploader(
        str(path),
        chunk_size=path.stat().st_size // 12,
        retries=200,
        retry_delay=0.1,  # type: ignore[arg-type]
        metadata={"filename": "talk.wav"},
    )
    uploader.upload()
    return str(uploader.url)


CLIENTS = {"tus-js-client": upload_with_tus_js, "tuspy": upload_with_tuspy}


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


def noise(path: Path, size: int) -> str:
    """Write a recording of `size` bytes. Returns its hash."""
    content = wav_header(size - 44) + os.urandom(size - 44)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("size", [24 * MB, pytest.param(200 * MB, marks=pytest.mark.soak)])
@pytest.mark.parametrize("client", [pytest.param("tus-js-client", marks=pytest.mark.soak), "tuspy"])
def test_five_cuts_and_a_kill(commands: Commands, tmp_path: Path, client: str, size: int, request) -> None:
    sha256 = noise(tmp_path / "talk.wav", size)
    servers = [commands.serve(**ONE_SIMULATED).wait_until_up()]
    offsets: list[int] = []

    def cut(proxy: Proxy) -> None:
        pass

    def kill(proxy: Proxy) -> None:
        server = servers[-1]
        server.die()
        [file] = (server.data / "uploads").iterdir()
        found = file.stat().st_size
        servers.append(commands.restart(server, **ONE_SIMULATED))
        proxy.target = servers[-1].port
        answer = servers[-1].client.head(f"/v1/uploads/{file.name}", headers=TUS)
        offsets.extend((int(answer.headers["upload-offset"]), found))

    actions = [(size * part // 100, cut if part != 55 else kill) for part in (10, 25, 40, 55, 70, 85)]
    proxy = Proxy(servers[0].port, actions)
    start = time.monotonic()
    try:
        url = CLIENTS[client](f"http://127.0.0.1:{proxy.port}/v1/uploads", tmp_path / "talk.wav", request)
    finally:
        proxy.close()
    print(
        f"{client}: {size / MB:g} MB in {time.monotonic() - start:.1f} s, {proxy.received / MB:.1f} MB sent"
    )
    assert proxy.is_done, proxy.failures
    offset, found = offsets
    assert 0 < offset <= found
    assert offset == found
    check_job(servers[-1], url, sha256)


def check_job(server: Server, url: str, sha256: str) -> None:
    """Submit an upload, and check the recording of the job."""
    answer = server.client.post("/v1/jobs", json={"upload": url.rpartition("/")[2]})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert job["filename"] == "talk.wav"
    found = hashlib.sha256()
    with server.client.stream("GET", f"/v1/jobs/{job['id']}/audio") as audio:
        for chunk in audio.iter_bytes():
            found.update(chunk)
    assert found.hexdigest() == sha256
    server.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    assert not server.left_files()
