"""One service of three processes: one address, and nothing left behind however it ends."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.e2e.fixtures import Commands
from tests.e2e.running import SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(240)

NAMES = ["box-0", "box-1", "box-2"]
THREE = SIMULATED | {
    "WHISPER_SIMULATED": "clip_ms=500,batch=1",
    "WHISPER_CPU_WORKERS": 3,
    "WHISPER_PROCESSES": 3,
    "WHISPER_FRONT_END": "box",
}


def answer(server: Server, path: str) -> Any:
    """What any of the processes answers; nothing if the one that was asked has just ended."""
    try:
        return httpx.get(f"{server.url}{path}", timeout=30).raise_for_status().json()
    except httpx.TransportError:
        return {"data": []}


def pids(server: Server) -> dict[str, int]:
    """The processes whose worker is ready: a simulated worker is in its server process."""
    rows = answer(server, "/v1/workers")["data"]
    return {row["front_end"]: row["pid"] for row in rows if row["state"] in ("idle", "busy")}


def all_pids(server: Server, but: int = 0) -> dict[str, int]:
    """Those of all three processes, once they are ready and `but` is none of them."""

    def found() -> dict[str, int] | None:
        there = pids(server)
        return there if sorted(there) == NAMES and but not in there.values() else None

    return wait_for(found, 120)  # type: ignore[return-value]


@contextmanager
def steady_requests(server: Server) -> Iterator[list[str]]:
    """Requests on connections of their own; those that fail."""
    failed: list[str] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(0.02):
            try:
                httpx.get(f"{server.url}/ready", timeout=60).raise_for_status()
            except httpx.HTTPError as error:
                failed.append(repr(error))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield failed
    finally:
        ended.set()
        asking.join()


@pytest.mark.soak
def test_processes_are_replaced_and_an_update_refuses_no_request(commands: Commands, talk: Any) -> None:
    server = commands.serve(**THREE)
    before = all_pids(server)
    assert server.pid not in before.values()
    wait_for(lambda: answer(server, "/health")["front_ends"] == 3)
    jobs = [server.submit(talk.path)["id"] for _ in range(6)]
    os.kill(before["box-1"], signal.SIGKILL)
    after = all_pids(server, but=before["box-1"])
    assert (after["box-0"], after["box-2"]) == (before["box-0"], before["box-2"])
    with steady_requests(server) as failed:
        os.kill(server.pid, signal.SIGUSR2)
        wait_for(lambda: "all server processes were replaced" in server.stderr, 120)
    assert not failed
    assert not set(all_pids(server).values()) & {*before.values(), *after.values()}
    server.client.close()  # its connection may have been one of the killed process
    server.client = httpx.Client(base_url=server.url, timeout=60)
    assert [server.finished(job)["status"] for job in jobs] == ["succeeded"] * 6
    assert len({server.result(job) for job in jobs}) == 1
    server.process.terminate()
    assert server.wait() == 0
    wait_for(lambda: not server.running(), 5)


def test_nothing_is_left_running_if_the_supervisor_is_killed(commands: Commands) -> None:
    server = commands.serve(**THREE)
    all_pids(server)
    os.kill(server.pid, signal.SIGKILL)
    wait_for(lambda: not server.running(), 30)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"WHISPER_CPU_WORKERS": 2}, "WHISPER_PROCESSES=3: there are 2 workers, and each process needs one"),
        ({"WHISPER_FRONT_END": "a/b"}, "WHISPER_FRONT_END='a/b'"),
    ],
)
def test_what_does_not_fit_is_refused(commands: Commands, settings: dict[str, Any], reason: str) -> None:
    done = commands.run("serve", **THREE | settings)
    assert (done.wait(), reason in done.stderr, len(done.stderr.splitlines())) == (2, True, 1), done.stderr
