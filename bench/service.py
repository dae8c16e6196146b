"""The service that a benchmark measures: a running one, or a new one with the demo model."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from app.pool.helper import NICENESS as HELPER_NICENESS

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-m", "app.cli")
START_S = 120
QUIET_S = 120


@contextmanager
def running_service(url: str | None = None, **environment: str) -> Iterator[httpx.Client]:
    """A client of the service at `url`, or of a new one that runs until the end of the block.

    `environment` is added to the environment of the new service.
    """
    if url is not None:
        with httpx.Client(base_url=url, timeout=None) as client:
            yield client
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        started_service(COMMAND, ROOT, **{"WHISPER_DATA_DIR": folder} | environment) as (client, _),
    ):
        yield client


@contextmanager
def started_service(
    command: Sequence[str], root: Path, stderr: IO[bytes] | None = None, **environment: str
) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """A client of the new service of the checkout at `root`, and its process.

    `command` is what stands before `serve` in the command line.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"WHISPER_MODEL": "demo", "WHISPER_DEVICE": "cpu", "WHISPER_LOG_LEVEL": "error"}
    process = subprocess.Popen(
        [*command, "serve", "--port", str(port)],
        cwd=root,
        env=os.environ | settings | environment,
        stderr=stderr,
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=None, trust_env=False) as client:
            _wait_until_ready(client, process)
            yield client, process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def until_idle(client: httpx.Client) -> None:
    """Wait until all workers are idle and no process of the service uses CPU any more."""
    children = processes(client)
    before = [sum(child.cpu_times()[:2]) for child in children]

    def idle() -> bool:
        nonlocal before
        now = [sum(child.cpu_times()[:2]) for child in children]
        same, before = now == before, now
        return same and all(row["state"] == "idle" for row in workers(client))

    wait_for(idle, QUIET_S, pause_s=0.2)


def workers(client: httpx.Client) -> list[dict]:
    return client.get("/v1/workers").raise_for_status().json()["data"]


def processes(client: httpx.Client) -> list[psutil.Process]:
    """The service's workers, then its media workers."""
    pids = [row["pid"] for row in workers(client)]
    server = server_process(client)
    media = [
        child
        for child in server.children()
        if child.pid not in pids
        and "spawn_main" in " ".join(child.cmdline())
        and child.nice() != server.nice() + HELPER_NICENESS
    ]
    return [*map(psutil.Process, pids), *media]


def server_process(client: httpx.Client) -> psutil.Process:
    """The process that serves HTTP."""
    parent = psutil.Process(workers(client)[0]["pid"]).parent()
    assert parent is not None
    return parent


def submit_job(client: httpx.Client, path: Path, **options: str) -> str:
    """The id of a new job with this recording."""
    with path.open("rb") as content:
        answer = client.post(
            "/v1/jobs",
            content=content,
            params={"filename": path.name, **options},
            headers={"Content-Type": "application/octet-stream"},
        )
    return str(answer.raise_for_status().json()["id"])


def job_row(client: httpx.Client, job: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/v1/jobs/{job}").raise_for_status().json()
    return found


def finished_job(
    client: httpx.Client, job: str, timeout_s: float = 3600, pause_s: float = 0.5
) -> dict[str, Any]:
    """The row of a job, once it has succeeded. Raises RuntimeError if it fails."""
    deadline = time.monotonic() + timeout_s
    while (row := job_row(client, job))["status"] != "succeeded":
        if row["status"] not in ("queued", "running") or time.monotonic() > deadline:
            raise RuntimeError(f"job {job} has not succeeded: {row}")
        time.sleep(pause_s)
    return row


def wait_for(condition: Callable[[], object], timeout_s: float, pause_s: float = 0.1) -> None:
    """Wait until `condition()` is true. Raises RuntimeError after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the condition was not met within {timeout_s:.0f} s")
        time.sleep(pause_s)


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    def ready() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with exit code {process.returncode}")
        try:
            return client.get("/ready").status_code == 200 and all(
                row["state"] == "idle" for row in workers(client)
            )
        except httpx.TransportError:
            return False

    wait_for(ready, START_S, pause_s=0.2)
