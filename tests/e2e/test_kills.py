"""What happens when processes are killed, and when the service is stopped."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from app.engines.devices import usable_cores
from tests.e2e.fixtures import Commands, write_wav
from tests.e2e.reading import Talk
from tests.e2e.running import ONE_SIMULATED, Server, wait_for
from tests.e2e.saboteur.sitecustomize import HANGING
from tests.e2e.test_faults import with_pattern
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(120)

MEDIA_WORKERS = min(4, usable_cores())


@pytest.fixture(scope="module")
def with_kills(module_commands: Commands, talk: Talk) -> Server:
    """A server whose children are killed."""
    server = module_commands.ready()
    server.srt(talk.path)  # the second media worker starts for its first work
    return server


@pytest.fixture
def calm(with_kills: Server) -> Server:
    """The same server, once all its children run."""
    wait_for(lambda: all(row["state"] == "idle" for row in with_kills.workers()))
    wait_for(lambda: len(with_kills.media_workers()) == MEDIA_WORKERS)
    return with_kills


def opens(process: psutil.Process, folder: Path) -> bool:
    """Whether a process has a file in a folder open, even a deleted one."""
    return any(path.startswith(str(folder)) for path in open_paths(process.pid))


def open_paths(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield str(entry.readlink())
        except OSError:
            continue


def transcribed(server: Server) -> int:
    """How many clips all workers have transcribed."""
    return sum(row["clips"] for row in server.workers())


def busy(server: Server, clips: int = 0) -> dict | None:
    """A worker with a batch in flight, once more than so many clips have been transcribed."""
    rows = server.workers()
    begun = sum(row["clips"] for row in rows) > clips
    return next((row for row in rows if begun and row["state"] == "busy" and row["pid"]), None)


def restarts(server: Server) -> int:
    return sum(row["restarts"] for row in server.workers())


def test_a_worker_killed_while_idle_is_replaced(calm, shorts):
    victim = calm.workers()[1]
    calm.kill(victim["pid"])
    row = wait_for(
        lambda: (row := calm.workers()[1])["state"] == "idle" and row["pid"] != victim["pid"] and row
    )
    assert (row["restarts"], row["visible_devices"], row["error"]) == (victim["restarts"] + 1, "1", None)
    assert calm.client.get("/ready").status_code == 200
    assert calm.srt(shorts[0])


def send_and_disconnect(server, content, after_s):
    """Send a recording, and wait no longer than this for its transcript."""
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{server.url}/v1/audio/transcriptions",
            data={"model": "whisper-1"},
            files={"file": content},
            timeout=httpx.Timeout(60, read=after_s),
            trust_env=False,
        )


@pytest.mark.soak
def test_clients_that_disconnect_early_leave_no_files(calm, ten_minutes):
    """Their recordings are being decoded then."""
    content = ten_minutes.read_bytes()
    for number in range(15):
        send_and_disconnect(calm, content, 0.003 * (number + 1))
    time.sleep(1)
    wait_for(lambda: all(row["state"] == "idle" for row in calm.workers()), 30)
    wait_for(lambda: not calm.left_files(), 3)
    wait_for(lambda: not any(opens(child, calm.data) for child in calm.media_workers()), 3)


@pytest.mark.soak
def test_the_work_of_a_client_that_disconnects_is_cancelled(calm, ten_minutes):
    content = ten_minutes.read_bytes()
    before = sum(row["audio_s"] for row in calm.workers())
    restarts_before = restarts(calm)
    send_and_disconnect(calm, content, 1)
    wait_for(lambda: not calm.left_files(), 10)
    wait_for(lambda: all(row["state"] == "idle" for row in calm.workers()), 30)
    assert sum(row["audio_s"] for row in calm.workers()) - before < 500  # of 600
    assert restarts(calm) == restarts_before


def test_the_children_of_a_killed_server_exit(commands, ten_minutes, background):
    server = commands.ready(WHISPER_GPUS="0")
    work = background.submit(server.post, ten_minutes)
    wait_for(lambda: busy(server), pause_s=0.005)
    server.die()
    assert isinstance(work.exception(), httpx.TransportError)
    # The next server on this folder removes the leftovers.
    assert server.left_files()
    successor = commands.restart(server, **ONE_SIMULATED)
    assert not successor.left_files()


@pytest.mark.soak
def test_the_children_of_a_server_killed_while_it_starts_exit(commands):
    server = commands.serve()
    wait_for(lambda: len(psutil.Process(server.pid).children()) >= 4)
    server.die()


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM])
def test_a_server_stops_within_ten_seconds(commands, sabotage, talk_pcm, tmp_path, background, number):
    """Its worker hangs then."""
    hanging = write_wav(tmp_path, with_pattern(talk_pcm[: 8 * RATE], 3, HANGING))
    server = commands.ready(WHISPER_GPUS="0", **sabotage.settings)
    work = background.submit(server.post, hanging)
    wait_for(lambda: any(row["state"] == "busy" for row in server.workers()))
    began = time.monotonic()
    if number == signal.SIGINT:
        os.killpg(server.pid, number)  # as Ctrl-C does
    else:
        os.kill(server.pid, number)
    assert server.wait(30) == 0
    assert time.monotonic() - began < 10
    wait_for(lambda: not server.running(), 2)
    assert not server.left_files()
    # The interrupted request gets an error that says so, and the log shows no failure.
    answer = work.result()
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "server_error")
    assert "stopping" in answer.json()["error"]["message"]
    assert "Traceback" not in server.stderr


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM])
def test_a_server_can_be_stopped_while_it_starts(commands, number):
    server = commands.serve().wait_until_up()
    os.killpg(server.pid, number) if number == signal.SIGINT else os.kill(server.pid, number)
    assert server.wait(10) == 0
    wait_for(lambda: not server.running(), 2)
    assert "Traceback" not in server.stderr
