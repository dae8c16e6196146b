"""What happens when processes are killed, and when the service is stopped."""

import os
import signal
import time

import httpx
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
