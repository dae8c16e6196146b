"""The real service as its users run it: a process of its own, reached over HTTP, and always ended."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from app.pool.helper import NICENESS as HELPER_NICENESS
from tests.e2e.forked import ForkedProcess

WHISPERFLEET = Path(sys.executable).with_name("whisperfleet")
DATA = Path(__file__).parents[1] / "data"
START_S = 60.0  # the machine may be busy with other things
ANSWER_S = 120.0

# Settings of a server without a model: instead of those of the demo, which `environment` has.
SIMULATED: dict[str, Any] = {
    "WHISPER_ENGINE": "simulated",
    "WHISPER_MODEL": None,
    "WHISPER_DEVICE": None,
    "WHISPER_GPUS": None,
}
# Those of most servers that need no model, and with a key: tests with the same settings share a server.
ONE_SIMULATED = SIMULATED | {"WHISPER_CPU_WORKERS": 1}
KEY = "open-sesame"
OTHER_KEY = "sk-other"
KEYED = ONE_SIMULATED | {"key": KEY, "WHISPER_API_KEYS": f"{OTHER_KEY}, {KEY}"}

PORTS = range(20_000, 32_000)
_turn = itertools.count(7919 * os.getpid())  # tests that run side by side begin at different ports

T = TypeVar("T")


def wait_for(what: Callable[[], T], timeout_s: float = 30.0, pause_s: float = 0.05) -> T:
    """What `what` returns, as soon as that is true. Fails after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not (found := what()):
        assert time.monotonic() < deadline, f"it did not happen within {timeout_s:.0f} s"
        time.sleep(pause_s)
    return found


def free_port() -> int:
    """A port that nobody listens at, and that the kernel gives to nobody who asks for any."""
    while True:
        port = PORTS[next(_turn) % len(PORTS)]
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def environment(folder: Path, **settings: object) -> dict[str, str]:
    """The environment of a command. By default, its settings are a demo on two "GPUs", and any free port."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WHISPER_", "HF_", "CUDA_")) and not name.lower().endswith("_proxy")
    }
    chosen: dict[str, object] = {
        "WHISPER_MODEL": "demo",
        "WHISPER_DEVICE": "cpu",
        "WHISPER_GPUS": "0,1",
        "WHISPER_CPU_THREADS": 1,
        "WHISPER_DATA_DIR": folder / "data",
        "WHISPER_PORT": free_port(),
        "HF_HUB_OFFLINE": 1,
        "HF_HOME": folder / "huggingface",
        "HOME": folder / "home",
    }
    chosen |= settings
    return inherited | {name: str(value) for name, value in chosen.items() if value is not None}


class Command:
    """`whisperfleet …` in a session of its own: processes that it leaves running can be found and ended."""

    def __init__(self, folder: Path, *arguments: object, **settings: object) -> None:
        (folder / "home").mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.data = folder / "data"
        self._out, self._err = folder / "stdout", folder / "stderr"
        words, environ = [str(WHISPERFLEET), *map(str, arguments)], environment(folder, **settings)
        self.process = (
            self._started(words, environ)
            if any(name.startswith("PYTHON") for name in settings)  # Python reads them when it starts
            else ForkedProcess(words, environ, folder, self._out, self._err)
        )
        self.pid = self.process.pid

    def _started(self, words: list[str], environ: dict[str, str]) -> subprocess.Popen[bytes]:
        with self._out.open("wb") as out, self._err.open("wb") as err:
            return subprocess.Popen(
                words,
                env=environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                # A test run in the background of a shell ignores Ctrl-C, and what it starts would, too.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    @property
    def stdout(self) -> str:
        return self._out.read_bytes().decode()

    @property
    def stderr(self) -> str:
        return self._err.read_bytes().decode()

    def wait(self, timeout_s: float = ANSWER_S) -> int:
        return self.process.wait(timeout_s)

    def running(self) -> list[psutil.Process]:
        """The processes of the session, also those that have lost their parent."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def end(self) -> list[str]:
        """Stop the command. Returns and kills the processes that it left running."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(5)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not self.running(), 5)
        left = []
        for process in self.running():
            with contextlib.suppress(psutil.Error):
                left.append(" ".join(process.cmdline()) or process.name())
                process.kill()
        return left


class Server(Command):
    """`whisperfleet serve` on a loopback port, and a client for it."""

    def __init__(
        self, folder: Path, *, key: str | None = None, port: int | None = None, **settings: object
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # Certificates, which take long to load, are of no use here.
        self.client = httpx.Client(
            base_url=self.url, timeout=ANSWER_S, trust_env=False, headers=headers, verify=False
        )
        super().__init__(folder, "serve", "--port", self.port, **settings)

    def end(self) -> list[str]:
        self.client.close()
        return super().end()

    def wait_until_up(self) -> "Server":
        """Wait until the server answers."""
        wait_for(lambda: self._status("/health") == 200, START_S, 0.1)
        return self

    def wait_until_ready(self) -> "Server":
        """Wait until all workers are loaded."""
        self.wait_until_up()
        # Each answer takes time that the workers need.
        wait_for(
            lambda: all(row["state"] == "idle" for row in self.workers() or [{"state": ""}]), START_S, 0.1
        )
        assert self._status("/ready") == 200
        return self

    def _status(self, path: str) -> int:
        assert self.process.poll() is None, f"the server ended: {self.stderr}"
        try:
            return self.client.get(path).status_code
        except httpx.TransportError:
            return 0

    def workers(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.client.get("/v1/workers").raise_for_status().json()["data"]
        return rows

    def post(
        self, recording: Path | bytes, path: str = "transcriptions", *, headers: Any = None, **fields: Any
    ) -> httpx.Response:
        """Send a recording to be transcribed."""
        content = recording if isinstance(recording, bytes) else recording.read_bytes()
        name = "recording" if isinstance(recording, bytes) else recording.name
        return self.client.post(
            f"/v1/audio/{path}",
            data={"model": "whisper-1"} | fields,
            files={"file": (name, content)},
            headers=headers,
        )

    def text(self, recording: Path | bytes, path: str = "transcriptions", **fields: Any) -> str:
        """A recording's transcript, as text unless `fields` name another format."""
        answer = self.post(recording, path, **{"response_format": "text"} | fields)
        assert answer.status_code == 200, answer.text
        return answer.text

    def submit(self, recording: Path, *, headers: Any = None, **fields: Any) -> dict[str, Any]:
        """Submit a recording as a job."""
        with recording.open("rb") as content:
            answer = self.client.post(
                "/v1/jobs", data=fields, files={"file": (recording.name, content)}, headers=headers
            )
        assert answer.status_code == 202, answer.text
        job: dict[str, Any] = answer.json()
        return job

    def job(self, job_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.client.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        return job

    def finished(self, job_id: str, timeout_s: float = ANSWER_S) -> dict[str, Any]:
        """A job, once it has ended."""

        def end() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["status"] in ("succeeded", "failed", "cancelled") else None

        return wait_for(end, timeout_s, pause_s=0.1)  # type: ignore[return-value]

    def result(self, job_id: str, form: str = "srt") -> str:
        answer = self.client.get(f"/v1/jobs/{job_id}/result", params={"format": form})
        assert answer.status_code == 200, answer.text
        return answer.text

    def srt(self, recording: Path | bytes, **fields: Any) -> str:
        return self.text(recording, response_format="srt", **fields)

    def media_workers(self) -> list[psutil.Process]:
        """The media workers: the children that are neither Whisper workers, nor helper, nor Python's own."""
        workers = {row["pid"] for row in self.workers()}
        server = psutil.Process(self.pid)
        return [
            child
            for child in server.children()
            if child.pid not in workers
            and "spawn_main" in " ".join(child.cmdline())
            and child.nice() != server.nice() + HELPER_NICENESS
        ]

    def left_files(self) -> list[Path]:
        """The recordings, their copies and decoded audio in the data folder."""
        return [path for folder in ("uploads", "pcm", "copies") for path in (self.data / folder).iterdir()]

    def signal(self, number: int) -> None:
        """Send a signal to the server alone."""
        self.process.send_signal(number)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def die(self) -> None:
        """Kill the server itself, and wait until its children have ended."""
        self.kill(self.pid)
        self.wait(10)
        wait_for(lambda: not self.running(), 10)

    @contextlib.contextmanager
    def killed(self, pid: int) -> Iterator[None]:
        """Kill a worker; processes that start meanwhile are held, so that a test sees the time between."""
        parent = psutil.Process(self.pid)
        before = parent.children()
        held: list[psutil.Process] = []  # the one that replaces it, and perhaps a media worker

        def hold() -> bool:
            for child in parent.children():
                if child not in [*before, *held]:
                    child.suspend()
                    held.append(child)
            return bool(held) and any(row["state"] == "restarting" for row in self.workers())

        self.kill(pid)
        try:
            wait_for(hold)
            yield
        finally:
            for child in held:
                child.resume()
