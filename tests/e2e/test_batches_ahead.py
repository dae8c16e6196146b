"""Workers that have a batch ready while they decode another, as those on GPUs do, here on the CPU."""

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
    faults.plan(two_batches=True, memory_wait_s=3600)
    return module_commands.ready(**ONE_WORKER, **faults.settings)


@pytest.fixture
def service(with_faults: Server, faults: Sabotage) -> Server:
    """A server with one worker, which is idle; its faults can be planned."""
    faults.plan()
    return with_faults.wait_until_ready()


def the_worker(server: Server) -> dict:
    [row] = server.workers()
    return row


@pytest.mark.soak
def test_a_cancelled_job_ends_and_the_next_one_runs(service, two_minutes, shorts, server):
    before = the_worker(service)["clips"]
    job = service.submit(two_minutes)
    wait_for(lambda: the_worker(service)["clips"] > before)
    service.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    assert service.srt(shorts[0]) == server.srt(shorts[0])
    wait_for(lambda: the_worker(service)["state"] == "idle")
    clips = the_worker(service)["clips"]
    assert service.srt(shorts[1]) == server.srt(shorts[1])
    assert the_worker(service)["clips"] == clips + 1


@pytest.mark.soak
def test_a_hang_and_short_memory_cost_no_words(
    service, faults, server, talk_pcm, tmp_path, two_minutes, two_minutes_srt, background
):
    before = the_worker(service)["restarts"]
    hanging = write_wav(tmp_path, with_pattern(talk_pcm[: 8 * RATE], 3, HANGING))
    assert service.srt(hanging) == server.srt(hanging)
    assert the_worker(service)["restarts"] == before + 1
    faults.plan(batch_limits={"auto": 1})
    requests = [background.submit(service.srt, two_minutes) for _ in range(3)]  # so that clips queue up
    assert [request.result() for request in requests] == [two_minutes_srt] * 3
    row = the_worker(service)
    assert row["batch_size"] == 1
    assert "out of memory" in row["error"]
    assert row["restarts"] == before + 1


@pytest.mark.soak
def test_a_server_stops_with_two_batches_in_flight(commands, sabotage, half_an_hour, background):
    sabotage.plan(two_batches=True)
    service = commands.ready(**ONE_WORKER, **sabotage.settings)
    work = background.submit(service.post, half_an_hour)
    wait_for(lambda: the_worker(service)["clips"] >= 1)
    os.kill(service.pid, signal.SIGTERM)
    assert service.wait(30) == 0
    wait_for(lambda: not service.running(), 10)
    assert not service.left_files()
    assert work.result().status_code == 503
    assert "Traceback" not in service.stderr
