"""The service behind nginx and a login proxy, as the documentation configures them."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, ONE_SIMULATED, Server, free_port, wait_for
from tests.nginx import MISSING, REQUIRED, find_nginx, running_nginx

pytestmark = pytest.mark.timeout(120)

TALK = DATA / "talk.flac"
COOKIE = "_oauth2_proxy"


class _Login(BaseHTTPRequestHandler):
    """Answers as oauth2-proxy: the cookie is the user's address."""

    def do_GET(self) -> None:
        user = dict(part.split("=", 1) for part in self.headers.get("cookie", "").split("; ") if part).get(
            COOKIE
        )
        if self.path == "/oauth2/auth":
            self.send_response(202 if user else 401)
            if user:
                self.send_header("X-Auth-Request-Email", user)
        else:
            self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None: ...


@contextmanager
def login_proxy() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Login) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(10)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text("alice:sk-alice\nsk-operator\n")
    return file


@pytest.fixture
def service(commands: Commands, keys: Path) -> Server:
    return commands.ready(
        key="sk-operator",
        **ONE_SIMULATED,
        WHISPER_API_KEYS_FILE=str(keys),
        WHISPER_TRUSTED_USER_HEADER="X-Forwarded-User",
    )


def submitted(client: httpx.Client, **headers: str) -> str:
    with TALK.open("rb") as recording:
        answer = client.post("/v1/jobs", files={"file": ("talk.flac", recording)}, headers=headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


@pytest.mark.skipif(find_nginx() is None and not REQUIRED, reason=MISSING)
def test_users_own_their_jobs_and_links_need_no_account(service: Server, tmp_path: Path) -> None:
    port = free_port()
    front = httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=False, trust_env=False, timeout=30)
    jane, john = ({"Cookie": f"{COOKIE}={name}@example.org"} for name in ("jane", "john"))

    def status(path: str, **headers: str) -> int:
        return front.get(path, headers=headers).status_code

    def answers() -> bool:
        try:
            return status("/health") == 200
        except httpx.TransportError:
            return False

    with (
        front,
        login_proxy() as login_port,
        running_nginx(tmp_path / "nginx", port, service.port, "nginx-login.conf", login_port),
    ):
        wait_for(answers)
        assert status("/") == 200, "the page itself needs no account"
        assert (status("/v1/jobs"), status("/v1/jobs", **jane)) == (401, 200)
        assert front.get("/login").headers["location"].endswith("/oauth2/sign_in?rd=/login")
        assert front.get("/login", headers=jane).headers["location"] == "./"
        job = submitted(front, **jane)
        wait_for(lambda: front.get(f"/v1/jobs/{job}", headers=jane).json()["finished_at"])
        path = f"/v1/jobs/{job}"
        assert [status(path, **user) for user in (jane, john, bearer("sk-operator"), bearer("sk-alice"))] == [
            200,
            404,
            200,
            404,
        ]
        # nginx replaces what a client claims.
        assert status(path, **john, **{"X-Forwarded-User": "jane@example.org"}) == 404
        assert status(path, **{"X-Forwarded-User": "jane@example.org"}) == 401
        shared = front.post(f"{path}/shared", json={}, headers=jane).json()
        by_link = bearer(shared["token"])
        assert front.get(path, headers=by_link).json()["id"] == job
        made = front.post(f"{path}/links", json={"path": "audio"}, headers=by_link).json()["path"]
        assert front.get(made, headers={"Range": "bytes=0-3"}).content == b"fLaC"


def test_sighup_reads_the_keys_again(service: Server, keys: Path) -> None:
    with httpx.Client(base_url=service.url, trust_env=False, timeout=30) as client:
        job = submitted(client, **bearer("sk-alice"))

        def status(key: str) -> int:
            return client.get(f"/v1/jobs/{job}", headers=bearer(key)).status_code

        keys.write_text("alice:sk-new\nsk-operator\n")
        os.kill(service.process.pid, signal.SIGHUP)
        wait_for(lambda: status("sk-new") == 200)
        assert status("sk-alice") == 401
        # The proxy is this machine; elsewhere the header says nothing, see `test_owners`.
        me = client.get("/v1/me", headers={"X-Forwarded-User": "jane"}).json()
        assert json.dumps(me) == json.dumps({"owner": "jane", "operator": False, "shared": None})


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_the_log_escapes_what_a_proxy_passes_on_and_names_guessable_keys(
    commands: Commands, log_format: str
) -> None:
    server = commands.ready(
        key="sk-operator",
        **ONE_SIMULATED,
        WHISPER_API_KEYS="sk-operator,alice:3f0c9b57d2e84a16b07f95dc41e8a263",
        WHISPER_LOG_FORMAT=log_format,
    )
    files = sorted(server.folder.rglob("whisperfleet.db*"))
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in files if file.suffix != ".lock"}
    assert modes == dict.fromkeys(("whisperfleet.db", "whisperfleet.db-shm", "whisperfleet.db-wal"), "0o600")
    address = "\x1b[2J\x7f\x9b.example".encode("latin-1")
    server.client.get("/nowhere%1b[2J%c2%9b", headers=[(b"X-Forwarded-For", address)])
    server.process.send_signal(signal.SIGTERM)
    server.wait()
    log = server.stderr
    [line] = [line for line in log.splitlines() if "nowhere" in line]
    assert ".example" in line
    assert line.isprintable(), line
    [warning] = [line for line in log.splitlines() if "strangers could get in" in line]
    assert "key-" in warning
    assert "alice" not in warning
    assert "sk-operator" not in log
