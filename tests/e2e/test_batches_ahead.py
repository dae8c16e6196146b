"""Workers that take over a batch while they decode the one before, as those on GPUs do, here on the CPU."""

import os
import signal

import pytest

from tests.e2e.fixtures import Commands, write_wav
from tests.e2e.running import Server, wait_for
from tests.e2e.sabotage import Sabotage
from tests.e2e.saboteur.sitecustomize import HANGING
from tests.e2e.test_faults import with_pattern
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(240)

# With two threads, it forms batches of up to 4 windows.
ONE_WORKER = {"WHISPER_GPUS": "0", "WHISPER_CPU_THREADS": 2, "WHISPER_BATCH_TIMEOUT_S": 5}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Sabotage:
    """Those of `with_faults`."""
    return Sabotage(tmp_path_factory.mktemp("sabotage"))


@pytest.fixture(scope="module")
def with_faults(module_commands: Commands, faults: Sabotage) -> Server:
    faults.plan(overlap=True, memory_wait_s=3600)
    return module_commands.ready(**ONE_WORKER, **faults.settings)


@pytest.fixture
def overlapping(with_faults: Server, faults: Sabotage) -> Server:
    """A server with one worker, which is idle; its faults can be planned."""
    faults.plan()
    return with_faults.wait_until_ready()


def the_worker(server: Server) -> dict:
    [row] = server.workers()
    return row


@pytest.mark.soak
def test_kills_cost_only_time(overlapping, faults, two_minutes, two_minutes_srt, shorts, server, background):
    before = the_worker(overlapping)["restarts"]
    work = [background.submit(overlapping.srt, path) for path in (two_minutes, *shorts)]
    for _ in range(2):
        victim = wait_for(lambda: the_worker(overlapping)["state"] == "busy" and the_worker(overlapping))
        overlapping.kill(victim["pid"])
        wait_for(lambda pid=victim["pid"]: the_worker(overlapping)["pid"] not in (pid, None))
    subtitles = [one.result() for one in work]
    assert subtitles == [two_minutes_srt, *(server.srt(path) for path in shorts)]
    assert faults.overlapped
    assert the_worker(overlapping)["restarts"] == before + 2
    assert not overlapping.left_files()


@pytest.mark.soak
def test_a_cancelled_job_ends_and_the_next_one_runs(overlapping, two_minutes, shorts, server):
    before = the_worker(overlapping)["clips"]
    job = overlapping.submit(two_minutes)
    wait_for(lambda: the_worker(overlapping)["clips"] > before)
    overlapping.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    assert overlapping.srt(shorts[0]) == server.srt(shorts[0])
    wait_for(lambda: the_worker(overlapping)["state"] == "idle")
    clips = the_worker(overlapping)["clips"]
    assert overlapping.srt(shorts[1]) == server.srt(shorts[1])
    assert the_worker(overlapping)["clips"] == clips + 1


@pytest.mark.soak
def test_a_hang_and_short_memory_cost_no_words(
    overlapping, faults, server, talk_pcm, tmp_path, two_minutes, two_minutes_srt, background
):
    before = the_worker(overlapping)["restarts"]
    hanging = write_wav(tmp_path, with_pattern(talk_pcm[: 8 * RATE], 3, HANGING))
    assert overlapping.srt(hanging) == server.srt(hanging)
    assert the_worker(overlapping)["restarts"] == before + 1
    faults.plan(batch_limits={"auto": 1})
    requests = [background.submit(overlapping.srt, two_minutes) for _ in range(3)]  # so that clips queue up
    assert [request.result() for request in requests] == [two_minutes_srt] * 3
    row = the_worker(overlapping)
    assert row["batch_size"] == 1
    assert "out of memory" in row["error"]
    assert row["restarts"] == before + 1


@pytest.mark.soak
def test_a_server_stops_with_two_batches_in_flight(commands, sabotage, half_an_hour, background):
    sabotage.plan(overlap=True)
    overlapping = commands.ready(**ONE_WORKER, **sabotage.settings)
    work = background.submit(overlapping.post, half_an_hour)
    wait_for(lambda: the_worker(overlapping)["clips"] >= 1)
    os.kill(overlapping.pid, signal.SIGTERM)
    assert overlapping.wait(30) == 0
    wait_for(lambda: not overlapping.running(), 10)
    assert not overlapping.left_files()
    assert work.result().status_code == 503
    assert "Traceback" not in overlapping.stderr
