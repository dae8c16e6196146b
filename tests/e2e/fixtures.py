"""Servers: shared ones for tests that only send requests, others for tests that kill."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.e2e.reading import Talk
from tests.e2e.running import DATA, Command, Server, environment
from tests.e2e.sabotage import Sabotage
from tests.media_files import RATE, Pcm, read_pcm, wav_header


class Commands:
    """Starts commands, and ends them all. Fails if they left processes running."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: list[Command] = []

    def serve(self, **settings: Any) -> Server:
        """A server that may not have started yet."""
        return self._add(Server(self._next(settings), **settings))

    def ready(self, **settings: Any) -> Server:
        """A server whose workers are loaded."""
        return self.serve(**settings).wait_until_ready()

    def restart(self, server: Server, **settings: Any) -> Server:
        """A new server on the folder of one that has ended, which answers."""
        return self.serve(folder=server.folder, **settings).wait_until_up()

    def run(self, *arguments: object, **settings: Any) -> Command:
        """Any other command, after it has ended by itself."""
        command = self._add(Command(self._next(settings), *arguments, **settings))
        command.wait()
        return command

    def start(self, *arguments: object, **settings: Any) -> Command:
        """Any other command, which goes on."""
        return self._add(Command(self._next(settings), *arguments, **settings))  # type: ignore[no-any-return]

    def end(self) -> None:
        left = []
        for command in self.started:
            left += command.end()
            print(f"--- {command.folder}\n{command.stderr}")  # pytest shows it if a test fails
        assert not left, f"left running: {left}"

    def _next(self, settings: dict[str, Any]) -> Path:
        return Path(settings.pop("folder", self._folder / str(len(self.started))))

    def _add(self, command: Any) -> Any:
        self.started.append(command)
        return command


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    started = Commands(tmp_path)
    try:
        yield started
    finally:
        started.end()


class Outcome(NamedTuple):
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Runs commands in this process that end before they start another one."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, **settings: Any) -> Outcome:
        done = CliRunner().invoke(
            cli, [str(argument) for argument in arguments], env=environment(tmp_path, **settings)
        )
        return Outcome(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def sabotage(tmp_path: Path) -> Sabotage:
    folder = tmp_path / "sabotage"
    folder.mkdir()
    return Sabotage(folder)


@pytest.fixture(scope="module")
def module_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """For servers that the tests of one module share, and may harm."""
    started = Commands(tmp_path_factory.mktemp("module"))
    try:
        yield started
    finally:
        started.end()


class SharedServers:
    """Servers that the tests of all modules share, by their settings. Tests leave them as they were.

    A start takes seconds of a core, so a server stays until the end. `KEPT`: so many with other settings
    than the demo's; a test or a module does not use more at a time.
    """

    KEPT = 3

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._folders = tmp_path_factory
        self._started: dict[frozenset[tuple[str, Any]], Commands] = {}  # the last one that was used is last

    def __call__(self, **settings: Any) -> Server:
        wanted = frozenset(settings.items())
        if (started := self._started.pop(wanted, None)) is None:
            others = [other for other in self._started if other]
            if wanted and len(others) >= self.KEPT:
                self._started.pop(others[0]).end()
            started = Commands(self._folders.mktemp("shared"))
            started.serve(**settings)
        self._started[wanted] = started
        [server] = started.started
        assert isinstance(server, Server)
        return server.wait_until_ready()

    def end(self) -> None:
        for started in self._started.values():
            started.end()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    """Starts servers that tests share: `shared(**settings)`."""
    servers = SharedServers(tmp_path_factory)
    try:
        yield servers
    finally:
        servers.end()


@pytest.fixture(scope="session")
def server(shared: SharedServers) -> Server:
    """The demo model on two workers, for tests that only send requests."""
    return shared()


@pytest.fixture(scope="module")
def emptied(server: Server) -> Server:
    """The same server without jobs and uploads of other modules, for tests that look for files left."""
    without_jobs(server)
    for path in (server.data / "uploads").iterdir():
        server.client.delete(
            f"/v1/uploads/{path.name}", headers={"Tus-Resumable": "1.0.0"}
        ).raise_for_status()
    return server


def without_jobs(server: Server) -> Server:
    """Delete all jobs of a server, those in the trash too."""
    for trash in (False, True):
        shown = {"limit": 100, "trash": trash}
        while jobs := server.client.get("/v1/jobs", params=shown).raise_for_status().json()["data"]:
            for job in jobs:
                server.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    return server


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    """Threads for requests that run while the test does something else."""
    with ThreadPoolExecutor(16) as threads:
        yield threads


@pytest.fixture(scope="session")
def talk() -> Talk:
    return Talk(DATA / "talk.flac")


@pytest.fixture(scope="session")
def dialogue() -> Talk:
    """Three people."""
    return Talk(DATA / "dialogue.flac")


@pytest.fixture(scope="session")
def shorts() -> list[Path]:
    return sorted(DATA.glob("short*.flac"))


@pytest.fixture(scope="session")
def talk_pcm(talk: Talk) -> Pcm:
    return read_pcm(talk.path)


@pytest.fixture(scope="session")
def two_minutes(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wav(tmp_path_factory.mktemp("talks"), np.resize(talk_pcm, 126 * RATE))


@pytest.fixture(scope="session")
def one_window_each(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes of talk in which each clip takes one window: only the first clip of the talk takes two."""
    return write_wav(tmp_path_factory.mktemp("talks"), np.resize(talk_pcm[21 * RATE :], 126 * RATE))


@pytest.fixture(scope="session")
def two_minutes_srt(server: Server, two_minutes: Path) -> str:
    """Its subtitles, from a server that is not disturbed."""
    return server.srt(two_minutes)


@pytest.fixture(scope="session")
def ten_minutes(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Talk that takes seconds to transcribe."""
    return write_wav(tmp_path_factory.mktemp("talks"), np.resize(talk_pcm, 600 * RATE))


@pytest.fixture(scope="session")
def half_an_hour(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Talk that takes longer to transcribe than a stopping server waits for requests."""
    return write_wav(tmp_path_factory.mktemp("talks"), np.resize(talk_pcm, 1800 * RATE))


@pytest.fixture(scope="session")
def ten_minutes_with_breaks(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Much to decode and to search for speech, and less to transcribe."""
    talk_and_break = np.pad(talk_pcm, (0, 120 * RATE))
    return write_wav(tmp_path_factory.mktemp("talks"), np.resize(talk_and_break, 600 * RATE))


def write_wav(folder: Path, pcm: Pcm) -> Path:
    path = folder / "talk.wav"
    path.write_bytes(wav_header(pcm.nbytes) + pcm.astype("<i2").tobytes())
    return path


@pytest.fixture(scope="session")
def health_s(server: Server, ten_minutes_with_breaks: Path) -> list[float]:
    """How long `/health` took to answer while ten minutes of talk were transcribed (s)."""
    found = []
    with ThreadPoolExecutor(1) as background:
        work = background.submit(server.srt, ten_minutes_with_breaks)
        while not work.done():
            began = time.perf_counter()
            server.client.get("/health").raise_for_status()
            found.append(time.perf_counter() - began)
            time.sleep(0.02)
        work.result()
    return found
