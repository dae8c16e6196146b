"""The application on a loopback port, in front of a fake service."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fake_service import FakeService

from app.main import create_app
from app.settings import Settings

Serve = Callable[..., "Site"]


class Site:
    """A running application: its address, a client for it, and the service behind it."""

    def __init__(self, port: int, service: FakeService) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.service = service
        self.client = httpx.Client(base_url=self.url, timeout=15, trust_env=False)

    @property
    def uploads(self) -> list[Path]:
        folder = self.service.settings.data_dir / "uploads"
        return list(folder.iterdir()) if folder.exists() else []

    def transcribe(
        self,
        path: str = "transcriptions",
        *,
        headers: Any = None,
        content: bytes = b"RIFF\0audio",
        **data: Any,
    ) -> httpx.Response:
        fields = {"model": "whisper-1"} | data
        return self.client.post(
            f"/v1/audio/{path}",
            data={name: value for name, value in fields.items() if value is not None},
            files={"file": ("talk.wav", content)},
            headers=headers,
        )


@contextmanager
def serve_site(settings: Settings) -> Iterator[Site]:
    service = FakeService(settings)
    app = create_app(settings, service)  # type: ignore[arg-type]
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    site = Site(listener.getsockname()[1], service)
    try:
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        assert server.started
        yield site
    finally:
        site.client.close()
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
    assert not thread.is_alive()
    assert not service.running


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a site with the settings given."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Site:
            values = {"data_dir": tmp_path, "_env_file": None} | settings
            return stack.enter_context(serve_site(Settings(**values)))

        yield start


@pytest.fixture
def site(serve: Serve) -> Site:
    return serve()
