"""A service for a bench to ask: one that runs already, or one of its own with the demo model."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

START_S = 120


@contextmanager
def running_service(url: str | None = None, **environment: str) -> Iterator[httpx.Client]:
    """A client of the service at `url`, or of one that is started here and ended afterwards.

    `environment` is added to that of the service started here.
    """
    if url is not None:
        with httpx.Client(base_url=url, timeout=None) as client:
            yield client
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"WHISPER_MODEL": "demo", "WHISPER_DEVICE": "cpu", "WHISPER_DATA_DIR": folder}
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", "--port", str(port)],
            env=os.environ | settings | environment | {"WHISPER_LOG_LEVEL": "warning"},
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=None) as client:
                _wait_until_ready(client, process)
                yield client
        finally:
            process.terminate()
            process.wait(20)


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with exit code {process.returncode}")
        try:
            if client.get("/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"the service was not ready within {START_S} s")
