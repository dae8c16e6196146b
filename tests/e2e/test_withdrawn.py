"""What ends when a key is removed or replaced, its owner withdrawn, a link revoked, a job deleted, …"""

import base64
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.e2e.documentation import section
from tests.e2e.fixtures import Commands, write_wav
from tests.e2e.running import DATA, SIMULATED, Server, wait_for
from tests.media_files import RATE
from tests.pages import ROOT
from tests.slow_readers import ask, read_all
from tests.tables import table

pytestmark = pytest.mark.timeout(120)

PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- what ends -->\n", "\n<!-- what ends ends -->"
OPERATOR = "sk-operator-of-the-tests"
TUS = {"Tus-Resumable": "1.0.0"}
SHARE_MB = 20
SETTINGS = SIMULATED | {
    "key": OPERATOR,
    "WHISPER_CPU_WORKERS": 2,
    "WHISPER_SIMULATED": "clip_ms=60000,batch=1",  # what has speech goes on to the end of the test
    "WHISPER_WEBHOOK_SECRET": "whsec_" + base64.b64encode(bytes(32)).decode(),
    "WHISPER_WEBHOOK_ALLOW_PRIVATE": 1,
    "WHISPER_OWNER_STORAGE_MB": SHARE_MB,
}


class Service:
    """A service with a file of keys, which tests change."""

    def __init__(self, commands: Commands, folder: Path, **settings: Any) -> None:
        self.file, self.budgets = folder / "keys", folder / "budgets"
        self.budgets.touch()
        self.keys = {"ops": f"{OPERATOR}:operator"}
        self._write()
        files = {"WHISPER_API_KEYS_FILE": self.file, "WHISPER_BUDGETS_FILE": self.budgets}
        self.server: Server = commands.ready(**SETTINGS, **files, **settings)

    def put(self, **keys: str | None) -> None:
        """Give owners other keys, or none, and wait until the service knows."""
        reads = self._reads()
        self.keys = {name: key for name, key in (self.keys | keys).items() if key is not None}
        self._write()
        self.server.signal(signal.SIGHUP)
        wait_for(lambda: self._reads() > reads)

    def client(self, key: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.server.url, headers=headers, trust_env=False, timeout=30)

    def withdraw(self, name: str) -> None:
        self.server.client.post(f"/v1/owners/{name}/withdraw").raise_for_status()

    def _reads(self) -> int:
        return self.server.stderr.count("keys and budgets were read again")

    def _write(self) -> None:
        self.file.write_text("".join(f"{name}:{key}\n" for name, key in self.keys.items()))


@pytest.fixture(scope="module")
def service(module_commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Service:
    return Service(module_commands, tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def silence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of it ends at once, and its recording is more than a connection takes."""
    return write_wav(tmp_path_factory.mktemp("silence"), np.zeros(120 * RATE, np.int16))


def live_stream(server: Server, key: str, query: str = "") -> ClientConnection:
    headers = {"Authorization": f"Bearer {key}"}
    return connect(f"ws://127.0.0.1:{server.port}/v1/realtime{query}", proxy=None, additional_headers=headers)


def has_closed(client: ClientConnection) -> bool:
    try:
        while True:
            client.recv(0.01)
    except TimeoutError:
        return False
    except ConnectionClosed:
        return (client.close_code, "withdrawn" in (client.close_reason or "")) == (1008, True)


def has_ended(connection: socket.socket) -> bool:
    """Whether an event stream has, or an upload."""
    connection.settimeout(0.01)
    try:
        while received := connection.recv(1 << 16):
            if received.startswith(b"HTTP/1.1 401"):
                return True
    except TimeoutError:
        return False
    return True


def is_cut(connection: socket.socket) -> bool:
    """Whether less comes than the answer was to have."""
    connection.settimeout(15)
    head, _, body = read_all(connection).partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head)
    assert found is not None
    return len(body) < int(found[1])


@dataclass
class Holdings:
    """What one owner has made and holds open."""

    service: Service
    name: str
    key: str
    done: str  # ids of jobs
    running: str
    link: dict[str, Any]

    def __post_init__(self) -> None:
        server, path = self.service.server, f"/v1/jobs/{self.done}"
        self.mine, self.by_link = self.service.client(self.key), self.service.client(self.link["token"])
        self.links = self.signed_links()
        self.events = ask(server.port, f"/v1/jobs/{self.running}/events", key=self.key)
        self.sent = ask(server.port, f"{path}/audio", key=self.key, connection="close")
        self.sent_by_link = ask(server.port, f"{path}/audio", key=self.link["token"], connection="close")
        self.stream, left = live_stream(server, self.key), live_stream(server, self.key)
        self.waiting = json.loads(left.recv(10))["session"]["id"]
        left.socket.shutdown(socket.SHUT_RDWR)
        answer = self.mine.post("/v1/uploads", headers=TUS | {"Upload-Length": "1000000"}, content=b"")
        self.upload = answer.raise_for_status().headers["location"]
        self.uploading = socket.create_connection(("127.0.0.1", server.port))
        head = f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
        kind = "Content-Type: audio/wav\r\nContent-Length: 900000\r\n\r\n"
        self.uploading.sendall(f"{head}{kind}".encode() + bytes(100_000))
        for connection in (self.events, self.sent, self.sent_by_link):
            assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"

    def signed_links(self) -> list[str]:
        """The path of a new one, and of one that the shared link makes."""
        path, wanted = f"/v1/jobs/{self.done}/links", {"path": "result"}
        answers = [client.post(path, json=wanted) for client in (self.mine, self.by_link)]
        return [answer.raise_for_status().json()["path"] for answer in answers]

    def ended(self, key: str) -> dict[str, bool]:
        """Of each thing, whether it has ended, and ends all. `key`: one that the owner has later."""
        server, owner, stranger = self.service.server, self.service.client(key), self.service.client("")
        job = server.client.get(f"/v1/jobs/{self.done}")
        ended = {
            "requests with the key": is_refused(self.mine.get("/v1/me")),
            "event streams that are open": has_ended(self.events),
            "live streams that are open": has_closed(self.stream),
            "live streams that wait for their client": not can_go_on(server, key, self.waiting),
            "uploads that are being sent": has_ended(self.uploading),
            "resumable uploads": is_refused(owner.head(self.upload, headers=TUS)),
            "jobs, with their recordings and transcripts": is_refused(job),
            "webhooks of jobs": is_refused(job) or job.json()["webhook_url"] is None,
            "shared links": is_refused(self.by_link.get(f"/v1/jobs/{self.done}")),
            "signed links to audio and results": is_refused(stranger.get(self.links[0])),
            "the same, which a shared link has made": is_refused(stranger.get(self.links[1])),
            "recordings that are being sent": is_cut(self.sent),
            "the same, by a shared link": is_cut(self.sent_by_link),
        }
        for connection in (self.events, self.uploading, self.sent, self.sent_by_link, self.stream):
            connection.close()
        server.client.delete(f"/v1/jobs/{self.running}")  # others have its worker
        return ended


def is_refused(answer: httpx.Response) -> bool:
    assert answer.status_code < 500 or answer.status_code == 507, answer.text
    return answer.status_code >= 400


def can_go_on(server: Server, key: str, session: str) -> bool:
    """Whether a live stream waits for its client."""
    try:
        live_stream(server, key, f"?session={session}").close()
    except InvalidStatus as refused:
        return refused.response.status_code != 404
    return True


def submitted(client: httpx.Client, path: Path, **fields: Any) -> httpx.Response:
    return client.post("/v1/jobs", data=fields, files={"file": ("talk.wav", path.read_bytes())})


def hold(service: Service, name: str, silence: Path) -> Holdings:
    """What a new owner has made and holds open."""
    key = f"sk-of-{name}"
    service.put(**{name: key})
    client = service.client(key)
    done = submitted(client, silence, webhook_url="http://127.0.0.1:9/").raise_for_status().json()["id"]
    running = submitted(client, DATA / "short00.flac").raise_for_status().json()["id"]
    assert service.server.finished(done)["status"] == "succeeded"
    link = client.post(f"/v1/jobs/{done}/shared", json={}).raise_for_status().json()
    return Holdings(service, name, key, done, running, link)


def remove(of: Holdings) -> str:
    of.service.put(**{of.name: None})
    return of.key


def replace(of: Holdings) -> str:
    of.service.put(**{of.name: f"sk-another-of-{of.name}"})
    return of.service.keys[of.name]


def withdraw(of: Holdings) -> str:
    of.service.withdraw(of.name)
    return of.key


def revoke(of: Holdings) -> str:
    of.mine.delete(f"/v1/jobs/{of.done}/shared/{of.link['id']}").raise_for_status()
    return of.key


def delete(of: Holdings) -> str:
    for job in (of.done, of.running):
        of.mine.delete(f"/v1/jobs/{job}").raise_for_status()
    return of.key


def trash(of: Holdings) -> str:
    for job in (of.done, of.running):
        of.mine.post(f"/v1/jobs/{job}/trash").raise_for_status()
    return of.key


def fill(of: Holdings) -> str:
    size = SHARE_MB * 10**6
    while size > 1000:
        answer = of.mine.post("/v1/uploads", headers=TUS | {"Upload-Length": str(size)})
        size = size // 2 if answer.status_code == 507 else size
    return of.key


# What may happen to an owner. Each returns a key of it, perhaps the last one that it had.
EVENTS: dict[str, Callable[[Holdings], str]] = {
    "its name is removed": remove,
    "its key is replaced": replace,
    "it is withdrawn": withdraw,
    "a shared link is revoked": revoke,
    "its jobs are deleted": delete,
    "its jobs are in the trash": trash,
    "it is over its share": fill,
}


def test_the_documentation_says_what_ends(service: Service, silence: Path) -> None:
    """`REWRITE=1` writes the table anew."""
    *owners, bystander = (hold(service, f"owner{number}", silence) for number in range(len(EVENTS) + 1))
    columns = []
    for event, owner in zip(EVENTS.values(), owners, strict=True):
        owner.links, signed_by_another = owner.signed_links(), bystander.signed_links()[0]
        key = event(owner)
        refused = is_refused(submitted(service.client(key), DATA / "short00.flac"))
        if owner.name not in service.keys:
            key = f"sk-again-of-{owner.name}"
            service.put(**{owner.name: key})  # a name that comes back
        ended = owner.ended(key)
        assert not is_refused(service.client("").get(signed_by_another))
        columns.append({"new jobs and uploads": "refused" if refused else "go on"} | said(ended))
    bystander.links = bystander.signed_links()
    assert set(said(bystander.ended(bystander.key)).values()) == {"stays"}
    made = "\n".join(
        table(["of an owner", *EVENTS], ([row, *(c[row] for c in columns)] for row in columns[0]))
    )
    text = PAGE.read_text(encoding="utf-8")
    written = text.partition(BEGIN)[2].partition(END)[0]
    if os.environ.get("REWRITE"):
        PAGE.write_text(text.replace(f"{BEGIN}{written}{END}", f"{BEGIN}{made}{END}"), encoding="utf-8")
    else:
        assert written == made, "see what differs; REWRITE=1 writes it"


def said(ended: dict[str, bool]) -> dict[str, str]:
    return {row: "ends" if has_ended else "stays" for row, has_ended in ended.items()}


def test_the_steps_of_the_documentation_for_a_key_that_has_leaked(service: Service, silence: Path) -> None:
    """Afterwards, nothing is left to the thief, and the owner goes on with the new key and the jobs."""
    stolen = hold(service, "alice", silence)
    [block] = section("docs/security.md", "A key has leaked")
    commands = (
        block.text.replace("/etc/whisperfleet.keys", str(service.file))
        .replace("systemctl kill --signal=HUP whisperfleet", f"kill -HUP {service.server.pid}")
        .replace("localhost:8000", f"127.0.0.1:{service.server.port}")
    )
    variables = {"KEY": OPERATOR, "PATH": os.environ["PATH"]}
    subprocess.run(["bash", "-euo", "pipefail", "-c", commands], check=True, env=variables, timeout=60)
    service.keys = dict(line.split(":", 1) for line in service.file.read_text().splitlines())
    key = service.keys["alice"]
    assert key != stolen.key
    ended = stolen.ended(key)
    assert ended.pop("jobs, with their recordings and transcripts") is False
    assert [thing for thing, has_ended in ended.items() if not has_ended] == []
    assert service.client(key).get("/v1/jobs").json()["data"][-1]["id"] == stolen.done


def test_a_request_under_way_makes_nothing_that_outlives_its_key(service: Service, silence: Path) -> None:
    """Its body comes later: until then, the link is not made."""
    thief = hold(service, "eve", silence)
    head = f"POST /v1/jobs/{thief.done}/shared HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    late = socket.create_connection(("127.0.0.1", service.server.port))
    kind = f"Content-Type: application/json\r\nAuthorization: Bearer {thief.key}\r\n\r\n"
    late.sendall(f"{head}{kind}".encode())
    time.sleep(0.3)
    service.put(eve=None)
    with suppress(OSError):
        late.sendall(b"{}")
    late.settimeout(10)
    answer = late.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"was withdrawn meanwhile" in answer
    links = service.server.client.get(f"/v1/jobs/{thief.done}/shared").json()["data"]
    assert links == []
    thief.ended(OPERATOR)


def test_a_thief_who_never_stops_keeps_nothing(service: Service, silence: Path) -> None:
    """What its last requests make ends, too, whenever the withdrawal comes in their middle."""
    service.put(mallory="sk-of-mallory")
    thief = service.client("sk-of-mallory")
    job = submitted(thief, silence).raise_for_status().json()["id"]
    assert service.server.finished(job)["status"] == "succeeded"
    form = {
        "data": {"webhook_url": "http://127.0.0.1:9/"},
        "files": {"file": ("a.wav", silence.read_bytes()[:9999])},
    }

    made: dict[str, list[httpx.Response]] = {"shared": [], "links": [], "uploads": [], "jobs": []}

    def go_on(kind: str, path: str, **body: Any) -> None:
        while (answer := thief.post(path, **body)).status_code != 401:
            made[kind] += [answer] if answer.is_success else []

    with ThreadPoolExecutor(8) as threads:
        threads.submit(go_on, "shared", f"/v1/jobs/{job}/shared", json={})
        threads.submit(go_on, "links", f"/v1/jobs/{job}/links", json={"path": "result"})
        threads.submit(go_on, "uploads", "/v1/uploads", headers=TUS | {"Upload-Length": "9"})
        for _ in range(5):  # submissions go on although their requests are cancelled
            threads.submit(go_on, "jobs", "/v1/jobs", **form)
        wait_for(lambda: all(made.values()))
        service.put(mallory=None)
    service.put(mallory="sk-of-mallory")
    assert service.server.client.get(f"/v1/jobs/{job}/shared").json()["data"] == []
    stranger = service.client("")
    signed = {stranger.get(link.json()["path"]).status_code for link in made["links"]}
    uploads = {thief.head(each.headers["location"], headers=TUS).status_code for each in made["uploads"]}
    assert (signed, uploads) == ({403}, {404})
    listed = thief.get("/v1/jobs?limit=100").json()["data"]
    assert {job["webhook_url"] for job in listed} == {None}


def test_budgets_are_read_again_with_the_keys(service: Service, silence: Path) -> None:
    service.put(carol="sk-carol-of-the-tests")
    with service.client("sk-carol-of-the-tests") as carol:
        service.budgets.write_text("carol:0\n")
        service.put()
        assert submitted(carol, silence).status_code == 429
        service.budgets.write_text("carol:no\n")
        service.server.signal(signal.SIGHUP)
        wait_for(lambda: "'carol:no' is no budget" in service.server.stderr)
        assert submitted(carol, silence).status_code == 429
        service.budgets.write_text("")
        service.put()
        assert submitted(carol, silence).status_code == 202


def test_an_operator_that_is_none_any_more_sees_no_more_of_others(service: Service) -> None:
    service.put(boss="sk-of-boss:operator")
    fleet = ask(service.server.port, "/v1/workers/events", key="sk-of-boss")
    assert fleet.recv(12) == b"HTTP/1.1 200"
    service.put(boss="sk-of-boss")
    assert wait_for(lambda: has_ended(fleet))
    assert service.client("sk-of-boss").get("/v1/me").json()["operator"] is False


def test_an_operator_may_withdraw_itself(service: Service) -> None:
    fleet = ask(service.server.port, "/v1/workers/events", key=OPERATOR)
    assert fleet.recv(12) == b"HTTP/1.1 200"
    service.withdraw("ops")
    assert wait_for(lambda: has_ended(fleet))
    assert service.server.client.get("/v1/me").json()["operator"] is True


def test_names_that_are_gone_at_the_next_start_are_withdrawn(
    commands: Commands, tmp_path: Path, silence: Path
) -> None:
    """Also if they come back later. A start without any keys withdraws nobody."""

    def start(*keys: str) -> Server:
        entries = ",".join((f"ops:{OPERATOR}:operator", *keys)) if keys else None
        return commands.serve(**SETTINGS, folder=tmp_path, WHISPER_API_KEYS=entries).wait_until_up()

    def stop(server: Server) -> None:
        server.process.terminate()
        server.wait()

    keys = ("ann:sk-ann", "bob:sk-bob")
    server = start(*keys)
    made = {}
    for key in ("sk-ann", "sk-bob"):
        bearer = {"Authorization": f"Bearer {key}"}
        client = httpx.Client(base_url=server.url, headers=bearer, trust_env=False)
        job = submitted(client, silence).raise_for_status().json()["id"]
        assert server.finished(job)["status"] == "succeeded"
        link = client.post(f"/v1/jobs/{job}/shared", json={}).raise_for_status().json()
        signed = client.post(f"/v1/jobs/{job}/links", json={"path": "result"}).raise_for_status().json()
        made[key] = (job, link["token"], signed["path"])
    stop(server)
    stop(start())
    stop(start("bob:sk-bob"))
    server = start(*keys)
    for key, (job, token, signed) in made.items():
        bearer = {"Authorization": f"Bearer {token}"}
        by_link = httpx.get(f"{server.url}/v1/jobs/{job}", headers=bearer, trust_env=False)
        by_signature = httpx.get(f"{server.url}{signed}", trust_env=False)
        wanted = (401, 403) if key == "sk-ann" else (200, 200)
        assert (by_link.status_code, by_signature.status_code) == wanted


def test_an_owner_fills_its_share_alone(commands: Commands, tmp_path: Path, silence: Path) -> None:
    """Of 6 MB: a job of 4 MB, and no second one until the first is deleted. Others are not concerned."""
    keys = f"ann:sk-ann,bob:sk-bob,{OPERATOR}"
    settings = SETTINGS | {"WHISPER_OWNER_STORAGE_MB": 6, "WHISPER_API_KEYS": keys}
    server = commands.ready(**settings, folder=tmp_path)

    def client(name: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer sk-{name}"}
        return httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=30)

    def check_refusal(answer: httpx.Response) -> None:
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (507, "storage_share_full")
        assert "Your jobs hold 4 MB" in error["message"]
        assert "Delete jobs" in error["message"]

    ann, bob = client("ann"), client("bob")
    job = submitted(ann, silence).raise_for_status().json()["id"]
    raw, wav = silence.read_bytes(), {"Content-Type": "audio/wav"}
    for _ in range(2):
        check_refusal(submitted(ann, silence))
        check_refusal(ann.post("/v1/jobs", content=iter([raw]), headers=wav))  # of no known size
        check_refusal(ann.post("/v1/uploads", headers=TUS | {"Upload-Length": "3000000"}))
        server.process.terminate()  # the next service knows it, too
        server.wait()
        server = commands.restart(server, **settings)
        ann, bob = client("ann"), client("bob")
    assert submitted(bob, silence).status_code == 202
    upload = ann.post("/v1/uploads", headers=TUS | {"Upload-Length": "2130000"}).raise_for_status()
    check_refusal(submitted(ann, DATA / "short00.flac"))
    ann.delete(upload.headers["location"], headers=TUS).raise_for_status()
    assert submitted(ann, DATA / "short00.flac").status_code == 202
    check_refusal(submitted(ann, silence))
    ann.delete(f"/v1/jobs/{job}").raise_for_status()
    assert submitted(ann, silence).status_code == 202
