"""The application with a fake service, on a loopback port."""

import asyncio
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.commands.serve import OneOfSeveral, Server, uvicorn_config
from app.database.connection import FILE_NAME
from app.intake.limits import Admission
from app.main import create_app
from app.server.siblings import Siblings
from app.settings import Settings
from tests.api.fake_service import FakeService
from tests.api.waiting import wait_for
from tests.jobs.databases import put_tables

Serve = Callable[..., "Site"]
RECORDING = b"RIFF\0audio"
FORM = {"content_type": "multipart/form-data; boundary=b"}  # of what `form` begins
FORM_END = b"\r\n--b--\r\n"


def form(file_field: str = "file", **fields: str) -> bytes:
    """A form up to the first bytes of its file."""
    parts = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    head = f'--b\r\nContent-Disposition: form-data; name="{file_field}"; filename="a.wav"'
    return f"{parts}{head}\r\n\r\nRIFF".encode()


class Site:
    """A running application: its address, a client, and its fake service."""

    def __init__(self, port: int, service: FakeService, admission: Admission, server: Server) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.service = service
        self.admission = admission
        self.server = server
        # Certificates, which take long to load, are of no use here.
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False, verify=False)

    @property
    def uploads(self) -> list[Path]:
        return list(self.service.media.folder.uploads.iterdir())

    def reset(self) -> None:
        """Reset the service and delete all jobs. No file may be left then."""
        wait_for(lambda: not self.server.server_state.tasks)
        self.service.reset()
        self.client.cookies.clear()
        self.client.headers.pop("authorization", None)
        with sqlite3.connect(self.service.settings.data_dir / FILE_NAME) as database:
            jobs = [job for (job,) in database.execute("SELECT id FROM jobs WHERE parent IS NULL")]
        database.close()
        keys = [key.removesuffix(":operator").rpartition(":")[2] for key in self.service.settings.api_keys]
        for job in jobs:
            answers = (
                self.client.delete(f"/v1/jobs/{job}", headers={"authorization": f"Bearer {key}"})
                for key in keys or ["none"]
            )
            assert any(answer.is_success for answer in answers)
        if jobs:
            wait_for(lambda: not self.server.server_state.tasks)
            self.service.reset()
        assert not self.left_files

    @property
    def left_files(self) -> list[Path]:
        """The uploads, their copies and decoded recordings in the data folder."""
        folder = self.service.media.folder
        return [*folder.uploads.iterdir(), *folder.pcm.iterdir(), *folder.copies.iterdir()]

    def submit(self, content: bytes = RECORDING, *, headers: Any = None, **fields: Any) -> httpx.Response:
        """Submit a job as a form."""
        files = {"file": ("talk.wav", content)}
        return self.client.post("/v1/jobs", data=fields, files=files, headers=headers)

    def submitted(self, content: bytes = RECORDING, **fields: Any) -> str:
        """The id of a new job."""
        response = self.submit(content, **fields)
        assert response.status_code == 202, response.text
        return str(response.json()["id"])

    def begin(
        self, request: str, content: bytes = b"", *, length: int | None = None, **headers: object
    ) -> socket.socket:
        """A connection on which a request has begun: `request` is its method and path.

        Its body is `content`, or begins with it if it has a larger `length`.
        """
        headers = {"host": "localhost", "content_length": length or len(content)} | headers
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=15)
        connection.sendall(f"{request} HTTP/1.1\r\n{lines}\r\n".encode() + content)
        return connection

    def job(self, job_id: str) -> Any:
        return self.client.get(f"/v1/jobs/{job_id}").raise_for_status().json()

    def finished(self, job_id: str) -> Any:
        """A job, once it is done and its decoded audio is removed."""
        wait_for(lambda: self.job(job_id)["finished_at"])
        wait_for(lambda: not (self.service.media.folder.pcm / job_id).exists())
        return self.job(job_id)

    def transcribe(
        self,
        path: str = "transcriptions",
        *,
        headers: Any = None,
        content: bytes = RECORDING,
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
def serve_site(settings: Settings, siblings: Siblings | None = None) -> Iterator[Site]:
    database = settings.data_dir / FILE_NAME
    if settings.data_dir.is_dir() and not database.exists():
        put_tables(database)
    service = FakeService(settings)
    admission = Admission(settings, service.fleet.jobs_at_once)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.main.Admission", lambda *_: admission)
        app = create_app(settings, service, siblings=siblings)  # type: ignore[arg-type]
    config = uvicorn_config(app, settings)
    server = Server(app, config) if siblings is None else OneOfSeveral(app, config, siblings)
    # With IPPROTO_TCP, asyncio disables Nagle's algorithm, which would cost 40 ms per request.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    site = Site(listener.getsockname()[1], service, admission, server)
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


@pytest.fixture(scope="module")
def _sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """The sites of a module, by their settings."""
    with ExitStack() as stack:
        sites: dict[str, Site] = {}

        def start(**settings: Any) -> Site:
            name = repr(sorted(settings.items()))
            if name not in sites:
                folder = tmp_path_factory.mktemp("site")
                sites[name] = stack.enter_context(
                    serve_site(Settings(data_dir=folder, _env_file=None, **settings))
                )
            return sites[name]

        yield start


@pytest.fixture
def serve(_sites: Serve) -> Iterator[Serve]:
    """Starts a site with the given settings.

    The tests of a module share the server, which is reset after each. A test with a `data_dir` has its own.
    """
    with ExitStack() as stack:

        def start(**settings: Any) -> Site:
            if "data_dir" in settings:
                return stack.enter_context(serve_site(Settings(_env_file=None, **settings)))
            site = _sites(**settings)
            stack.callback(site.reset)
            return site

        yield start


@pytest.fixture
def site(serve: Serve) -> Site:
    """A site with default settings."""
    return serve()


@pytest.fixture
def downloading(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple["Site", str]]:
    """A site with a job whose recording never arrives, and the job's id."""

    async def download(*args: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("app.jobs.running.executor.download", download)
    site = serve(allow_urls=True)
    job = site.client.post("/v1/jobs", json={"url": "https://media.invalid/talk.mp3"}).json()["id"]
    yield site, job
    site.client.delete(f"/v1/jobs/{job}").raise_for_status()
